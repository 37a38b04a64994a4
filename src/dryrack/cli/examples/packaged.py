"""
Find, list, print and copy the examples that come with dryrack.

An example is a folder with a README.md and manifests. The folders are `examples/` of the
repository; the wheel contains them as `dryrack/examples/`. A page is the only source of what an
example shows and needs: its title, and the options of its `dryrack up` command.
"""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dryrack.base.text import hint
from dryrack.cli.examples.commands import ListFormat
from dryrack.cli.files import UsageError
from dryrack.cli.output import Format, many, print_data, print_line, print_table, say

if TYPE_CHECKING:
    from collections.abc import Iterable


PAGE = "README.md"
# The expectations of dryrack's tests; not for users.
EXPECTED = "expect.yaml"
# The group of the examples that are not in the folder of a group, and the first of them.
START = "start"
_FIRST = "quickstart"

_COMMAND = re.compile(r"^\$ (.+)$", re.MULTILINE)
_COPY = "dryrack examples copy "
_UP = "dryrack up "
_HOW_TO_RUN = frozenset({"-d", "--detach", "--merge"})


@dataclass(frozen=True, slots=True)
class PackagedExample:
    """A folder of the examples, by its path below them."""

    name: str
    folder: Path

    @property
    def group(self) -> str:
        return self.name.partition("/")[0] if "/" in self.name else START

    @property
    def page(self) -> str:
        return (self.folder / PAGE).read_text()

    @property
    def title(self) -> str:
        return self.page.partition("\n")[0].removeprefix("# ")

    @property
    def commands(self) -> list[str]:
        """The commands of the page, without the one that copies the example."""
        return [each for each in _COMMAND.findall(self.page) if not each.startswith(_COPY)]

    @property
    def needs(self) -> str:
        """The options of `dryrack up` for this example."""
        up = next((each for each in self.commands if each.startswith(_UP)), _UP)
        return shlex.join(w for w in shlex.split(up)[2:] if w not in _HOW_TO_RUN)

    @property
    def uses_cluster(self) -> bool:
        return any(each.startswith(_UP) for each in self.commands)

    @property
    def files(self) -> list[Path]:
        """Every file for users, relative to the folder."""
        paths = (path for path in self.folder.rglob("*") if path.is_file())
        within = sorted(path.relative_to(self.folder) for path in paths)
        return [
            each for each in within if each.name != EXPECTED and "__pycache__" not in each.parts
        ]

    @property
    def first_manifests(self) -> list[Path]:
        """The file with the name of the folder; without one, all that are not in a folder."""
        main = Path(f"{self.folder.name}.yaml")
        manifests = [
            each for each in self.files if each.suffix == ".yaml" and each.parent == Path()
        ]
        return [main] if main in manifests else manifests


def examples() -> list[PackagedExample]:
    """Return all examples: those to start with, then the others by name."""
    root = _root()
    pages = [
        PackagedExample(page.parent.relative_to(root).as_posix(), page.parent)
        for page in root.rglob(PAGE)
        if page.parent != root
    ]
    return sorted(pages, key=lambda each: (each.group != START, each.name != _FIRST, each.name))


def find(name: str) -> PackagedExample:
    known = {each.name: each for each in examples()}
    if name.rstrip("/") not in known:
        raise UsageError(
            f"example {name!r} not found; {hint(name, known)} (to list all: dryrack examples)"
        )
    return known[name.rstrip("/")]


def _root() -> Path:
    """Return the folder of the wheel, or that of the clone for an editable install."""
    package = Path(__file__).parents[2]
    for root in (package / "examples", package.parents[1] / "examples"):
        if root.is_dir():
            return root
    raise UsageError(f"{package / 'examples'} not found; install dryrack again")


_NEXT_COMMANDS = 2


def copy_one(name: str, directory: str, *, force: bool) -> None:
    if not name:
        raise UsageError("name an example, or copy all of them with --all; see: dryrack examples")
    example = find(name)
    target = directory.rstrip("/") or example.name
    _copy([(example, Path(target))], force=force)
    say(f"{many(len(example.files), 'file')} of example {example.name} copied to {target}/")
    commands = [each.replace(f"{example.name}/", f"{target}/") for each in example.commands]
    say("\n".join(["", "Try next:", *(f"  {each}" for each in commands[:_NEXT_COMMANDS])]))


def copy_all(directory: str, more: str, *, force: bool) -> None:
    if more:
        raise UsageError("--all: copies every example; name at most one directory, and no example")
    target = directory or "."
    copies = [(each, Path(target) / each.name) for each in examples()]
    _copy(copies, force=force)
    say(f"{many(len(copies), 'example')} copied to {target}")


def _copy(pairs: Iterable[tuple[PackagedExample, Path]], *, force: bool) -> None:
    files = [(each.folder / file, to / file) for each, to in pairs for file in each.files]
    existing = next((target for _, target in files if target.exists()), None)
    if existing and not force:
        raise UsageError(f"{existing} exists; name another directory, or overwrite with --force")
    for source, target in files:
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
        except OSError as error:
            raise UsageError(f"{target}: {(error.strerror or str(error)).lower()}") from None


def print_list(group: str, output: ListFormat) -> None:
    listed = examples()
    groups = {each.group for each in listed}
    if group and group not in groups:
        raise UsageError(f"--group {group!r}: no such group; {hint(group, groups)}")
    listed = [each for each in listed if group in ("", each.group)]
    match output:
        case ListFormat.TABLE:
            rows = [(each.name, each.group, each.title, _needs(each)) for each in listed]
            print_table(("NAME", "GROUP", "SHOWS", "NEEDS"), rows)
        case ListFormat.JSON:
            items = [
                {
                    "name": each.name,
                    "group": each.group,
                    "shows": each.title,
                    "needs": each.needs,
                    "cluster": each.uses_cluster,
                }
                for each in listed
            ]
            print_data({"examples": items}, Format.JSON)
        case ListFormat.NAME:
            for each in listed:
                print_line(each.name)


def _needs(example: PackagedExample) -> str:
    return example.needs or "-" if example.uses_cluster else "no cluster"


def print_example(name: str) -> None:
    """Print the page, then every other file below its name."""
    example = find(name)
    sys.stdout.write(example.page)
    for file in example.files:
        if file.as_posix() != PAGE:
            sys.stdout.write(f"\n# {example.name}/{file.as_posix()}\n")
            sys.stdout.write((example.folder / file).read_text())


def print_manifests(name: str) -> None:
    """Print the manifests that a user applies first, as one YAML stream."""
    example = find(name)
    if not example.first_manifests:
        raise UsageError(f"example {name!r} has no manifest; leave out: -o yaml")
    texts = [(example.folder / file).read_text() for file in example.first_manifests]
    sys.stdout.write("---\n".join(texts))
