"""
What a reader has to say about a document, collected while it reads.

A remark is about a path of the document as it was written. It is either a refusal, and then
nothing of the document is used, or tells how something was understood that the API would not
take as it is. What a remark is about is a value too: lint has a code for each.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from dryrack.kinds.documents import Problem

if TYPE_CHECKING:
    from collections.abc import Callable

    from dryrack.hardware.inventory import Assignment, Overlay
    from dryrack.kinds.shape import Path
    from dryrack.kinds.text.source_positions import Place

# Whoever made more mistakes than this made one of them many times.
SHOWN_MAX = 200

# After so many nobody reads on, and neither does the reader.
REFUSALS_MAX = 1000
# A message is for an event or a line of a terminal, whatever was written into a file.
_MESSAGE_MAX = 400
_STEP_MAX = 70

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class TooMuchError(Exception):
    """There is so much wrong that reading on makes no sense; never leaves `dialects`."""


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
    place: Place | None = None
    """Where it is, if that is known already and not by the path."""

    @property
    def is_refusal(self) -> bool:
        return self.topic is Topic.REFUSAL

    @property
    def message(self) -> str:
        """With the field, as the API writes it: `mappings[0].name: what is so`."""
        field = rendered(self.path)
        what = _short(self.what, _MESSAGE_MAX)
        return f"{field}: {what}" if field else what


@dataclass(slots=True)
class Report:
    """Collects remarks."""

    remarks: list[Remark] = field(default_factory=list)
    refused: int = 0

    def refuse(self, path: Path, what: str, fix: str = "") -> None:
        """This cannot be used."""
        self.refused += 1
        self.remarks.append(Remark(Topic.REFUSAL, path, what, fix))
        if self.refused >= REFUSALS_MAX:
            raise TooMuchError

    def fault(self, place: Place, what: str, fix: str) -> None:
        """The text is no document at all."""
        self.refused += 1
        self.remarks.append(Remark(Topic.REFUSAL, (), what, fix, place))

    def remark(self, topic: Topic, path: Path, what: str, fix: str) -> None:
        """This was understood, though it is not what the API has."""
        self.remarks.append(Remark(topic, path, what, fix))


@dataclass(frozen=True, slots=True)
class Rest(Problem):
    """Stands for so many that are not told."""

    count: int = 0


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


@dataclass(frozen=True, slots=True)
class Read:
    """The same while it is still known what each remark is about."""

    file: str
    report: Report
    locate: Callable[[Path], Place]
    assignments: tuple[Assignment, ...] = ()
    overlay: Overlay | None = None
    within: Path = ()
    """Where in its document the paths of the remarks begin."""

    def place(self, remark: Remark) -> Place:
        return remark.place or self.locate(remark.path)

    def reading(self) -> Reading:
        refusals = [each for each in self.report.remarks if each.is_refusal]
        others = [each for each in self.report.remarks if not each.is_refusal]
        problems = self._told(refusals, "problems")
        warnings = self._told(others, "warnings")
        if problems:
            return Reading(problems=problems, warnings=warnings)
        return Reading(self.assignments, self.overlay, problems, warnings)

    def _told(self, remarks: list[Remark], what: str) -> tuple[Problem, ...]:
        """The remarks in the order of their lines, each once; of too many, the first."""
        placed = ((self.place(each), each) for each in remarks)
        once = {(at, each.path, each.what, each.fix): each for at, each in placed}
        found = sorted(once.items(), key=lambda item: item[0][0])
        shown = [self._problem(key[0], remark) for key, remark in found[:SHOWN_MAX]]
        if len(found) > SHOWN_MAX:
            (place, *_), _ = found[SHOWN_MAX]
            more = len(found) - SHOWN_MAX
            shown.append(Rest(self.file, *place, f"and {more} more {what}", count=more))
        return tuple(shown)

    def _problem(self, place: Place, remark: Remark) -> Problem:
        return Problem(self.file, *place, remark.message, _short(remark.fix, _MESSAGE_MAX))


def rendered(path: Path) -> str:
    """`mappings[0].resourceSlice.devices[2].attributes[compute-capability]`."""
    text = ""
    for step in path:
        if isinstance(step, int) or not _PLAIN.fullmatch(step):
            text += f"[{_short(str(step), _STEP_MAX)}]"
        else:
            text += f".{_short(step, _STEP_MAX)}" if text else _short(step, _STEP_MAX)
    return text


def _short(text: str, length_max: int) -> str:
    """A text without its middle, if that is too long."""
    half = length_max // 2
    return text if len(text) <= length_max else f"{text[:half]}…{text[-half:]}"
