"""DeviceTaintRules: which devices they taint, and from which they evict."""

from __future__ import annotations

import pytest

from dryrack.allocation.model.identity import DeviceId
from dryrack.allocation.supply.taints import apply_taint_rules, evicts_from
from dryrack.kinds.decode import decode
from dryrack.kinds.resource import DeviceTaintRule, ResourceSlice

TAINT = {"key": "broken", "effect": "NoExecute"}
SLICE = decode(
    {
        "metadata": {"name": "s"},
        "spec": {
            "driver": "gpu",
            "pool": {"name": "node", "generation": 1, "resourceSliceCount": 1},
            "nodeName": "node",
            "devices": [
                {"name": "a", "taints": [{"key": "own", "effect": "NoSchedule"}]},
                {"name": "b"},
            ],
        },
    },
    ResourceSlice,
)


def rule(selector: dict[str, str] | None) -> DeviceTaintRule:
    spec = {"taint": TAINT} if selector is None else {"taint": TAINT, "deviceSelector": selector}
    return decode({"metadata": {"name": "r"}, "spec": spec}, DeviceTaintRule)


@pytest.mark.parametrize(
    ("selector", "tainted"),
    [
        ({}, "ab"),
        ({"driver": "gpu"}, "ab"),
        ({"driver": "gpu", "pool": "node", "device": "b"}, "b"),
        ({"device": "a"}, "a"),
        ({"driver": "nic"}, ""),
        ({"pool": "elsewhere"}, ""),
        ({"device": "c"}, ""),
    ],
)
def test_a_rule_taints_and_evicts_from_what_it_selects(
    selector: dict[str, str], tainted: str
) -> None:
    """Every part of a selector that is given must agree; an empty one selects everything."""
    [seen] = apply_taint_rules([SLICE], [rule(selector)])
    keys = {each.name: [taint.key for taint in each.taints] for each in seen.spec.devices}
    assert keys == {
        "a": ["own", "broken"] if "a" in tainted else ["own"],
        "b": ["broken"] if "b" in tainted else [],
    }
    names = [name for name in "ab" if evicts_from(rule(selector), DeviceId("gpu", "node", name))]
    assert "".join(names) == tainted


def test_a_rule_without_selector_taints_all_and_evicts_nobody() -> None:
    """As Kubernetes 1.36: its scheduler and its eviction read the absence differently."""
    [seen] = apply_taint_rules([SLICE], [rule(None)])
    assert all(each.taints[-1].key == "broken" for each in seen.spec.devices)
    assert not evicts_from(rule(None), DeviceId("gpu", "node", "a"))


def test_slices_that_no_rule_selects_are_left_alone() -> None:
    """The very same object comes back, so that what is known about it stays known."""
    assert apply_taint_rules([SLICE], [rule({"driver": "nic"})])[0] is SLICE
