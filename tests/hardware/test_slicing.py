"""A pool as slices: whole, valid, within the limits, and each under a name of its own."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dryrack.hardware.inventory import (
    EveryNode,
    Origin,
    PerDevice,
    Pool,
    Reach,
    Section,
    SelectedNodes,
    SourceKind,
    ThisNode,
)
from dryrack.hardware.slicing import label_text, node_owner, slices_of
from dryrack.kinds.core import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from dryrack.kinds.quantity import Quantity
from dryrack.kinds.resource import (
    Counter,
    CounterSet,
    Device,
    DeviceCounterConsumption,
    DeviceTaint,
    ResourceSlice,
)
from dryrack.kinds.validation.device_rules import validate
from dryrack.kinds.validation.names import label_value

NAMES = st.from_regex(
    r"[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*", fullmatch=True
)


def origin(part: str = "gpu", kind: SourceKind = SourceKind.CONFIG_MAP) -> Origin:
    return Origin(kind, "karpenter/dra-kwok-configmap", part)


def devices(count: int, first: int = 0) -> tuple[Device, ...]:
    return tuple(Device(name=f"gpu-{first + number}") for number in range(count))


def pool_of(
    *sections: Section, node: str = "node-a", name: str = "", reach: Reach | None = None
) -> Pool:
    return Pool(
        driver="gpu.example.com",
        name=name or node or "shared",
        node=node,
        reach=reach or ThisNode(),
        sections=sections,
    )


def problems_of(slices: tuple[ResourceSlice, ...]) -> list[str]:
    return [str(problem) for each in slices for problem in validate(each)]


def test_a_small_pool_is_one_slice_named_and_labelled_as_people_expect() -> None:
    """The words are those of the seed; node and mapping are in the labels; the node owns it."""
    [only] = slices_of(
        pool_of(Section(origin(), devices(8))), owner=node_owner("node-a", "uid-of-a")
    )

    assert only.metadata.name.startswith("node-a-devices-gpu-000")
    assert only.metadata.labels == {
        "kwok.x-k8s.io/managed-by": "dra-kwok-driver",
        "kwok.x-k8s.io/node": "node-a",
        "kwok.x-k8s.io/mapping": "gpu",
        "dryrack.dev/source": "ConfigMap.karpenter.dra-kwok-configmap",
    }
    assert [owner.uid for owner in only.metadata.owner_references] == ["uid-of-a"]
    assert only.spec.node_name == "node-a"
    assert (only.spec.pool.generation, only.spec.pool.resource_slice_count) == (1, 1)
    assert problems_of((only,)) == []


def test_many_devices_are_cut_at_the_limit_in_their_order() -> None:
    """A slice holds 128 devices; sorted by name, slices give devices in the order they came."""
    slices = slices_of(pool_of(Section(origin(), devices(128 * 20 + 1))))

    by_name = sorted(slices, key=lambda each: each.metadata.name)
    assert [len(each.spec.devices) for each in by_name] == [128] * 20 + [1]
    assert tuple(device for each in by_name for device in each.spec.devices) == devices(2561)
    assert {each.spec.pool.resource_slice_count for each in slices} == {21}
    assert problems_of(slices) == []


def test_devices_with_taints_or_counters_are_cut_earlier() -> None:
    """One tainted device halves what its slices may hold."""
    tainted = (
        *devices(127),
        Device(name="bad", taints=(DeviceTaint(key="k", effect="NoSchedule"),)),
    )
    slices = slices_of(pool_of(Section(origin(), tainted)))

    assert [len(each.spec.devices) for each in slices] == [64, 64]
    assert problems_of(slices) == []


def test_counters_have_slices_of_their_own() -> None:
    """Counter sets and devices never share a slice, and one slice holds eight sets."""
    one = {"memory": Counter(value=Quantity.parse("80Gi"))}
    sets = tuple(CounterSet(name=f"card-{number}", counters=one) for number in range(9))
    draws = tuple(
        Device(
            name=f"part-{number}",
            consumes_counters=(
                DeviceCounterConsumption(counter_set=f"card-{number}", counters=one),
            ),
        )
        for number in range(9)
    )
    slices = slices_of(pool_of(Section(origin(), draws, sets)))

    assert [len(each.spec.shared_counters) for each in slices] == [8, 1, 0]
    assert [len(each.spec.devices) for each in slices] == [0, 0, 9]
    assert {each.spec.pool.resource_slice_count for each in slices} == {3}
    assert problems_of(slices) == []


def test_sections_have_slices_of_their_own_and_one_count() -> None:
    """Two mappings on one node are one pool: four slices, all of which say four."""
    slices = slices_of(
        pool_of(
            Section(origin("gpu"), devices(200)), Section(origin("fpga"), devices(200, first=200))
        )
    )

    assert [each.metadata.labels["kwok.x-k8s.io/mapping"] for each in slices] == [
        "gpu",
        "gpu",
        "fpga",
        "fpga",
    ]
    assert {each.spec.pool.resource_slice_count for each in slices} == {4}


def test_a_pool_of_the_cluster_names_no_node_and_has_no_owner() -> None:
    """Each reach is said in the one field that the API has for it."""
    requirement = NodeSelectorRequirement(key="rack", operator="Exists")
    selector = NodeSelector(
        node_selector_terms=(NodeSelectorTerm(match_expressions=(requirement,)),)
    )
    everywhere, selected, scattered = (
        slices_of(pool_of(Section(origin(), each), node="", reach=reach))[0]
        for each, reach in (
            (devices(1), EveryNode()),
            (devices(1), SelectedNodes(selector)),
            ((Device(name="nic-0", node_name="node-a"),), PerDevice()),
        )
    )

    assert everywhere.spec.all_nodes
    assert selected.spec.node_selector == selector
    assert scattered.spec.per_device_node_selection
    assert "kwok.x-k8s.io/node" not in everywhere.metadata.labels
    assert everywhere.metadata.owner_references == ()
    assert problems_of((everywhere, selected, scattered)) == []


def test_a_pool_without_devices_has_no_slices() -> None:
    """There is nothing to publish about it."""
    assert slices_of(pool_of(Section(origin()))) == ()


def test_names_that_read_the_same_are_not_the_same() -> None:
    """Words alone are ambiguous; driver, pool, origin and kind of source count too."""
    pools = (
        pool_of(Section(origin("b-devices-c"), devices(1)), node="a"),
        pool_of(Section(origin("c"), devices(1)), node="a-devices-b"),
        pool_of(Section(origin("c"), devices(1)), node="a-devices-b", name="other"),
        pool_of(Section(origin("c", SourceKind.CONFIG), devices(1)), node="a-devices-b"),
        pool_of(Section(origin("C"), devices(1)), node="a-devices-b"),
    )
    names = [each.metadata.name for pool in pools for each in slices_of(pool)]

    assert len(set(names)) == len(names)


def test_the_longest_names_are_still_valid_and_apart() -> None:
    """Two node names of 253 characters that differ in the last one."""
    nodes = [f"{'n' * 252}{last}" for last in "ab"]
    found = [slices_of(pool_of(Section(origin("m" * 300), devices(129)), node=n)) for n in nodes]
    names = [each.metadata.name for slices in found for each in slices]
    labels = [tuple(slices[0].metadata.labels.values()) for slices in found]

    assert len(set(names)) == 4
    assert len(set(labels)) == 2
    assert all(problems_of(slices) == [] for slices in found)


@given(NAMES.filter(lambda name: len(name) <= 253), st.text(max_size=300))
def test_whatever_a_mapping_is_called_its_slices_are_valid(node: str, mapping: str) -> None:
    """Names and labels are fit for the API for any node and any text of a person."""
    slices = slices_of(pool_of(Section(origin(mapping), devices(1)), node=node, name="pool"))

    assert problems_of(slices) == []


@given(st.text(max_size=100), st.text(max_size=100))
def test_labels_tell_apart_what_texts_tell_apart(one: str, other: str) -> None:
    """A label holds any text, and different texts have different labels."""
    assert not label_value(label_text(one))
    assert (label_text(one) == label_text(other)) == (one == other)
