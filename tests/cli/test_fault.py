"""`dryrack fault`, as a person runs it on a plane, and which annotations it means."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from tests.cli.command import dryrack
from tests.cli.live_plane import plane

from dryrack.cli.faults.targets import (
    Cluster,
    cleared,
    device_changes,
    fault_rows,
    node_changes,
    others_slices,
)
from dryrack.cli.files import UsageError
from dryrack.hardware import device_annotation, limited, node_annotation

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Raw = dict[str, Any]
NOW = 1_767_323_045.0  # 2026-01-02T03:04:05Z


def node(name: str, **annotations: str) -> Raw:
    return {"metadata": {"name": name, "annotations": annotations}}


def slice_of(name: str, *devices: str) -> Raw:
    return {"spec": {"nodeName": name, "devices": [{"name": each} for each in devices]}}


CLUSTER = Cluster(
    (
        node("rack-1", **{device_annotation("gpu-9"): "lost"}),
        node("rack-2", **{node_annotation("ready"): "false", "other": "x"}),
    ),
    (slice_of("rack-1", "gpu-0", "gpu-1"), slice_of("rack-2", "gpu-0")),
)


def test_a_device_is_named_by_its_node_and_by_patterns() -> None:
    """All devices that match on all nodes that do; one that is lost is still known."""
    gpu_0, gpu_1, gpu_9 = (device_annotation(f"gpu-{n}") for n in (0, 1, 9))

    assert device_changes(CLUSTER, "rack-1/gpu-0", "unhealthy", None) == {
        "rack-1": {gpu_0: "unhealthy"}
    }
    assert device_changes(CLUSTER, "rack-*/gpu-[01]", "ok", None) == {
        "rack-1": {gpu_0: None, gpu_1: None},
        "rack-2": {gpu_0: None},
    }
    assert device_changes(CLUSTER, "rack-1/gpu-9", "lost; unknown", NOW) == {
        "rack-1": {gpu_9: "lost until 2026-01-02T03:04:05Z; unknown until 2026-01-02T03:04:05Z"}
    }


def test_faults_of_nodes_are_set_and_ended_part_by_part() -> None:
    """Or all at once; other annotations, and those of devices, are left alone."""
    ready, prepare = node_annotation("ready"), node_annotation("prepare")

    assert node_changes(CLUSTER, "rack-1", "prepare=fail=no disk", None) == {
        "rack-1": {prepare: "fail=no disk"}
    }
    assert node_changes(CLUSTER, "rack-1", "prepare=slow=5s", NOW) == {
        "rack-1": {prepare: "slow=5s until 2026-01-02T03:04:05Z"}
    }
    assert node_changes(CLUSTER, "rack-2", "prepare=ok", None) == {"rack-2": {prepare: None}}
    assert node_changes(CLUSTER, "*", "ok", None) == {"rack-1": {}, "rack-2": {ready: None}}


def test_faults_are_cleared_by_node_and_by_device() -> None:
    """A node's with those of its devices, a device's alone, or all."""
    lost, ready = device_annotation("gpu-9"), node_annotation("ready")

    everything = {"rack-1": {lost: None}, "rack-2": {ready: None}}
    assert cleared(CLUSTER, ()) == everything
    assert cleared(CLUSTER, ("rack-1", "rack-2")) == everything
    assert cleared(CLUSTER, ("rack-2/*",)) == {}
    assert cleared(CLUSTER, ("rack-1/gpu-*",)) == {"rack-1": {lost: None}}
    assert cleared(Cluster(()), ()) == {}


def test_slices_of_other_drivers_are_told_of() -> None:
    """Who lets a device fail that somebody else publishes is told that its slice stays."""

    def labelled(driver: str, **labels: str) -> Raw:
        made = slice_of("rack-1", "gpu-0")
        return {"metadata": {"labels": labels}, "spec": made["spec"] | {"driver": driver}}

    slices = (
        labelled("by-hand"),
        labelled("published", **{"kwok.x-k8s.io/managed-by": "dra-kwok-driver"}),
        labelled("plugin", **{"app.kubernetes.io/managed-by": "dryrack-plugin"}),
    )
    cluster = Cluster((node("rack-1"),), slices)

    changes = device_changes(cluster, "rack-1/gpu-0", "lost", None)

    assert others_slices(cluster, changes) == ("by-hand",)
    assert others_slices(cluster, {"rack-2": {}}) == ()


@pytest.mark.parametrize(
    ("target", "fault", "told"),
    [
        ("rack-3/gpu-0", "lost", "node 'rack-3': there is none; did you mean 'rack-"),
        ("rack-1/gpu-7", "lost", "device 'rack-1/gpu-7': there is none; did you mean"),
        ("rack-1", "lost", "device 'rack-1': name it as NODE/DEVICE"),
        ("rack-1/gpu-0", "broken", "fault 'broken': 'broken' is no fault; say unhealthy, unknown"),
        ("rack-1/gpu-0", "taint=a:Evict", "say taint=KEY[=VALUE]:EFFECT, or ok"),
    ],
)
def test_a_device_that_is_not_there_and_a_fault_that_is_none(
    target: str, fault: str, told: str
) -> None:
    """The answer says what there is, and nothing is written."""
    with pytest.raises(UsageError) as caught:
        device_changes(CLUSTER, target, fault, None)

    assert told in str(caught.value)


@pytest.mark.parametrize("fault", ["broken", "fan=off", "fan=ok", "ready=true", "prepare"])
def test_a_fault_that_no_node_has_is_refused(fault: str) -> None:
    """With what there is."""
    with pytest.raises(UsageError, match=r"there are: prepare, driver, ready|say "):
        node_changes(CLUSTER, "rack-1", fault, None)


def test_the_list_says_when_faults_end() -> None:
    """Those that are over and those that say nothing are in it, too."""
    nodes = (
        node("b", **{node_annotation("driver"): limited("gone", NOW + 90)}),
        node(
            "a",
            **{
                device_annotation("gpu-0"): "unhealthy=it smokes",
                device_annotation("gpu-1"): limited("lost", NOW - 1),
                device_annotation("gpu-2"): "broken",
            },
        ),
    )

    rows = fault_rows(nodes, NOW)

    cells = [row.cells(NOW) for row in rows]
    assert cells[0] == ("a", "gpu-0", "unhealthy=it smokes", "-")
    assert cells[1] == ("a", "gpu-1", "lost", "over")
    assert cells[2][:3] == ("a", "gpu-2", "broken")
    assert cells[2][3].startswith("'broken' is no fault; say unhealthy")
    assert cells[3] == ("b", "-", "driver=gone", "in 90s")
    assert rows[3].document() == {
        "node": "b",
        "device": None,
        "annotation": "node-fault.dryrack.dev/driver",
        "fault": "gone until 2026-01-02T03:05:35Z",
        "until": "2026-01-02T03:05:35Z",
        "isOver": False,
        "problem": None,
    }


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with plane(tmp_path_factory.mktemp("plane"), []) as path:
        yield path


def test_a_device_fails_and_is_well_again_on_a_plane(kubeconfig: Path) -> None:
    """What is said is listed, clearing ends it, and what is not there is told."""

    def fault(*words: str) -> str:
        done = dryrack("fault", *words, "--kubeconfig", kubeconfig)
        assert done.returncode == 0, done.stderr
        return done.stdout or done.stderr

    published = json.loads(dryrack("devices", "-o", "json", "--kubeconfig", kubeconfig).stdout)[
        "devices"
    ]
    name, where = published[0]["device"], published[0]["node"]
    table = fault("device", f"{where}/{name}", "taint=ecc=double:NoSchedule", "--for", "1h")
    assert table.splitlines()[0].split() == ["NODE", "DEVICE", "FAULT", "ENDS"]
    fault("node", where, "prepare=hang")
    listed = json.loads(fault("list", "-o", "json"))["faults"]
    assert [(each["device"], each["isOver"]) for each in listed] == [(name, False), (None, False)]
    assert fault("clear", f"{where}/*") == "1 fault ended\n"
    assert fault("clear") == "1 fault ended\n"
    assert fault("list") == "no faults\n"

    done = dryrack("fault", "device", f"{where}/nothing", "lost", "--kubeconfig", kubeconfig)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"dryrack: device '{where}/nothing': there is none; ")
