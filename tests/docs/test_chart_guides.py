"""What the guides show of the chart, of dryrack, and of workflows is valid."""

from __future__ import annotations

import re
import shlex
import subprocess
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from tests.docs.chart_guides import (
    PAGES,
    ROOT,
    VALUES_FILES,
    abbreviated_calls,
    assignments,
    chart_command,
    dryrack_calls,
    helm_calls,
    lines,
    unknown_values,
)
from tests.docs.console import environment, files, run
from tests.docs.test_commands import COMMANDS
from tests.realcluster import programs
from tests.realcluster.releases import RELEASE

from dryrack.cluster.chart import ChartError, Release, ValuesError, render, set_value

if TYPE_CHECKING:
    from pathlib import Path

WITH_CALLS = [page for page in PAGES if helm_calls(page)]
DRIVER_CI = ROOT / "docs/guides/driver-ci.md"
MIGRATION = (ROOT / "docs/guides/migrate.md").read_text()
WORKFLOWS = [name for name in files(DRIVER_CI) if name.startswith(".github/workflows/")]
VIRTUAL = ".github/workflows/virtual.yaml"
# What a workflow, a job, and a step may have, of what these workflows use.
WORKFLOW_KEYS = {"name", "on", "permissions", "jobs"}
JOB_KEYS = {"runs-on", "timeout-minutes", "steps"}
STEP_KEYS = {"name", "if", "run", "uses", "with"}


def by_path(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("page", WITH_CALLS, ids=by_path)
def test_helm_commands_are_valid(page: Path) -> None:
    """The values of each Helm command exist, fit the schema, and can be combined."""
    for call in helm_calls(page):
        assert call.namespace, call.line
        assert render(Release(call.release, call.namespace), call.values)


@pytest.mark.parametrize("page", PAGES, ids=by_path)
def test_named_values_exist(page: Path) -> None:
    """Values of the chart in the prose of a page exist, and have the right type."""
    assert unknown_values(page) == []
    for assignment in assignments(page):
        # A page can name a value that only works together with others.
        with suppress(ChartError):
            render(Release("dryrack", "dryrack-system"), set_value(assignment))


def test_a_wrong_value_is_noticed(tmp_path: Path) -> None:
    """The checks of the pages can fail."""
    page = tmp_path / "page.md"
    page.write_text(
        "Set `plugin.device` or `--set image.tags=a`, with `dryrack up --node`.\n\n"
        "```sh\nhelm upgrade -i -n a dryrack deploy/chart \\\n  --set plugin.device=gpu\n```\n"
        "```console\n$ x | dryrack up --node 3 && true\n```\n"
    )

    assert unknown_values(page) == ["plugin.device", "image.tags"]
    [call] = helm_calls(page)
    assert (call.release, call.namespace) == ("dryrack", "a")
    with pytest.raises(ValuesError, match=r"plugin\.device"):
        render(Release(call.release, call.namespace), call.values)
    assert dryrack_calls(page) == [["up", "--node", "3"]]
    assert abbreviated_calls(page) == [["up", "--node"]]


@pytest.mark.parametrize("page", PAGES, ids=by_path)
def test_commands_in_code_blocks_are_valid(page: Path) -> None:
    """dryrack accepts the arguments of each command in a code block."""
    for words in dryrack_calls(page):
        name = command_of(words)
        assert name in COMMANDS, words
        COMMANDS[name].make_context(name, words[len(name.split()) :])


@pytest.mark.parametrize("page", PAGES, ids=by_path)
def test_options_in_the_prose_exist(page: Path) -> None:
    """dryrack has the options of each command that the prose names."""
    for words in abbreviated_calls(page):
        options = {word.partition("=")[0] for word in words if re.match("--?[a-z]", word)}
        if name := options and command_of(words):
            parameters = COMMANDS[name].params
            known = {each for one in parameters for each in (*one.opts, *one.secondary_opts)}
            assert options - {"--help", "-h"} <= known, words


def command_of(words: list[str]) -> str:
    """Return the name of the command, with its subcommand."""
    name = " ".join(words[:2])
    return name if name in COMMANDS else words[0]


@pytest.mark.parametrize("file", VALUES_FILES, ids=lambda file: file.stem)
def test_the_migration_names_what_the_values_files_create(file: Path) -> None:
    """The page has the command of each values file, and the names of its workloads."""
    command = chart_command(file)
    assert command in MIGRATION
    [call] = [each for each in helm_calls(ROOT / "docs/guides/migrate.md") if each.line == command]
    objects = yaml.safe_load_all(render(Release(call.release, call.namespace), call.values))
    names = {
        each["metadata"]["name"]
        for each in objects
        if each and each["kind"] in ("Deployment", "DaemonSet", "DeviceClass", "ConfigMap")
    }

    assert len(names) >= 1
    assert {name for name in names if f"`{name}`" not in MIGRATION} == set()


def test_the_migration_has_a_status_for_each_command() -> None:
    """Each row of the tables of commands states what to do."""
    tables = re.findall(r"^\| Command \| Status \|\n\|---\|---\|\n((?:\|.*\n)+)", MIGRATION, re.M)
    rows = [row for table in tables for row in table.splitlines()]

    assert len(tables) == len(VALUES_FILES)
    assert len(rows) > 40
    status = re.compile(r"\| (As is|Change: |Not needed)(?!.*\|.*(?<!\\)\|.*\|)")
    assert [row for row in rows if not status.search(row)] == []


@pytest.mark.parametrize("name", WORKFLOWS)
def test_workflows_are_valid(name: str) -> None:
    """The keys exist, each step runs a script or an action, and bash can parse the scripts."""
    # YAML 1.1 reads the key `on` as true.
    workflow: dict[Any, Any] = yaml.load(files(DRIVER_CI)[name], yaml.BaseLoader)
    assert workflow.keys() == WORKFLOW_KEYS
    assert set(workflow["on"]) <= {"push", "pull_request"}
    for job in workflow["jobs"].values():
        assert job.keys() == JOB_KEYS
        for step in job["steps"]:
            assert step.keys() <= STEP_KEYS
            assert ("run" in step) != ("uses" in step)
            assert step.get("if", "always()") in ("always()", "failure()")
            if "uses" in step:
                assert re.fullmatch(r"actions/[a-z-]+@v\d+", step["uses"])
            else:
                subprocess.run(["bash", "-n", "-c", step["run"]], check=True)


def test_workflows_use_files_that_the_page_shows() -> None:
    """Each file below e2e/ in a script exists."""
    used = {each for line in lines(DRIVER_CI) for each in re.findall(r"e2e/[\w.]+", line)}

    assert used >= {"e2e/test.sh", "e2e/claim.yaml"}
    assert used <= files(DRIVER_CI).keys()


@pytest.mark.real
def test_the_workflow_on_a_virtual_cluster_passes(tmp_path: Path) -> None:
    """All scripts of the workflow but the installation run as on a runner."""
    kubectl = programs.kubernetes("kubectl", RELEASE).parent
    variables = environment(tmp_path, kubectl)
    for name, text in files(DRIVER_CI).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    [job] = yaml.safe_load(files(DRIVER_CI)[VIRTUAL])["jobs"].values()
    scripts = {step["name"]: step["run"] for step in job["steps"] if "run" in step}
    assert scripts.pop("Install dryrack").startswith("pip install")

    printed = {}
    try:
        for name, script in scripts.items():
            done = run(f"bash -e -c {shlex.quote(script)}", tmp_path, variables)
            assert done.returncode == 0, f"{name}\n{done.stdout}{done.stderr}"
            printed[name] = done.stdout
    finally:
        run("dryrack down --all", tmp_path, variables)
    assert printed["Test"].endswith("gpu-0 gpu-1\n")
    assert printed["Test with a failure of a device"].endswith("gpu-1 gpu-2\n")
