"""Feature gates of each release, with the errors of Kubernetes."""

from __future__ import annotations

import pytest

from dryrack.kinds.releases import (
    ALLOCATION,
    CEL,
    GateError,
    Release,
    gates_of,
    parse_gates,
    resolve_gates,
)

BOTH = pytest.mark.parametrize("release", Release)


@BOTH
def test_each_release_has_its_column_in_every_table(release: Release) -> None:
    """Nothing is known of a release only in part."""
    assert release in ALLOCATION
    assert release in CEL
    gates = gates_of(release)
    assert {need for gate in gates.values() for need in gate.needs} <= set(gates)
    assert all(gate.is_on for gate in gates.values() if gate.stage == "GA" or gate.is_locked)
    assert not any(gate.is_on for gate in gates.values() if gate.stage == "alpha")


@BOTH
def test_the_defaults_do_not_contradict_each_other(release: Release) -> None:
    """A release starts with its own gates."""
    state = resolve_gates({}, release)

    assert state == {name: gate.is_on for name, gate in gates_of(release).items()}


def test_gates_come_and_go_and_change_their_defaults() -> None:
    """1.37 graduates taints, folds gangs into one gate, and has new alpha gates."""
    before, after = gates_of(Release.V1_36), gates_of(Release.V1_37)

    assert (before["DRADeviceTaintRules"].is_on, after["DRADeviceTaintRules"].is_on) == (
        False,
        True,
    )
    assert not after["DRAFractionalCapacityRange"].is_on
    assert "GangScheduling" in before
    assert "GangScheduling" not in after
    assert "DRADerivedAttributes" not in before
    assert not after["DRADerivedAttributes"].is_on


@pytest.mark.parametrize(
    ("changes", "release", "text"),
    [
        ({"DRATaints": True}, "1.37", "unrecognized feature gate: DRATaints; "),
        ({"GangScheduling": True}, "1.37", "unrecognized feature gate: GangScheduling; "),
        ({"DRADerivedAttributes": True}, "1.36", "unrecognized feature gate: DRADerivedAttr"),
        (
            {"DRAPrioritizedList": False},
            "1.37",
            "cannot set feature gate DRAPrioritizedList to false, feature is locked to true",
        ),
        (
            {"DRAPartitionableDevices": False, "DRADeviceCompatibilityGroups": True},
            "1.37",
            (
                "DRADeviceCompatibilityGroups is enabled, but depends on features that are "
                "disabled: [DRAPartitionableDevices]"
            ),
        ),
        (
            {"CompositePodGroup": True},
            "1.37",
            (
                "CompositePodGroup is enabled, but depends on features that are disabled: "
                "[GenericWorkload TopologyAwareWorkloadScheduling]"
            ),
        ),
        (
            {"DRAAdminAccess": False, "DynamicResourceAllocation": False},
            "1.36",
            (
                "[cannot set feature gate DRAAdminAccess to false, feature is locked to true, "
                "cannot set feature gate DynamicResourceAllocation to false, feature is locked to "
                "true]"
            ),
        ),
    ],
)
def test_wrong_gates_are_refused_in_the_words_of_kubernetes(
    changes: dict[str, bool], release: str, text: str
) -> None:
    """Unknown gates, locked gates, and gates whose dependencies are off."""
    with pytest.raises(GateError) as refusal:
        resolve_gates(changes, Release(release))

    assert str(refusal.value).startswith(text)


def test_a_locked_gate_can_have_its_value() -> None:
    """To name it changes nothing; on 1.36 the same gate is not locked yet."""
    assert resolve_gates({"DRAPrioritizedList": True}, Release.V1_37)["DRAPrioritizedList"]
    assert not resolve_gates({"DRAPrioritizedList": False}, Release.V1_36)["DRAPrioritizedList"]


def test_all_gates_of_a_stage_are_switched_together() -> None:
    """A gate that is named itself keeps its own value."""
    state = resolve_gates(
        {"AllAlpha": True, "GenericWorkload": True, "DRADerivedAttributes": False}, Release.V1_37
    )

    assert state["DRADeviceCompatibilityGroups"]
    assert not state["DRADerivedAttributes"]
    with pytest.raises(GateError, match="depends on features that are disabled"):
        resolve_gates({"AllBeta": False, "AllAlpha": True}, Release.V1_37)


def test_gates_are_read_as_go_reads_them() -> None:
    """Spaces around a name or value do not count, and there are several words for true."""
    assert parse_gates(" A = true ,B=0,,C=T") == {"A": True, "B": False, "C": True}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("A", "missing bool value for A; use A=true or A=false"),
        (
            "A=yes",
            (
                'invalid value of A=yes, err: strconv.ParseBool: parsing "yes": invalid syntax; '
                "use A=true or A=false"
            ),
        ),
    ],
)
def test_gates_without_a_bool_are_refused(text: str, message: str) -> None:
    """The error has the words of Kubernetes, and then a fix."""
    with pytest.raises(GateError) as refusal:
        parse_gates(text)

    assert str(refusal.value) == message
