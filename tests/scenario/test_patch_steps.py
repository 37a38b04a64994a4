"""Steps that patch objects: each patch type, a status subresource, and errors with their line."""

from __future__ import annotations

from pathlib import Path

import pytest

from dryrack.scenario import EmbeddedRun, ScenarioError, read_scenario, run_in_virtual_time

SCENARIO = """\
apiVersion: dryrack.dev/v1alpha1
kind: Scenario
fleet: {nodes: [{name: node, count: 2}]}
objects:
- apiVersion: resource.k8s.io/v1
  kind: DeviceClass
  metadata: {name: gpu.example.com}
  spec: {selectors: [{cel: {expression: "device.driver == 'gpu.example.com'"}}]}
- apiVersion: resource.k8s.io/v1
  kind: ResourceSlice
  metadata: {name: node-1}
  spec:
    driver: gpu.example.com
    nodeName: node-1
    pool: {name: node-1, generation: 1, resourceSliceCount: 1}
    devices:
    - {name: gpu-0, bindsToNode: true, bindingConditions: [Attached], bindingFailureConditions: [F]}
- apiVersion: resource.k8s.io/v1
  kind: ResourceClaim
  metadata: {name: gpu}
  spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.example.com}}]}}
- apiVersion: v1
  kind: Pod
  metadata: {name: p}
  spec:
    containers: [{name: c, image: x, resources: {claims: [{name: g}]}}]
    resourceClaims: [{name: g, resourceClaimName: gpu}]
steps:
- expect: [{event: {of: Pod/p, reason: BindingConditionsPending}}]
- patch:
    object: ResourceClaim/gpu
    subresource: status
    patch:
      status:
        devices:
        - driver: gpu.example.com
          pool: node-1
          device: gpu-0
          conditions: [{type: Attached, status: "True", reason: A, message: "",
                        lastTransitionTime: "2026-01-01T00:00:00Z"}]
  expect: [{object: Pod/p, fields: {spec.nodeName: node-1}}]
- patch: {object: "Node/node-*", type: json, patch: [{op: add, path: /metadata/labels/a, value: b}]}
  expect: [{object: "Node/*", fields: {metadata.labels.a: b}, count: 2}]
- patch: {object: Node/node-1, type: strategic, patch: {metadata: {labels: {c: d}}}}
  expect: [{object: Node/node-1, fields: {metadata.labels.c: d, metadata.labels.a: b}}]
"""


def run(text: str) -> list[str]:
    loaded = read_scenario(text, "patch.yaml", name="patch", folder=Path())
    return list(run_in_virtual_time(loaded, EmbeddedRun()).failures)


def test_a_status_patch_answers_binding_conditions() -> None:
    """The pod is bound after the patch; JSON and strategic patches change what they name."""
    assert run(SCENARIO) == []


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('"True"', '"Maybe"', 'patch.yaml:30: steps[1].patch: ResourceClaim/default/gpu: '),
        ("Node/node-1", "Node/none", "patch.yaml:44: steps[3].patch: Node/none: cannot patch it"),
        ("op: add", "op: oops", "patch.yaml:42: steps[2].patch: Node/node-1: "),
    ],
)  # fmt: skip
def test_a_refused_patch_fails_the_step_with_its_line(old: str, new: str, expected: str) -> None:
    """The message of the API server follows the line and the object."""
    [failure, *_] = run(SCENARIO.replace(old, new, 1))
    assert expected in failure


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            "    subresource: status\n",
            "",
            (
                "patch.yaml:30: steps[1].patch: the status of ResourceClaim/gpu is a subresource; "
                "add subresource: status"
            ),
        ),
        ("type: json", "type: yaml", "patch.yaml:42: steps[2].patch.type: unknown patch type"),
        ("type: json, ", "", "patch.yaml:42: steps[2].patch.patch: expected a mapping"),
        ("type: strategic", "type: json", "steps[3].patch.patch: expected a list of operations"),
        ("object: ResourceClaim/gpu", "object: gpu", "'gpu' is not a reference to an object"),
        ("subresource: status", "subresources: status", "unknown field"),
    ],
)
def test_a_wrong_patch_is_an_error_before_the_run(old: str, new: str, expected: str) -> None:
    """The message has the line, the field and the fix."""
    with pytest.raises(ScenarioError) as error:
        run(SCENARIO.replace(old, new, 1))
    assert expected in str(error.value)
