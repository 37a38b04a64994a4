"""`dryrack examples`: what it lists, prints and copies, and what it refuses."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import yaml
from tests.cli.command import EXAMPLES, dryrack

if TYPE_CHECKING:
    from pathlib import Path

ROOT = EXAMPLES.parent


def test_the_list_has_every_example_with_what_it_needs() -> None:
    """One line for each, the first steps first; without a subcommand it is the same list."""
    done = dryrack("examples")
    lines = [line.split("   ") for line in done.stdout.splitlines()]
    cells = [[cell.strip() for cell in line if cell] for line in lines]

    assert cells[0] == ["NAME", "GROUP", "SHOWS", "NEEDS"]
    assert cells[1][0] == "quickstart"
    assert cells[1][3] == "--nodes 3 --instance-type p5.48xlarge"
    assert next(each for each in cells if each[0] == "lint")[3] == "no cluster"
    assert len(cells) == 1 + len(list(ROOT.glob("*/**/README.md")))
    assert dryrack("examples", "list").stdout == done.stdout


def test_the_list_can_be_read_by_programs() -> None:
    """Names for a loop, JSON for everything, and one group."""
    names = dryrack("examples", "list", "-o", "name", "--group", "start").stdout.split()
    items = json.loads(dryrack("examples", "list", "-o", "json").stdout)["examples"]

    assert names == [each["name"] for each in items if each["group"] == "start"]
    assert items[0] == {
        "name": "quickstart",
        "group": "start",
        "shows": (ROOT / "quickstart" / "README.md").read_text().splitlines()[0][2:],
        "needs": "--nodes 3 --instance-type p5.48xlarge",
        "cluster": True,
    }


def test_an_example_is_printed_for_people_and_for_kubectl() -> None:
    """The page and all files; or the objects that a user applies first, and no others."""
    text = dryrack("examples", "show", "quickstart").stdout
    objects = yaml.safe_load_all(dryrack("examples", "show", "quickstart", "-o", "yaml").stdout)

    assert text.startswith((ROOT / "quickstart" / "README.md").read_text())
    assert "\n# quickstart/pending/nine-gpus.yaml\n" in text
    assert "expect.yaml" not in text
    assert [each["metadata"]["name"] for each in objects if each["kind"] == "Pod"] == [
        "one-h100",
        "two-gpus",
    ]


def test_a_copy_prints_the_next_commands(tmp_path: Path) -> None:
    """The files are those of the example, below its name; the commands name them."""
    done = dryrack("examples", "copy", "quickstart", cwd=tmp_path)
    copied = {path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file()}

    assert (done.returncode, done.stdout) == (0, "")
    assert copied == {
        path.relative_to(ROOT)
        for path in (ROOT / "quickstart").rglob("*")
        if path.is_file() and path.name != "expect.yaml"
    }
    assert done.stderr.splitlines()[-2:] == [
        "  dryrack up --detach --merge --nodes 3 --instance-type p5.48xlarge",
        "  kubectl apply -f quickstart/",
    ]
    done = dryrack("examples", "copy", "quickstart", "my/own", cwd=tmp_path)
    assert done.stderr.splitlines()[-1] == "  kubectl apply -f my/own/"
    assert (tmp_path / "my" / "own" / "one-h100.yaml").is_file()


def test_a_copy_overwrites_only_if_it_is_told_to(tmp_path: Path) -> None:
    """Nothing is written where one file exists already."""
    changed = tmp_path / "quickstart" / "one-h100.yaml"
    changed.parent.mkdir()
    changed.write_text("mine")
    done = dryrack("examples", "copy", "quickstart", cwd=tmp_path)

    assert done.returncode == 2
    assert done.stderr == (
        "dryrack: quickstart/one-h100.yaml exists; "
        "name another directory, or overwrite with --force\n"
    )
    assert [path.name for path in changed.parent.iterdir()] == ["one-h100.yaml"]
    assert dryrack("examples", "copy", "quickstart", "--force", cwd=tmp_path).returncode == 0
    assert changed.read_text() == (ROOT / "quickstart" / "one-h100.yaml").read_text()


def test_all_examples_are_copied_at_once(tmp_path: Path) -> None:
    """Each below its own name, in the directory that is named."""
    assert dryrack("examples", "copy", "--all", "there", cwd=tmp_path).returncode == 0
    names = dryrack("examples", "list", "-o", "name").stdout.split()

    assert [name for name in names if not (tmp_path / "there" / name / "README.md").exists()] == []


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("show", "quickstrat"), "example 'quickstrat' not found; did you mean 'quickstart'?"),
        (("copy", "quickstrat"), "example 'quickstrat' not found; did you mean 'quickstart'?"),
        (("copy",), "name an example, or copy all of them with --all"),
        (("copy", "--all", "quickstart", "there"), "--all: copies every example"),
        (("list", "--group", "strat"), "--group 'strat': no such group; did you mean 'start'?"),
        (("copy", "quickstart", "file/below"), "file/below/README.md: not a directory"),
    ],
)
def test_what_cannot_be_done_is_explained(
    words: tuple[str, ...], complaint: str, tmp_path: Path
) -> None:
    """A wrong call: one line, status 2."""
    (tmp_path / "file").write_text("")
    done = dryrack("examples", *words, cwd=tmp_path)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"dryrack: {complaint}")
    assert len(done.stderr.splitlines()) == 1
