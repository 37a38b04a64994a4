"""A scenario from its file to its verdict, in virtual time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.scenario import EmbeddedRun, Verdict, read_scenario, run_in_virtual_time

if TYPE_CHECKING:
    from pathlib import Path

    from dryrack.scenario import LoadedScenario

HEAD = "apiVersion: dryrack.dev/v1alpha1\nkind: Scenario\n"
FLEET = """
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
    metadata: {name: trainer}
    spec:
      containers: [{name: main, image: trainer, resources: {claims: [{name: gpu}]}}]
      resourceClaims: [{name: gpu, resourceClaimTemplateName: one}]
"""


def scenario(text: str, folder: Path) -> LoadedScenario:
    return read_scenario(HEAD + text, "scenario.yaml", name="trial", folder=folder)


def test_a_scenario_goes_from_its_file_to_its_verdict(tmp_path: Path) -> None:
    """A pod gets a device of the fleet, runs, goes, and gives it back; an hour takes no time."""
    text = f"""{FLEET}
steps:
- title: A pod comes
  apply:{POD}
  expect:
  - object: Pod/trainer
    fields: {{status.phase: Running, spec.nodeName: "worker-*"}}
    lasting: 10m
  - devices: {{Pod/default/trainer: ["gpu.example.com/worker-*/gpu-0"]}}
  - published: {{"worker-*": {{gpu.example.com: 2}}}}
- title: It goes
  at: 50m
  delete: [Pod/trainer]
  expect:
  - gone: Pod/trainer
    within: 2m
"""
    outcome = run_in_virtual_time(scenario(text, tmp_path), EmbeddedRun(seed=3))

    assert outcome.failures == ()
    assert [each.verdict for each in outcome.steps] == [Verdict.HELD, Verdict.HELD]
    assert outcome.seconds > 3000
    assert len(outcome.hash) == 64


def test_what_does_not_come_is_told_and_ends_the_run(tmp_path: Path) -> None:
    """The step that fails says what there is instead; those after it are not begun."""
    text = f"""{FLEET}
steps:
- title: A pod comes
  apply:{POD}
  expect:
  - object: Pod/trainer
    fields: {{spec.nodeName: elsewhere}}
    within: 5s
- title: More
  wait: 1s
"""
    outcome = run_in_virtual_time(scenario(text, tmp_path), EmbeddedRun())

    assert not outcome.held
    assert [each.verdict for each in outcome.steps] == [Verdict.FAILED, Verdict.SKIPPED]
    assert outcome.failures == (
        "A pod comes: Pod/default/trainer: spec.nodeName is worker-1, not elsewhere",
    )
