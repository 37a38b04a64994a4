"""`dryrack up --kubelet-dir`: a driver program serves the pods of a virtual node."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.cli.command import dryrack
from tests.cli.test_up import asked, fetched
from tests.publisher.real_publisher import until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dryrack.kinds.raw import Raw

DRIVER = "fake.resource.3-shake.com"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaimtemplates"
PODS = "/api/v1/namespaces/default/pods"
TEMPLATE = {
    "metadata": {"name": "one"},
    "spec": {
        "spec": {"devices": {"requests": [{"name": "d", "exactly": {"deviceClassName": "fake"}}]}}
    },
}
DEVICE_CLASS = {
    "metadata": {"name": "fake"},
    "spec": {"selectors": [{"cel": {"expression": f"device.driver == '{DRIVER}'"}}]},
}
POD = {
    "metadata": {"name": "uses-one"},
    "spec": {
        "containers": [
            {
                "name": "c",
                "image": "busybox",
                "command": ["sh", "-c", "env; sleep 1000"],
                "resources": {"claims": [{"name": "g"}]},
            }
        ],
        "resourceClaims": [{"name": "g", "resourceClaimTemplateName": "one"}],
        "terminationGracePeriodSeconds": 1,
    },
}


@pytest.fixture
def kubelets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The directory of the kubelets, whose path leaves room for sockets."""
    monkeypatch.setenv("DRYRACK_HOME", str(tmp_path / "home"))
    with tempfile.TemporaryDirectory(prefix="dryrack-") as directory:
        yield Path(directory)
        dryrack("down", "--all")


@contextmanager
def plugin(kubelets: Path, kubeconfig: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A driver program that serves node-1."""
    directory = kubelets / "node-1"
    command = [sys.executable, "-m", "dryrack", "plugin", "--devices", "fake:2", "--no-nas"]
    options = ["--kubelet-dir", directory, "--cdi-dir", directory / "cdi", "--node", "node-1"]
    words = [*command, *map(str, options), "--kubeconfig", str(kubeconfig)]
    with subprocess.Popen(words, stderr=subprocess.DEVNULL) as program:
        yield program
        program.terminate()


def test_a_driver_program_serves_the_pods_of_its_node(kubelets: Path, tmp_path: Path) -> None:
    """A pod waits for it, gets its environment, and is deleted when it has unprepared the claim."""
    up = dryrack("up", "--detach", "--nodes", "1", "--kubelet-dir", str(kubelets))
    assert up.returncode == 0, up.stderr
    config = tmp_path / "home" / "default" / "kubeconfig"
    fetched(config, "/apis/resource.k8s.io/v1/deviceclasses", DEVICE_CLASS)
    fetched(config, CLAIMS, TEMPLATE)

    def pods() -> list[Raw]:
        return list(fetched(config, PODS)["items"])

    def prepared() -> int:
        text = json.loads((kubelets / "node-1" / "dra_manager_state").read_text())["Data"]
        return len(json.loads(text)["ClaimInfoStateList"])

    with plugin(kubelets, config) as program:
        fetched(config, PODS, POD)
        until(lambda: pods()[0]["status"]["phase"] == "Running")
        assert "FAKE_DEVICE_0=FAKE-" in asked(config, f"{PODS}/uses-one/log")
        assert prepared() == 1
        program.kill()
        program.wait()
        asked(config, f"{PODS}/uses-one", method="DELETE")
        until(lambda: "unprepare dynamic resources" in (config.parent / "log").read_text())
        assert len(pods()) == 1, "the pod waits for the driver"
    with plugin(kubelets, config):
        until(lambda: not pods())
        assert prepared() == 0
        # A pod that is deleted by force leaves no claim prepared, either.
        fetched(config, PODS, POD)
        until(lambda: prepared() == 1 and pods()[0]["status"]["phase"] == "Running")
        asked(config, f"{PODS}/uses-one?gracePeriodSeconds=0", method="DELETE")
        until(lambda: prepared() == 0)
        assert list((kubelets / "node-1" / "cdi").glob("*.json")) == []


def test_a_directory_that_cannot_be_used_is_refused(tmp_path: Path) -> None:
    """The message names the option, the directory, and what to do."""
    (tmp_path / "file").write_text("")
    up = dryrack("up", "--kubelet-dir", str(tmp_path / "file"))

    assert up.returncode == 2
    assert f"--kubelet-dir {tmp_path}/file: File exists; name a directory" in up.stderr
