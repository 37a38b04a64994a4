"""The places of partitions on the map are those that the decider can use at the same time."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest
from tests.dashboard.small_world import resource_slice
from tests.dashboard.visit import Visit, visit

from dryrack.client.endpoints import SLICES
from dryrack.dashboard.data.placements import placements_of
from dryrack.kinds.decode import decode
from dryrack.kinds.resource import ResourceSlice
from dryrack.placement import devices_of, free_at_once


def card(totals: dict[str, str], parts: dict[str, dict[str, str]]) -> list[dict[str, Any]]:
    """Return the slices of a pool with one physical device and its partitions."""
    amounts = {name: {"value": value} for name, value in totals.items()}
    pool = {"name": "rack-1", "generation": 1, "resourceSliceCount": 2}
    spec: dict[str, Any] = {"driver": "gpu.example.com", "nodeName": "rack-1", "pool": pool}
    devices = [
        {
            "name": name,
            "consumesCounters": [
                {"counterSet": "card", "counters": {k: {"value": v} for k, v in taken.items()}}
            ],
        }
        for name, taken in parts.items()
    ]
    specs: list[dict[str, Any]] = [
        {"sharedCounters": [{"name": "card", "counters": amounts}]},
        {"devices": devices},
    ]
    return [
        {"metadata": {"name": f"rack-1-{n}"}, "spec": spec | each} for n, each in enumerate(specs)
    ]


def places(totals: dict[str, str], parts: dict[str, dict[str, str]]) -> dict[str, Any]:
    slices = [decode(each, ResourceSlice) for each in card(totals, parts)]
    return {name: tuple(place) for name, place in placements_of(slices).items()}


PLACES = {f"memory-slice-{n}": "1" for n in range(8)} | {"memory": "40Gi", "engines": "7"}
PARTS = {
    f"{width}-at-{start}": {
        **{f"memory-slice-{n}": "1" for n in range(start, start + width)},
        "memory": f"{5 * width}Gi",
    }
    for width, starts in ((1, range(7)), (2, (0, 2, 4)), (4, (0, 4)), (8, (0,)))
    for start in starts
}


def test_a_partition_is_at_the_places_whose_counters_it_consumes() -> None:
    """Its start, its width, the number of places, and the percentage of the memory."""
    assert places(PLACES, PARTS) == {
        name: (int(name[-1]), int(name[0]), 8, 100 * int(name[0]) // 8) for name in PARTS
    }


def test_partitions_overlap_exactly_if_the_decider_refuses_both() -> None:
    """Two slices that do not overlap on the map can be allocated at the same time."""
    slices = [decode(each, ResourceSlice) for each in card(PLACES, PARTS)]
    found = placements_of(slices)
    for pair in combinations(devices_of(slices, []), 2):
        one, other = sorted((found[each.device] for each in pair), key=lambda each: each.start)

        assert (free_at_once(pair).count == 2) == (one.start + one.width <= other.start), pair


@pytest.mark.parametrize(
    ("totals", "taken", "place"),
    [
        ({"memory": "80Gi"}, {"memory": "20Gi"}, (-1, 25, 100, 25)),
        ({"cores": "8"}, {"cores": "2"}, (-1, 25, 100, -1)),
        ({"core-0": "1", "memory": "80Gi"}, {"memory": "80Gi"}, (-1, 100, 100, 100)),
    ],
)
def test_a_partition_without_places_has_a_width(
    totals: dict[str, str], taken: dict[str, str], place: tuple[int, ...]
) -> None:
    """It is the share of the memory, or else of the counter of which it takes most."""
    assert places(totals, {"part": taken}) == {"part": place}


def test_the_map_has_placement_and_memory() -> None:
    """The columns are indexes into the tables; a device without partitions has no placement."""

    async def story(page: Visit) -> None:
        plain = {"name": "plain", "capacity": {"memory": {"value": "80Gi"}}}
        await page.client.create(SLICES, resource_slice("rack-3", [plain]))
        for each in card(PLACES, {"part": PARTS["2-at-4"]}):
            each["spec"]["pool"]["name"] = "rack-4"
            each["metadata"]["name"] = each["metadata"]["name"].replace("rack-1", "rack-4")
            await page.client.create(SLICES, each)
        await page.clock.advance(0.2)
        fleet = await page.get("fleet")
        columns = fleet["devices"]
        rows = {
            fleet["names"][name]: (place, fleet["memories"][memory])
            for name, place, memory in zip(
                columns["name"], columns["placement"], columns["memory"], strict=True
            )
        }

        assert rows["plain"] == (-1, "80Gi")
        place = {"start": 4, "width": 2, "of": 8, "memory": 25}
        assert fleet["placements"][rows["part"][0]] == place

    visit(story)
