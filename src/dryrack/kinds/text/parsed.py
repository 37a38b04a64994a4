"""
The result of parsing a text: documents and faults, with their places.

It is the same for YAML and JSON, so that readers of files need not distinguish them.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Any

from dryrack.kinds import scalars
from dryrack.kinds.text.source_positions import Place, Places

# Deeper than any Kubernetes object, and shallow enough for recursive functions.
DEPTH_MAX = 200


@dataclass(frozen=True, slots=True)
class Fault:
    """An error in the text, with its place and a fix."""

    place: Place
    message: str
    fix: str = ""


@dataclass(frozen=True, slots=True)
class SyntaxFault(Fault):
    """Text that is not YAML: the message of the parser, and where the wrong part begins."""

    problem: str = ""
    began: Place | None = None
    is_in_token: bool = False


@dataclass(frozen=True, slots=True)
class RepeatedKey(Fault):
    """A key that an object has twice; the rest of the document can be read."""


@dataclass(frozen=True, slots=True)
class UnknownAnchor(Fault):
    """An alias of an anchor that does not exist."""

    anchor: str = ""


class Repeats(Enum):
    """The treatment of a document in which an object has a key twice."""

    FAULTY = "faulty"
    LAST_COUNTS = "last counts"
    """As in Kubernetes; `Parsed.repeated` has the key."""


@dataclass(frozen=True, slots=True)
class Repeated:
    """A key that its object has twice, and the place of the value that counts."""

    key: scalars.Plain
    place: Place


@dataclass(frozen=True, slots=True)
class Parsed:
    """
    One document: its value and the places in it.

    `span` has the offsets of its begin and its end in the text of a file. The text of a YAML
    document is all that is between two dividers.
    """

    value: Any
    tree: Places
    repeated: tuple[Repeated, ...] = ()
    span: tuple[int, int] = (0, 0)


class FaultError(Exception):
    """Raised to end the present document; its reader yields the fault."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault
