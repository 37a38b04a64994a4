"""The check with other people's manifests holds for ours, and can fail."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.corpus.check import check, manifests_below

from dryrack.controllers.claims.release import ClaimRelease

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

_POD = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: gpu, namespace: team}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.example.com}}]}}}
---
apiVersion: v1
kind: Pod
metadata: {name: two, namespace: team}
spec:
  containers: [{name: c, image: busybox}]
  resourceClaims:
  - {name: a, resourceClaimTemplateName: gpu}
  - {name: b, resourceClaimTemplateName: gpu}
"""
_REFUSED = "{apiVersion: v1, kind: Pod, metadata: null, spec: {containers: []}}"
_NO_YAML = "a: b: c"


def _folder(tmp_path: Path) -> Path:
    (tmp_path / "pods.yaml").write_text(_POD)
    (tmp_path / "refused.yml").write_text(_REFUSED)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "no.yaml").write_text(_NO_YAML)
    (tmp_path / "readme.md").write_text("no manifest")
    return tmp_path


def test_manifests_are_applied_and_deleted_without_a_problem(tmp_path: Path) -> None:
    """Refusals are reported with the API server's answer, and are no problem."""
    files = manifests_below(_folder(tmp_path))
    report = check(files, rounds=2, seed=1)

    assert [each.name for each in files] == ["pods.yaml", "refused.yml", "no.yaml"]
    assert report.problems == []
    assert report.applied == 2
    [(file, text)] = report.refused.items()
    assert file.endswith("refused.yml")
    assert "name or generateName is required" in text
    assert set(report.exits) == {"lint", "allocate", "convert"}


def test_a_leak_and_a_command_that_fails_are_problems(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With claims that no controller releases, and a lint rule that raises."""

    async def nothing(_: object) -> None:
        return

    def fail(*_: object) -> None:
        raise KeyError("planted")

    monkeypatch.setattr(ClaimRelease, "run", nothing)
    monkeypatch.setattr("dryrack.cli.lint.run", fail)
    report = check(manifests_below(_folder(tmp_path)), rounds=1)

    problems = "\n".join(report.problems)
    assert "resourceclaims.resource.k8s.io team/" in problems
    assert "dryrack lint failed: KeyError('planted')" in problems
