"""`dryrack up --kubelet-dir` with the example driver of Kubernetes, which is a Go program."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.bench.prepares import MODULE, PACKAGE
from tests.cli.command import dryrack
from tests.cli.test_kubelet_dir import CLAIMS, DEVICE_CLASS, POD, PODS, TEMPLATE, kubelets
from tests.cli.test_up import asked, fetched
from tests.golang import build
from tests.publisher.real_publisher import until

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.real, pytest.mark.timeout(1800)]
__all__ = ["kubelets"]
DRIVER = "gpu.example.com"
FLAGS = (
    *("--kubelet-registrar-directory-path", "{registry}"),
    *("--kubelet-plugins-directory-path", "{plugins}", "--cdi-root", "{cdi}"),
)


def test_pods_of_the_example_driver_run_and_show_its_defect(kubelets: Path, tmp_path: Path) -> None:
    """
    The pod gets the environment of the driver, and unpreparing leaves no spec.

    After a reboot, the driver answers from its checkpoint and does not write its spec again, so the
    container fails as on a real node.
    """
    program = build(MODULE, (PACKAGE,)).path("dra-example-kubeletplugin")
    words = ("up", "--detach", "--nodes", "1", "--kubelet-dir", str(kubelets), "--")
    up = dryrack(*words, str(program), *FLAGS)
    assert up.returncode == 0, up.stderr
    config = tmp_path / "home" / "default" / "kubeconfig"
    selectors = [{"cel": {"expression": f"device.driver == '{DRIVER}'"}}]
    device_class = DEVICE_CLASS | {"spec": {"selectors": selectors}}
    fetched(config, "/apis/resource.k8s.io/v1/deviceclasses", device_class)
    fetched(config, CLAIMS, TEMPLATE)
    fetched(config, PODS, POD)

    def waiting() -> str:
        statuses = fetched(config, PODS)["items"][0]["status"].get("containerStatuses", [{}])
        return str(statuses[0].get("state", {}).get("waiting", {}).get("reason", ""))

    until(lambda: fetched(config, PODS)["items"][0]["status"]["phase"] == "Running")
    assert "GPU_DEVICE_0=gpu-" in asked(config, f"{PODS}/uses-one/log")
    assert dryrack("fault", "node", "node-1", "reboot", "--kubeconfig", str(config)).returncode == 0
    until(lambda: waiting() == "CreateContainerError")
    asked(config, f"{PODS}/uses-one", method="DELETE")
    until(lambda: not fetched(config, PODS)["items"])
    names = [path.name for path in (kubelets / "node-1" / "cdi").iterdir()]
    assert names == ["k8s.gpu.example.com-gpu_common.yaml"]
