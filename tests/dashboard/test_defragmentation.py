"""The page shows pods whose move frees whole nodes, and the decider confirms it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.dashboard.small_world import DRIVER, allocate, allocation, bind, claim, create, pod
from tests.dashboard.visit import BEARER, Visit, visit

from dryrack.client.endpoints import CLAIMS, NODES, PODS, SLICES
from dryrack.kinds.core import Node
from dryrack.kinds.decode import decode
from dryrack.kinds.resource import ResourceClaim, ResourceSlice
from dryrack.placement import devices_of, summary_of

if TYPE_CHECKING:
    from dryrack.kinds.raw import Raw

OWNER = {
    "apiVersion": "apps/v1",
    "kind": "ReplicaSet",
    "name": "set",
    "uid": "1",
    "controller": True,
}


async def add_movable(page: Visit) -> None:
    """A pod of a ReplicaSet has one of the two devices of rack-2."""
    movable = pod("movable", "two")
    movable["metadata"]["ownerReferences"] = [OWNER]
    await create(page.client, CLAIMS, claim("two"))
    await create(page.client, PODS, movable)
    await bind(page.client, "movable", "rack-2")
    await allocate(page.client, "two", allocation("rack-2", "gpu-0"), "movable")
    await page.clock.advance(1)


def test_the_move_frees_the_node_that_the_answer_names() -> None:
    """After the moves, the decider counts the free devices that the answer has."""

    async def story(page: Visit) -> None:
        await add_movable(page)
        found = await page.get(f"defragment/{DRIVER}")

        assert found["freed"] == ["rack-2"]
        assert found["moves"] == [
            {"pod": "team/movable", "from": "rack-2", "to": "rack-1", "gang": ""}
        ]
        assert (found["nodes"], found["whole"], found["isComplete"]) == (2, 0, True)
        assert found["fixed"] == [
            {
                "name": "team/train",
                "node": "rack-1",
                "why": "it has no controller, so no pod would replace it",
            }
        ]
        assert found["before"] == await summaries(page)
        # The same moves in the cluster itself.
        two = await page.client.get(CLAIMS, "two", "team")
        two["status"]["allocation"] = allocation("rack-1", "gpu-1")
        assert found["after"] == await summaries(page, two)

    visit(story)


async def summaries(page: Visit, *instead: Raw) -> list[Raw]:
    """Return what `dryrack devices` says of the objects of the cluster, with other claims."""
    names = [each["metadata"]["name"] for each in instead]
    claims = [
        *(e for e in (await page.client.list(CLAIMS)).items if e["metadata"]["name"] not in names),
        *instead,
    ]
    slices = (await page.client.list(SLICES)).items
    nodes = (await page.client.list(NODES)).items
    views = devices_of(
        [decode(each, ResourceSlice) for each in slices],
        [decode(each, ResourceClaim) for each in claims],
        (),
        [decode(each, Node) for each in nodes],
    )
    return [each.document() for each in summary_of(views)]


def test_an_unknown_driver_is_an_error() -> None:
    """It names a similar one."""

    async def story(page: Visit) -> None:
        await page.get("fleet")
        async with page.http.get("/api/v1/defragment/gpu.example.con", headers=BEARER) as response:
            assert response.status == 404
            assert DRIVER in (await response.json())["error"]

    visit(story)
