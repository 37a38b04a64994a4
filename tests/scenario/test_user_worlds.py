"""Random scenarios around the manifests of a user."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml
from tests.cli.command import dryrack

from dryrack.cli.scenarios.changes import Changes
from dryrack.scenario import FuzzInput, UserWorld, fuzz, read_scenario

if TYPE_CHECKING:
    from dryrack.kinds.raw import Raw
    from dryrack.scheduler import SchedulerSettings

MANIFESTS = """
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: other}
spec: {selectors: [{cel: {expression: "device.driver == 'other.example.com'"}}]}
---
apiVersion: v1
kind: Node
metadata: {name: big, uid: "1", labels: {size: big}}
spec: {taints: [{key: node.kubernetes.io/not-ready, effect: NoSchedule}]}
status: {allocatable: {cpu: 8, memory: 32Gi, pods: "20"}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: big-1, ownerReferences: [{apiVersion: v1, kind: Node, name: big, uid: "1"}]}
spec:
  driver: other.example.com
  nodeName: big
  pool: {name: big, generation: 1, resourceSliceCount: 1}
  devices: [{name: d0}, {name: d1}, {name: d2}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: one, namespace: team}
spec: {spec: {devices: {requests: [{name: d, exactly: {deviceClassName: other}}]}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: team}
spec:
  replicas: 2
  selector: {matchLabels: {a: b}}
  template:
    metadata: {labels: {a: b}}
    spec:
      containers: [{name: c, image: x, resources: {claims: [{name: d}]}}]
      resourceClaims: [{name: d, resourceClaimTemplateName: one}]
---
apiVersion: v1
kind: Pod
metadata: {name: single, namespace: team}
spec:
  containers: [{name: c, image: x, resources: {claims: [{name: d}]}}]
  resourceClaims: [{name: d, resourceClaimTemplateName: one}]
"""
CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins: {multiPoint: {disabled: [{name: NodeResourcesBalancedAllocation}]}}
"""


def objects(text: str = MANIFESTS) -> tuple[Raw, ...]:
    return tuple(yaml.safe_load_all(text))


def settings_of(file: str) -> SchedulerSettings | None:
    return Changes(scheduler_config=file).scheduler_settings()


def test_a_scenario_has_all_manifests_and_random_faults() -> None:
    """Each workload is created once at least; the node becomes a virtual one without old taints."""
    document = UserWorld(objects=objects()).scenario(7, 20)
    assert document == UserWorld(objects=objects()).scenario(7, 20)
    assert document != UserWorld(objects=objects()).scenario(8, 20)
    read_scenario(yaml.safe_dump(document), "x.yaml", name="x", folder=Path())
    [group] = document["fleet"]["nodes"]
    assert group == {
        "name": "big",
        "labels": {"size": "big"},
        "capacity": {"cpu": "8", "memory": "32Gi", "pods": "20"},
    }
    kinds = [each["kind"] for each in document["objects"]]
    assert kinds == ["Namespace", "DeviceClass", "ResourceSlice", "ResourceClaimTemplate"]
    assert "ownerReferences" not in document["objects"][2]["metadata"]
    assert sum("fail" in step for step in document["steps"]) == 20
    applied = {it["metadata"]["name"] for step in document["steps"] for it in step.get("apply", ())}
    assert applied == {"web", "single"}


def test_manifests_without_nodes_get_nodes() -> None:
    """The number and the devices are those of the caller."""
    pods = tuple(each for each in objects() if each["kind"] == "Pod")
    world = UserWorld(objects=pods, nodes=2, devices=("gpu:2",))
    fleet = world.scenario(0, 3)["fleet"]
    assert fleet == {"devices": ["gpu:2"], "nodes": [{"name": "worker-1"}, {"name": "worker-2"}]}


def test_sound_manifests_pass_with_the_users_scheduler(tmp_path: Path) -> None:
    """Faults end, so the invariants hold; the profile of the file schedules."""
    file = tmp_path / "scheduler.yaml"
    file.write_text(CONFIG)
    given = FuzzInput(
        world=UserWorld(objects=objects()), scheduling=partial(settings_of, str(file))
    )
    outcomes = list(fuzz(range(2), 6, given=given))
    assert [each.problem for each in outcomes] == ["", ""]
    assert all(each.writes for each in outcomes)


def test_a_failure_prints_the_command_that_runs_it_again(tmp_path: Path) -> None:
    """The file has the smallest scenario, and fails in the same way."""
    manifests = tmp_path / "half.yaml"
    manifests.write_text(MANIFESTS.replace("resourceSliceCount: 1", "resourceSliceCount: 2"))
    config = tmp_path / "scheduler.yaml"
    config.write_text(CONFIG)
    words = ("--seeds", "1", "--faults", "2", "--keep-in", tmp_path, "--scheduler-config", config)
    answer = dryrack("scenario", "fuzz", "-f", manifests, *words)
    assert answer.returncode == 1
    assert "pools are complete: pool other.example.com/big" in answer.stdout
    file = tmp_path / "seed-0.yaml"
    again = f"dryrack scenario run --seed 0 --scheduler-config {config} {file}"
    assert f"run it again: {again}" in answer.stderr
    assert dryrack(*again.split()[1:]).returncode == 1


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--nodes", "2"), "--nodes: needs your manifests; add -f FILE"),
        (("-f", "missing.yaml"), "missing.yaml: no such file"),
        (("-f", "FILE", "--nodes", "2"), "the manifests have a Node"),
    ],
)
def test_wrong_usage_ends_before_the_first_scenario(
    words: tuple[str, ...], text: str, tmp_path: Path
) -> None:
    """The exit status is 2."""
    file = tmp_path / "my.yaml"
    file.write_text(MANIFESTS)
    answer = dryrack("scenario", "fuzz", *[file if each == "FILE" else each for each in words])
    assert answer.returncode == 2
    assert text in answer.stderr
