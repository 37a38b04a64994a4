"""
The pages of the examples are true: a shell runs their commands, as a user would.

dryrack is installed as the wheel installs it. The folder and the home folder are empty, and no
kubeconfig exists.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from tests.docs.console import follow, needs_kubectl
from tests.examples import expectations
from tests.realcluster import programs
from tests.realcluster.releases import RELEASE

ROOT = Path(__file__).parents[2]
PAGES = {
    page.parent.relative_to(expectations.ROOT).as_posix(): page
    for page in sorted(expectations.ROOT.glob("*/**/README.md"))
}
WITH_KUBECTL = [name for name, page in PAGES.items() if needs_kubectl(page)]
WITH_FILES = [name for name in PAGES if name not in WITH_KUBECTL]


@pytest.fixture(autouse=True)
def installed(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files that pyproject.toml puts into the wheel, where a wheel has them."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wheel = settings["tool"]["hatch"]["build"]["targets"]["wheel"]
    folder = tmp_path_factory.mktemp("installed")
    for package in wheel["packages"]:
        target = folder / Path(package).name
        target.mkdir()
        for each in (ROOT / package).iterdir():
            (target / each.name).symlink_to(each)
    for source, place in wheel["force-include"].items():
        (folder / place).symlink_to(ROOT / source)
    monkeypatch.setenv("PYTHONPATH", str(folder))


@pytest.mark.parametrize("name", WITH_FILES)
def test_the_commands_of_a_page_print_what_it_shows(name: str, tmp_path: Path) -> None:
    """The pages that need no cluster."""
    follow(PAGES[name], tmp_path)


@pytest.mark.real
@pytest.mark.parametrize("name", WITH_KUBECTL)
def test_the_commands_with_kubectl_print_what_the_page_shows(name: str, tmp_path: Path) -> None:
    """One after the other, on the virtual cluster that the first of them starts."""
    follow(PAGES[name], tmp_path, programs.kubernetes("kubectl", RELEASE).parent)


def test_the_index_lists_every_example() -> None:
    """One line for each, with the title of its page."""
    index = (expectations.ROOT / "README.md").read_text()
    rows = [line for line in index.splitlines() if line.startswith("| [")]
    titles = {name: page.read_text().partition("\n")[0][2:] for name, page in PAGES.items()}

    assert sorted(rows) == sorted(
        f"| [{name}]({name}/README.md) | {title} |" for name, title in titles.items()
    )
