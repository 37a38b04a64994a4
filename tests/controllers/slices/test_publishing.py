"""The publisher on an embedded server: what it makes, keeps, mends and leaves alone."""

from __future__ import annotations

import asyncio

from tests.controllers.slices.stages import GPUS, stage


def test_a_node_gets_its_slices_as_soon_as_it_is_there() -> None:
    """No time passes between the node and its devices."""

    async def scene() -> None:
        async with stage(GPUS) as at:
            node = await at.node("node-a", gpu="yes")
            await at.rest()

            [only] = await at.slices("node-a")
            assert [device["name"] for device in only["spec"]["devices"]] == ["t4-0", "t4-1"]
            assert only["metadata"]["ownerReferences"][0]["uid"] == node["metadata"]["uid"]

    asyncio.run(scene())
