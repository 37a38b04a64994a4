"""`dryrack record` and `dryrack scenario diff`, as people call them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pytest
import yaml
from tests.cli.command import run
from tests.cli.dumps import claim, dump, pod

from dryrack.base.errors import ContentError, DryrackError
from dryrack.cli.files import UsageError
from dryrack.testing import Cluster

if TYPE_CHECKING:
    from pathlib import Path

KINDS = ["nodes", "resourceslices", "deviceclasses", "resourceclaims", "pods"]
FLEET = """
apiVersion: dryrack.dev/v1alpha1
kind: Scenario
fleet:
  nodes: [{name: new, count: 2}]
  devices: [fake:1]
steps: [{wait: 1s}]
"""
# Nodes that have much free are taken last.
PACKING = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args:
      scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}
"""


@pytest.fixture(scope="module")
def scenario(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A recording of two pods with two devices each, by a dump."""
    folder = tmp_path_factory.mktemp("recorded")
    asks = {"requests": {"cpu": "4"}}
    with Cluster() as cluster:
        cluster.add_nodes(count=2, devices="fake:4")
        for name in ("a", "b"):
            asking = pod(name, resourceClaimName=name)
            asking["spec"]["containers"][0]["resources"] |= asks
            cluster.apply([claim(name, 2), asking])
            cluster.advance("30s")
            cluster.expect_scheduled(name)
        dump(cluster, KINDS, folder / "dump.yaml")
    code, out, said = run("record", "-f", f"{folder}/dump.yaml", "-o", f"{folder}/recorded.yaml")
    assert (code, out) == (0, "")
    command = f"dryrack scenario run {folder}/recorded.yaml"
    assert said == f"recorded 2 nodes and 2 pods; to run them: {command}\n"
    return f"{folder}/recorded.yaml"


def test_a_recording_runs_and_fares_alike_every_time(scenario: str, tmp_path: Path) -> None:
    """The outcome of a run can be kept, and compared with the scenario."""
    code, out, _ = run("scenario", "run", scenario, "-o", "json")
    kept = tmp_path / "outcome.json"
    kept.write_text(out)
    (outcome,) = json.loads(out)["scenarios"]

    assert code == 0
    assert [(each["pod"], len(each["devices"])) for each in outcome["pods"]] == [
        ("default/a", 2),
        ("default/b", 2),
    ]
    assert outcome["recorded"] == {
        "placedThen": 2,
        "placedNow": 2,
        "lost": [],
        "gained": [],
        "moved": [],
    }
    placed = "recorded: pods placed: 2 in the recording, 2 now\n"
    no_difference = (0, "", f"{placed}no difference in 2 pods\n")
    assert run("scenario", "diff", str(kept), scenario) == no_difference


def test_a_run_that_loses_a_pod_of_the_recording_fails_and_names_it(
    scenario: str, tmp_path: Path
) -> None:
    """The counts then and now, and the pod with its reason, for people, programs and CI."""
    larger = tmp_path / "claim.yaml"
    report = tmp_path / "junit.xml"
    larger.write_text(yaml.safe_dump(claim("b", 5)))
    options = ("scenario", "run", scenario, "--replace", str(larger))
    code, out, _ = run(*options, "--junit", str(report))

    assert code == 1
    assert "recorded failed" in out
    assert "    pods placed: 2 in the recording, 1 now\n" in out
    assert "    recorded, not scheduled now: default/b: 0/2 nodes are available: " in out
    (outcome,) = json.loads(run(*options, "-o", "json")[1])["scenarios"]
    assert (outcome["held"], len(outcome["recorded"]["lost"])) == (False, 1)
    suite = ElementTree.parse(report).getroot()[0]
    (failure,) = suite.iter("failure")
    assert suite.get("failures") == "1"
    assert failure.get("message", "").startswith("not scheduled now: default/b: ")
    assert "pods placed: 2 in the recording, 2 now" in run("scenario", "run", scenario)[1]


def test_another_claim_makes_a_difference(scenario: str, tmp_path: Path) -> None:
    """The output has the pods that move or no longer fit, with the reason; JSON has the same."""
    larger = tmp_path / "claim.yaml"
    larger.write_text(yaml.safe_dump(claim("b", 5)))
    code, out, said = run("scenario", "diff", scenario, "--replace", str(larger))

    assert code == 1
    (row,) = out.splitlines()[1:]
    assert row.startswith("default/b   not at all   node-")
    assert row.endswith(" (after 0 s, 2 devices)   -")
    assert "default/b: 0/2 nodes are available: " in said
    assert said.endswith("\n1 not at all in 2 pods\n")
    form = run("scenario", "diff", scenario, "--replace", str(larger), "-o", "json")[1]
    assert json.loads(form)["counts"] == {"not at all": 1}


def test_what_replaces_nothing_is_told(scenario: str, tmp_path: Path) -> None:
    """A name that was mistyped, or anonymized, would make no difference otherwise."""
    other = tmp_path / "claim.yaml"
    other.write_text(yaml.safe_dump(claim("c", 5)))
    code, _, said = run("scenario", "diff", scenario, "--replace", str(other))

    told = "--replace: added ResourceClaim c: the scenario has no object of this name\n"
    placed = "recorded: pods placed: 2 in the recording, 2 now\n"
    assert (code, said) == (0, f"{placed}{told}{placed}no difference in 2 pods\n")


def test_another_fleet_and_another_scheduler_make_a_difference(
    scenario: str, tmp_path: Path
) -> None:
    """Each is an option of `run` and of `diff`."""
    (tmp_path / "fleet.yaml").write_text(FLEET)
    (tmp_path / "scheduler.yaml").write_text(PACKING)
    fleet = f"{tmp_path}/fleet.yaml"
    scheduler = f"{tmp_path}/scheduler.yaml"

    said = run("scenario", "diff", scenario, "--fleet", fleet)[2]
    assert said.endswith("\n2 not at all in 2 pods\n")
    code, out, _ = run("scenario", "diff", scenario, "--scheduler-config", scheduler)
    assert code == 1
    assert "elsewhere" in out
    packed = run("scenario", "run", scenario, "--scheduler-config", scheduler, "-o", "json")[1]
    nodes = {each["node"] for each in json.loads(packed)["scenarios"][0]["pods"]}
    assert len(nodes) == 1


def test_a_live_cluster_is_recorded_by_its_kubeconfig(tmp_path: Path) -> None:
    """The recording has the templates; --anonymize replaces names."""
    with Cluster(kubeconfig_in=tmp_path) as cluster:
        cluster.add_nodes(devices="fake:4", name="secret-rack")
        cluster.apply([claim("two", 2, "ResourceClaimTemplate")])
        cluster.apply(pod("talk", resourceClaimTemplateName="two"))
        cluster.expect_scheduled("talk")
        kubeconfig = str(cluster.kubeconfig)
        code, out, said = run("record", "--kubeconfig", kubeconfig, "--anonymize")
    recorded = yaml.safe_load(out)
    (step, _) = recorded["steps"]

    assert (code, said) == (0, "")
    assert "secret-rack" not in out
    assert "talk" not in out
    assert step["apply"][0]["spec"]["resourceClaims"] == [
        {"name": "request-1", "resourceClaimTemplateName": "template-1"}
    ]


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        (["record", "-f", "F", "--context", "x"], UsageError, "reads files, not a cluster"),
        (["record", "-f", "F", "-o", "/nowhere/x"], UsageError, "name a writable file"),
        (["record", "-f", "W"], ContentError, "nothing to record: no Nodes"),
        (["scenario", "diff", "F"], UsageError, "name B, or a change"),
        (
            ["scenario", "diff", "F", "J", "--replace", "W"],
            UsageError,
            "options cannot change the output",
        ),
        (["scenario", "diff", "J", "J"], ContentError, "not the output of one scenario"),
        (
            ["scenario", "diff", "absent", "F"],
            UsageError,
            "absent: no file or packaged scenario",
        ),
        (["scenario", "run", "F", "--fleet", "absent"], DryrackError, "--fleet absent: no such"),
    ],
)
def test_mistakes_are_told(
    arguments: list[str], error: type[Exception], words: str, scenario: str, tmp_path: Path
) -> None:
    """Each error has a fix."""
    (tmp_path / "wrong.yaml").write_text(yaml.safe_dump(claim("x", 1)))
    (tmp_path / "outcome.json").write_text('{"scenarios": [{}, {}]}')
    dumped = scenario.replace("recorded.yaml", "dump.yaml")
    is_record = arguments[0] == "record"
    files = {"W": f"{tmp_path}/wrong.yaml", "J": f"{tmp_path}/outcome.json"}
    files["F"] = dumped if is_record else scenario

    with pytest.raises(error, match=words):
        run(*[files.get(each, each) for each in arguments])
