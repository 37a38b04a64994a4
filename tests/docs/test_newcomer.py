"""The first ten minutes: only the commands of the README and of the quick start, on nothing."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml
from tests.docs.console import environment, examples, play, run
from tests.realcluster import programs
from tests.realcluster.releases import RELEASE

from dryrack.cli.main import app
from dryrack.kinds.releases import DEFAULT_RELEASE

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
QUICKSTART = ROOT / "docs" / "start" / "quickstart.md"
# It downloads and unpacks all that dryrack needs.
_INSTALL_SECONDS_MAX = 600
_BLOCK = re.compile(r"```sh\n(.*?)```", re.DOTALL)


@pytest.fixture(scope="module")
def newcomer(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a person who installed dryrack as the README shows."""
    folder = tmp_path_factory.mktemp("newcomer")
    kubectl = programs.kubernetes("kubectl", RELEASE).parent
    variables = environment(folder, kubectl)
    for name in ("PYTHONPATH", "VIRTUAL_ENV"):
        variables.pop(name, None)
    [install] = [each for each in _BLOCK.findall(README.read_text()) if "pip install" in each]
    done = run(install, ROOT, variables, seconds=_INSTALL_SECONDS_MAX)
    assert done.returncode == 0, done.stdout + done.stderr
    programs_of_venv = folder / "home" / "dryrack-venv" / "bin"
    return {**variables, "PATH": f"{programs_of_venv}:{variables['PATH']}"}


@pytest.mark.real
@pytest.mark.timeout(_INSTALL_SECONDS_MAX)
@pytest.mark.parametrize("page", [README, QUICKSTART], ids=lambda page: page.stem)
def test_the_commands_work_in_an_empty_folder(
    page: Path, newcomer: dict[str, str], tmp_path: Path
) -> None:
    """A Pod with an H100 runs, a pending Pod has its reason, and a manifest is checked."""
    where = run("command -v dryrack", tmp_path, newcomer).stdout

    assert where == f"{newcomer['HOME']}/dryrack-venv/bin/dryrack\n"
    play(page, tmp_path / "empty", newcomer)


def test_the_pages_lead_to_all_results() -> None:
    """A running Pod, a pending one, its reason, and in the quick start a manifest of one's own."""
    first = examples(README)
    second = examples(QUICKSTART)
    for shown in ("".join(each.output or "" for each in page) for page in (first, second)):
        assert re.search(r"^one-h100 +1/1 +Running", shown, re.MULTILINE)
        assert re.search(r"^nine-gpus +0/1 +Pending", shown, re.MULTILINE)
        assert "request gpus: needs 9 devices; 8 of 8 are available\n" in shown
    results = "".join(each.output or "" for each in second)
    assert "  lower the count of request gpus from 9 to 8\n" in results
    assert "error DR117 Pod my-pod" in results


def test_the_tag_line_is_the_same_everywhere() -> None:
    """People find the project by it."""
    line = README.read_text().splitlines()[2]
    action = yaml.safe_load((ROOT / "action.yml").read_text())["description"]
    site = re.findall(r"^site_description: (.*)", (ROOT / "mkdocs.template.yml").read_text(), re.M)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["description"]

    assert line == "Kubernetes Dynamic Resource Allocation without the hardware."
    assert action.startswith(line.removesuffix("."))
    assert [app.info.help, project, *site] == [line] * 3


def test_the_readme_begins_with_two_commands_that_set_up_everything() -> None:
    """A machine without anything runs them; .ci/run tests with the second."""
    commands = _BLOCK.findall(README.read_text())[0].splitlines()
    steps = (ROOT / ".ci" / "run").read_text().splitlines()

    assert commands == ["make demo", "make test"]
    assert "make test" in [each.partition(" || ")[0] for each in steps]


def test_the_readme_has_the_figures_of_the_coverage() -> None:
    """The figures in the README are those of the last measurement."""
    page = (ROOT / "COVERAGE.md").read_text()
    release = re.escape(DEFAULT_RELEASE.value)
    [recorded] = re.findall(r"of which there are (\d+)", page)
    [equal] = re.findall(rf"(\d+) get the answer of Kubernetes {release}", page)

    assert f"{equal} of {recorded} recorded requests" in README.read_text()
