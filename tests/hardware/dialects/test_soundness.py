"""
For any document, the result is valid for the API.

Documents are put together from good and bad pieces at random. Those that have no problem are
published, on paper: every slice must pass the API's own rules, and every pool must be one that a
scheduler would use.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from hypothesis import event, given, settings
from hypothesis import strategies as st
from tests.hardware.dialects.examples import node

from dryrack.hardware.config_formats import read_config, read_dra_config, read_overlay
from dryrack.hardware.inventory import Inventory
from dryrack.hardware.matching import Matcher
from dryrack.hardware.slicing import slices_of
from dryrack.kinds.validation.device_rules import validate

if TYPE_CHECKING:
    from dryrack.hardware.config_formats import Reading
    from dryrack.hardware.inventory import Pool

NODES = (
    node("n1", {"gpu": "a", "count": "4"}),
    node("n" * 253, {"gpu": "a"}, {"kwok.x-k8s.io/node": "fake"}),
    node("disks", {"gpu": "b"}),
)


def mostly(good: tuple[Any, ...], bad: tuple[Any, ...]) -> st.SearchStrategy[Any]:
    """One of the good, and now and then one of the bad."""
    return st.integers(0, 99).flatmap(lambda die: st.sampled_from(bad if die == 99 else good))


def some(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """An object with any of the fields."""
    return st.fixed_dictionaries({}, optional=fields)


NAMES = mostly(("gpu", "gpu-0", "gpu-1", "nic", "a" * 60, "0"), ("GPU", "", "a" * 64, 5, "x.y"))
ATTRIBUTE_NAMES = st.sampled_from(
    ("model", "compute-capability", "7seg", "gpu.example.com/uuid", "a b", "B", "b")
)
ATTRIBUTES = mostly(
    ("t4", 7, True, "80Gi", {"String": "x"}, {"version": "1.2.3"}, {"int": -1}, "é" * 32),
    ("x" * 65, {"version": "1"}, None, {}, [], {"string": 5}, 1.5, {"int": 2**64}, {"x": 1}),
)
AMOUNTS = mostly(("1Gi", 5, "1500m", {"value": "2Ki"}), ("16GB", "", None, {"value": []}, -0.5))
TAINTS = mostly(
    ({"key": "a", "effect": "NoSchedule"}, {"key": "a/b", "value": "c", "effect": "NoExecute"}),
    ({"key": "a"}, {"key": "", "effect": "None"}, {"key": "a", "effect": "x"}, "a"),
)
COUNTERS = st.just({"memory": {"value": "1Gi"}})
SETS = mostly(("one",), ("gone", "One", ""))
SELECTORS = mostly(
    (
        [{"matchExpressions": [{"key": "gpu", "operator": "Exists"}]}],
        [{}, {"matchExpressions": [{"key": "count", "operator": "Gt", "values": ["3"]}]}],
        [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}],
    ),
    ([], None, [{"matchExpressions": [{"key": "a", "operator": "Is"}]}], "gpu"),
)
DEVICE = some(
    name=NAMES,
    count=mostly((1, 3, 130), (0, -1, "2", 10**9)),
    attributes=st.dictionaries(ATTRIBUTE_NAMES, ATTRIBUTES, max_size=4),
    capacity=st.dictionaries(ATTRIBUTE_NAMES, AMOUNTS, max_size=2),
    taints=st.lists(TAINTS, max_size=2),
    consumesCounters=st.lists(
        st.fixed_dictionaries({"counterSet": SETS, "counters": COUNTERS}), max_size=1
    ),
    bindingConditions=mostly(([],), (["a"],)),
    nodeName=mostly((None,), ("n1",)),
    allNodes=mostly((None,), (True, False)),
).map(lambda device: {"name": "only", **device})
SLICE = some(
    driver=mostly(("gpu.example.com", "example.com/nic", "Own.Example.Com"), ("x" * 70, 5)),
    pool=some(name=mostly(("pool", "n1", "disks"), ("Pool", "", 3)), resourceSliceCount=st.just(2)),
    allNodes=mostly((None, True), (False, "x")),
    perDeviceNodeSelection=mostly((None,), (True,)),
).flatmap(
    lambda fields: st.tuples(
        st.lists(DEVICE, min_size=1, max_size=4, unique_by=lambda device: str(device["name"])[:3]),
        st.lists(
            st.fixed_dictionaries({"name": SETS, "counters": COUNTERS}), min_size=1, max_size=1
        ),
    ).map(lambda given: {**fields, "devices": given[0], "sharedCounters": given[1]})
)
MAPPING = st.fixed_dictionaries(
    {
        "name": mostly(("a", "b", "c", "d", "A mapping"), ("", None)),
        "nodeSelectorTerms": SELECTORS,
        "resourceSlice": SLICE,
    }
)


def pools_from(reading: Reading) -> list[Pool]:
    """All pools that the reading makes, of three nodes and of the cluster."""
    overlays = () if reading.overlay is None else (reading.overlay,)
    matcher = Matcher(Inventory(overlays=overlays, assignments=reading.assignments))
    called = {position for each in NODES for position in matcher.shared_of(each)}
    pools = [pool for each in NODES for pool in matcher.pools_of(each).pools]
    return [*pools, *matcher.shared_pools(called).pools]


def check(reading: Reading) -> None:
    """Problems and results exclude each other, and results are what the API takes."""
    event("problems" if reading.problems else "results")
    told = (*reading.problems, *reading.warnings)
    assert all(each.fix or each.message.startswith("and ") for each in told)
    if reading.problems:
        assert not reading.assignments
        assert reading.overlay is None
    pools = pools_from(reading)
    for pool in pools:
        check_pool(pool)
    assert len({(pool.driver, pool.name) for pool in pools}) == len(pools)


def check_pool(pool: Pool) -> None:
    """Every slice passes the API's rules; names are unique, and counters are there."""
    slices = slices_of(pool)
    assert slices
    for each in slices:
        assert not validate(each)
    devices = [device for section in pool.sections for device in section.devices]
    sets = [each for section in pool.sections for each in section.shared_counters]
    assert len({device.name for device in devices}) == len(devices)
    assert len({each.name for each in sets}) == len(sets)
    for device in devices:
        for drawn in device.consumes_counters:
            assert drawn.counter_set in {each.name for each in sets}


@settings(max_examples=60, deadline=None)
@given(
    st.fixed_dictionaries(
        {
            "driver": mostly(("gpu.example.com", "karpenter.sh/x"), ("", None, 5)),
            "mappings": st.lists(
                MAPPING, min_size=1, max_size=3, unique_by=lambda mapping: str(mapping["name"])
            ),
        }
    )
)
def test_a_configuration_is_refused_or_valid(config: dict[str, Any]) -> None:
    """A configuration is refused with reasons, or all that comes of it is valid."""
    check(read_config(json.dumps(config), file="config.yaml"))


@settings(max_examples=40, deadline=None)
@given(st.lists(SLICE, min_size=1, max_size=2), SELECTORS)
def test_a_dra_config_is_refused_or_valid(slices: list[dict[str, Any]], terms: Any) -> None:
    """The devices and counters of a DRAConfig are valid for the API."""
    kept = [
        {name: value for name, value in each.items() if name in ("devices", "sharedCounters")}
        for each in slices
    ]
    pool = {"name": "a", "nodeSelectorTerms": terms, "resourceSlices": kept}
    spec = {"driver": "gpu.example.com", "pools": [pool]}
    check(read_dra_config({"kind": "DRAConfig", "metadata": {"name": "x"}, "spec": spec}))


@settings(max_examples=40, deadline=None)
@given(st.lists(SLICE, min_size=1, max_size=2), mostly((None, 1, 7), (0, "1", 10**9)))
def test_an_overlay_is_refused_or_valid(slices: list[dict[str, Any]], weight: Any) -> None:
    """The devices of a NodeOverlay are valid for the API."""
    spec = {
        "weight": weight,
        "requirements": [{"key": "gpu", "operator": "Exists"}],
        "resourceSlices": [{"spec": {"driver": "own.example.com", **each}} for each in slices],
    }
    check(read_overlay({"kind": "NodeOverlay", "metadata": {"name": "x"}, "spec": spec}))


JUNK: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.floats(allow_nan=False),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(("driver", "mappings", "pools", "name", "devices", "spec", "x")),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=60, deadline=None)
@given(JUNK)
def test_junk_is_answered(junk: Any) -> None:
    """Documents of any shape are answered, and never with an error."""
    document = {"metadata": junk, "spec": junk, "data": junk}

    check(read_dra_config(document))
    check(read_overlay(document))
    if isinstance(junk, dict):
        check(read_config(json.dumps(junk), file="config.yaml"))


@settings(max_examples=100, deadline=None)
@given(st.text(alphabet=st.characters(exclude_categories=()), max_size=40))
def test_any_text_is_answered(text: str) -> None:
    """A text of any characters, half ones too, is answered, wherever it stands."""
    check(read_config(text, file="config.yaml"))
    check(read_config(f"driver: {text}\nmappings:\n- name: {text}\n", file="config.yaml"))
    device = {"name": text, "attributes": {text: text}, "taints": [{"key": text}]}
    pool = {"name": text, "nodeSelectorTerms": [], "resourceSlices": [{"devices": [device]}]}
    check(read_dra_config({"spec": {"driver": text, "pools": [pool]}}))
