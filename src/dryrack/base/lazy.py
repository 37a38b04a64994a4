"""
Parts of a program that are loaded when they are first used.

A command that answers in a moment cannot wait for code that it may never run. `late` stands in
for such a part: it has the part's type, and becomes the part with the first attribute that
somebody asks for. It promises that the part is made at most once, and that what was asked for
once costs nothing the next time. It stands in for objects with methods, not for functions, and
`isinstance` does not see through it.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

_T = TypeVar("_T")


class _Late:
    def __init__(self, load: Callable[[], object]) -> None:
        self._load: Callable[[], object] | None = load
        self._loaded: object = None

    def __getattr__(self, name: str) -> Any:
        # Python comes here only for what is not kept below.
        if self._load is not None:
            self._loaded, self._load = self._load(), None
        value = getattr(self._loaded, name)
        self.__dict__[name] = value
        return value


def late(load: Callable[[], _T]) -> _T:
    """Stands in for what `load` makes; its attributes may not change once they were read."""
    return cast("_T", _Late(load))
