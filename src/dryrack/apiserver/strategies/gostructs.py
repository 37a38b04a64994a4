"""
Values in refusals as the real server prints them: by the names of its structs.

`kinds` shows them by the names that people write, which is what a linter should do. A server is
compared with others of its kind, so here they are shown as those do: `{"Name":"gpu",...}`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dryrack.kinds.meta import Model, ObjectMeta, OwnerReference
from dryrack.kinds.quantity import Quantity

if TYPE_CHECKING:
    from dryrack.kinds.validation import FieldProblem

# Abbreviations, which Go writes in capitals.
_CAPITALS = {"Cel": "CEL", "ShareId": "ShareID", "Uid": "UID"}
# What names a device: a struct of the server that is no kind of ours.
_DEVICE = ("driver", "pool", "device", "shareID")


def shown_as_struct(problem: FieldProblem) -> FieldProblem:
    """The problem with its value under the names of the server's structs."""
    value = problem.value
    if isinstance(value, Model) or (isinstance(value, tuple) and _has_models(value)):
        return replace(problem, value=_struct(value))
    if isinstance(value, Mapping) and tuple(value) == _DEVICE:
        return replace(problem, value={f"{key[0].upper()}{key[1:]}": value[key] for key in value})
    return problem


def _has_models(values: tuple[object, ...]) -> bool:
    # Owners are the one type that the server shows by its API names.
    return any(isinstance(each, Model) and not isinstance(each, OwnerReference) for each in values)


def _struct(value: object) -> Any:
    match value:
        case Model():
            return _fields(value)
        case Quantity():
            return str(value)
        case tuple():
            return [_struct(each) for each in value] or None
        case Mapping():
            return {key: _struct(value[key]) for key in sorted(value)} or None
        case _:
            return value


def _fields(model: Model) -> dict[str, Any]:
    shown: dict[str, Any] = {}
    for name in model.__struct_fields__:
        value = getattr(model, name)
        if isinstance(value, ObjectMeta):
            # It is embedded, and the one struct whose fields go by their API names.
            shown |= _said(value)
        else:
            pascal = "".join(part.capitalize() for part in name.split("_"))
            shown[_CAPITALS.get(pascal, pascal)] = _struct(value)
    return shown


def _said(meta: ObjectMeta) -> dict[str, Any]:
    fields = zip(meta.__struct_fields__, meta.__struct_encode_fields__, strict=True)
    found = {encoded: getattr(meta, name) for name, encoded in fields}
    return {
        encoded: dict(value) if isinstance(value, Mapping) else value
        for encoded, value in found.items()
        if value
    }
