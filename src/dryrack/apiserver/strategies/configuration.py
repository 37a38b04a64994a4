"""ConfigMaps and Secrets, which can be immutable."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.apiserver.strategies.validated_as_new import ValidatedAsNewStrategy
from dryrack.kinds.rules.configuration import ConfigMapRules, SecretRules
from dryrack.kinds.validation.problems import Token, forbidden, invalid

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dryrack.kinds.raw import Raw
    from dryrack.kinds.validation import FieldProblem


_IMMUTABLE = "field is immutable when `immutable` is set"


class ConfigMapStrategy(ValidatedAsNewStrategy):
    """ConfigMaps."""

    def __init__(self) -> None:
        super().__init__(ConfigMapRules())

    def changes(self, obj: Raw, old: Raw) -> Iterator[FieldProblem]:
        return _immutable_changes(obj, old, ("data", "binaryData"))


class SecretStrategy(ValidatedAsNewStrategy):
    """Secrets. The type cannot change."""

    selectable_fields = ("type",)
    field_refusal = "field label not supported: {label}"

    def __init__(self) -> None:
        super().__init__(SecretRules())

    def changes(self, obj: Raw, old: Raw) -> Iterator[FieldProblem]:
        kind = obj.get("type") or ""
        if kind != (old.get("type") or ""):
            yield invalid("type", Token(kind), "field is immutable")
        yield from _immutable_changes(obj, old, ("data",))


def _immutable_changes(obj: Raw, old: Raw, parts: tuple[str, ...]) -> Iterator[FieldProblem]:
    """Yield the problems of changes of an immutable object."""
    if not old.get("immutable"):
        return
    if not obj.get("immutable"):
        yield forbidden("immutable", _IMMUTABLE)
    for part in parts:
        if (obj.get(part) or {}) != (old.get(part) or {}):
            yield forbidden(part, _IMMUTABLE)
