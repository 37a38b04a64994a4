"""`dryrack scenario` and `dryrack demo`, as a person runs them."""

from __future__ import annotations

import asyncio
import io
import json
import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING
from xml.etree import ElementTree as Xml

import pytest
from tests.cli.command import dryrack

from dryrack.cli.scenarios.commands import RunOptions
from dryrack.cli.scenarios.running import run as run_scenarios
from dryrack.client.endpoints import CLAIMS, CLASSES, DEFINITIONS, NODES, PODS, SLICES
from dryrack.library import connect
from dryrack.scenario import load_scenario

if TYPE_CHECKING:
    from pathlib import Path

HEAD = "apiVersion: dryrack.dev/v1alpha1\nkind: Scenario\n"
FAILS = """
steps:
- title: Something comes
  expect: [{object: Pod/never, within: 1s}]
- title: More
  wait: 1s
"""


def test_a_first_scenario_runs_as_it_was_written(tmp_path: Path) -> None:
    """The scenario that `init` writes passes and shows devices."""
    written = dryrack("scenario", "init", "first.yaml", cwd=tmp_path)
    done = dryrack("scenario", "run", "first.yaml", cwd=tmp_path)

    assert written.returncode == done.returncode == 0
    assert "✓ The pod runs, with a device of its node (600.1 s)" in done.stdout
    assert "15 of 16 free" in done.stdout
    result = r"^✓ first passed: 601\.2s virtual, \d+\.\ds real, run ID [0-9a-f]{12}$"
    assert re.search(result, done.stdout, re.MULTILINE)


def test_a_file_that_is_there_is_left_alone(tmp_path: Path) -> None:
    """`init` writes over nothing."""
    (tmp_path / "scenario.yaml").write_text("mine")
    done = dryrack("scenario", "init", cwd=tmp_path)

    assert done.returncode == 2
    assert (tmp_path / "scenario.yaml").read_text() == "mine"


def test_programs_read_the_verdicts(tmp_path: Path) -> None:
    """As JSON, and as JUnit's XML; a scenario that does not hold ends with 1."""
    (tmp_path / "s.yaml").write_text(HEAD + FAILS)
    words = ("scenario", "run", "s.yaml", "fake-2", "-o", "json", "--junit", "report.xml")
    done = dryrack(*words, cwd=tmp_path)
    failed, held = json.loads(done.stdout)["scenarios"]
    suites = Xml.parse(tmp_path / "report.xml").getroot()

    assert done.returncode == 1
    assert [failed["held"], held["held"]] == [False, True]
    assert failed["steps"][0]["expectations"][0]["lacking"] == ["Pod/never: not found"]
    assert [each["verdict"] for each in failed["steps"]] == ["failed", "skipped"]
    assert len(held["hash"]) == 64
    assert [each.get("failures") for each in suites] == ["1", "0"]
    assert suites[0][0].find("failure") is not None


def test_what_pods_wait_for_is_told_where_a_scenario_does_not_hold(tmp_path: Path) -> None:
    """On the terminal and in the report: that a pod is Pending is no help without why."""
    spec = "{containers: [{name: c, image: i}], nodeSelector: {disk: fast}}"
    apply = f"[{{apiVersion: v1, kind: Pod, metadata: {{name: p}}, spec: {spec}}}]"
    steps = f"fleet: {{nodes: [{{name: node}}]}}\nsteps:\n- title: It runs\n  apply: {apply}\n"
    expect = "  expect: [{object: Pod/p, fields: {status.phase: Running}}]\n"
    (tmp_path / "s.yaml").write_text(HEAD + steps + expect)
    done = dryrack("scenario", "run", "s.yaml", "--junit", "report.xml", cwd=tmp_path)

    told = "pod default/p is pending: 0/1 nodes are available: 1 node(s) didn't match Pod's node "
    assert f"\n    {told}" in done.stdout
    report = Xml.parse(tmp_path / "report.xml").getroot()
    assert str(report[0].findtext("system-out")).startswith(told)


def test_what_does_not_hold_is_told(tmp_path: Path) -> None:
    """The step, what was lacking, and the verdict of all."""
    (tmp_path / "s.yaml").write_text(HEAD + FAILS)
    done = dryrack("scenario", "run", "s.yaml", "fake-2", cwd=tmp_path)

    assert "  ✗ Something comes (1.0 s)\n    Pod/never: not found\n" in done.stdout
    assert "✗ s: Something comes: Pod/never: not found\n1 of 2 scenarios passed" in done.stdout
    assert done.returncode == 1


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (
            ("run", "gang-gup"),
            "gang-gup: no file or packaged scenario has this name; did you mean",
        ),
        (("show", "fake-9"), "scenario 'fake-9' not found; did you mean"),
        (("run", "file", "--without", "kubelet"), "--without needs --kubeconfig or --context"),
        (("run", "file", "fake-1", "--keep"), "--keep works with one scenario at a time"),
        (("run", "file", "--seed", "1", "--context", "x"), "--seed has no effect on a cluster"),
        (
            ("run", "file", "--context", "x", "--without", "wurst"),
            "--without wurst: unknown component; use one of: kubelet, slices, plugin",
        ),
    ],
)
def test_a_wrong_call_is_told(words: tuple[str, ...], complaint: str) -> None:
    """And nothing is done."""
    done = dryrack("scenario", *words)

    assert complaint in done.stderr
    assert done.returncode == 2


def test_a_mistake_in_a_file_is_told_with_its_line(tmp_path: Path) -> None:
    """Before anything runs, with the exit code of wrong content."""
    (tmp_path / "s.yaml").write_text(HEAD + "steps:\n- wiat: 1s\n")
    done = dryrack("scenario", "run", "s.yaml", cwd=tmp_path)

    assert done.stderr == (
        "dryrack: s.yaml:4: steps[0].wiat: unknown field; did you mean 'wait'?\n"
    )
    assert done.returncode == 1


def test_packaged_scenarios_are_listed_and_shown(tmp_path: Path) -> None:
    """The list has titles, `show` prints the files, and `schema` prints the schema."""
    listed = dryrack("scenario", "list").stdout
    shown = dryrack("scenario", "show", "fake-2").stdout
    schema = json.loads(dryrack("scenario", "schema").stdout)
    (tmp_path / "fake-test2.yaml").write_text(shown.partition("fake-test2.yaml\n")[2])
    (tmp_path / "s.yaml").write_text(shown.partition("\n# ")[0])

    assert "fake-2" in listed
    assert "Two containers of a pod share a fake device" in listed
    assert "kind: Pod" in shown
    assert load_scenario(tmp_path / "s.yaml").scenario.title
    assert "Scenario" in schema["$defs"]


def test_a_terminal_shows_what_a_run_waits_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a line that the verdict takes the place of; a pipe has verdicts alone."""

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("COLUMNS", "200")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    run_scenarios(RunOptions(names=("fake-2",)))
    shown = terminal.getvalue()
    waiting = "… Both containers have the same one (0.0 s): Pod/test2/pod0: status.phase is"

    assert f"\r\x1b[K  {waiting}" in shown
    assert waiting not in dryrack("scenario", "run", "fake-2").stdout


def test_the_demo_judges_each_scenario() -> None:
    """Some of them, with what their documents show, and a verdict of all."""
    done = dryrack("demo", "fake-1", "karpenter-multi", "gang-gpu")

    assert "export FAKE_DEVICE_0='FAKE-" in done.stdout
    assert "kwok-multi   nvidia-gpu-1   nvidia-tesla-v100   allocated   default/both" in done.stdout
    assert "has 2 pods, needs at least 3" in done.stdout
    assert "3 of 3 scenarios passed" in done.stdout
    assert done.returncode == 0


def at_home(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command with this directory for clusters."""
    environment = {**os.environ, "DRYRACK_HOME": str(home), "NO_COLOR": "1"}
    command = [sys.executable, "-m", "dryrack", *words]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.timeout(120)
def test_a_control_plane_can_be_kept(tmp_path: Path) -> None:
    """The scenario runs on it in real time, and kubectl's view of it is there afterwards."""
    try:
        done = at_home(tmp_path, "scenario", "run", "fake-2", "--keep")
        path = at_home(tmp_path, "kubeconfig", "--name", "scenario", "--path").stdout.strip()
        claims = at_home(tmp_path, "claims", "-A", "--kubeconfig", path)
    finally:
        at_home(tmp_path, "down", "--name", "scenario")

    assert "✓ fake-2 passed:" in done.stdout
    assert "dryrack down --name scenario" in done.stderr
    assert "pod0-fakes-" in claims.stdout


def test_what_there_is_not_is_shown_as_none(tmp_path: Path) -> None:
    """An object that a step shows need not be there."""
    steps = "steps:\n- wait: 1s\n  show: [{object: Pod/never, fields: [spec]}]\n"
    (tmp_path / "s.yaml").write_text(HEAD + steps)
    done = dryrack("scenario", "run", "s.yaml", cwd=tmp_path)

    assert (done.returncode, done.stderr) == (0, "")
    assert "    none\n" in done.stdout


def test_random_worlds_are_told_by_their_seeds(tmp_path: Path) -> None:
    """One line each, and what came of all of them."""
    words = ("scenario", "fuzz", "--seeds", "1", "--first", "3", "--faults", "3")
    done = dryrack(*words, "--keep-in", str(tmp_path), cwd=tmp_path)

    assert done.returncode == 0
    assert done.stdout.startswith("seed 3: ")
    assert "1 scenario, 3 faults, " in done.stderr
    assert list(tmp_path.iterdir()) == []
    wrong = dryrack("scenario", "fuzz", "--keep-in", "nowhere", cwd=tmp_path)
    assert (wrong.returncode, wrong.stderr) == (
        2,
        "dryrack: --keep-in nowhere: no such directory; create it first\n",
    )


@pytest.mark.timeout(120)
def test_a_cluster_of_somebody_else_is_left_as_it_was(tmp_path: Path) -> None:
    """Engines are attached for the nodes that are brought; what is there already is not touched."""
    theirs = tmp_path / "theirs.yaml"
    theirs.write_text("apiVersion: v1\nkind: Node\nmetadata: {name: kwok-f1}\n")
    words = ("--without", "kubelet,slices", "--config", str(theirs))
    try:
        up = at_home(tmp_path, "up", "--detach", *words)
        path = at_home(tmp_path, "kubeconfig", "--path").stdout.strip()
        done = at_home(tmp_path, "scenario", "run", "fake-4", "--kubeconfig", path)
        left = asyncio.run(objects_at(path))
        refused = at_home(tmp_path, "scenario", "run", "karpenter-fpga", "--kubeconfig", path)
    finally:
        at_home(tmp_path, "down")

    assert up.returncode == 0, up.stderr
    assert "✓ fake-4 passed:" in done.stdout
    assert left == ["Node kwok-f1"]
    assert "Node/kwok-f1: already exists, and the scenario would change it" in refused.stderr
    assert refused.returncode == 1


async def objects_at(path: str) -> list[str]:
    """Return the objects of scenarios that are on a cluster."""
    async with connect(path) as client:
        return [
            f"{kind.kind} {each['metadata']['name']}"
            for kind in (NODES, SLICES, CLASSES, PODS, CLAIMS, DEFINITIONS)
            for each in (await client.list(kind)).items
        ]
