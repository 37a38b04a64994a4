"""Inputs that stand for claims and pods: templates alone, and pod templates of custom kinds."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import yaml
from tests.cli.command import dryrack

import dryrack as library

if TYPE_CHECKING:
    from pathlib import Path

NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "a", "labels": {"node.kubernetes.io/instance-type": "p5.48xlarge"}},
}


def template(name: str, count: int) -> dict[str, Any]:
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com", "count": count}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name},
        "spec": {"spec": {"devices": {"requests": [request]}}},
    }


def worker_set(size: int) -> dict[str, Any]:
    """A LeaderWorkerSet whose pods have two GPUs each."""
    pod = {
        "containers": [{"name": "c", "image": "i", "resources": {"claims": [{"name": "gpu"}]}}],
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "two"}],
    }
    return {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": "serve"},
        "spec": {"leaderWorkerTemplate": {"size": size, "workerTemplate": {"spec": pod}}},
    }


def test_a_template_alone_is_tried_as_a_claim() -> None:
    """Each template by itself: together the first two would need more than there is."""
    answer = library.allocate([NODE, template("six", 6), template("four", 4), template("nine", 9)])

    assert [each.claim for each in answer.given] == ["default/six", "default/four"]
    assert [each.claim for each in answer.refused] == ["default/nine"]
    assert "ResourceClaimTemplate default/six: no pod uses it; tried as one claim" in answer.notes


def test_a_template_beside_those_who_ask_for_devices_is_not_tried() -> None:
    """A cluster has templates that no pod uses at the moment; they ask for nothing."""
    answer = library.allocate([NODE, template("two", 2), template("nine", 9), worker_set(1)])

    assert [each.claim for each in answer.given] == ["default/serve-0-gpu"]
    assert answer.refused == ()


def test_the_commands_take_a_template_alone(tmp_path: Path) -> None:
    """allocate says whether its claim fits, and explain says why not."""
    file = tmp_path / "template.yaml"
    file.write_text(yaml.safe_dump_all([template("six", 6), template("nine", 9)]))
    words = ("-f", file, "--instance-type", "p5.48xlarge")
    allocated = dryrack("allocate", *words, "-o", "name")
    explained = dryrack("explain", "claim", "nine", *words)

    assert allocated.stdout.splitlines() == ["resourceclaim.resource.k8s.io/six"]
    assert allocated.returncode == 1
    assert "lower the count of request gpu from 9 to 8" in explained.stdout


def test_pods_of_a_custom_kind_are_tried(tmp_path: Path) -> None:
    """A group of five does not fit on a machine that has GPUs for four; a note says whose pods."""
    file = tmp_path / "set.yaml"
    file.write_text(yaml.safe_dump_all([NODE, template("two", 2), worker_set(5)]))
    done = dryrack("allocate", "-f", file, "-o", "json")
    answer = json.loads(done.stdout)

    assert len(answer["allocations"]) == 4
    assert [each["claim"] for each in answer["unsatisfied"]] == ["default/serve-4-gpu"]
    assert (
        "LeaderWorkerSet/serve, spec.leaderWorkerTemplate.workerTemplate: 5 pods, "
        "serve-0 to serve-4" in done.stderr
    )


def test_lint_checks_the_claims_of_templates_in_custom_kinds(tmp_path: Path) -> None:
    """A template that is not there is found in a LeaderWorkerSet as it is in a Deployment."""
    file = tmp_path / "set.yaml"
    file.write_text(yaml.safe_dump_all([template("tow", 2), worker_set(5)]))
    [found] = [each for each in library.lint(file) if each.code == "DR602"]

    path = "spec.leaderWorkerTemplate.workerTemplate.spec.resourceClaims[0]"
    assert found.message.startswith("template 'two' of namespace 'default' is not in the files")
    assert found.field.startswith(path)


def test_fields_behind_a_gate_are_named_with_it(tmp_path: Path) -> None:
    """With its gate the field counts; without it, and in a release without it, it is named."""
    claim = template("c", 2)["spec"]
    claim["spec"]["devices"]["requests"][0]["exactly"]["derivedAttributes"] = [
        {"name": "example.com/one", "expression": "device.driver"}
    ]
    claim["spec"]["devices"]["constraints"] = [{"matchAttribute": "example.com/one"}]
    head = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim"}
    file = tmp_path / "a.yaml"
    file.write_text(yaml.safe_dump_all([NODE, {**head, "metadata": {"name": "c"}, **claim}]))
    old, off, on = (
        dryrack("allocate", file, *options)
        for options in (
            ("--release", "1.36"),
            (),
            ("--feature-gates", "DRADerivedAttributes=true"),
        )
    )

    field = "spec.devices.requests[0].exactly.derivedAttributes"
    assert (old.returncode, off.returncode, on.returncode) == (1, 1, 0)
    assert f"{field}: unknown field; dryrack ignores it" in old.stderr
    assert f"{field}: its feature gate DRADerivedAttributes is off; add --feature" in off.stderr
    assert "DRADerivedAttributes" not in on.stderr


def test_a_gate_without_effect_on_allocation_gets_a_note(tmp_path: Path) -> None:
    """Gates of other parts of Kubernetes are no error, but nothing changes."""
    file = tmp_path / "a.yaml"
    file.write_text(yaml.safe_dump_all([NODE, template("six", 6)]))
    done = dryrack("allocate", file, "--release", "1.37", "--feature-gates", "GenericWorkload=true")

    assert done.returncode == 0, done.stderr
    assert "GenericWorkload does not change how dryrack allocates devices" in done.stderr
