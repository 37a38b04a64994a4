"""
Parts of a program that are loaded at their first use.

A fast command must not wait for code that it may never run. `late` returns a proxy for an object:
it has the type of the object, and creates the object when an attribute is first read. The object is
created at most once, and a second access of an attribute costs nothing. The proxy is for objects
with methods, not for functions, and `isinstance` does not recognize it. `exports` does the same for
the public names of a package.
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
        # Python calls this only for attributes that are not stored below.
        if self._load is not None:
            self._loaded = self._load()
            self._load = None
        value = getattr(self._loaded, name)
        self.__dict__[name] = value
        return value


def late(load: Callable[[], _T]) -> _T:
    """Return a proxy for the result of `load`; its attributes must not change after a read."""
    return cast("_T", _Late(load))


def exports(package: str, names: Mapping[str, str]) -> Callable[[str], Any]:
    """
    Return the `__getattr__` of a package that exports names of its modules, separated by spaces.

    Each name is loaded at its first use, and is then an attribute like any other. A name must not
    be that of a module, because an import of the module would set the attribute to the module.
    """
    homes = {name: module for module, exported in names.items() for name in exported.split()}

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"{package}.{homes[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return get
