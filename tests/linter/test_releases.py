"""Lint for another release than the reference release."""

from __future__ import annotations

from tests.linter.examples import CLAIM, CLASS, NAMESPACE, SLICE, join

from dryrack.kinds.releases import Release
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

    assert ("DR003", field) in findings(Release.V1_36, *world)
    assert findings(Release.V1_37, *world) == [("DR121", field)]


def test_selectors_are_compiled_and_evaluated_as_the_release_does() -> None:
    """Names in backquotes are syntax since 1.37."""
    before = findings(Release.V1_36, ESCAPED)
    after = findings(Release.V1_37, SLICE, ESCAPED)

    assert [code for code, _field in before] == ["DR113"]
    assert "DR113" not in [code for code, _field in after]
