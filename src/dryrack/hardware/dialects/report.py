"""
What a reader has to say about a document, collected while it reads.

A remark is about a path of the document as it was written. It is either a refusal, and then
nothing of the document is used, or tells how something was understood that the API would not
take as it is. What a remark is about is a value too: lint has a code for each.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING

from dryrack.kinds.documents import Problem

if TYPE_CHECKING:
    from collections.abc import Callable

    from dryrack.hardware.inventory import Assignment, Overlay
    from dryrack.kinds.places import Place
    from dryrack.kinds.shape import Path

# Whoever made more mistakes than this made one of them many times.
REMARKS_MAX = 200

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Topic(Enum):
    """What a remark is about."""

    REFUSAL = "refusal"
    DRIVER_NAME = "driver name"
    ATTRIBUTE_NAME = "attribute name"
    ATTRIBUTE_FORM = "attribute form"
    SLICE_COUNT = "slice count"
    POOL_NAME = "pool name"
    ALL_NODES = "all nodes"
    AMOUNT = "amount as text"
    SPELLING = "spelling"
    PUBLISHER = "what the publisher decides"
    PROMISE = "capacity and devices"


@dataclass(frozen=True, slots=True)
class Remark:
    """One thing to say about one place."""

    topic: Topic
    path: Path
    what: str
    fix: str

    @property
    def message(self) -> str:
        """With the field, as the API writes it: `mappings[0].name: what is so`."""
        field = rendered(self.path)
        return f"{field}: {self.what}" if field else self.what


@dataclass(slots=True)
class Report:
    """Collects remarks; only the first of many are kept."""

    remarks: list[Remark] = field(default_factory=list)
    refused: int = 0

    def refuse(self, path: Path, what: str, fix: str = "") -> None:
        """This cannot be used."""
        self.refused += 1
        if self.refused <= REMARKS_MAX:
            self.remarks.append(Remark(Topic.REFUSAL, path, what, fix))

    def remark(self, topic: Topic, path: Path, what: str, fix: str) -> None:
        """This was understood, though it is not what the API has."""
        self.remarks.append(Remark(topic, path, what, fix))


@dataclass(frozen=True, slots=True)
class Reading:
    """
    What a document says, and what there is to say about it.

    With problems there is nothing else; warnings tell how loose writing was understood.
    """

    assignments: tuple[Assignment, ...] = ()
    overlay: Overlay | None = None
    problems: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()


def finished(
    report: Report,
    file: str,
    locate: Callable[[Path], Place],
    *,
    assignments: tuple[Assignment, ...] = (),
    overlay: Overlay | None = None,
) -> Reading:
    """The reading, with the place of every remark."""

    def placed(remark: Remark) -> Problem:
        line, column = locate(remark.path)
        return Problem(file, line, column, remark.message, remark.fix)

    problems = [placed(each) for each in report.remarks if each.topic is Topic.REFUSAL]
    if report.refused > len(problems):
        more = report.refused - len(problems)
        problems.append(Problem(file, problems[-1].line, 1, f"and {more} more problems"))
    warnings = [placed(each) for each in report.remarks if each.topic is not Topic.REFUSAL]
    said = Reading(problems=_ordered(problems), warnings=_ordered(warnings))
    return said if problems else replace(said, assignments=assignments, overlay=overlay)


def _ordered(problems: list[Problem]) -> tuple[Problem, ...]:
    unique = dict.fromkeys(problems)
    return tuple(sorted(unique, key=lambda each: (each.line, each.column)))


def rendered(path: Path) -> str:
    """`mappings[0].resourceSlice.devices[2].attributes[compute-capability]`."""
    text = ""
    for step in path:
        if isinstance(step, int) or not _PLAIN.fullmatch(step):
            text += f"[{step}]"
        else:
            text += f".{step}" if text else step
    return text
