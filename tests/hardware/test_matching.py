"""From an inventory to the pools of a node and of the cluster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import pytest
from tests.hardware.dialects.examples import node

from dryrack.hardware.inventory import (
    Assignment,
    Batch,
    EveryNode,
    Inventory,
    Origin,
    Overlay,
    PerDevice,
    SelectedNodes,
    SourceKind,
    ThisNode,
)
from dryrack.hardware.matching import Matcher, pools_of
from dryrack.hardware.node_terms import EVERY_NODE, INSTANCE_TYPE, of_labels
from dryrack.kinds.core import Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from dryrack.kinds.quantity import Quantity
from dryrack.kinds.resource import Counter, CounterSet, Device, DeviceCounterConsumption
from dryrack.kinds.validation.names import pool_name

if TYPE_CHECKING:
    from dryrack.hardware.inventory import Pool, Reach

DRIVER = "gpu.example.com"
GPU = of_labels({"gpu": "a"})


def batch(*devices: str, pool: str = "", reach: Reach | None = None) -> Batch:
    made = tuple(Device(name=name) for name in devices)
    return Batch(DRIVER, pool, reach or ThisNode(), made)


def assignment(
    part: str,
    *batches: Batch,
    terms: tuple[NodeSelectorTerm, ...] = GPU,
    kind: SourceKind = SourceKind.CONFIG_MAP,
    name: str = "config",
) -> Assignment:
    return Assignment(Origin(kind, name, part), terms, batches)


def overlay(name: str, weight: int = 0, *, capacity: Mapping[str, str] | None = None) -> Overlay:
    made = assignment(name, batch(f"{name}-0"), kind=SourceKind.OVERLAY, name=name)
    amounts = {resource: Quantity.parse(text) for resource, text in (capacity or {}).items()}
    return Overlay(made, weight, amounts)


def devices(pool: Pool) -> list[str]:
    return [device.name for section in pool.sections for device in section.devices]


def names_on(inventory: Inventory, labels: Mapping[str, str]) -> list[str]:
    """All devices of a node with these labels."""
    pools = pools_of(inventory, node(labels=labels)).pools
    return [name for pool in pools for name in devices(pool)]


def selected(*terms: NodeSelectorTerm) -> SelectedNodes:
    return SelectedNodes(NodeSelector(node_selector_terms=terms))


EVERYTHING = Inventory(
    overlays=(overlay("light", 1), overlay("heavy", 5)),
    assignments=(assignment("one", batch("one-0")), assignment("two", batch("two-0"))),
    instance_types={
        "p5": assignment(
            "p5",
            batch("p5-0"),
            terms=of_labels({INSTANCE_TYPE: "p5"}),
            kind=SourceKind.CATALOGUE,
            name="p5",
        )
    },
)
LABELS = {"gpu": "a", INSTANCE_TYPE: "p5"}


def test_the_heaviest_overlay_comes_before_everything() -> None:
    """One of the overlays that match counts, and nothing else does."""
    assert names_on(EVERYTHING, LABELS) == ["heavy-0"]


def test_all_mappings_come_before_the_catalogue() -> None:
    """If no overlay matches, all assignments that match count, and the catalog does not."""
    inventory = Inventory(
        assignments=EVERYTHING.assignments, instance_types=EVERYTHING.instance_types
    )

    assert names_on(inventory, LABELS) == ["one-0", "two-0"]


def test_the_catalogue_is_for_nodes_that_nobody_speaks_of() -> None:
    """The instance type decides only where no overlay and no mapping matches."""
    assert names_on(EVERYTHING, {INSTANCE_TYPE: "p5"}) == ["p5-0"]
    assert names_on(EVERYTHING, {INSTANCE_TYPE: "p6"}) == []
    assert names_on(EVERYTHING, {}) == []


def test_an_entry_of_the_catalogue_is_for_the_type_of_its_name() -> None:
    """Unless its terms say more."""
    entry = assignment("", batch("x-0"), terms=(), kind=SourceKind.CATALOGUE, name="x")
    inventory = Inventory(instance_types={"x": entry})

    assert names_on(inventory, {INSTANCE_TYPE: "x"}) == ["x-0"]
    assert names_on(inventory, {INSTANCE_TYPE: "y"}) == []


def test_between_overlays_of_one_weight_the_later_name_wins() -> None:
    """The order is that of Karpenter, for any order of the sources."""
    some = (overlay("b", 3), overlay("c", 3), overlay("a", 3))

    assert names_on(Inventory(overlays=some), {"gpu": "a"}) == ["c-0"]
    assert names_on(Inventory(overlays=some[::-1]), {"gpu": "a"}) == ["c-0"]


def test_an_overlay_without_requirements_is_for_every_node() -> None:
    """It requires nothing, so that every node meets it."""
    every = assignment("all", batch("all-0"), terms=(EVERY_NODE,), kind=SourceKind.OVERLAY)

    assert names_on(Inventory(overlays=(Overlay(every, 0, {}),)), {}) == ["all-0"]


@pytest.mark.parametrize(
    ("capacity", "told"),
    [
        ({f"{DRIVER}/device": "1"}, []),
        ({f"{DRIVER}/device": "8"}, ["capacity of gpu.example.com/device is 8, but"]),
        ({f"{DRIVER}/device": "1k"}, ["capacity of gpu.example.com/device is 1k, but"]),
        ({"nvidia.com/gpu": "8"}, []),
        ({}, []),
    ],
)
def test_an_overlay_is_held_to_its_promise(capacity: dict[str, str], told: list[str]) -> None:
    """The resource that begins with the driver's name says how many devices there are."""
    inventory = Inventory(overlays=(overlay("o", capacity=capacity),))

    notes = pools_of(inventory, node(labels={"gpu": "a"})).notes

    assert [note.message.partition(" gpu.example.com publishes")[0] for note in notes] == told


def test_origins_share_a_pool_as_sections() -> None:
    """Several mappings for one pool result in one pool, with a section for each."""
    inventory = Inventory(
        assignments=(
            assignment("one", batch("gpu-0", pool="x"), batch("gpu-1", pool="x")),
            assignment("two", batch("gpu-2", pool="x"), batch("gpu-0", pool="y")),
        )
    )
    first, second = pools_of(inventory, node(labels={"gpu": "a"})).pools

    assert (first.name, second.name) == ("n1/x", "n1/y")
    assert [(each.origin.part, len(each.devices)) for each in first.sections] == [
        ("one", 2),
        ("two", 1),
    ]


def test_of_two_devices_with_one_name_the_first_stays() -> None:
    """No scheduler uses a pool with a duplicate name; the second owner gets a note."""
    inventory = Inventory(
        assignments=(
            assignment("one", batch("gpu-0")),
            assignment("two", batch("gpu-0", "gpu-1")),
        )
    )
    matched = pools_of(inventory, node(labels={"gpu": "a"}))
    (pool,) = matched.pools

    assert devices(pool) == ["gpu-0", "gpu-1"]
    (note,) = matched.notes
    assert note.origin.part == "two"
    assert note.message == (
        "driver gpu.example.com, pool of the node:"
        " ConfigMap config (one) already defines device gpu-0; dryrack keeps the first"
    )


def partition(name: str, counter_set: str) -> Device:
    counters = {"memory": Counter(value=Quantity.parse("1Gi"))}
    drawn = DeviceCounterConsumption(counter_set=counter_set, counters=counters)
    return Device(name=name, consumes_counters=(drawn,))


def test_counters_may_come_from_another_origin() -> None:
    """Counters belong to the pool; a device whose counters are nowhere is left out."""
    memory = {"memory": Counter(value=Quantity.parse("8Gi"))}
    sets = (CounterSet(name="card", counters=memory),)
    drawing = (partition("half", "card"), partition("lost", "gone"))
    inventory = Inventory(
        assignments=(
            assignment("devices", Batch(DRIVER, "", ThisNode(), drawing)),
            assignment("counters", Batch(DRIVER, "", ThisNode(), (), sets)),
        )
    )
    matched = pools_of(inventory, node(labels={"gpu": "a"}))
    (pool,) = matched.pools

    assert devices(pool) == ["half"]
    assert [section.shared_counters for section in pool.sections] == [(), sets]
    (note,) = matched.notes
    assert note.message == (
        "driver gpu.example.com, pool of the node:"
        " device lost is not published: the pool has no counter set 'gone'"
    )


def test_pools_of_dra_configs_are_one_pool_of_the_node() -> None:
    """Upstream names the pool after driver and node, so all of a driver's make it together."""
    kind = SourceKind.CONFIG
    inventory = Inventory(
        assignments=(
            assignment("a", batch("gpu-0", pool="a"), kind=kind, name="first"),
            assignment("b", batch("gpu-1", pool="b"), kind=kind, name="first"),
            assignment("a", batch("gpu-2", pool="a"), kind=kind, name="second"),
            assignment("m", batch("gpu-0")),
        )
    )
    of_configs, of_node = pools_of(inventory, node(labels={"gpu": "a"})).pools

    assert of_configs.name == "gpu.example.com/n1"
    assert [(each.origin.name, each.origin.part) for each in of_configs.sections] == [
        ("first", "a"),
        ("first", "b"),
        ("second", "a"),
    ]
    assert devices(of_configs) == ["gpu-0", "gpu-1", "gpu-2"]
    assert (of_node.name, devices(of_node)) == ("n1", ["gpu-0"])


def test_long_names_stay_valid_and_different() -> None:
    """A node's name may have 253 characters, and so may a pool's: the two do not fit together."""
    names = [f"{'n' * 249}.n{end}" for end in "ab"]
    pools = [f"{'p' * 60}.{'q' * 60}.{end}" for end in "ab"]
    inventory = Inventory(
        assignments=(assignment("x", *(batch("gpu-0", pool=pool) for pool in pools)),)
    )
    made = [
        pool.name for name in names for pool in pools_of(inventory, node(name, {"gpu": "a"})).pools
    ]

    assert len(set(made)) == 4
    assert not [problem for name in made for problem in pool_name("", name)]


def shared_pools(inventory: Inventory, nodes: Iterable[Node]) -> tuple[Pool, ...]:
    matcher = Matcher(inventory)
    called = {position for node in nodes for position in matcher.shared_of(node)}
    return matcher.shared_pools(called).pools


def test_a_pool_of_all_nodes_is_there_while_a_node_calls_for_it() -> None:
    """It is one pool for any number of nodes, and none for none."""
    inventory = Inventory(
        assignments=(assignment("disks", batch("disk-0", pool="disks", reach=EveryNode())),)
    )
    with_disks = [node(f"n{number}", {"gpu": "a"}) for number in range(3)]

    (pool,) = shared_pools(inventory, with_disks)

    assert (pool.name, pool.node, pool.reach) == ("disks", "", EveryNode())
    assert shared_pools(inventory, with_disks[:1]) == (pool,)
    assert shared_pools(inventory, [node("other")]) == ()
    assert not pools_of(inventory, with_disks[0]).pools


def test_a_pool_of_all_nodes_without_a_name_has_that_of_its_mapping() -> None:
    """It needs a name that does not depend on any node."""
    inventory = Inventory(assignments=(assignment("disks", batch("disk-0", reach=EveryNode())),))

    assert [pool.name for pool in shared_pools(inventory, [node(labels={"gpu": "a"})])] == ["disks"]


def test_an_overlay_hides_the_shared_devices_of_mappings() -> None:
    """Precedence is per node, and a node with an overlay does not call for what it hides."""
    shared = assignment("disks", batch("disk-0", pool="disks", reach=EveryNode()))
    inventory = Inventory(overlays=(overlay("o"),), assignments=(shared,))

    assert shared_pools(inventory, [node(labels={"gpu": "a"})]) == ()


def test_shared_pools_may_be_for_selected_nodes_or_by_device() -> None:
    """Each way to reach a pool is kept; mappings that agree on it share the pool."""
    zone = NodeSelectorRequirement(key="zone", operator="In", values=("a",))
    somewhere = selected(NodeSelectorTerm(match_expressions=(zone,)))
    inventory = Inventory(
        assignments=(
            assignment("one", batch("disk-0", pool="disks", reach=somewhere)),
            assignment("two", batch("disk-1", pool="disks", reach=somewhere)),
            assignment("three", batch("port-0", pool="ports", reach=PerDevice())),
        )
    )
    disks, ports = shared_pools(inventory, [node(labels={"gpu": "a"})])

    assert (disks.reach, devices(disks)) == (somewhere, ["disk-0", "disk-1"])
    assert (ports.reach, devices(ports)) == (PerDevice(), ["port-0"])


def test_a_shared_pool_is_reached_in_one_way() -> None:
    """If two mappings have different nodes for a pool, the first stays, the second gets a note."""
    matcher = Matcher(
        Inventory(
            assignments=(
                assignment("one", batch("disk-0", pool="disks", reach=EveryNode())),
                assignment("two", batch("disk-1", pool="disks", reach=PerDevice())),
            )
        )
    )
    matched = matcher.shared_pools(matcher.shared_of(node(labels={"gpu": "a"})))

    assert [devices(pool) for pool in matched.pools] == [["disk-0"]]
    assert [note.origin.part for note in matched.notes] == ["two"]


def test_no_pool_of_a_node_takes_the_name_of_a_shared_one() -> None:
    """A pool is known by driver and name; a node that is called like a shared pool has none."""
    inventory = Inventory(
        assignments=(
            assignment("disks", batch("disk-0", pool="n1", reach=EveryNode())),
            assignment("gpus", batch("gpu-0")),
        )
    )
    matched = pools_of(inventory, node("n1", {"gpu": "a"}))

    assert not matched.pools
    assert [note.message for note in matched.notes] == [
        "pool n1 is already published for the whole cluster"
    ]
    assert len(pools_of(inventory, node("n2", {"gpu": "a"})).pools) == 1


class CountedLabels(Mapping[str, str]):
    """Labels that count how often they are looked at."""

    def __init__(self, labels: dict[str, str]) -> None:
        self.looks = 0
        self._labels = labels

    def __getitem__(self, key: str) -> str:
        self.looks += 1
        return self._labels[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._labels)

    def __len__(self) -> int:
        return len(self._labels)


def test_a_node_costs_the_same_beside_a_thousand_mappings() -> None:
    """Mappings for other instance types are not even looked at."""
    mappings = tuple(
        assignment(f"m{number}", batch("x"), terms=of_labels({INSTANCE_TYPE: f"t{number}"}))
        for number in range(1000)
    )
    matcher = Matcher(Inventory(assignments=mappings))
    labels = CountedLabels({INSTANCE_TYPE: "t500"})

    (pool,) = matcher.pools_of(node("n1", labels)).pools

    assert pool.sections[0].origin.part == "m500"
    assert labels.looks < 10


def test_nodes_share_what_is_the_same_on_them() -> None:
    """Ten thousand nodes have the devices of a mapping once in memory."""
    matcher = Matcher(Inventory(assignments=(assignment("one", batch("gpu-0")),)))

    (first,), (second,) = (
        matcher.pools_of(node(name, {"gpu": "a"})).pools for name in ("n1", "n2")
    )

    assert first.sections is second.sections


@pytest.mark.parametrize(
    ("operator", "values", "expected"),
    [
        ("In", ("1", "2"), ["1", "2"]),
        ("NotIn", ("1",), ["2", "10", "word", None]),
        ("Exists", (), ["1", "2", "10", "word"]),
        ("DoesNotExist", (), [None]),
        ("Gt", ("1",), ["2", "10"]),
        ("Lt", ("2",), ["1"]),
    ],
)
def test_operators_mean_what_they_mean_upstream(
    operator: str, values: tuple[str, ...], expected: list[str | None]
) -> None:
    """Numbers are compared as numbers, and a label that is not there is in no list."""
    requirement = NodeSelectorRequirement(key="x", operator=operator, values=values)
    term = NodeSelectorTerm(match_expressions=(requirement,))
    matcher = Matcher(Inventory(assignments=(assignment("x", batch("x"), terms=(term,)),)))

    found = [
        value
        for value in ("1", "2", "10", "word", None)
        if matcher.pools_of(node(labels={} if value is None else {"x": value})).pools
    ]

    assert found == expected


def test_terms_are_alternatives_and_their_requirements_are_not() -> None:
    """One term must match with all its requirements and fields; an empty term matches no node."""
    in_zone = NodeSelectorRequirement(key="zone", operator="In", values=("a",))
    by_name = NodeSelectorRequirement(key="metadata.name", operator="In", values=("n1",))
    terms = (
        NodeSelectorTerm(),
        NodeSelectorTerm(match_expressions=(in_zone,), match_fields=(by_name,)),
        *GPU,
    )
    matcher = Matcher(Inventory(assignments=(assignment("x", batch("x"), terms=terms),)))

    def has(name: str, labels: dict[str, str]) -> bool:
        return bool(matcher.pools_of(node(name, labels)).pools)

    assert has("n1", {"zone": "a"})
    assert has("n2", {"gpu": "a"})
    assert not has("n2", {"zone": "a"})
    assert not has("n1", {"zone": "b"})
    assert not has("n1", {})
