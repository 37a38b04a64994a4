"""
Which type fits where another is wanted, and what that says about type parameters.

A parameter is bound to the most general type that it has been used with. A test that fails
leaves no bindings behind. `dyn`, `any` and the type of an erroneous expression fit everywhere,
so that one mistake is reported once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.cel.checking import types as t
from dryrack.cel.checking.types import Kind, Type

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_WILD = (Kind.DYN, Kind.ANY, Kind.ERROR)
_DYNAMIC = (Kind.DYN, Kind.ANY)
_NULLABLE = (Kind.OPAQUE, Kind.STRUCT, Kind.DURATION, Kind.TIMESTAMP, Kind.NULL)


def is_dynamic(of: Type) -> bool:
    return of.kind in _DYNAMIC


def same(one: Type, other: Type) -> bool:
    """Say whether two types are equal, a wrapper being equal to what it wraps."""
    if one is other:
        return True
    return _same_head(one, other, of_types=True) and all(
        map(same, one.parameters, other.parameters)
    )


def _same_head(one: Type, other: Type, *, of_types: bool = False) -> bool:
    """Compare without parameters; those of `type` count only if asked for."""
    if one.kind is not other.kind or one.runtime_name != other.runtime_name:
        return False
    if one.kind is Kind.TYPE and not of_types:
        return True
    return len(one.parameters) == len(other.parameters)


def equivalent(one: Type, other: Type) -> bool:
    """Say whether two types are equal but for the names of their parameters."""
    if one is other:
        return True
    if one.kind is not other.kind or len(one.parameters) != len(other.parameters):
        return False
    if one.kind is not Kind.TYPE_PARAM and one.runtime_name != other.runtime_name:
        return False
    return all(map(equivalent, one.parameters, other.parameters))


def more_general(one: Type, other: Type) -> Type:
    return one if _covers(one, other) else other


def _covers(one: Type, other: Type) -> bool:
    if is_dynamic(one) or one.kind is Kind.TYPE_PARAM:
        return True
    if is_dynamic(other) or other.kind is Kind.TYPE_PARAM or one.kind is not other.kind:
        return False
    if one.kind is Kind.TYPE:
        return True
    return _same_head(one, other) and all(map(_covers, one.parameters, other.parameters))


def _accepts_null(of: Type) -> bool:
    return of.kind in _NULLABLE or of.nullable


class Bindings:
    """The bindings of the type parameters of one expression."""

    def __init__(self) -> None:
        self._bound: dict[str, Type] = {}
        self._undo: list[tuple[str, Type | None]] = []

    def fits(self, given: Sequence[Type], wanted: Sequence[Type]) -> bool:
        """Say whether each given type can be used as the wanted one; if so, remember why."""
        self._undo.clear()
        if len(given) == len(wanted) and all(map(self._fits, given, wanted)):
            return True
        for name, before in reversed(self._undo):
            if before is None:
                del self._bound[name]
            else:
                self._bound[name] = before
        return False

    def resolve(self, of: Type) -> Type:
        """Replace the parameters in a type by what is known of them."""
        return self._resolve(of, None)

    def settle(self, of: Type) -> Type:
        """Replace the parameters in a type, those of which nothing is known by `dyn`."""
        return self._resolve(of, t.DYN)

    def settle_all(self, types: Mapping[int, Type]) -> dict[int, Type]:
        """Settle many types once nothing more will be learnt; parts that they share, once."""
        known: dict[int, Type] = {}
        return {node: self._settle(of, known) for node, of in types.items()}

    def _settle(self, of: Type, known: dict[int, Type]) -> Type:
        if of.closed:
            return of
        found = known.get(id(of))
        if found is not None:
            return found
        if of.kind is Kind.TYPE_PARAM:
            bound = self._bound.get(of.name)
            settled = t.DYN if bound is None else self._settle(bound, known)
        else:
            parameters = [self._settle(parameter, known) for parameter in of.parameters]
            settled = Type(of.kind, of.name, tuple(parameters))
        known[id(of)] = settled
        return settled

    def _resolve(self, of: Type, unknown: Type | None) -> Type:
        while of.kind is Kind.TYPE_PARAM:
            bound = self._bound.get(of.name)
            if bound is None:
                return unknown or of
            of = bound
        if of.closed:
            return of
        parameters: tuple[Type, ...] = ()
        for parameter in of.parameters:
            parameters += (self._resolve(parameter, unknown),)
        return Type(of.kind, of.name, parameters)

    def _fits(self, one: Type, other: Type) -> bool:
        if other.kind is Kind.TYPE_PARAM:
            fits, bound = self._stands_for(other, one)
            if fits or bound:
                return fits
        if one.kind is Kind.TYPE_PARAM:
            return self._stands_for(one, other)[0]
        if one is other or one.kind in _WILD or other.kind in _WILD:
            return True
        if one.kind is Kind.NULL or other.kind is Kind.NULL:
            return _accepts_null(other if one.kind is Kind.NULL else one)
        if not _same_head(one, other):
            return False
        return one.kind is Kind.TYPE or all(map(self._fits, one.parameters, other.parameters))

    def _stands_for(self, parameter: Type, of: Type) -> tuple[bool, bool]:
        """Say whether a parameter can stand for a type, and whether it was bound before."""
        if same(of, parameter):
            return True, True
        bound = self._bound.get(parameter.name)
        if bound is None:
            if self._occurs(parameter, of):
                return False, False
            self._bind(parameter, of)
            return True, False
        if same(of, bound):
            return True, True
        if not self._fits(of, bound):
            return False, True
        general = more_general(of, bound)
        if not self._occurs(parameter, general):
            self._bind(parameter, general)
        return True, True

    def _bind(self, parameter: Type, to: Type) -> None:
        self._undo.append((parameter.name, self._bound.get(parameter.name)))
        self._bound[parameter.name] = to

    def _occurs(self, parameter: Type, within: Type) -> bool:
        while within.kind is Kind.TYPE_PARAM:
            if within.name == parameter.name:
                return True
            bound = self._bound.get(within.name)
            if bound is None:
                return False
            within = bound
        return not within.closed and any(
            self._occurs(parameter, inner) for inner in within.parameters
        )
