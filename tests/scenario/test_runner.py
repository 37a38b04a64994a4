"""The order of steps, their actions, and the times of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dryrack.scenario import (
    EmbeddedRun,
    Verdict,
    load_packaged,
    read_scenario,
    run_in_real_time,
    run_in_virtual_time,
)

if TYPE_CHECKING:
    from pathlib import Path

    from dryrack.scenario import Outcome

HEAD = "apiVersion: dryrack.dev/v1alpha1\nkind: Scenario\n"
DEPLOYMENT = """
  - apiVersion: apps/v1
    kind: Deployment
    metadata: {name: web}
    spec:
      replicas: 1
      selector: {matchLabels: {app: web}}
      template:
        metadata: {labels: {app: web}}
        spec: {containers: [{name: main, image: web}]}
"""


def run(text: str, folder: Path, seed: int = 0) -> Outcome:
    loaded = read_scenario(HEAD + text, "s.yaml", name="s", folder=folder)
    return run_in_virtual_time(loaded, EmbeddedRun(seed=seed))


def test_steps_begin_at_their_time_or_after_another(tmp_path: Path) -> None:
    """By default after the one before; two may be under way at once."""
    outcome = run(
        """
steps:
- {id: long, wait: 100s}
- {id: late, wait: 1s}
- {id: early, at: 10s, wait: 5s}
- {id: follower, after: early, delay: 2s, wait: 1s}
""",
        tmp_path,
    )
    began = {each.id: each.began for each in outcome.steps}

    assert began == pytest.approx({"long": 0, "late": 100, "early": 10, "follower": 17})
    assert outcome.seconds == pytest.approx(101)


def test_a_workload_is_scaled_and_its_pods_follow(tmp_path: Path) -> None:
    """Deployments as well as what they make are there, with the time that it took."""
    outcome = run(
        f"""
fleet: {{nodes: [{{name: node, count: 2}}]}}
steps:
- apply:{DEPLOYMENT}
  expect:
  - {{object: Deployment/web, fields: {{status.readyReplicas: 1}}}}
- scale: {{object: Deployment/web, replicas: 5}}
  expect:
  - {{object: Pod/web-*, count: 5, fields: {{status.phase: Running}}}}
""",
        tmp_path,
    )

    assert outcome.failures == ()
    assert outcome.steps[1].expectations[0].seconds < 5


BUDGET = """
  - apiVersion: policy/v1
    kind: PodDisruptionBudget
    metadata: {name: web}
    spec: {minAvailable: 1, selector: {matchLabels: {app: web}}}
"""


def test_evicted_pods_leave_one_after_the_other_as_their_budget_allows(tmp_path: Path) -> None:
    """A second eviction waits until the first pod is replaced, and then it is done."""
    outcome = run(
        f"""
fleet: {{nodes: [{{name: node}}]}}
steps:
- apply:{DEPLOYMENT}{BUDGET}
- scale: {{object: Deployment/web, replicas: 2}}
  expect: [{{object: Deployment/web, fields: {{status.readyReplicas: 2}}}}]
- {{id: evicted, evict: [Pod/web-*], expect: [{{object: PodDisruptionBudget/web,
   fields: {{status.disruptionsAllowed: 1}}}}]}}
""",
        tmp_path,
    )

    assert outcome.failures == ()
    assert outcome.steps[2].ended - outcome.steps[2].began >= 5


def test_an_eviction_that_a_budget_refuses_to_the_last_fails(tmp_path: Path) -> None:
    """It is told why; and so is one of a pod that there is not."""
    refused = run(
        f"""
fleet: {{nodes: [{{name: node}}]}}
steps:
- apply:{DEPLOYMENT}{BUDGET}
  expect: [{{object: Deployment/web, fields: {{status.readyReplicas: 1}}}}]
- {{title: drain, evict: [Pod/web-*]}}
""",
        tmp_path,
    )
    missing = run("steps:\n- {title: drain, evict: [Pod/web-*]}\n", tmp_path)

    [told] = refused.failures
    why = "The disruption budget web needs 1 healthy pods and has 1 currently"
    assert told.startswith("drain: Pod/default/web-")
    assert told.endswith(f": not evicted: {why}")
    assert missing.failures == ("drain: Pod/web-*: cannot evict it: not found",)


def test_what_holds_and_then_does_not_is_told(tmp_path: Path) -> None:
    """An expectation that must last is watched for as long as it must."""
    outcome = run(
        f"""
fleet: {{nodes: [{{name: node}}]}}
steps:
- title: comes
  apply:{DEPLOYMENT}
  expect:
  - {{object: Pod/web-*, lasting: 1m}}
- title: goes
  at: 20s
  scale: {{object: Deployment/web, replicas: 0}}
""",
        tmp_path,
    )

    assert outcome.failures == ("comes: Pod/web-*: not found, after it had held",)


def test_a_run_ends_at_its_limit(tmp_path: Path) -> None:
    """What is still under way then is not counted as done."""
    outcome = run("limit: 1m\nsteps:\n- wait: 50s\n- {title: more, wait: 50s}\n", tmp_path)

    assert outcome.problem == "did not end within its limit of 1m"
    assert [each.verdict for each in outcome.steps] == [Verdict.HELD, Verdict.SKIPPED]
    assert outcome.seconds == pytest.approx(60)
    assert not outcome.held


@pytest.mark.parametrize(
    ("step", "complaint"),
    [
        ("delete: [Pod/none]", "Pod/none: cannot delete it: not found"),
        ("delete: [Wurst/none]", "Wurst/none: the cluster has no such kind"),
        (
            "apply: [{apiVersion: example.com/v1, kind: Wurst, metadata: {name: a}}]",
            "Wurst of example.com/v1: the cluster has no such kind",
        ),
        (
            "apply: [{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {}}]",
            'Pod "a" is invalid: spec.containers: Required value',
        ),
        ("scale: {object: Deployment/none, replicas: 1}", 'deployments.apps "none" not found'),
    ],
)
def test_what_cannot_be_done_fails_its_step(step: str, complaint: str, tmp_path: Path) -> None:
    """In the words of whoever refuses it."""
    outcome = run(f"steps:\n- {step}\n", tmp_path)

    assert complaint in outcome.steps[0].problem
    assert not outcome.held


def test_an_object_is_repeated_with_its_number(tmp_path: Path) -> None:
    """Wherever `$n` stands."""
    outcome = run(
        """
steps:
- apply:
  - repeat: 3
    object: {apiVersion: v1, kind: ConfigMap, metadata: {name: map-$n}, data: {number: "$n"}}
  expect:
  - {object: ConfigMap/map-*, count: 3}
  - {object: ConfigMap/map-3, fields: {data.number: "3"}}
""",
        tmp_path,
    )

    assert outcome.failures == ()


def test_a_fleet_at_rest_writes_nothing(tmp_path: Path) -> None:
    """An hour of it costs what a minute costs, and its nodes are ready all the time."""

    def rest(time: str) -> Outcome:
        return run(
            f"""
limit: 2h
fleet: {{devices: [gpu:2], nodes: [{{name: worker, count: 3}}]}}
steps:
- wait: {time}
  expect:
  - {{object: Node/worker-*, count: 3, fields: {{"status.conditions[type=Ready].status": "True"}}}}
""",
            tmp_path,
        )

    minute = rest("1m")
    hour = rest("1h")

    assert minute.failures == hour.failures == ()
    assert minute.writes == hour.writes


def test_a_kubelet_that_dies_is_missed_as_soon_as_ever(tmp_path: Path) -> None:
    """Where an engine is to crash, leases are as short as a kubelet's."""
    outcome = run(
        """
fleet: {nodes: [{name: worker}]}
steps:
- expect: [{object: Lease/kube-node-lease/worker, fields: {spec.leaseDurationSeconds: 40}}]
- fail: [engine scheduler crash]
""",
        tmp_path,
    )

    assert outcome.failures == ()


def test_a_scenario_holds_in_real_time_too() -> None:
    """Its journal is then not to be compared, and has no hash."""
    outcome = run_in_real_time(load_packaged("fake-2"), EmbeddedRun())

    assert outcome.failures == ()
    assert outcome.hash == ""
