"""
Parts of a program that are loaded when they are first used.

A command that answers in a moment cannot wait for code that it may never run. `late` stands in
for such a part: it has the part's type, and becomes the part with the first attribute that
somebody asks for. It promises that the part is made at most once, and that what was asked for
once costs nothing the next time. It stands in for objects with methods, not for functions, and
`isinstance` does not see through it. `exports` does the same for the public names of a package.
"""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, TypeVar, cast

_T = TypeVar("_T")


class _Late:
    def __init__(self, load: Callable[[], object]) -> None:
        self._load: Callable[[], object] | None = load
        self._loaded: object = None

    def __getattr__(self, name: str) -> Any:
        # Python comes here only for what is not kept below.
        if self._load is not None:
            self._loaded = self._load()
            self._load = None
        value = getattr(self._loaded, name)
        self.__dict__[name] = value
        return value


def late(load: Callable[[], _T]) -> _T:
    """Stands in for what `load` makes; its attributes may not change once they were read."""
    return cast("_T", _Late(load))


def exports(package: str, names: Mapping[str, str]) -> Callable[[str], Any]:
    """
    The `__getattr__` of a package that offers names of its modules, with spaces between them.

    Each is loaded when it is first asked for, and is then an attribute like any other. A name that
    is also a module's would be the module from the moment that something imports it: it cannot be
    offered so.
    """
    homes = {name: module for module, offered in names.items() for name in offered.split()}

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"{package}.{homes[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return get
