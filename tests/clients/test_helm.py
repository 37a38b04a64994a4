"""
Helm on the embedded plane: the life of a release, with what charts consist of.

Helm waits for what it installs and reads it back, so it sees where a cluster is none: hooks that
never end, a Deployment that is never ready, an object that is not what was applied.
"""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.clients.served import ServedPlane
from tests.realcluster import programs

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.real

CHART = Path(__file__).parent / "chart"
NAMESPACE = "training"
_SECONDS_MAX = 120
# A DaemonSet for GPU nodes, and a DeviceClass, as in the charts of GPU drivers.
DRIVER = """
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu.nvidia.com}
spec:
  selectors: [{cel: {expression: device.driver == 'gpu.nvidia.com'}}]
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: plugin}
spec:
  selector: {matchLabels: {app: plugin}}
  template:
    metadata: {labels: {app: plugin}}
    spec:
      affinity:
        nodeAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            nodeSelectorTerms:
            - matchExpressions:
              - {key: feature.node.kubernetes.io/pci-10de.present, operator: In, values: ["true"]}
            - matchExpressions:
              - {key: nvidia.com/gpu.present, operator: In, values: ["true"]}
      containers: [{name: plugin, image: registry.example.com/plugin}]
"""


@dataclass(frozen=True)
class Helm:
    """Helm with the kubeconfig of a plane."""

    plane: ServedPlane

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        directory = self.plane.directory
        homes = ("HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME")
        return subprocess.run(
            [programs.helm(), "--kubeconfig", self.plane.kubeconfig, "-n", NAMESPACE, *words],
            capture_output=True,
            text=True,
            timeout=_SECONDS_MAX,
            check=False,
            env={**os.environ, **dict.fromkeys(homes, str(directory / "helm"))},
        )

    def __call__(self, *words: str) -> str:
        """Return its output; it must succeed."""
        done = self.run(*words)
        assert done.returncode == 0, f"helm {' '.join(words)}: {done.stderr}{done.stdout}"
        return done.stdout

    def history(self) -> list[tuple[int, str]]:
        found = json.loads(self("history", "t", "-o", "json"))
        return [(each["revision"], each["status"]) for each in found]

    def get(self, kind: str, name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(
            self.plane.must("get", kind, name, "-n", NAMESPACE, "-o", "json")
        )
        return found


@pytest.fixture(scope="module")
def helm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Helm]:
    options = ("--nodes", "2", "--instance-type", "p5.48xlarge")
    with ServedPlane(tmp_path_factory.mktemp("helm"), options, "helm") as plane:
        yield Helm(plane)


def test_a_release_lives_as_on_every_cluster(helm: Helm) -> None:
    """Installed, tested, upgraded, upgraded in vain, rolled back and uninstalled."""
    helm("install", "t", str(CHART), "--create-namespace", "--wait", "--timeout", "60s")
    assert helm.get("configmap", "facts")["data"] == {"dra": "true", "migrated": "false"}
    assert helm.get("widget", "one")["spec"] == {"size": 3}
    assert helm.get("deployment", "trainer")["status"]["readyReplicas"] == 1
    assert "Phase:          Succeeded" in helm("test", "t", "--timeout", "60s")

    helm("upgrade", "t", str(CHART), "--set", "devices=8", "--wait", "--timeout", "60s")
    assert helm.get("configmap", "facts")["data"]["migrated"] == "true"
    claims = json.loads(helm.plane.must("get", "resourceclaims", "-n", NAMESPACE, "-o", "json"))
    counts = [len(each["status"]["allocation"]["devices"]["results"]) for each in claims["items"]]
    # The old pod keeps its claim for as long as it takes to stop.
    assert counts.count(8) == 1

    nowhere = ("--set", "devices=8,nodeSelector.place=nowhere")
    refused = helm.run("upgrade", "t", str(CHART), *nowhere, "--atomic", "--timeout", "3s")
    assert "has been rolled back due to atomic being set" in refused.stderr
    helm("rollback", "t", "1", "--wait", "--timeout", "60s")
    expected = ["superseded", "superseded", "failed", "superseded", "deployed"]
    assert helm.history() == list(enumerate(expected, start=1))
    assert helm.plane.must("get", "resourceclaimtemplates", "-n", NAMESPACE, "-o", "name") == (
        "resourceclaimtemplate.resource.k8s.io/devices-1\n"
    )

    helm("uninstall", "t", "--wait", "--timeout", "60s")
    # Helm does not wait for the pods of the Deployment, which take time to stop.
    trainers = ("pod", "-n", NAMESPACE, "--field-selector=metadata.name!=answers")
    helm.plane.kubectl("wait", *trainers, "--for=delete", "--timeout=60s")
    left = helm.plane.must("get", "deploy,pods,widgets", "-n", NAMESPACE, "-o", "name")
    assert left == "pod/answers\n"


def test_helm_finds_in_the_cluster_what_it_has_applied(helm: Helm) -> None:
    """`helm template | kubectl apply`, and `kubectl diff` finds nothing to do."""
    manifest = helm("template", "d", str(CHART), "--include-crds", "--no-hooks")
    helm.plane.must("create", "namespace", "templates")
    helm.plane.must("apply", "--server-side", "-n", "templates", "-f", "-", stdin=manifest)

    helm.plane.must("diff", "--server-side", "-n", "templates", "-f", "-", stdin=manifest)


def test_the_chart_of_a_driver_installs_its_classes(tmp_path: Path) -> None:
    """Helm does not adopt the DeviceClasses of the catalog; --no-device-classes leaves them out."""
    chart = tmp_path / "driver"
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text("{apiVersion: v2, name: driver, version: 0.1.0}")
    (chart / "templates" / "driver.yaml").write_text(DRIVER)
    options = ("--nodes", "2", "--instance-type", "p5.48xlarge", "--no-device-classes")
    with ServedPlane(tmp_path / "plane", options, "driver") as plane:
        helm = Helm(plane)
        helm("install", "d", str(chart), "--create-namespace", "--wait", "--timeout", "60s")
        assert helm.get("daemonset", "plugin")["status"]["numberReady"] == 2
        classes = plane.must("get", "deviceclasses", "-o", "name")
    assert classes == "deviceclass.resource.k8s.io/gpu.nvidia.com\n"
