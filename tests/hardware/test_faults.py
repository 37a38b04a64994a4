"""Faults of nodes and devices, as annotations of the Node say them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dryrack.hardware.faults import (
    NO_FAULTS,
    UNHEALTHY_TAINT,
    DriverGone,
    FaultError,
    Health,
    NotReady,
    PrepareFault,
    PrepareMode,
    add_expiry,
    device_annotation,
    fault_lines,
    faults_of,
    node_annotation,
    read_device_faults,
    read_node_fault,
)
from dryrack.kinds.resource import Device, DeviceTaint

NOW = 1_767_323_045.0  # 2026-01-02T03:04:05Z
DEVICES = (Device(name="gpu-0"), Device(name="gpu-1"), Device(name="gpu-2"))


def names(devices: tuple[Device, ...]) -> list[str]:
    return [device.name for device in devices]


def taints_of(text: str) -> tuple[DeviceTaint, ...]:
    faults = faults_of({device_annotation("gpu-1"): text}, NOW)
    (device,) = (each for each in faults.apply(DEVICES) if each.name == "gpu-1")
    return device.taints


def test_a_node_without_faults_is_left_as_it_is() -> None:
    """Other annotations say nothing about faults, and the devices are the very same."""
    faults = faults_of({"dryrack.dev/mode": "unhealthy", "device-fault": "lost"}, NOW)

    assert faults is NO_FAULTS
    assert faults.apply(DEVICES) is DEVICES
    assert faults.health_of("gpu-0") == (Health.HEALTHY, "")


def test_an_unhealthy_device_is_tainted_and_told() -> None:
    """It is not allocated to new claims, evicts no pod, and the other devices stay as they are."""
    faults = faults_of({device_annotation("gpu-1"): "unhealthy=fell off the bus"}, NOW)

    first, second, third = faults.apply(DEVICES)

    assert second.taints == (UNHEALTHY_TAINT,)
    assert UNHEALTHY_TAINT.effect == "NoSchedule"
    assert (first, third) == (DEVICES[0], DEVICES[2])
    assert faults.health_of("gpu-1") == (Health.UNHEALTHY, "fell off the bus")
    assert faults.health_of("gpu-0") == (Health.HEALTHY, "")


def test_a_device_of_unknown_health_is_published_as_before() -> None:
    """Only the pod that has it gets the health."""
    faults = faults_of({device_annotation("gpu-1"): "unknown"}, NOW)

    assert faults.apply(DEVICES) == DEVICES
    assert faults.health_of("gpu-1") == (Health.UNKNOWN, "")


def test_a_lost_device_leaves() -> None:
    """It is not published, and a pod that still has it gets the health Unhealthy."""
    faults = faults_of({device_annotation("gpu-1"): "lost"}, NOW)

    assert names(faults.apply(DEVICES)) == ["gpu-0", "gpu-2"]
    assert faults.is_lost("gpu-1")
    assert faults.health_of("gpu-1") == (Health.UNHEALTHY, "the device is lost")


@pytest.mark.parametrize(
    ("text", "taint"),
    [
        ("taint=ecc:NoExecute", DeviceTaint(key="ecc", effect="NoExecute")),
        (
            "taint=example.com/ecc=double:NoSchedule",
            DeviceTaint(key="example.com/ecc", value="double", effect="NoSchedule"),
        ),
        ("taint=seen:None", DeviceTaint(key="seen", effect="None")),
    ],
)
def test_a_taint_is_as_kubectl_writes_those_of_nodes(text: str, taint: DeviceTaint) -> None:
    """Key, value if there is one, and effect; the device is healthy as far as anybody knows."""
    assert taints_of(text) == (taint,)


def test_a_device_may_have_several_faults() -> None:
    """They are joined by semicolons, the worse health counts, and nothing is added twice."""
    text = "unknown; taint=a:NoExecute;unhealthy; taint=a:NoExecute"

    assert taints_of(text) == (DeviceTaint(key="a", effect="NoExecute"), UNHEALTHY_TAINT)
    faults = faults_of({device_annotation("gpu-1"): text}, NOW)
    assert faults.health_of("gpu-1") == (Health.UNHEALTHY, "")


def test_a_taint_that_is_there_is_not_added_again() -> None:
    """The taints of the device stay, and the API allows no more than sixteen."""
    own = tuple(DeviceTaint(key=f"own-{n}", effect="NoSchedule") for n in range(15))
    faults = faults_of(
        {device_annotation("gpu"): "taint=own-3:NoSchedule;taint=b:None;taint=c:None"}, NOW
    )

    (device,) = faults.apply((Device(name="gpu", taints=own),))

    assert device.taints == (*own, DeviceTaint(key="b", effect="None"))


def test_a_fault_ends_by_itself() -> None:
    """`add_expiry` writes an end that is read again, and counts up to it and no longer."""
    annotations = {device_annotation("gpu-1"): add_expiry("lost", NOW + 29.5)}

    before = faults_of(annotations, NOW + 29.9)
    after = faults_of(annotations, NOW + 30)

    assert annotations == {"device-fault.dryrack.dev/gpu-1": "lost until 2026-01-02T03:04:35Z"}
    assert names(before.apply(DEVICES)) == ["gpu-0", "gpu-2"]
    assert before.next_expiry == NOW + 30
    assert after.apply(DEVICES) == DEVICES
    assert after.next_expiry is None


def test_the_next_expiry_is_the_first_that_is_to_come() -> None:
    """Among all faults of the node; those that are over do not count."""
    annotations = {
        device_annotation(
            "gpu-0"
        ): f"{add_expiry('lost', NOW - 5)};{add_expiry('unknown', NOW + 60)}",
        device_annotation("gpu-1"): "unhealthy",
        node_annotation("ready"): add_expiry("false", NOW + 20),
    }

    assert faults_of(annotations, NOW).next_expiry == NOW + 20
    assert faults_of(annotations, NOW + 20).next_expiry == NOW + 60
    assert faults_of(annotations, NOW + 60).next_expiry is None


def test_a_node_may_have_faults_of_its_own() -> None:
    """A node can have faults of preparation, of its driver, and of itself."""
    faults = faults_of(
        {
            node_annotation("prepare"): "slow=1m30s",
            node_annotation("driver"): "gone",
            node_annotation("ready"): "false",
        },
        NOW,
    )

    assert faults.prepare == PrepareFault(PrepareMode.SLOW, seconds=90.0)
    assert faults.is_driver_gone
    assert not faults.is_ready


def test_what_a_node_may_be_told_is_read() -> None:
    """Each fault of a node, with its message and its end."""
    assert read_node_fault("prepare", "fail=no CDI; try again") == PrepareFault(
        PrepareMode.FAIL, message="no CDI; try again"
    )
    assert read_node_fault("prepare", "fail") == PrepareFault(PrepareMode.FAIL)
    assert read_node_fault("prepare", "hang until 2026-01-02T03:04:05Z") == PrepareFault(
        PrepareMode.HANG, until=NOW
    )
    assert read_node_fault("driver", "gone until 2026-01-02T04:04:05+01:00") == DriverGone(NOW)
    assert read_node_fault("ready", " false ") == NotReady()


@pytest.mark.parametrize(
    ("key", "text", "told"),
    [
        ("device-fault.dryrack.dev/gpu-0", "broken", "unknown fault 'broken'; use unhealthy,"),
        ("device-fault.dryrack.dev/gpu-0", "lost=1", "unknown fault 'lost=1'"),
        ("device-fault.dryrack.dev/gpu-0", "lost;", "unknown fault ''"),
        ("device-fault.dryrack.dev/gpu-0", "taint", "taint=KEY[=VALUE]:EFFECT"),
        ("device-fault.dryrack.dev/gpu-0", "taint=a=b", "use taint=KEY[=VALUE]:EFFECT"),
        ("device-fault.dryrack.dev/gpu-0", "taint=a:Evict", "NoExecute"),
        (
            "device-fault.dryrack.dev/gpu-0",
            "lost until noon",
            "until 'noon': must be an RFC 3339 time",
        ),
        ("device-fault.dryrack.dev/gpu-0", "lost until 2026-01-02T03:04:05", "RFC 3339"),
        ("node-fault.dryrack.dev/prepare", "slow=soon", "use fail, fail=MESSAGE, slow=5s or hang"),
        ("node-fault.dryrack.dev/ready", "true", "unknown fault 'true'; use false"),
        ("node-fault.dryrack.dev/fan", "off", "unknown node fault 'fan'; use one of: prepare,"),
    ],
)
def test_a_bad_annotation_is_told_and_counts_for_nothing(key: str, text: str, told: str) -> None:
    """The sentence names the annotation and what would be right; other faults still count."""
    faults = faults_of({key: text, device_annotation("gpu-1"): "lost"}, NOW)

    (problem,) = faults.problems
    assert problem.startswith(f"annotation {key}: ")
    assert told in problem
    assert names(faults.apply(DEVICES)) == ["gpu-0", "gpu-2"]
    assert faults.is_ready
    assert faults.prepare is None


@given(st.text(max_size=40))
def test_whatever_a_device_is_told_is_read_or_refused(text: str) -> None:
    """Nothing but `FaultError` comes of any text, and what is read leaves valid taints."""
    try:
        faults = read_device_faults(text)
    except FaultError:
        return

    assert all(fault.taint is None or fault.taint.key for fault in faults)


def test_a_file_has_a_line_for_each_fault() -> None:
    """Several lines of a device are joined; an invalid line is reported with its number."""
    text = "# who\n\ngpu-0 lost\n  gpu-1   unhealthy=it smokes  \ngpu-1 taint=a:None\ngpu-2\nx y\n"

    said, problems = fault_lines(text)

    assert said == {
        device_annotation("gpu-0"): "lost",
        device_annotation("gpu-1"): "unhealthy=it smokes; taint=a:None",
    }
    assert problems[0].startswith("line 6, device 'gpu-2': unknown fault ''; use ")
    assert problems[1].startswith("line 7, device 'x': unknown fault 'y'; use ")
    assert faults_of(said, NOW).problems == ()
