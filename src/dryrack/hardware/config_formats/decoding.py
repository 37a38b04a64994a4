"""Plain documents to the API's types; every value of a wrong type is refused at its place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from dryrack.hardware.config_formats.written import resolved, steps_of, value_at
from dryrack.hardware.names import amount
from dryrack.kinds.decode import DecodeError, decode

if TYPE_CHECKING:
    from dryrack.hardware.config_formats.fields import Given
    from dryrack.hardware.config_formats.report import Report
    from dryrack.kinds.shape import Mismatch

Model = TypeVar("Model", bound=msgspec.Struct)


def decoded(document: Given, model: type[Model], written: Given, report: Report) -> Model | None:
    """The typed value; None if something in it has a wrong type."""
    try:
        return decode(document.value, model)
    except DecodeError as error:
        for mismatch in error.mismatches:
            steps = steps_of(mismatch.path)
            what = f"expected {mismatch.expected}, got {mismatch.got}"
            fix = _fix(mismatch, value_at(written, steps))
            report.refuse(resolved(written, steps), what, fix)
    return None


def _fix(mismatch: Mismatch, value: Any) -> str:
    number_or_flag = mismatch.got.startswith("the number") or mismatch.got in ("true", "false")
    match mismatch.expected:
        case "a string":
            return "put it in quotes" if number_or_flag else "write a string"
        case "a quantity":
            meant = amount(value) if isinstance(value, str) else None
            return f"write {meant}" if meant else "write a number with a unit, as in 16Gi"
        case "true or false":
            return "write true or false, without quotes"
        case "a list":
            return "write a list: one line per item, each after a dash"
        case "an object" if mismatch.got.startswith(("the string", "the number")):
            return "write it as an object with fields, as in {value: 16Gi}"
        case "an object":
            return "write an object: one line per field"
        case _ if isinstance(value, int) and not isinstance(value, bool):
            return "write a smaller number, or put it in quotes"
        case _:
            return "write a whole number without quotes"
