"""
Read what each package shows to the others, from the import contracts and from the sources.

A contract of the type `protected` names a package. Its `ignore_imports` lists the nested modules
that are public, too. A package that protects only nested modules (`dryrack.kinds.*.*`) offers its
modules on the first level as public names. The list leaves out the content of modules without
`__all__`, and the modules of a folder that is public as a whole (`dryrack.kinds.text.*`).
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
class Package:
    """A package with a contract, and the nested modules that other packages may import."""

    module: str
    offers_modules: bool
    declared: tuple[str, ...]


def read_packages(root: Path) -> Iterator[Package]:
    """Yield every package that has a contract."""
    settings = tomllib.loads((root / "pyproject.toml").read_text())
    for contract in settings["tool"]["importlinter"]["contracts"]:
        if contract["type"] == "protected":
            [inside] = contract["protected_modules"]
            declared = (each.split(" -> ")[1] for each in contract.get("ignore_imports", ()))
            yield Package(inside.rstrip(".*"), inside.endswith(".*.*"), tuple(sorted(declared)))


def public_modules(package: Package, root: Path) -> list[str]:
    """Return the modules of a package that others may import."""
    folder = root.joinpath("src", *package.module.split("."))
    first_level = (
        f"{package.module}.{path.stem}"
        for path in folder.iterdir()
        if (path.suffix == ".py" or (path / "__init__.py").exists()) and path.stem[0] != "_"
    )
    modules = first_level if package.offers_modules else [package.module]
    return sorted({*package.declared, *modules})


def public_names(module: str, root: Path) -> list[str]:
    """Return the names in `__all__`, and no names for a folder that is public as a whole."""
    if module.endswith(".*"):
        return []
    path = root.joinpath("src", *module.split("."))
    source = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    for statement in ast.parse(source.read_text()).body:
        match statement:
            case ast.Assign(targets=[ast.Name(id="__all__")], value=names):
                return sorted(ast.literal_eval(names))
    return []


def list_public_names(root: Path) -> list[str]:
    """Return one line for each public name of each package."""
    lines: list[str] = []
    for package in read_packages(root):
        for module in public_modules(package, root):
            names = public_names(module, root)
            lines += [f"{module} {name}" for name in names] or [module]
    return sorted(lines)
