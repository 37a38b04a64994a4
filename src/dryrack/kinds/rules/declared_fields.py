"""
Validation by field tables, as Kubernetes generates it from the `+k8s:` tags of its Go types.

A `Struct` lists the fields of an object in the order of the Go type. `problems` compares an object
with the stored one: a part that did not change is valid, an immutable part must not change, and an
item of a list is compared with the stored item of the same name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dryrack.kinds.validation.names import Checker, checked
from dryrack.kinds.validation.problems import (
    FieldProblem,
    duplicate,
    forbidden,
    invalid,
    required,
    too_many,
)

if TYPE_CHECKING:
    from dryrack.kinds.releases import FeatureSet

# Yields the problems of a value at a path, compared with the stored value (None: it is new).
Check = Callable[[str, Any, Any, "Operation"], Iterator[FieldProblem]]


@dataclass(frozen=True, slots=True)
class Operation:
    """The kind of write: a new object or an update, with the feature gates of the server."""

    is_update: bool
    features: FeatureSet


def _valid(at: str, new: Any, old: Any, operation: Operation) -> Iterator[FieldProblem]:
    yield from ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A field, by its JSON name, with the tags of its Go type."""

    name: str
    check: Check = _valid
    is_required: bool = False
    is_immutable: bool = False
    is_pointer: bool = False
    """Whether "" and 0 are values, and not the absence of one."""
    is_struct: bool = False
    """Whether the field always exists, as an object whose fields may be unset."""
    keeps_presence: bool = False
    """Whether an update can neither set nor unset the field."""
    gate: str = ""
    """The feature gate without which the field is forbidden."""
    items_max: int | None = None
    fixed_items: bool = False
    """Whether an update can neither add nor remove items of the list."""

    def problems(self, at: str, new: Any, old: Any, operation: Operation) -> Iterator[FieldProblem]:
        """Yield the problems of the value; a problem of the field itself hides those inside."""
        if self.is_struct:
            new = new or {}
        is_set = new is not None and (self.is_pointer or new not in ("", 0, []))
        if self.gate and not operation.features.is_on(self.gate):
            if is_set:
                yield forbidden(at, "")
            return
        own = [*self._own_problems(at, new, old, operation)]
        if self.is_required and not is_set:
            own.append(required(at))
        yield from own
        if is_set and not own:
            yield from self.check(at, new, old, operation)

    def _own_problems(
        self, at: str, new: Any, old: Any, operation: Operation
    ) -> Iterator[FieldProblem]:
        if self.items_max is not None and len(new or ()) > self.items_max:
            yield too_many(at, len(new), self.items_max)
        if not operation.is_update:
            return
        if self.is_immutable:
            yield invalid(at, None, "field is immutable")
        if self.keeps_presence and old is None and new is not None:
            yield invalid(at, None, "field cannot be set once created")
        if self.keeps_presence and old is not None and new is None:
            yield invalid(at, None, "field cannot be cleared once set")
        if self.fixed_items:
            before = {_name_of(item) for item in old or ()}
            now = {_name_of(item) for item in new or ()}
            for position, item in enumerate(new or ()):
                if _name_of(item) not in before:
                    yield forbidden(f"{at}[{position}]", "item may not be added")
            for item in old or ():
                if _name_of(item) not in now:
                    yield forbidden(at, "item may not be removed")


@dataclass(frozen=True, slots=True)
class Struct:
    """The fields of an object; exactly one field of `union` must be set."""

    fields: tuple[Field, ...]
    union: tuple[str, ...] = field(default=(), kw_only=True)

    def __call__(self, at: str, new: Any, old: Any, operation: Operation) -> Iterator[FieldProblem]:
        yield from self._union_problems(at, new, old)
        for each in self.fields:
            value = new.get(each.name)
            before = None if old is None else old.get(each.name)
            if not operation.is_update or old is None or value != before:
                yield from each.problems(f"{at}.{each.name}", value, before, operation)

    def _union_problems(self, at: str, new: Any, old: Any) -> Iterator[FieldProblem]:
        members = [name for name in self.union if _is_member(new, name)]
        if not self.union or (old is not None and members == _members(old, self.union)):
            return
        known = ", ".join(f"`{name}`" for name in self.union)
        if not members:
            yield invalid(at, "", f"must specify one of: {known}")
        if len(members) > 1:
            shown = f"{{{', '.join(members)}}}"
            yield invalid(at, shown, f"must specify exactly one of: {known}")


def _members(obj: Any, union: tuple[str, ...]) -> list[str]:
    return [name for name in union if _is_member(obj, name)]


def _is_member(obj: Any, name: str) -> bool:
    return obj.get(name) not in (None, [])


def items(of: Check) -> Check:
    """Check every item of a list whose items have distinct names."""

    def check(at: str, new: Any, old: Any, operation: Operation) -> Iterator[FieldProblem]:
        names: set[str] = set()
        for position, item in enumerate(new):
            if _name_of(item) in names:
                yield duplicate(f"{at}[{position}]", item)
            names.add(_name_of(item))
        stored = {_name_of(item): item for item in reversed(old or ())}
        for position, item in enumerate(new):
            before = stored.get(_name_of(item))
            if not operation.is_update or before is None or before != item:
                yield from of(f"{at}[{position}]", item, before, operation)

    return check


def _name_of(item: Any) -> str:
    return str(item.get("name") or "")


def check_name(checker: Checker) -> Check:
    """Check a text by the rules of a kind of name."""

    def check(at: str, new: Any, old: Any, operation: Operation) -> Iterator[FieldProblem]:
        yield from checked(at, new, checker)

    return check


def minimum(least: int) -> Check:
    """Check that a number is not less than the least one."""

    def check(at: str, new: Any, old: Any, operation: Operation) -> Iterator[FieldProblem]:
        if new < least:
            yield invalid(at, new, f"must be greater than or equal to {least}")

    return check


def maximum(greatest: int) -> Check:
    """Check that a number is not more than the greatest one."""

    def check(at: str, new: Any, old: Any, operation: Operation) -> Iterator[FieldProblem]:
        if new > greatest:
            yield invalid(at, new, f"must be less than or equal to {greatest}")

    return check
