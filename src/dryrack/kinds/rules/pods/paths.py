"""What is wrong with a path inside a volume."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.kinds.validation.problems import invalid

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dryrack.kinds.validation import FieldProblem


def steps_back(path: str) -> bool:
    """Whether a path leads out of where it starts."""
    return ".." in path.split("/")


def descending(at: str, path: str) -> Iterator[FieldProblem]:
    """A path that stays below where it starts."""
    if path.startswith("/"):
        yield invalid(at, path, "must be a relative path")
    if steps_back(path):
        yield invalid(at, path, "must not contain '..'")


def not_reserved(at: str, path: str) -> Iterator[FieldProblem]:
    """A path of a file that people name; those with two dots are the kubelet's own."""
    yield from descending(at, path)
    if path.startswith("..") and not path.startswith("../"):
        yield invalid(at, path, "must not start with '..'")
