"""Random worlds: they hold, they can be repeated, and what breaks in one is told in a few steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from dryrack.allocation.supply.usage import UsageTable
from dryrack.placement.gangs.dialects import LABEL_PREFIXES
from dryrack.scenario import EmbeddedRun, fuzz, load_scenario, run_in_virtual_time
from dryrack.scenario.fuzzing import fuzzing
from dryrack.scenario.fuzzing.fuzzing import SeedOutcome, shrink
from dryrack.scenario.fuzzing.random_fleets import FLEETS
from dryrack.scenario.fuzzing.random_worlds import random_scenario

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_random_worlds_hold_and_the_same_seed_gives_the_same_journal() -> None:
    """Whatever fails in them; another seed is another world."""
    [first, second] = fuzz((11, 12), 8)
    assert (first.problem, second.problem) == ("", "")
    assert first.writes > 100
    assert [each.hash for each in fuzz((11, 12), 8)] == [first.hash, second.hash]
    assert first.hash != second.hash


def test_worlds_have_what_people_run_and_change() -> None:
    """Every kind of workload, gangs in every dialect, every fleet, and steps that change them."""
    worlds = [random_scenario(seed, 40) for seed in range(30)]
    steps = [step for world in worlds for step in world["steps"]]
    applied = [obj for step in steps for obj in step.get("apply", ())]
    kinds = {"Deployment", "Job", "Node", "Pod", "PodDisruptionBudget", "PodGroup", "ResourceClaim"}
    assert {obj["kind"] for obj in applied} == kinds | {
        "DaemonSet",
        "PersistentVolumeClaim",
        "StatefulSet",
    }
    names = [f"{obj['kind']}/{obj['metadata']['name']}" for obj in applied]
    assert len(names) > len({*names}), "an update applies what is there"
    labels = {key for obj in applied for key in obj["metadata"].get("labels") or {}}
    assert {
        *(f"{prefix}/name" for prefix in LABEL_PREFIXES),
        "scheduling.x-k8s.io/pod-group",
    } <= labels
    assert {key for step in steps for key in step} == {
        *("apply", "at", "delete", "evict", "expect", "fail", "heal", "scale", "wait")
    }
    fleets = {
        str((world["fleet"]["devices"], world["fleet"]["nodes"][0].get("profile")))
        for world in worlds
    }
    assert len(fleets) == len(FLEETS)


def test_worlds_name_one_object_more_than_once() -> None:
    """Pods repeat claims, templates, volumes and configuration; claims repeat classes."""
    worlds = [random_scenario(seed, 40) for seed in range(30)]
    applied = [obj for world in worlds for step in world["steps"] for obj in step.get("apply", ())]
    specs = [obj["spec"] for obj in applied if obj["kind"] == "Pod"]
    named: list[list[str]] = [
        [str({**each, "name": ""}) for each in spec.get(key, ())]
        for spec in specs
        for key in ("resourceClaims", "volumes")
    ]
    repeated = " ".join(each for names in named for each in {*names} if names.count(each) > 1)
    for word in (
        *("resourceClaimName", "resourceClaimTemplateName", "persistentVolumeClaim"),
        *("configMap", "secret"),
    ):
        assert word in repeated, word
    requests = FLEETS[0].claim_specs()["same"]["devices"]["requests"]
    assert len(requests) > len({each["exactly"]["deviceClassName"] for each in requests})


def test_what_breaks_is_told_by_the_smallest_scenario_that_shows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a planted bug: a few steps of many are left, and a file of them breaks as well."""
    monkeypatch.setattr(UsageTable, "allocate", lambda *_: None)
    [found] = fuzz((2,), 8)
    assert found.problem.startswith("no device is allocated twice: device gpu.example.com/worker-")
    file = tmp_path / "found.yaml"
    file.write_text(found.scenario)
    steps = yaml.safe_load(found.scenario)["steps"]
    assert len(steps) <= 4 < len(random_scenario(found.seed, 8)["steps"])
    assert f"# dryrack scenario run --seed {found.seed} FILE" in found.scenario
    outcome = run_in_virtual_time(load_scenario(file), EmbeddedRun(seed=found.seed))
    assert outcome.problem.splitlines() == found.problem.splitlines()


def test_only_the_steps_that_matter_are_left() -> None:
    """And of the objects that a step applies only those that do."""
    steps: list[dict[str, Any]] = [{"apply": [number, -number]} for number in range(40)]

    def fails(document: dict[str, Any]) -> bool:
        objects = [each for step in document["steps"] for each in step["apply"]]
        return 7 in objects and -31 in objects

    assert shrink({"steps": steps}, fails) == {"steps": [{"apply": [7]}, {"apply": [-31]}]}


def test_a_smaller_scenario_breaks_the_same_expectation(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that does not create the object any more breaks another one, and is not taken."""
    documents: list[dict[str, Any]] = []

    def run(document: dict[str, Any], seed: int, faults: int, _: object) -> SeedOutcome:
        documents.append(document)
        names = [step["apply"][0] for step in document["steps"] if "apply" in step]
        problem = "status.phase is Pending, not Running" if "pod" in names else "there is none"
        return SeedOutcome(seed=seed, faults=faults, problem=f"step: Pod/default/pod: {problem}")

    steps = [{"apply": ["pod"]}, {"apply": ["other"]}, {"wait": "1s"}]
    monkeypatch.setattr(fuzzing, "random_scenario", lambda *_: {"steps": steps})
    monkeypatch.setattr(fuzzing, "_run", run)
    [found] = fuzz((1,), 1)

    assert yaml.safe_load(found.scenario)["steps"] == [{"apply": ["pod"]}]
    assert len(documents) > 2
