"""Which declared functions can return a type: the index that random calls are drawn from."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from dryrack.cel.checking import types as t

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dryrack.cel.declarations import Overload

    Binding: TypeAlias = Mapping[str, t.Type]
    Candidates: TypeAlias = tuple[tuple[str, tuple[tuple[Overload, Binding], ...]], ...]

# Written with a syntax of their own, or with arguments that must not be random.
_SPECIAL_FORMS = frozenset({"_?_:_", "_[_]", "_[?_]", "_?._", "lists.range", "dyn", "in"})


class Signatures:
    def __init__(self, functions: Mapping[str, tuple[Overload, ...]]) -> None:
        self._functions = {
            name: overloads for name, overloads in functions.items() if _is_callable(name)
        }
        self._every = tuple((n, o) for n, overloads in self._functions.items() for o in overloads)
        self._found: dict[t.Type, Candidates] = {}

    def every(self) -> tuple[tuple[str, Overload], ...]:
        """Each overload once, with the name of its function."""
        return self._every

    def returning(self, of: t.Type) -> Candidates:
        """The functions with those overloads that return the type, and how they are bound."""
        if of not in self._found:
            by_name = ((name, self._fitting(name, of)) for name in self._functions)
            self._found[of] = tuple((name, fitting) for name, fitting in by_name if fitting)
        return self._found[of]

    def _fitting(self, name: str, of: t.Type) -> tuple[tuple[Overload, Binding], ...]:
        found = []
        for overload in self._functions[name]:
            bound: dict[str, t.Type] = {}
            if overload.result.kind is not t.Kind.TYPE_PARAM and unified(
                overload.result, of, bound
            ):
                found.append((overload, bound))
        return tuple(found)


def _is_callable(name: str) -> bool:
    return name == "@in" or (name not in _SPECIAL_FORMS and "@" not in name)


def unified(pattern: t.Type, concrete: t.Type, bound: dict[str, t.Type]) -> bool:
    """Return whether the pattern can be the type; `bound` collects its type parameters."""
    if pattern.kind is t.Kind.TYPE_PARAM:
        return bound.setdefault(pattern.name, concrete) == concrete
    if (pattern.kind, pattern.name) != (concrete.kind, concrete.name):
        return False
    pairs = zip(pattern.parameters, concrete.parameters, strict=False)
    return all(unified(one, other, bound) for one, other in pairs)


def substituted(pattern: t.Type, bound: Binding) -> t.Type:
    if pattern.kind is t.Kind.TYPE_PARAM:
        return bound.get(pattern.name, t.DYN)
    parameters = tuple(substituted(p, bound) for p in pattern.parameters)
    return t.Type(pattern.kind, pattern.name, parameters)
