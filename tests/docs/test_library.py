"""The library as the documents show it: every block of Python and every docstring's example."""

from __future__ import annotations

import doctest
import re
import subprocess
import sys
from pathlib import Path

import pytest

import dryrack
from dryrack import client, library
from dryrack.client import endpoints

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "what-if"
NAMES = ["allocate", "connect", "embedded", "errors", "explain", "lint", "load", "testing"]


def blocks() -> list[tuple[str, str]]:
    found = []
    for page in sorted((ROOT / "docs").rglob("*.md")):
        for number, block in enumerate(
            re.findall(r"^```python\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)
        ):
            found.append((f"{page.relative_to(ROOT)} {number}", block))
    return found


@pytest.mark.parametrize(("name", "block"), blocks(), ids=lambda each: each.split("\n")[0])
def test_blocks_of_python_run(name: str, block: str) -> None:
    """Each by itself, beside the example files; what it asserts holds."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", block],
        cwd=EXAMPLES,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.returncode == 0, done.stderr


def test_examples_of_docstrings_are_true(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each public function has one, and it prints what it says."""
    monkeypatch.chdir(EXAMPLES)
    finder = doctest.DocTestFinder(recurse=False)
    runner = doctest.DocTestRunner()
    for word in ("load", "allocate", "explain", "lint", "connect"):
        (test,) = finder.find(getattr(library, word), word)
        assert test.examples, word
        assert runner.run(test).failed == 0


def test_the_page_lists_the_names_of_all_kinds() -> None:
    """Each row has the kind and the version of its constant, and no constant is missing."""
    page = (ROOT / "docs/reference/library.md").read_text()
    rows = re.findall(r"^\| `([A-Z0-9_]+)` \| (\w+) \| `([\w./-]+)` \|$", page, re.MULTILINE)
    names = [name for name in client.__all__ if isinstance(getattr(client, name), client.Endpoint)]
    kinds = [
        (name, getattr(client, name).kind, getattr(client, name).api_version) for name in names
    ]
    assert sorted(rows) == sorted(kinds)
    constants = [
        name for name, value in vars(endpoints).items() if isinstance(value, client.Endpoint)
    ]
    assert sorted(names) == sorted(constants)
    for method in re.findall(r"^\| `([a-z_]+)\(", page, re.MULTILINE)[6:]:
        assert callable(getattr(client.Client, method)), method


def test_the_library_has_eight_words() -> None:
    """The library exports no other name, and each name is what it says."""
    assert sorted(dryrack.__all__) == ["__version__", *NAMES]
    assert all(callable(getattr(dryrack, word)) for word in NAMES if word not in MODULES)
    assert dryrack.testing.VirtualClock().now() > 0
    assert issubclass(dryrack.errors.ContentError, dryrack.errors.DryrackError)


MODULES = ("errors", "testing")


def test_a_wrong_object_is_told() -> None:
    """By what it is and what would help, also if it comes from no file."""
    with pytest.raises(dryrack.errors.ContentError, match="ResourceSlices"):
        dryrack.allocate([{"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlices"}])
