"""Packages import only names of each other that a person chose: `public_names.txt` lists them."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest
from tests.tidy.packages import list_public_names, public_modules, public_names, read_packages

ROOT = Path(__file__).parents[2]
LIST = Path(__file__).parent / "public_names.txt"
MODULES = [module for each in read_packages(ROOT) for module in public_modules(each, ROOT)]


def test_public_names_equal_the_reviewed_list() -> None:
    """A name becomes public, or stops being public, only with a change of the list."""
    reviewed = LIST.read_text().splitlines()
    names = list_public_names(ROOT)
    changed = [f"- {line}" for line in reviewed if line not in names]
    changed += [f"+ {line}" for line in names if line not in reviewed]

    assert (changed, reviewed == names) == ([], True), (
        f"The public names of a package changed. If you want that, change {LIST.relative_to(ROOT)} "
        "(one line for each name, sorted); if not, use an existing public name.\n"
        + "\n".join(changed)
    )


def test_every_package_has_a_contract() -> None:
    """Every package has a contract; only `cli` needs none, because no package imports it."""
    folders = (ROOT / "src" / "dryrack").glob("*/__init__.py")
    packages = {f"dryrack.{each.parent.name}" for each in folders} - {"dryrack.cli"}
    without = sorted(packages - {each.module for each in read_packages(ROOT)})

    assert without == [], "Add a contract of the type `protected` to pyproject.toml."


@pytest.mark.parametrize("name", [each for each in MODULES if public_names(each, ROOT)])
def test_every_public_name_can_be_imported(name: str) -> None:
    """Each public name, also one that is loaded on first use, exists and is not a module."""
    module = import_module(name)
    values = {each: getattr(module, each) for each in public_names(name, ROOT)}

    assert [each for each, value in values.items() if isinstance(value, ModuleType)] == []
