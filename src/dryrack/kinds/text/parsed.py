"""
What reading a text comes to: documents with their places, and faults with theirs.

The same for YAML and JSON, so that whoever reads a file need not ask which of them it was.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Any

from dryrack.kinds import scalars
from dryrack.kinds.text.source_positions import Place, Places

# Deeper than any Kubernetes object, and shallow enough for everybody's recursion.
DEPTH_MAX = 200


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with the text, where, and what would put it right."""

    place: Place
    message: str
    fix: str = ""


@dataclass(frozen=True, slots=True)
class SyntaxFault(Fault):
    """Text that is no YAML, in the words of the parser; `began` is where that began to be so."""

    problem: str = ""
    began: Place | None = None
    is_in_token: bool = False


@dataclass(frozen=True, slots=True)
class RepeatedKey(Fault):
    """A key that is there twice: all else can be read."""


@dataclass(frozen=True, slots=True)
class UnknownAnchor(Fault):
    """An alias of what is not there."""

    anchor: str = ""


class Repeats(Enum):
    """What becomes of a document that says a key of an object twice."""

    FAULTY = "faulty"
    LAST_COUNTS = "last counts"
    """As Kubernetes reads it; the document tells of it."""


@dataclass(frozen=True, slots=True)
class Repeated:
    """A key that its object has already, and where the value is that counts."""

    key: scalars.Plain
    place: Place


@dataclass(frozen=True, slots=True)
class Parsed:
    """One document: its value and the places in it."""

    value: Any
    tree: Places
    repeated: tuple[Repeated, ...] = ()


class FaultError(Exception):
    """Ends the document that is being read; whoever reads it delivers the fault."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault
