"""Lint for each release."""

from __future__ import annotations

import pytest
from tests.linter.examples import CLAIM, CLASS, NAMESPACE, SLICE, join

from dryrack.kinds.registry import builtin_kinds
from dryrack.kinds.releases import GATED_FIELDS, GatedField, Release, gates_of
from dryrack.kinds.schemas import schema_of
from dryrack.linter import Finding, lint

DERIVED = CLAIM.replace(
    "        count: 2\n",
    "        count: 2\n"
    "        derivedAttributes:\n"
    "        - {name: example.com/half, expression: 'true'}\n",
)
ESCAPED = CLASS.replace(
    'device.driver == "gpu.example.com"', 'device.attributes["gpu.example.com"].`numa` == 0'
)


def findings(release: Release, *texts: str) -> list[tuple[str, str]]:
    found: tuple[Finding, ...] = lint([("a.yaml", join(*texts).encode())], release=release)
    return [(each.code, each.field) for each in found if each.code != "DR505"]


def test_a_field_of_a_newer_release_is_unknown_or_dropped() -> None:
    """Kubernetes 1.36 has no such field; 1.37 drops it, because its feature gate is off."""
    field = "spec.devices.requests[0].exactly.derivedAttributes"
    world = (NAMESPACE, SLICE, CLASS, DERIVED)

    assert findings(Release.V1_36, *world) == [("DR010", field)]
    assert ("DR121", field) in findings(Release.V1_37, *world)


@pytest.mark.parametrize(
    ("after", "line", "code_1_36", "code_1_37"),
    [
        ("spec:\n", "  skipNodeOperations: ['*']\n", "DR010", "DR121"),
        ("spec:\n", "  partitionTypeAttribute: gpu.example.com/profile\n", "DR010", "DR121"),
        (
            "  - name: gpu-1\n",
            "    nodeAllocatableResourceMappings: {cpu: {allocationMultiplier: 2}}\n",
            "DR121",
            "DR010",
        ),
        (
            "  - name: gpu-1\n",
            "    nodeAllocatableResources: {cpu: {mapping: {deviceMultiplier: 2}}}\n",
            "DR010",
            "DR121",
        ),
    ],
)
def test_fields_of_slices_have_a_release_and_a_gate(
    after: str, line: str, code_1_36: str, code_1_37: str
) -> None:
    """The release lacks the field, or drops it while its gate is off."""
    text = SLICE.replace(after, after + line, 1)

    def codes(release: Release) -> list[str]:
        return [code for code, _ in findings(release, text) if code in ("DR010", "DR121")]

    assert codes(Release.V1_36) == [code_1_36]
    assert codes(Release.V1_37) == [code_1_37]


def test_a_field_of_the_release_is_known_beside_a_value_of_the_wrong_type() -> None:
    """The other fields of an object that cannot be decoded are judged by the same release."""
    field = "  skipNodeOperations: ['*']\n"
    text = SLICE.replace("spec:\n", f"spec:\n{field}", 1).replace("nodeName: rack-1", "nodeName: 1")
    assert "nodeName: 1" in text

    assert ("DR010", "spec.skipNodeOperations") in findings(Release.V1_36, text)
    codes = [code for code, _ in findings(Release.V1_37, text)]
    assert sorted(codes) == ["DR002", "DR121"]


STATEFUL_SET = """
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  selector: {matchLabels: {app: db}}
  serviceName: db
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: c, image: i}]}
  updateStrategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 2}}
"""


def test_a_gate_that_a_release_switches_on_needs_nothing() -> None:
    """1.36 has MaxUnavailableStatefulSet off by default; 1.37 has it on."""
    field = "spec.updateStrategy.rollingUpdate.maxUnavailable"

    assert findings(Release.V1_36, STATEFUL_SET) == [("DR121", field)]
    assert findings(Release.V1_37, STATEFUL_SET) == []


def test_a_version_of_another_release_comes_with_the_own_one() -> None:
    """PodGroups move from v1alpha2 to v1beta1."""
    group = (
        "apiVersion: scheduling.k8s.io/v1alpha2\nkind: PodGroup\nmetadata: {name: g}\n"
        "spec: {schedulingPolicy: {gang: {minCount: 2}}}\n"
    )
    (finding,) = lint([("a.yaml", group.encode())], release=Release.V1_37)

    assert finding.code == "DR011"
    assert "dryrack convert --gangs native --release 1.37" in finding.fix
    assert findings(Release.V1_36, group) == []


@pytest.mark.parametrize("field", GATED_FIELDS, ids=lambda each: each.path)
@pytest.mark.parametrize("release", Release)
def test_the_table_of_fields_agrees_with_the_schemas(release: Release, field: GatedField) -> None:
    """The OpenAPI document of each release has a field exactly if the table says so."""
    kinds = [each for each in builtin_kinds(release) if each.kind == field.kind]
    schema = schema_of(kinds[0].group, kinds[0].version, field.kind, release) if kinds else None
    for step in field.path.split("."):
        name = step.rstrip("[]{}")
        schema = schema.child(name) if schema is not None else None
        if schema is not None and step.endswith("[]"):
            schema = schema.items
        elif schema is not None and step.endswith("{}"):
            schema = schema.child("any")

    # dryrack serves no ResourcePoolStatusRequests.
    if field.kind != "ResourcePoolStatusRequest":
        assert (schema is not None) == field.is_in(release)
    assert field.gate in gates_of(release) or not field.is_in(release)


def test_selectors_are_compiled_and_evaluated_as_the_release_does() -> None:
    """Names in backquotes are syntax since 1.37."""
    before = findings(Release.V1_36, ESCAPED)
    after = findings(Release.V1_37, SLICE, ESCAPED)

    assert [code for code, _field in before] == ["DR113"]
    assert "DR113" not in [code for code, _field in after]
