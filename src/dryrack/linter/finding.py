"""
Problems that rules report, and findings that users see.

A `Problem` names an object, the path of a field in it, what is wrong, and a fix. A `Finding`
adds the code of the rule, and the file and line. Equal findings about one place are one.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dryrack.linter.world import Entry

Path = tuple[str | int, ...]

# Below these the API's keys are data, and its field paths put data in brackets.
_KEYED_BY_DATA = frozenset(
    {"attributes", "capacity", "counters", "labels", "annotations", "data", "requests"}
)


class Severity(Enum):
    """The severity of a finding: how certain it is that something fails."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class Problem:
    """
    One thing a rule saw.

    `reason` is the API's word for it, if the API would refuse it. `line` is set where the path
    leads into a text inside the document, of which the document knows only the beginning.
    """

    entry: Entry[object]
    path: Path
    what: str
    fix: str
    reason: str = ""
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of lint's answer."""

    file: str
    line: int
    code: str
    slug: str
    severity: Severity
    object: str
    field: str
    what: str
    fix: str
    reason: str = ""

    @property
    def message(self) -> str:
        return f"{self.what}; {self.fix}" if self.fix else self.what

    def order(self) -> tuple[str, int, str, str, str, str]:
        return (self.file, self.line, self.code, self.object, self.field, self.what)


def field_path(path: Path) -> str:
    """The path as the API writes it: `spec.devices[0].attributes[model].string`."""
    text = ""
    previous: str | int = ""
    for part in path:
        if isinstance(part, int) or (previous in _KEYED_BY_DATA and part != "requests"):
            text += f"[{part}]"
        else:
            text += f".{part}" if text else part
        previous = part
    return text
