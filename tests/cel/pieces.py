"""
Expressions as trees of text, so that a part can be taken out or exchanged.

A piece knows the type it was made for and the pieces inside it. Its text is all that an
implementation under test ever sees.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dryrack.cel.checking.types import Type

Way: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Piece:
    type: Type
    parts: tuple[str | Piece, ...]

    @property
    def text(self) -> str:
        return "".join(part if isinstance(part, str) else part.text for part in self.parts)

    @property
    def inner(self) -> Iterator[Piece]:
        return (part for part in self.parts if isinstance(part, Piece))


def piece(of: Type, *parts: str | Piece) -> Piece:
    return Piece(of, parts)


def ways(root: Piece, here: Way = ()) -> Iterator[tuple[Way, Piece]]:
    """Every piece of the tree with the way to it, the outermost first."""
    yield here, root
    for index, part in enumerate(root.parts):
        if isinstance(part, Piece):
            yield from ways(part, (*here, index))


def exchanged(root: Piece, way: Way, by: Piece) -> Piece:
    """The tree with the piece at the end of the way exchanged."""
    if not way:
        return by
    index, *rest = way
    part = root.parts[index]
    assert isinstance(part, Piece)
    new = exchanged(part, tuple(rest), by)
    return replace(root, parts=(*root.parts[:index], new, *root.parts[index + 1 :]))
