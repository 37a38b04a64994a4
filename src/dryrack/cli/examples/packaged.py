"""
Find the examples that come with dryrack, and read what their pages say.

An example is a folder with a README.md and manifests. The folders are `examples/` of the
repository; the wheel contains them as `dryrack/examples/`. A page is the only source of what an
example shows and needs: its title, and the options of its `dryrack up` command.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from dryrack.base.text import hint
from dryrack.cli.files import UsageError

PAGE = "README.md"
# What the tests of dryrack expect of an example; not for users.
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
        found = (path for path in self.folder.rglob("*") if path.is_file())
        within = sorted(path.relative_to(self.folder) for path in found)
        return [
            each for each in within if each.name != EXPECTED and "__pycache__" not in each.parts
        ]

    @property
    def first_manifests(self) -> list[Path]:
        """The file with the name of the folder; without one, all that are not in a folder."""
        main = Path(f"{self.folder.name}.yaml")
        found = [each for each in self.files if each.suffix == ".yaml" and each.parent == Path()]
        return [main] if main in found else found


def examples() -> list[PackagedExample]:
    """Return all examples: those to start with, then the others by name."""
    root = _root()
    found = [
        PackagedExample(page.parent.relative_to(root).as_posix(), page.parent)
        for page in root.rglob(PAGE)
        if page.parent != root
    ]
    return sorted(found, key=lambda each: (each.group != START, each.name != _FIRST, each.name))


def find(name: str) -> PackagedExample:
    known = {each.name: each for each in examples()}
    if name.rstrip("/") not in known:
        raise UsageError(
            f"example {name!r} not found; {hint(name, known)} (to list all: dryrack examples)"
        )
    return known[name.rstrip("/")]


def _root() -> Path:
    """The folder in the wheel; in a clone that is installed in place, the one of the clone."""
    package = Path(__file__).parents[2]
    for root in (package / "examples", package.parents[1] / "examples"):
        if root.is_dir():
            return root
    raise UsageError(f"{package / 'examples'} not found; install dryrack again")
