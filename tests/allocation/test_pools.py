"""Pools as a node sees them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.allocation.builders import DRIVER, device, node, slice_

from dryrack.allocation import Features, Release
from dryrack.allocation.model.identity import PoolId
from dryrack.allocation.supply.pools import Inventory, Pool
from dryrack.kinds.releases import DEFAULT_RELEASE

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pytest

FEATURES = Features.defaults()


def one(name: str, *, generation: int = 1, count: int = 1, devices: Any = (), **spec: Any) -> Any:
    of_pool = {"name": spec.pop("pool", "pool"), "generation": generation}
    return slice_(
        name,
        {
            "driver": DRIVER,
            "pool": {**of_pool, "resourceSliceCount": count},
            "devices": [device(each) for each in devices],
            **(spec or {"nodeName": "node-1"}),
        },
    )


def pools(*slices: Any, on: str = "node-1", **labels: str) -> tuple[Pool, ...]:
    return Inventory(slices, FEATURES, DEFAULT_RELEASE).pools(node(on, **labels))


def names(pool: Pool) -> list[str]:
    return [pooled.id.device for pooled in pool.devices]


def test_only_the_newest_generation_counts() -> None:
    """Slices of an older generation are as good as gone."""
    [pool] = pools(one("a", devices=["old"]), one("b", generation=2, devices=["new"]))

    assert names(pool) == ["new"]


def test_an_incomplete_pool_offers_nothing() -> None:
    """Two of three slices are reported as incomplete, and no device is offered."""
    [pool] = pools(one("a", count=3, devices=["x"]), one("b", count=3, devices=["y"]))

    assert pool.incomplete == (2, 3)
    assert names(pool) == []


def test_slices_of_other_nodes_complete_a_pool() -> None:
    """Completeness is the pool's, not the node's."""
    [pool] = pools(one("a", count=2, devices=["x"]), one("b", count=2, nodeName="node-2"))

    assert pool.incomplete is None
    assert names(pool) == ["x"]


def test_a_pool_being_replaced_is_left_alone() -> None:
    """If a newer generation has nothing for the node, the older one is not used either."""
    assert pools(one("a", count=2), one("b", generation=2, count=2, nodeName="node-2")) == ()


def test_one_name_twice_makes_a_pool_invalid() -> None:
    """A device name stands for one device."""
    [pool] = pools(one("a", count=2, devices=["x"]), one("b", count=2, devices=["x"]))

    assert pool.invalid == "duplicate device name x"
    assert names(pool) == []


def test_slices_go_by_name_and_devices_as_listed() -> None:
    """Names of slices are how a driver states its preference."""
    [pool] = pools(one("b", count=2, devices=["z", "y"]), one("a", count=2, devices=["x"]))

    assert names(pool) == ["x", "z", "y"]


def test_pools_go_by_driver_and_name_with_binding_conditions_last() -> None:
    """A device that has to be waited for is the last choice."""
    waiting = one("a", pool="a")
    spec = waiting.spec
    bound = device("x", more={"bindingConditions": ["Ready"]})
    waiting = slice_(
        "a",
        {
            "driver": spec.driver,
            "pool": {"name": "a", "generation": 1, "resourceSliceCount": 1},
            "nodeName": "node-1",
            "devices": [bound],
        },
    )
    found = pools(waiting, one("c", pool="c"), one("b", pool="b"))

    assert [pool.id for pool in found] == [PoolId(DRIVER, name) for name in ("b", "c", "a")]


def test_node_selectors_are_asked() -> None:
    """A slice for nodes with a label is for those nodes."""
    term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
    offered = one("a", devices=["x"], nodeSelector={"nodeSelectorTerms": [term]})

    assert len(pools(offered, zone="a")) == 1
    assert pools(offered, zone="b") == ()


def test_a_node_costs_its_own_slices_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """A query for one of ten thousand nodes reads its slices and shared ones alone."""
    slices = [
        one(f"s-{n}", pool=f"node-{n}", devices=["x"], nodeName=f"node-{n}") for n in range(10_000)
    ]
    inventory = Inventory([*slices, one("s", pool="s", allNodes=True)], FEATURES, DEFAULT_RELEASE)
    looked_at: list[int] = []
    view = Inventory._view

    def counted(self: Inventory, pool: PoolId, numbers: Sequence[int]) -> Pool | None:
        looked_at.extend(numbers)
        return view(self, pool, numbers)

    monkeypatch.setattr(Inventory, "_view", counted)

    assert len(inventory.pools(node("node-77"))) == 2
    assert looked_at == [77, 10_000]


def counter_slice(pool: str, *, count: int, generation: int = 1) -> Any:
    """A slice with counters, for another node."""
    counters = [{"name": "gpu", "counters": {"memory": {"value": "1"}}}]
    more = {"pool": pool, "nodeName": "node-2", "sharedCounters": counters}
    return one(f"{pool}-counters", count=count, generation=generation, **more)


def test_counter_sets_tied_to_a_node_changed_in_1_37() -> None:
    """Up to 1.36 all nodes see a slice with counters; later only the nodes that need it."""
    counters = counter_slice("pool", count=2)
    [pool] = Inventory([counters], FEATURES, Release.V1_36).pools(node())

    assert pool.incomplete == (1, 2)
    assert Inventory([counters], FEATURES, Release.V1_37).pools(node()) == ()


def test_counters_of_other_nodes_matter_only_if_they_make_no_sense() -> None:
    """A node does not see every pool of its fleet, but every incomplete one."""
    inventory = Inventory([one("own", devices=["x"])], FEATURES, Release.V1_36)
    for number in range(50):
        inventory.add(counter_slice(f"other-{number:02}", count=1))
    entry = inventory.add(counter_slice("another", count=2))

    assert [pool.id.pool for pool in inventory.pools(node())] == ["another", "pool"]
    inventory.add(one("rest", pool="another", count=2, nodeName="node-2"))
    assert [pool.id.pool for pool in inventory.pools(node())] == ["pool"]
    inventory.remove(entry)
    assert [pool.id.pool for pool in inventory.pools(node())] == ["pool"]
