"""
Remarks about a document, collected while it is read.

A remark is about a path of the document as it was written. It is either a refusal, and then nothing
of the document is used, or it explains how a value was read that the API does not accept as it is.
Each remark has a topic: lint has a code for each.
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

# More mistakes than this are the same mistake many times.
SHOWN_MAX = 200

# After so many refusals the rest of the document is not read.
REFUSALS_MAX = 1000
# A message has to fit into an event or a line of a terminal.
_MESSAGE_MAX = 400
_STEP_MAX = 70

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class TooMuchError(Exception):
    """The document has too many problems to read on; `document_readers` catches it."""


class Topic(Enum):
    """The topic of a remark."""

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
    """A remark about one path."""

    topic: Topic
    path: Path
    what: str
    fix: str
    place: Place | None = None
    """The line and column, if they do not follow from the path."""

    @property
    def is_refusal(self) -> bool:
        return self.topic is Topic.REFUSAL

    @property
    def message(self) -> str:
        """The text with its field, as the API writes it: `mappings[0].name: what is so`."""
        field = render_path(self.path)
        what = _shorten(self.what, _MESSAGE_MAX)
        return f"{field}: {what}" if field else what


@dataclass(slots=True)
class Report:
    """Collects remarks."""

    remarks: list[Remark] = field(default_factory=list)
    refused: int = 0

    def refuse(self, path: Path, what: str, fix: str = "") -> None:
        """Add a refusal: the document cannot be used."""
        self.refused += 1
        self.remarks.append(Remark(Topic.REFUSAL, path, what, fix))
        if self.refused >= REFUSALS_MAX:
            raise TooMuchError

    def refuse_text(self, place: Place, what: str, fix: str) -> None:
        """Add a refusal of a text that cannot be parsed."""
        self.refused += 1
        self.remarks.append(Remark(Topic.REFUSAL, (), what, fix, place))

    def remark(self, topic: Topic, path: Path, what: str, fix: str) -> None:
        """Explain how a value was read that the API does not accept as it is."""
        self.remarks.append(Remark(topic, path, what, fix))


@dataclass(frozen=True, slots=True)
class Rest(Problem):
    """The number of further problems that are not shown."""

    count: int = 0


@dataclass(frozen=True, slots=True)
class Reading:
    """
    The contents of a document, its problems, and its warnings.

    With problems it has no contents. Warnings explain how loose writing was read.
    """

    assignments: tuple[Assignment, ...] = ()
    overlay: Overlay | None = None
    problems: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class Read:
    """The contents of a document, with remarks by topic and path."""

    file: str
    report: Report
    locate: Callable[[Path], Place]
    assignments: tuple[Assignment, ...] = ()
    overlay: Overlay | None = None
    within: Path = ()
    """The path in the document at which the paths of the remarks begin."""

    def place(self, remark: Remark) -> Place:
        return remark.place or self.locate(remark.path)

    def to_reading(self) -> Reading:
        refusals = [each for each in self.report.remarks if each.is_refusal]
        others = [each for each in self.report.remarks if not each.is_refusal]
        problems = self._to_problems(refusals, "problems")
        warnings = self._to_problems(others, "warnings")
        if problems:
            return Reading(problems=problems, warnings=warnings)
        return Reading(self.assignments, self.overlay, problems, warnings)

    def _to_problems(self, remarks: list[Remark], what: str) -> tuple[Problem, ...]:
        """Return each remark once, in the order of the lines; if there are too many, the first."""
        placed = ((self.place(each), each) for each in remarks)
        distinct = {(at, each.path, each.what, each.fix): each for at, each in placed}
        ordered = sorted(distinct.items(), key=lambda item: item[0][0])
        problems = []
        for (place, *_), remark in ordered[:SHOWN_MAX]:
            fix = _shorten(remark.fix, _MESSAGE_MAX)
            problems.append(Problem(self.file, *place, remark.message, fix))
        if len(ordered) > SHOWN_MAX:
            (place, *_), _ = ordered[SHOWN_MAX]
            more = len(ordered) - SHOWN_MAX
            problems.append(Rest(self.file, *place, f"and {more} more {what}", count=more))
        return tuple(problems)


def render_path(path: Path) -> str:
    """Return a text such as `mappings[0].resourceSlice.attributes[compute-capability]`."""
    text = ""
    for step in path:
        if isinstance(step, int) or not _PLAIN.fullmatch(step):
            text += f"[{_shorten(str(step), _STEP_MAX)}]"
        else:
            text += f".{_shorten(step, _STEP_MAX)}" if text else _shorten(step, _STEP_MAX)
    return text


def _shorten(text: str, length_max: int) -> str:
    """Return the text, without its middle if it is too long."""
    half = length_max // 2
    return text if len(text) <= length_max else f"{text[:half]}…{text[-half:]}"
