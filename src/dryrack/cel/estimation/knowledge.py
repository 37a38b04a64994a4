"""
Facts about the values of an expression that the walk has learnt: their origin and size.

Facts are kept by node id and by local variable. A size that was found once stays, even if the
path that it was found by has been overwritten since.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dryrack.cel.checking import types as t
from dryrack.cel.estimation.arithmetic import ONE, UNKNOWN, SizeEstimate, fixed
from dryrack.cel.estimation.calls import Operand
from dryrack.cel.estimation.paths import INDICES, ITEMS, KEYS, NO_PATH, VALUES, Path, SizeHints
from dryrack.cel.parsing.ast import Ident, ListLiteral, Literal, MapLiteral

if TYPE_CHECKING:
    from dryrack.cel.checking.checker import Checked
    from dryrack.cel.parsing.ast import Constant, Expr

# The macros' own variable; a path that starts in it leads to no part of the device.
_ACCUMULATORS = ("__result__", "@result")

_SCALARS = (
    t.Kind.BOOL,
    t.Kind.DOUBLE,
    t.Kind.DURATION,
    t.Kind.INT,
    t.Kind.TIMESTAMP,
    t.Kind.UINT,
)


@dataclass(frozen=True, slots=True)
class EntrySizes:
    """The sizes of keys and values of a container; the keys of a list are indices."""

    container: t.Kind
    key: SizeEstimate
    value: SizeEstimate


@dataclass(frozen=True, slots=True)
class Local:
    """A variable of a macro or of `cel.bind`."""

    path: Path
    size: SizeEstimate | None
    entries: EntrySizes | None = None


class Knowledge:
    __slots__ = ("_checked", "_entries", "_locals", "_paths", "_sizes", "hints")

    def __init__(self, checked: Checked, hints: SizeHints) -> None:
        self.hints = hints
        self._checked = checked
        self._paths: dict[int, Path] = {}
        self._sizes: dict[int, SizeEstimate] = {}
        self._entries: dict[int, EntrySizes] = {}
        self._locals: defaultdict[str, list[Local]] = defaultdict(list)

    def type(self, expr: Expr) -> t.Type:
        return self._checked.types.get(expr.id, t.DYN)

    def overloads(self, expr: Expr) -> tuple[str, ...]:
        return self._checked.references[expr.id].overload_ids

    def path(self, expr: Expr) -> Path:
        local = self.local(expr)
        return local.path if local else self._paths.get(expr.id, NO_PATH)

    def size(self, expr: Expr) -> SizeEstimate | None:
        if known := self._sizes.get(expr.id) or _written_size(expr):
            return known
        if hinted := self.hints.size(self.path(expr)):
            self._sizes[expr.id] = hinted
            return hinted
        if _is_scalar(self.type(expr)):
            return ONE
        local = self.local(expr)
        return local.size if local else None

    def size_or_unknown(self, expr: Expr) -> SizeEstimate:
        return self.size(expr) or UNKNOWN

    def entries(self, expr: Expr) -> EntrySizes | None:
        if known := self._entries.get(expr.id):
            return known
        local = self.local(expr)
        return local.entries if local else None

    def value_size(self, container: Expr) -> SizeEstimate | None:
        entries = self.entries(container)
        return entries.value if entries else None

    def common_entries(self, left: Expr, right: Expr) -> EntrySizes | None:
        """The entries of a container that is either of the two, or made of both."""
        one = self.entries(left)
        other = self.entries(right)
        if one is None or other is None:
            return None
        return EntrySizes(one.container, one.key | other.key, one.value | other.value)

    def operand(self, expr: Expr) -> Operand:
        path = self.path(expr)
        if next(iter(path), None) in _ACCUMULATORS:
            path = NO_PATH
        return Operand(expr, self.type(expr), path, self.size(expr))

    def learn_path(self, expr: Expr, path: Path) -> None:
        self._paths[expr.id] = path

    def learn_size(self, expr: Expr, size: SizeEstimate | None) -> None:
        if size is not None:
            self._sizes[expr.id] = size

    def learn_entries(self, expr: Expr, entries: EntrySizes | None) -> None:
        if entries is not None:
            self._entries[expr.id] = entries

    def learn_same(self, expr: Expr, as_other: Expr) -> None:
        self.learn_size(expr, self.size(as_other))
        self.learn_entries(expr, self.entries(as_other))

    def local(self, expr: Expr) -> Local | None:
        if not isinstance(expr, Ident):
            return None
        scope = self._locals.get(expr.name)
        return scope[-1] if scope else None

    def forget(self, name: str) -> None:
        self._locals[name].pop()

    def bind(self, name: str, value: Expr) -> None:
        local = Local(self.path(value), self.size(value), self.entries(value))
        self._locals[name].append(local)

    def bind_element(self, name: str, container: Expr) -> None:
        """The one variable of a macro: an element of a list, a key of a map."""
        if self._is_list(container):
            self._bind_entry(name, container, ITEMS)
        else:
            self._bind_entry(name, container, KEYS)

    def bind_key(self, name: str, container: Expr) -> None:
        self._bind_entry(name, container, INDICES if self._is_list(container) else KEYS)

    def bind_value(self, name: str, container: Expr) -> None:
        self._bind_entry(name, container, ITEMS if self._is_list(container) else VALUES)

    def _bind_entry(self, name: str, container: Expr, step: str) -> None:
        entries = self.entries(container)
        size = None
        if entries:
            size = entries.value if step in (ITEMS, VALUES) else entries.key
        self._locals[name].append(Local(self.path(container).extend(step), size))

    def _is_list(self, container: Expr) -> bool:
        entries = self.entries(container)
        kind = entries.container if entries else self.type(container).kind
        return kind is t.Kind.LIST


def _written_size(expr: Expr) -> SizeEstimate | None:
    match expr:
        case Literal():
            return fixed(_constant_size(expr.value))
        case ListLiteral():
            return fixed(len(expr.elements))
        case MapLiteral():
            return fixed(len(expr.entries))
        case _:
            return None


def _constant_size(value: Constant) -> int:
    return len(value) if isinstance(value, str | bytes) else 1


def _is_scalar(of: t.Type) -> bool:
    while of.kind is t.Kind.OPAQUE and of.name == "optional_type":
        of = of.parameters[0]
    return of.kind in _SCALARS
