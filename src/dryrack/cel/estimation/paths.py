"""
Which part of the device an expression reads, and how large that part can be.

A path is a variable followed by field names and the marks `@items`, `@keys`, `@values` and
`@indices`. Paths grow as the reference's do: extending a path may write into storage that it
shares with others extended from the same prefix, and the last writer wins. That shows in the
estimates (a key compared after its map was indexed counts as a value, 64 characters and not
32), so it is kept: an estimate that is cleverer than the API server's is wrong.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dryrack.cel.estimation.arithmetic import SizeEstimate

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dryrack.cel.checking.environment import Environment

ITEMS = "@items"
KEYS = "@keys"
VALUES = "@values"
INDICES = "@indices"


class Path:
    """The first `length` names of a storage whose size doubles whenever it is full."""

    __slots__ = ("_length", "_storage")

    def __init__(self, storage: list[str], length: int) -> None:
        self._storage = storage
        self._length = length

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[str]:
        return (self._storage[index] for index in range(self._length))

    def extend(self, name: str) -> Path:
        storage = self._storage
        if self._length == len(storage):
            storage = [*storage, *[""] * max(self._length, 1)]
        storage[self._length] = name
        return Path(storage, self._length + 1)

    def copy(self) -> Path:
        return Path(list(self), self._length)


NO_PATH = Path([], 0)


def variable(name: str) -> Path:
    return NO_PATH.extend(name)


@dataclass(frozen=True, slots=True, eq=False)
class _Shape:
    """One declared part of the device: the most it can hold, and what it holds."""

    size_max: int
    key: _Shape | None = None
    element: _Shape | None = None
    fields: Mapping[str, _Shape] = field(default_factory=dict)


DOMAIN_LENGTH_MAX = 63
IDENTIFIER_LENGTH_MAX = 32
DRIVER_LENGTH_MAX = 63
ATTRIBUTE_LENGTH_MAX = 64
ATTRIBUTE_VALUES_MAX = 48
NAMES_PER_DEVICE_MAX = 32


class SizeHints:
    """The sizes of everything that can be reached from the variable `device`."""

    __slots__ = ("_attribute", "_device")

    def __init__(self, env: Environment) -> None:
        values_max = ATTRIBUTE_VALUES_MAX if env.list_type_attributes else 1
        self._attribute = _Shape(max(ATTRIBUTE_LENGTH_MAX, values_max))
        self._device = _Shape(
            0,
            fields={
                "driver": _Shape(DRIVER_LENGTH_MAX),
                "allowMultipleAllocations": _Shape(1),
                "attributes": _by_domain(self._attribute),
                "capacity": _by_domain(_Shape(0)),
            },
        )

    def size(self, path: Path) -> SizeEstimate | None:
        names = iter(path)
        if next(names, None) != "device":
            return None
        shape: _Shape | None = self._device
        for name in names:
            shape = self._step(shape, name) if shape else None
        return SizeEstimate(0, shape.size_max) if shape else None

    def _step(self, shape: _Shape, name: str) -> _Shape | None:
        if name in (ITEMS, VALUES):
            return shape.element
        if name == KEYS:
            return shape.key
        # Attributes are all alike, so their names need not be known.
        unnamed = self._attribute if shape.element is self._attribute else None
        return shape.fields.get(name, unnamed)


def _by_domain(value: _Shape) -> _Shape:
    inner = _Shape(NAMES_PER_DEVICE_MAX, key=_Shape(IDENTIFIER_LENGTH_MAX), element=value)
    return _Shape(NAMES_PER_DEVICE_MAX, key=_Shape(DOMAIN_LENGTH_MAX), element=inner)
