"""The pre-commit hooks and the GitHub action, for repositories without Python code."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cli.lint_files import REFUSED
from tests.linter.examples import SLICE

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "what-if"
HOOKS = {each["id"]: each for each in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())}
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
STEPS = {each["name"]: each for each in ACTION["runs"]["steps"]}
SCENARIO = """
apiVersion: dryrack.dev/v1alpha1
kind: Scenario
fleet:
  nodes: [{name: worker}]
steps:
- expect:
  - {object: Node/worker, fields: {metadata.name: %s}}
"""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Return an environment in which `dryrack` is a program."""
    program = tmp_path / "bin" / "dryrack"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m dryrack "$@"\n')
    program.chmod(0o755)
    return {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}", "NO_COLOR": "1"}


def call(
    command: list[str], folder: Path, environment: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    ("hook", "content", "arguments", "code"),
    [
        ("dryrack-lint", SLICE, ["scenario.yaml"], 0),
        ("dryrack-lint", REFUSED, ["scenario.yaml"], 1),
        ("dryrack-allocate", "", ["-f", f"{EXAMPLES}/nodes.yaml"], 1),
        ("dryrack-scenario", SCENARIO % "worker", ["scenario.yaml"], 0),
        ("dryrack-scenario", SCENARIO % "others", ["scenario.yaml"], 1),
    ],
)
def test_hooks_stop_a_commit_that_is_wrong(
    hook: str,
    content: str,
    arguments: list[str],
    code: int,
    tmp_path: Path,
    environment: dict[str, str],
) -> None:
    """The entry of a hook, called as pre-commit calls it."""
    (tmp_path / "scenario.yaml").write_text(content)
    done = call([*shlex.split(HOOKS[hook]["entry"]), *arguments], tmp_path, environment)

    assert done.returncode == code, done.stderr


def test_hooks_have_what_pre_commit_needs() -> None:
    """Scenarios are offered scenarios only, and lint nothing that tools are set up by."""
    for hook in HOOKS.values():
        assert {"id", "name", "entry", "language"} <= hook.keys()
    files = re.compile(HOOKS["dryrack-scenario"]["files"])
    assert files.search("tests/gang/scenario.yaml")
    assert not files.search("scenario.yaml.md")
    assert HOOKS["dryrack-allocate"]["pass_filenames"] is False
    excluded = re.compile(HOOKS["dryrack-lint"]["exclude"])
    assert excluded.search(".pre-commit-config.yaml")
    assert excluded.search(".github/workflows/ci.yaml")
    assert not excluded.search("manifests/v1.2/pod.yaml")


def step(
    name: str, folder: Path, environment: dict[str, str], **inputs: str
) -> subprocess.CompletedProcess[str]:
    """Runs a step as a runner does: expressions filled in, by the shell that `bash` stands for."""
    known: dict[str, Any] = {key: value["default"] for key, value in ACTION["inputs"].items()}
    values = {f"inputs.{key}": value for key, value in (known | inputs).items()}
    values["github.action_path"] = str(ROOT)
    env = {
        key: re.sub(r"\$\{\{ ([\w.-]+) \}\}", lambda found: values[found[1]], text)
        for key, text in STEPS[name].get("env", {}).items()
    }
    assert STEPS[name]["shell"] == "bash"
    script = folder / "step.sh"
    script.write_text(STEPS[name]["run"])
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)]
    return call(command, folder, {**environment, **env})


def test_the_action_lints(tmp_path: Path, environment: dict[str, str]) -> None:
    """Notes beside lines, SARIF on request, and a step that fails."""
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "deep" / "er" / "a.yaml").write_text(REFUSED)
    done = step("Lint", tmp_path, environment, lint="deep/**/*.yaml", sarif="found.sarif")

    assert done.returncode == 1
    assert done.stdout.startswith("::error file=deep/er/a.yaml,line=6,title=DR111")
    assert '"deep/er/a.yaml"' in (tmp_path / "found.sarif").read_text()
    (tmp_path / "deep" / "er" / "a.yaml").write_text(SLICE)
    assert step("Lint", tmp_path, environment, lint="deep/**/*.yaml").returncode == 0
    done = step("Lint", tmp_path, environment, lint="none/*.yaml", sarif="found.sarif")
    assert (done.returncode != 0, done.stderr.count("no such file")) == (True, 1)


def test_the_action_allocates(tmp_path: Path, environment: dict[str, str]) -> None:
    """All files together; a claim that gets nothing fails the step."""
    fits = f"{EXAMPLES}/nodes.yaml {EXAMPLES}/training.yaml"

    assert step("Allocate", tmp_path, environment, allocate=fits).returncode == 0
    greedy = f"{fits} {EXAMPLES}/four-gpus.yaml"
    assert step("Allocate", tmp_path, environment, allocate=greedy).returncode == 1


def test_the_action_runs_scenarios(tmp_path: Path, environment: dict[str, str]) -> None:
    """One that does not hold fails the step."""
    (tmp_path / "good.yaml").write_text(SCENARIO % "worker")
    (tmp_path / "bad.yaml").write_text(SCENARIO % "others")

    done = step("Run scenarios", tmp_path, environment, scenarios="good.yaml")
    assert done.returncode == 0, done.stderr
    assert step("Run scenarios", tmp_path, environment, scenarios="*.yaml").returncode == 1


def test_what_people_write_into_inputs_is_never_run(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    """Inputs reach the shell as variables, in no step as text of the script."""
    for each in STEPS.values():
        assert "${{" not in each.get("run", "")
    done = step("Lint", tmp_path, environment, lint="$(touch hacked) ; touch hacked")
    assert done.returncode != 0
    assert not (tmp_path / "hacked").exists()


def test_the_action_installs_itself() -> None:
    """From the repository that it is in, so that tag and program agree."""
    assert STEPS["Install dryrack"]["run"].endswith('"$ACTION_PATH"')
    assert STEPS["Install dryrack"]["env"]["ACTION_PATH"] == "${{ github.action_path }}"
    used = {each.get("if", "") for each in STEPS.values()}
    names = {name for text in used for name in re.findall(r"inputs\.([\w-]+)", text)}
    assert names <= ACTION["inputs"].keys()


def test_the_workflow_of_this_repository_uses_the_action(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    """The files that it names exist, each step passes, and the reports are written."""
    for folder in ("examples", "src/dryrack/scenario/library"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())
    [inputs] = [
        each["with"] for each in workflow["jobs"]["action"]["steps"] if each.get("uses") == "./"
    ]

    for name in ("Lint", "Allocate", "Run scenarios"):
        done = step(name, tmp_path, environment, **inputs)
        assert done.returncode == 0, done.stderr
    assert (tmp_path / inputs["sarif"]).stat().st_size > 0
    assert (tmp_path / inputs["junit"]).stat().st_size > 0
