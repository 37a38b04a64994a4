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


PROGRAM = [
    *(sys.executable, "-m", "dryrack", "plugin", "--devices", "fake:2", "--no-nas"),
    *("--kubelet-dir", "{kubelet}", "--cdi-dir", "{cdi}", "--node", "{node}"),
]


def test_a_driver_runs_on_each_node_and_survives_restarts(kubelets: Path, tmp_path: Path) -> None:
    """The pod gets its health, the kubelet and the node restart, and `down` stops the drivers."""
    directory = ("--kubelet-dir", str(kubelets))
    up = dryrack("up", "--detach", "--nodes", "2", *directory, "--", *PROGRAM)
    assert up.returncode == 0, up.stderr
    config = tmp_path / "home" / "default" / "kubeconfig"
    fetched(config, "/apis/resource.k8s.io/v1/deviceclasses", DEVICE_CLASS)
    fetched(config, CLAIMS, TEMPLATE)
    fetched(config, PODS, POD)

    def status() -> Raw:
        return dict(fetched(config, PODS)["items"][0]["status"].get("containerStatuses", [{}])[0])

    def health() -> str:
        entries = status().get("allocatedResourcesStatus") or [{"resources": [{"health": ""}]}]
        return str(entries[0]["resources"][0]["health"])

    until(lambda: health() == "Healthy")
    node = fetched(config, PODS)["items"][0]["spec"]["nodeName"]
    events = fetched(config, "/api/v1/namespaces/default/events")["items"]
    injected = [each["message"] for each in events if each["reason"] == "CDIDevicesInjected"]
    assert len(injected) == 1
    assert "environment FAKE_DEVICE_0=FAKE-" in injected[0]
    restart = dryrack("fault", "node", node, "kubelet-restart", "--kubeconfig", str(config))
    assert restart.stderr == f"node {node}: kubelet-restart\n"
    assert status()["restartCount"] == 0, "containers run on"
    reboot = dryrack("fault", "node", node, "reboot", "--kubeconfig", str(config))
    assert reboot.returncode == 0, reboot.stderr
    until(lambda: status()["restartCount"] == 1 and status()["ready"])
    assert "FAKE_DEVICE_0=FAKE-" in asked(config, f"{PODS}/uses-one/log")
    until(lambda: health() == "Healthy")
    programs = [path.parent.name for path in kubelets.glob("*/driver.log")]
    assert sorted(programs) == ["node-1", "node-2"]
    assert dryrack("down").returncode == 0
    assert list(kubelets.glob("*/plugins_registry/*.sock")) == [], "each driver ended by SIGTERM"


def test_a_container_whose_cdi_device_does_not_resolve_fails(
    kubelets: Path, tmp_path: Path
) -> None:
    """The event has the text of containerd, and the container starts when the spec is there."""
    up = dryrack(
        "up", "--detach", "--nodes", "1", "--kubelet-dir", str(kubelets), "--", *PROGRAM[:-4],
        "--cdi-dir", f"{kubelets}/elsewhere", "--node", "{node}",
    )  # fmt: skip
    assert up.returncode == 0, up.stderr
    config = tmp_path / "home" / "default" / "kubeconfig"
    fetched(config, "/apis/resource.k8s.io/v1/deviceclasses", DEVICE_CLASS)
    fetched(config, CLAIMS, TEMPLATE)
    fetched(config, PODS, POD)

    def waiting() -> Raw:
        statuses = fetched(config, PODS)["items"][0]["status"].get("containerStatuses", [{}])
        return dict(statuses[0].get("state", {}).get("waiting", {}))

    until(lambda: waiting().get("reason") == "CreateContainerError")
    text = "failed to create containerd container: CDI device injection failed: unresolvable CDI "
    assert waiting()["message"].startswith(f"{text}devices k8s.{DRIVER}/fake=")
    for path in (kubelets / "elsewhere").glob("*.json"):
        path.rename(kubelets / "node-1" / "cdi" / path.name)
    until(lambda: not waiting())


def test_a_virtual_kubelet_serves_the_nodes_that_it_is_named_for(
    kubelets: Path, tmp_path: Path
) -> None:
    """It refuses nodes of others, creates its own node, and leaves nothing when it stops."""
    up = dryrack("up", "--detach", "--nodes", "1")
    assert up.returncode == 0, up.stderr
    config = tmp_path / "home" / "default" / "kubeconfig"
    fetched(config, "/apis/resource.k8s.io/v1/deviceclasses", DEVICE_CLASS)
    fetched(config, CLAIMS, TEMPLATE)
    options = ("--kubelet-dir", str(kubelets), "--kubeconfig", str(config))
    refused = dryrack("kubelet", "--node", "node-1", "--node", "new", *options)
    assert refused.returncode == 1
    assert "node node-1: KWOK or dryrack up serves this node" in refused.stderr

    def nodes() -> list[str]:
        return [each["metadata"]["name"] for each in fetched(config, "/api/v1/nodes")["items"]]

    assert nodes() == ["node-1"], "no node is created before all are checked"
    words = [sys.executable, "-m", "dryrack", "kubelet", "--node", "gpu-1", *options, "--"]
    with subprocess.Popen([*words, *PROGRAM], stderr=subprocess.DEVNULL) as kubelet:
        until(lambda: "gpu-1" in nodes())
        fetched(config, PODS, POD)
        until(lambda: fetched(config, PODS)["items"][0]["status"]["phase"] == "Running")
        assert fetched(config, PODS)["items"][0]["spec"]["nodeName"] == "gpu-1"
        second = dryrack("kubelet", "--node", "gpu-1", *options)
        assert f"{kubelets}/gpu-1: in use by process {kubelet.pid}" in second.stderr
        asked(config, f"{PODS}/uses-one", method="DELETE")
        until(lambda: not fetched(config, PODS)["items"])
        kubelet.terminate()
        assert kubelet.wait(timeout=20) == 0
    assert nodes() == ["node-1"]
    assert list(kubelets.glob("*/plugins_registry/*.sock")) == []


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["kubelet"], "name the nodes to serve, for example --node gpu-1"),
        (["kubelet", "--node", "a"], "--kubelet-dir is missing"),
        (["kubelet", "--node", "A_b", "--kubelet-dir", "/tmp/no"], "--node 'A_b': a lowercase"),
        (["kubelet", "--node-count", "-1"], "--node-count -1: must be a number from 1 to 1000"),
        (["kubelet", "--node-count", "2", "--node-name", "x"], "--node-name 'x': must contain {}"),
        (["up", "--", "sh"], "PROGRAM needs --kubelet-dir"),
        (["up", "--kubelet-dir", "/tmp/" + 90 * "x"], "bytes too long for sockets such as"),
        (["up", "--kubelet-dir", "/tmp/no", "--", "/no/such"], "/no/such: no such program"),
    ],
)
def test_wrong_usage_is_refused(words: list[str], problem: str) -> None:
    """The message names the option and the fix, and nothing starts."""
    call = dryrack(*words)

    assert call.returncode == 2
    assert problem in call.stderr
    assert not Path("/tmp/no").exists()


def test_a_directory_that_cannot_be_used_is_refused(kubelets: Path) -> None:
    """The message names the option, the directory, and what to do."""
    (kubelets / "file").write_text("")
    up = dryrack("up", "--kubelet-dir", str(kubelets / "file"))

    assert up.returncode == 2
    assert f"--kubelet-dir {kubelets}/file: File exists; name a directory" in up.stderr
