"""The search finds devices by their attributes, and objects by their UID."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest
from tests.dashboard.small_world import DRIVER, create, device, node, resource_slice
from tests.dashboard.visit import Visit, visit

from dryrack.client.endpoints import CLAIMS, NODES, SLICES
from dryrack.dashboard.data.search import HITS_MAX

if TYPE_CHECKING:
    from dryrack.kinds.raw import Raw


async def find(page: Visit, text: str) -> list[Raw]:
    found: list[Raw] = (await page.get(f"search?text={quote(text)}"))["hits"]
    return found


def test_a_device_is_found_by_its_uuid_and_by_any_attribute() -> None:
    """Of any type, with the attribute that matches; all words must match."""

    async def story(page: Visit) -> None:
        await create(page.client, NODES, node("rack-3"))
        uuid = "GPU-3f2a9c1e-aaaa-bbbb"
        attributes = {"uuid": {"string": uuid}, "numa": {"int": 1}, "ecc": {"bool": True}}
        one = device("gpu-0", attributes=attributes)
        await create(page.client, SLICES, resource_slice("rack-3", [one, device("gpu-1")]))

        name = f"{DRIVER}/rack-3/gpu-0"
        for text in ("3F2A9C1E", f"uuid={uuid}", "rack-3 numa=1", "ecc= gpu-0"):
            [hit] = await find(page, text)
            assert (hit["kind"], hit["name"]) == ("device", name), text
        assert (await find(page, "3f2a"))[0]["match"] == f"uuid={uuid}"
        assert await find(page, "rack-1 uuid=") == []

    visit(story)


def test_a_model_finds_its_devices() -> None:
    """At most as many as the page shows."""

    async def story(page: Visit) -> None:
        assert len(await find(page, "example 80gb")) == 4
        devices = [device(f"gpu-{number}") for number in range(2 * HITS_MAX)]
        await create(page.client, NODES, node("rack-3"))
        await create(page.client, SLICES, resource_slice("rack-3", devices))
        assert len(await find(page, "example 80gb")) == HITS_MAX

    visit(story)


@pytest.mark.parametrize("length", [8, 36])
def test_objects_are_found_by_their_uid(length: int) -> None:
    """By the whole UID or a part of it."""

    async def story(page: Visit) -> None:
        uid = (await page.client.get(CLAIMS, "four", "team"))["metadata"]["uid"]
        [hit] = await find(page, uid[-length:])
        expected = {"kind": "claim", "namespace": "team", "name": "four", "match": f"uid={uid}"}
        assert hit == expected

    visit(story)


def test_classes_and_slices_are_found_by_their_name() -> None:
    """An empty search finds nothing."""

    async def story(page: Visit) -> None:
        hits = [(each["kind"], each["name"]) for each in await find(page, "rack-1-g")]
        assert hits == [("slice", "rack-1-gpus")]
        hits = [(each["kind"], each["name"]) for each in await find(page, "gpu")]
        assert ("class", "gpu") in hits
        assert await find(page, " ") == []

    visit(story)
