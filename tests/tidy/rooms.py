"""
What each room shows the others: read from the contracts of `lint-imports` and from the sources.

A contract of the type `protected` names a room, and by `ignore_imports` the modules behind its
door that are public too. A room that protects only what is nested deeper (`dryrack.kinds.*.*`)
is a vocabulary: its modules are its public names, and what is in them is not listed.
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
    """What `__all__` says, or else what a module defines without an underscore."""
    path = root.joinpath("src", *module.split("."))
    source = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    body = ast.parse(source.read_text()).body
    defined = dict(pair for statement in body for pair in _defined(statement))
    if "__all__" in defined:
        assert isinstance(defined["__all__"], ast.Assign)
        return sorted(ast.literal_eval(defined["__all__"].value))
    return sorted(name for name in defined if not name.startswith("_"))


def _defined(statement: ast.stmt) -> Iterator[tuple[str, ast.stmt]]:
    match statement:
        case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            yield name, statement
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            yield name, statement


def listing(root: Path) -> list[str]:
    """One line for each public name of each room."""
    lines: list[str] = []
    for room in rooms(root):
        for module in public_modules(room, root):
            names = [] if room.is_vocabulary else public_names(module, root)
            lines += [f"{module} {name}" for name in names] or [module]
    return sorted(lines)
