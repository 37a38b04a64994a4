"""`dryrack check` on files, and its output for programs."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pytest
import yaml
from tests.cli.command import dryrack

from dryrack.client.client import Client
from dryrack.client.endpoints import PREPARED_CLAIMS
from dryrack.client.https import connected
from dryrack.client.kubeconfig import load
from dryrack.cluster.ports import SystemClock
from dryrack.kubeletplugin.checkpoint import Checkpoint
from dryrack.kubeletplugin.files import HostFileSystem
from dryrack.kubeletplugin.record import ClaimRecord, State

if TYPE_CHECKING:
    from pathlib import Path

    from dryrack.kinds.raw import Raw

DRIVER = "gpu.example.com"


def claim(name: str) -> Raw:
    results = [{"request": "gpu", "driver": DRIVER, "pool": "n1", "device": "gpu-0"}]
    request = {"name": "gpu", "exactly": {"deviceClassName": DRIVER}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "default", "uid": name},
        "spec": {"devices": {"requests": [request]}},
        "status": {"allocation": {"devices": {"results": results}}},
    }


def write(path: Path, *objects: Raw) -> Path:
    path.write_text(yaml.safe_dump_all(objects))
    return path


def test_a_file_with_a_device_of_two_claims_has_exit_status_1(tmp_path: Path) -> None:
    """The JSON names the device, the claims and the fix; kinds without objects are not checked."""
    file = write(tmp_path / "dump.yaml", claim("a"), claim("b"))
    answer = dryrack("check", "-f", file, "-o", "json")
    assert answer.returncode == 1
    checks = {each["check"]: each for each in json.loads(answer.stdout)["checks"]}
    assert checks["one-holder"]["violations"] == [
        {
            "object": "device gpu.example.com/n1/gpu-0",
            "message": "is allocated to claims default/a, default/b",
            "fix": "delete a Pod that uses one of these claims",
        }
    ]
    assert checks["no-leak"]["state"] == "not checked"
    assert "the files contain no pods, nodes" in checks["no-leak"]["notChecked"]


def test_the_junit_report_has_a_case_for_each_invariant(tmp_path: Path) -> None:
    """A violation is a failure, and what is not checked is skipped."""
    file = write(tmp_path / "dump.yaml", claim("a"), claim("b"))
    suite = ElementTree.fromstring(dryrack("check", "-f", file, "-o", "junit").stdout)[0]
    assert suite.get("tests") == str(len(suite)) == "12"
    failures = [each.get("name") for each in suite if each.find("failure") is not None]
    assert failures == ["no device is allocated twice"]
    assert suite.get("skipped") == str(sum(each.find("skipped") is not None for each in suite))


def test_sound_files_have_exit_status_0(tmp_path: Path) -> None:
    """One claim alone holds its device."""
    assert dryrack("check", "-f", write(tmp_path / "dump.yaml", claim("a"))).returncode == 0


def test_wrong_usage_has_exit_status_2(tmp_path: Path) -> None:
    """The message names the option."""
    for words, text in (
        (("--wait", "soon"), "--wait 'soon': must be a duration"),
        (("--node", "n1"), "--node: names the node of --kubelet-dir"),
        (("--kubelet-dir", tmp_path), "has no directory plugins"),
        (("-f", "missing.yaml"), "missing.yaml: no such file"),
    ):
        answer = dryrack("check", *words)
        assert answer.returncode == 2
        assert text in answer.stderr


def test_the_checkpoints_of_a_plugin_are_compared_and_not_changed(tmp_path: Path) -> None:
    """A claim of a running pod that the plugin does not know is a violation, as is a left-over."""
    directory = tmp_path / "plugins" / DRIVER / "checkpoints"
    directory.mkdir(parents=True)
    checkpoint = Checkpoint(directory, HostFileSystem())
    checkpoint.save(ClaimRecord("old", "default", "old", State.PREPARED, ()))
    used = claim("a")
    used["status"]["reservedFor"] = [{"resource": "pods", "name": "p", "uid": "p"}]
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "default", "uid": "p"},
        "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}]},
        "status": {"phase": "Running"},
    }
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}
    pool = {"name": "n1", "generation": 1, "resourceSliceCount": 1}
    piece = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": "s"},
        "spec": {"driver": DRIVER, "nodeName": "n1", "pool": pool, "devices": [{"name": "gpu-0"}]},
    }
    file = write(tmp_path / "dump.yaml", used, pod, node, piece)
    words = ("check", "-f", file, "--kubelet-dir", tmp_path, "-o", "json")
    answer = dryrack(*words, "--node", "n1")
    found = [it for each in json.loads(answer.stdout)["checks"] for it in each["violations"]]
    assert [each["object"] for each in found] == ["claim with UID old", "claim default/a"]
    other = dryrack(*words, "--node", "n2")
    found = [it for each in json.loads(other.stdout)["checks"] for it in each["violations"]]
    assert [each["object"] for each in found] == ["claim with UID old"]
    checkpoint.remove("old")
    (directory / "bad.json").write_text("{")
    damaged = dryrack(*words)
    assert damaged.returncode == 1
    assert "bad.json" in damaged.stderr
    assert "restart the plugin" in damaged.stderr
    assert [each.name for each in directory.iterdir()] == ["bad.json"]


def test_a_virtual_cluster_reports_its_prepared_claims(tmp_path: Path) -> None:
    """Nothing is unchecked on it; its page has the claim of a running pod, by driver."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DRYRACK_HOME", str(tmp_path / "home"))
        patch.delenv("KUBECONFIG", raising=False)
        objects = [
            {**claim("a"), "status": {}},
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": "p", "namespace": "default"},
                "spec": {
                    "containers": [
                        {"name": "c", "image": "i", "resources": {"claims": [{"name": "g"}]}}
                    ],
                    "resourceClaims": [{"name": "g", "resourceClaimName": "a"}],
                },
            },
        ]
        config = write(tmp_path / "objects.yaml", *objects)
        words = ("--nodes", "1", "--devices", "gpu:1", "--config", config)
        up = dryrack("up", "--detach", *words)
        assert up.returncode == 0, up.stderr
        try:
            answer = dryrack("check", "-o", "json")
            checks = json.loads(answer.stdout)["checks"]
            assert {each["state"] for each in checks} == {"ok"}, answer.stdout
            path = tmp_path / "home" / "default" / "kubeconfig"
            assert prepared_drivers(path) == [DRIVER]
        finally:
            dryrack("down", "--all")


def prepared_drivers(kubeconfig: Path) -> list[str]:
    """Return the drivers with a prepared claim, from the page of a virtual cluster."""

    async def read() -> Raw:
        async with connected(load([kubeconfig], clock=SystemClock())) as transport:
            return await Client(transport).get_path(PREPARED_CLAIMS)

    drivers = asyncio.run(read())["drivers"]
    return [name for name, claims in drivers.items() if len(claims) == 1]
