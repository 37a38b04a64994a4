"""
What each room shows the others: read from the contracts of `lint-imports` and from the sources.

A contract of the type `protected` names a room, and by `ignore_imports` the modules behind its
door that are public too. A room that protects only what is nested deeper (`dryrack.kinds.*.*`)
is a vocabulary: its modules are its public names. What is in a module without `__all__` is not
listed, nor are the modules of a folder that is let through as a whole (`dryrack.kinds.text.*`).
"""

from __future__ import annotations

import ast
import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@dataclass(frozen=True)
class Room:
    """A room by its module, and the modules in it that other rooms may import as well."""

    module: str
    is_vocabulary: bool
    declared: tuple[str, ...]


def rooms(root: Path) -> Iterator[Room]:
    """Every room that has a contract."""
    settings = tomllib.loads((root / "pyproject.toml").read_text())
    for contract in settings["tool"]["importlinter"]["contracts"]:
        if contract["type"] == "protected":
            [inside] = contract["protected_modules"]
            declared = (each.split(" -> ")[1] for each in contract.get("ignore_imports", ()))
            is_vocabulary = inside.endswith(".*.*")
            yield Room(inside.rstrip(".*"), is_vocabulary, tuple(sorted(declared)))


def public_modules(room: Room, root: Path) -> list[str]:
    """The modules of a room that others may import."""
    folder = root.joinpath("src", *room.module.split("."))
    first_level = (
        f"{room.module}.{path.stem}"
        for path in folder.iterdir()
        if (path.suffix == ".py" or (path / "__init__.py").exists()) and path.stem[0] != "_"
    )
    return sorted({*room.declared, *(first_level if room.is_vocabulary else [room.module])})


def public_names(module: str, root: Path) -> list[str]:
    """What `__all__` says; nothing of a module that is public as a whole."""
    if module.endswith(".*"):
        return []
    path = root.joinpath("src", *module.split("."))
    source = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    for statement in ast.parse(source.read_text()).body:
        match statement:
            case ast.Assign(targets=[ast.Name(id="__all__")], value=names):
                return sorted(ast.literal_eval(names))
    return []


def listing(root: Path) -> list[str]:
    """One line for each public name of each room."""
    lines: list[str] = []
    for room in rooms(root):
        for module in public_modules(room, root):
            names = public_names(module, root)
            lines += [f"{module} {name}" for name in names] or [module]
    return sorted(lines)
