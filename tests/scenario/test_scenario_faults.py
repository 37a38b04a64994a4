"""Faults in the steps of a scenario: what they do, how they end, and what holds all the while."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dryrack.allocation.supply.usage import UsageTable
from dryrack.scenario import EmbeddedRun, ScenarioError, read_scenario, run_in_virtual_time

if TYPE_CHECKING:
    from pathlib import Path

    from dryrack.scenario import Outcome

HEAD = """
apiVersion: dryrack.dev/v1alpha1
kind: Scenario
fleet:
  devices: [gpu:2]
  nodes:
  - {name: worker, count: 2}
objects:
- apiVersion: resource.k8s.io/v1
  kind: ResourceClaimTemplate
  metadata: {name: one}
  spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.example.com}}]}}}
"""
POD = """
  - apiVersion: v1
    kind: Pod
    metadata: {name: %s}
    spec:
      containers: [{name: main, image: trainer, resources: {claims: [{name: gpu}]}}]
      resourceClaims: [{name: gpu, resourceClaimTemplateName: one}]
"""
SLICE_WRITES_MAX = 100
RUNS = "{object: Pod/%s, fields: {status.phase: Running}, within: 2m}"


def play(steps: str, folder: Path, seed: int = 0) -> Outcome:
    text = f"{HEAD}steps:{steps}"
    loaded = read_scenario(text, "scenario.yaml", name="trial", folder=folder)
    return run_in_virtual_time(loaded, EmbeddedRun(seed=seed))


def applied(*names: str) -> str:
    return "apply:" + "".join(POD % name for name in names)


FAULTS = {
    "a device is lost and found": f"""
- fail: [device worker-1/gpu-0 lost]
  expect: [{{published: {{worker-1: {{gpu.example.com: 1}}}}}}]
- heal: [device worker-1/gpu-0]
  expect: [{{published: {{worker-1: {{gpu.example.com: 2}}}}}}]
- {applied("trainer")}
  expect: [{RUNS % "trainer"}]
""",
    "a share of devices is tainted for a while": f"""
- fail: ["device */* taint=a:NoSchedule share=0.75 for 1m"]
- {applied("one", "two")}
  expect: [{{object: Pod/two, fields: {{spec.nodeName: null}}, within: 40s, lasting: 20s}}]
- expect: [{RUNS % "two"}]
""",
    "a node is not ready": f"""
- {applied("trainer")}
  expect: [{RUNS % "trainer"}]
- fail: [node * ready=false]
  expect: [{{object: Node/worker-1, fields: {{"status.conditions[type=Ready].status": "False"}}}}]
- heal: [node worker-*]
  expect: [{{object: Node/worker-1, fields: {{"status.conditions[type=Ready].status": "True"}}}}]
""",
    "preparing fails until it is healed": f"""
- fail: [node * prepare=fail=no luck]
- {applied("trainer")}
  expect:
  - {{object: Pod/trainer, fields: {{status.phase: Pending}}, lasting: 30s}}
  - {{event: {{of: Pod/trainer, reason: FailedPrepareDynamicResources, says: no luck}}}}
- heal: [all]
  expect: [{RUNS % "trainer"}]
""",
    "a pool is published by half": """
- fail: [pool worker-1 half]
- expect: [{published: {worker-1: {gpu.example.com: 2}}}]
""",
    "a claim is leaked": f"""
- fail: [claim default/forgotten leaked]
  expect: [{{object: ResourceClaim/forgotten, fields: {{status.allocation: null}}}}]
- {applied("a", "b", "c", "d")}
  expect: [{{object: Pod/*, count: 4, fields: {{status.phase: Running}}}}]
""",
    "a node reboots while its kubelet is away": f"""
- {applied("trainer")}
  expect: [{RUNS % "trainer"}]
- wait: 30s
- fail: [engine controllers crash for 30s, node * reboot]
- wait: 1m
- expect:
  - object: Pod/trainer
    fields:
      "status.containerStatuses[name=main].restartCount": 1
      "status.containerStatuses[name=main].lastState.terminated.exitCode": 137
      status.phase: Running
- fail: [engine controllers crash for 30s]
- wait: 1m
- expect:
  - object: Pod/trainer
    fields: {{"status.containerStatuses[name=main].restartCount": 1}}
    lasting: 1m
""",
    "the API and the engines fail": f"""
- fail:
  - api conflicts=0.3 too-many=0.1 errors=0.1 lost-answers=0.1 latency=50ms for 3m
  - watches expired
  - engine scheduler crash=after write=2
- {applied("a", "b", "c", "d")}
- fail: [engine controllers crash for 10s, watches broken]
- expect: [{{object: Pod/*, count: 4, fields: {{status.phase: Running}}, within: 4m}}]
""",
}


@pytest.mark.parametrize("title", FAULTS)
def test_a_fault_begins_and_ends_and_leaves_nothing_behind(title: str, tmp_path: Path) -> None:
    """The scenario holds, the invariants too, and the same seed gives the same journal."""
    outcome = play(FAULTS[title], tmp_path, seed=3)
    assert outcome.failures == ()
    assert play(FAULTS[title], tmp_path, seed=3).hash == outcome.hash


def test_words_that_name_no_fault_are_refused_with_their_line(tmp_path: Path) -> None:
    """In steps and for the whole run."""
    steps = "\n- fail: [device worker-1/gpu-0 sad, node x reboot]\n- heal: [it]\n"
    with pytest.raises(ScenarioError) as refused:
        read_scenario(
            f"{HEAD}faults: [api latency=x]\nsteps:{steps}", "s.yaml", name="x", folder=tmp_path
        )
    assert [line.split(";")[0] for line in str(refused.value).splitlines()] == [
        "s.yaml:13: faults[0]: latency=x: must be a duration, for example 20ms or 2s",
        "s.yaml:15: steps[0].fail[0]: device worker-1/gpu-0 'sad': unknown fault 'sad'",
        "s.yaml:16: steps[1].heal[0]: 'it': unknown target",
    ]


def test_a_fault_of_what_there_is_not_fails_the_step(tmp_path: Path) -> None:
    """With what there is."""
    outcome = play("\n- fail: [node nowhere ready=false]\n", tmp_path)
    assert outcome.failures == ("step: no node 'nowhere'; use one of: worker-1, worker-2",)


def test_a_broken_invariant_ends_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A scheduler that forgets what it has given is found out at the second claim."""
    monkeypatch.setattr(UsageTable, "allocate", lambda *_: None)
    outcome = play(f"\n- {applied('a', 'b', 'c')}\n- wait: 1m\n", tmp_path)
    assert outcome.problem.startswith(
        "no device is allocated twice: device gpu.example.com/worker-"
    )
    assert not outcome.held


def test_slices_are_not_written_again_and_again_for_a_node_that_is_gone(tmp_path: Path) -> None:
    """Although the watch that tells of the node is broken."""
    steps = """
- expect: [{published: {worker-1: {gpu.example.com: 2}}}]
- fail: [engine scheduler crash, watches broken engine=plugin]
- {delete: [Node/worker-1], expect: [{gone: "ResourceSlice/worker-1-*", lasting: 1m}]}
"""
    loaded = read_scenario(f"{HEAD}steps:{steps}", "scenario.yaml", name="trial", folder=tmp_path)
    writes: list[str] = []

    def count(line: str) -> None:
        writes.extend([line] if "resourceslices" in line else [])
        if len(writes) > SLICE_WRITES_MAX:
            pytest.fail("slices are written without end")

    outcome = run_in_virtual_time(loaded, EmbeddedRun(journal_line=count))
    assert outcome.failures == ()


def test_a_pod_that_waits_for_its_volume_breaks_no_invariant(tmp_path: Path) -> None:
    """Its node is not what it lacks; the others of its gang wait with it."""
    prefix = "pod-group.scheduling.sigs.k8s.io"
    labels = f"labels: {{{prefix}/name: gang, {prefix}/min-available: '2'}}"
    members = "".join(POD.replace("{name: %s}", f"{{name: {name}, {labels}}}") for name in "ab")
    mount = "      volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]\n"
    claim = """
  - apiVersion: v1
    kind: PersistentVolumeClaim
    metadata: {name: data}
    spec:
      storageClassName: ""
      accessModes: [ReadWriteOnce]
      resources: {requests: {storage: 1Gi}}
"""
    fault = "\n- fail: [node worker-1 ready=false for 5s]\n- wait: 60s\n"
    outcome = play(f"\n- apply:{claim}{members}{mount}{fault}", tmp_path)

    assert outcome.failures == ()


_SHARED = """
  - apiVersion: v1
    kind: Pod
    metadata: {name: %s, annotations: {dryrack.dev/run-seconds: "%d"}}
    spec:
      restartPolicy: Never
      nodeSelector: {kubernetes.io/hostname: %s}
      containers: [{name: main, image: trainer, resources: {claims: [{name: gpu}]}}]
      resourceClaims: [{name: gpu, resourceClaimName: shared}]
"""


def test_a_reboot_leaves_claims_alone_that_are_in_use_on_another_node(tmp_path: Path) -> None:
    """A finished pod names a claim that has moved on; what runs is prepared all the while."""
    claim = """
  - apiVersion: resource.k8s.io/v1
    kind: ResourceClaim
    metadata: {name: shared}
    spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.example.com}}]}}
"""
    steps = f"""
- apply:{claim}{_SHARED % ("first", 3, "worker-1")}
  expect: [{{object: Pod/first, fields: {{status.phase: Succeeded}}, within: 1m}}]
- apply:{_SHARED % ("second", 900, "worker-2")}
  expect: [{RUNS % "second"}]
- fail: [node worker-1 reboot]
- wait: 1m
  expect: [{RUNS % "second"}]
"""
    assert play(steps, tmp_path).problem == ""
