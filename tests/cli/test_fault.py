"""`dryrack fault`, as a person runs it on a plane, and which annotations it means."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from tests.cli.command import dryrack
from tests.cli.live_plane import plane

from dryrack.cli.faults.targets import (
    Cluster,
    clear_faults,
    fault_rows,
    find_foreign_drivers,
    heal_devices,
    heal_nodes,
)
from dryrack.cli.files import UsageError
from dryrack.cli.views.sources import Source, on_cluster
from dryrack.client.endpoints import CLAIMS, NODES, SLICES
from dryrack.hardware import add_expiry, device_annotation, node_annotation

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from dryrack.client.client import Client
    from dryrack.client.endpoints import Endpoint
    from dryrack.kinds.raw import Raw

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


def test_devices_are_well_again_by_node_and_by_pattern() -> None:
    """The patterns select devices and nodes; a target without a match is an error."""
    assert heal_devices(CLUSTER, "rack-1/gpu-*") == {"rack-1": {device_annotation("gpu-9"): None}}
    assert heal_devices(CLUSTER, "rack-*/gpu-0") == {"rack-1": {}, "rack-2": {}}
    with pytest.raises(UsageError, match="device 'rack-1': write NODE/DEVICE"):
        heal_devices(CLUSTER, "rack-1")
    with pytest.raises(UsageError, match="node 'rack-3' not found; did you mean 'rack-"):
        heal_devices(CLUSTER, "rack-3/gpu-0")


def test_faults_of_nodes_are_ended_part_by_part() -> None:
    """Or all at once; other annotations, and those of devices, are left alone."""
    ready = node_annotation("ready")

    assert heal_nodes(CLUSTER, "rack-2", "ready=ok") == {"rack-2": {ready: None}}
    assert heal_nodes(CLUSTER, "rack-2", "prepare=ok") == {"rack-2": {}}
    assert heal_nodes(CLUSTER, "*", "ok") == {"rack-1": {}, "rack-2": {ready: None}}


def test_faults_are_cleared_by_node_and_by_device() -> None:
    """A node's with those of its devices, a device's alone, or all."""
    lost = device_annotation("gpu-9")
    ready = node_annotation("ready")

    everything = {"rack-1": {lost: None}, "rack-2": {ready: None}}
    assert clear_faults(CLUSTER, ()) == everything
    assert clear_faults(CLUSTER, ("rack-1", "rack-2")) == everything
    assert clear_faults(CLUSTER, ("rack-2/*",)) == {}
    assert clear_faults(CLUSTER, ("rack-1/gpu-*",)) == {"rack-1": {lost: None}}
    assert clear_faults(Cluster(()), ()) == {}


def test_slices_of_other_drivers_are_told_of() -> None:
    """A fault of a device in a foreign slice prints that the slice does not change."""

    def labelled(driver: str, **labels: str) -> Raw:
        made = slice_of("rack-1", "gpu-0")
        return {"metadata": {"labels": labels}, "spec": made["spec"] | {"driver": driver}}

    slices = (
        labelled("by-hand"),
        labelled("published", **{"kwok.x-k8s.io/managed-by": "dra-kwok-driver"}),
        labelled("plugin", **{"app.kubernetes.io/managed-by": "dryrack-plugin"}),
    )
    cluster = Cluster((node("rack-1", **{device_annotation("gpu-0"): "lost"}),), slices)

    assert find_foreign_drivers(cluster, "gpu-*") == ("by-hand",)
    assert find_foreign_drivers(cluster, "gpu-1") == ()
    assert find_foreign_drivers(Cluster((node("rack-1"),), slices), "gpu-0") == ()


def test_the_list_says_when_faults_end() -> None:
    """Those that are over and those that say nothing are in it, too."""
    nodes = (
        node("b", **{node_annotation("driver"): add_expiry("gone", NOW + 90)}),
        node(
            "a",
            **{
                device_annotation("gpu-0"): "unhealthy=it smokes",
                device_annotation("gpu-1"): add_expiry("lost", NOW - 1),
                device_annotation("gpu-2"): "broken",
            },
        ),
    )

    rows = fault_rows(nodes, NOW)

    cells = [row.cells(NOW) for row in rows]
    assert cells[0] == ("a", "gpu-0", "unhealthy=it smokes", "-")
    assert cells[1] == ("a", "gpu-1", "lost", "over")
    assert cells[2][:3] == ("a", "gpu-2", "broken")
    assert cells[2][3].startswith("unknown fault 'broken'; use unhealthy")
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


def fault(kubeconfig: Path, *words: str) -> str:
    done = dryrack("fault", *words, "--kubeconfig", kubeconfig)
    assert done.returncode == 0, done.stderr
    return done.stdout or done.stderr


def listed(kubeconfig: Path, resource: Endpoint) -> list[Raw]:
    """All objects of a resource, as the plane has them."""

    async def all_of(client: Client) -> list[Raw]:
        return list((await client.list(resource)).items)

    return on_cluster(Source(kubeconfig=str(kubeconfig)).connection(), all_of)


def test_a_device_fails_and_is_well_again_on_a_plane(kubeconfig: Path) -> None:
    """The fault is listed, and `clear` ends it."""
    published = json.loads(dryrack("devices", "-o", "json", "--kubeconfig", kubeconfig).stdout)[
        "devices"
    ]
    name = published[0]["device"]
    where = published[0]["node"]
    words = ("device", f"{where}/{name}", "taint=ecc=double:NoSchedule; unknown", "--for", "1h")
    table = fault(kubeconfig, *words)
    assert table.splitlines()[0].split() == ["NODE", "DEVICE", "FAULT", "ENDS"]
    fault(kubeconfig, "node", where, "prepare=fail=out for repairs")
    faults = json.loads(fault(kubeconfig, "list", "-o", "json"))["faults"]
    assert [(each["device"], each["isOver"]) for each in faults] == [(name, False), (None, False)]
    assert faults[0]["fault"].count(" until ") == 2
    assert faults[1]["fault"] == "fail=out for repairs"
    assert fault(kubeconfig, "node", where, "prepare=ok").splitlines()[1].split()[1] == name
    assert fault(kubeconfig, "device", f"{where}/*", "ok") == "no faults\n"
    assert fault(kubeconfig, "list") == "no faults\n"


def test_a_share_of_the_devices_fails_on_a_plane(kubeconfig: Path) -> None:
    """So many of those that match, on whichever nodes they are."""
    fault(kubeconfig, "device", "rack-*/*", "unhealthy=it smokes", "share=0.5")

    count = sum(len(each["spec"]["devices"]) for each in listed(kubeconfig, SLICES))
    assert fault(kubeconfig, "clear") == f"{count // 2} faults ended\n"


def test_a_node_of_a_plane_reboots(kubeconfig: Path) -> None:
    """The node has a new boot ID, and no fault is left."""

    def boots() -> dict[str, str]:
        nodes = listed(kubeconfig, NODES)
        return {each["metadata"]["name"]: each["status"]["nodeInfo"]["bootID"] for each in nodes}

    before = boots()
    assert fault(kubeconfig, "node", "rack-1", "reboot") == "node rack-1: reboot\n"
    after = boots()
    assert [name for name in after if after[name] != before.get(name)] == ["rack-1"]
    assert fault(kubeconfig, "list") == "no faults\n"


def test_a_pool_of_a_plane_is_half_published(kubeconfig: Path) -> None:
    """A generation begins that its driver has to follow by a later one."""

    def generation() -> int:
        slices = [each["spec"] for each in listed(kubeconfig, SLICES)]
        of_rack = (each["pool"] for each in slices if each["nodeName"] == "rack-1")
        return max(int(pool["generation"]) for pool in of_rack)

    before = generation()
    assert fault(kubeconfig, "pool", "rack-1", "half") == "pool rack-1: half\n"
    assert generation() > before


def test_a_claim_of_a_plane_is_leaked(kubeconfig: Path) -> None:
    """There is a claim that no pod uses."""
    told = fault(kubeconfig, "claim", "default/forgotten", "leaked")
    assert told == "claim default/forgotten: leaked\n"
    [made] = listed(kubeconfig, CLAIMS)
    assert made["metadata"]["name"] == "forgotten"
    assert [each["name"] for each in made["spec"]["devices"]["requests"]] == ["leaked"]


def test_a_cluster_that_is_not_up_is_told(tmp_path: Path) -> None:
    """The error names what to check, without a traceback."""
    config = {
        "clusters": [{"name": "a", "cluster": {"server": "http://127.0.0.1:1"}}],
        "contexts": [{"name": "a", "context": {"cluster": "a"}}],
        "current-context": "a",
    }
    (tmp_path / "config").write_text(json.dumps(config))
    done = dryrack("fault", "list", "--kubeconfig", tmp_path / "config")

    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "connection refused; check that the cluster runs" in done.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("device rack-1/nothing lost", "no device 'rack-1/nothing'; did you mean 'rack-1/gpu-"),
        ("device rack-9/gpu-0 lost", "no node 'rack-9'; did you mean 'rack-"),
        ("device rack-1/* lost share=2", "share=2: must be a share from 0 to 1, for example 0.1"),
        ("node rack-1 fan=ok", "node 'rack-1 fan=ok': use NODE and prepare=fail"),
        ("node rack-1 reboot --for 5s", "'node rack-1 reboot' happens once; remove the duration"),
        ("node rack-1 ready=false --for ever", "--for 'ever': must be a duration, for example 30s"),
        ("pool rack-9 half", "no pool of 'rack-9/*'; see: kubectl get resourceslices"),
        ("engine schedulr crash", "unknown component 'schedulr'; did you mean 'scheduler'?"),
        ("api errors=0.1 engine=x", "unknown component 'x'; use one of: controllers, plugin"),
        ("claim forgotten leaked", "claim 'forgotten leaked': use NAMESPACE/NAME leaked"),
    ],
)
def test_what_is_not_there_and_what_is_no_fault_is_refused(
    kubeconfig: Path, words: str, told: str
) -> None:
    """The answer says what there is, and nothing is written."""
    done = dryrack("fault", *words.split(), "--kubeconfig", kubeconfig)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"dryrack: {told}")
