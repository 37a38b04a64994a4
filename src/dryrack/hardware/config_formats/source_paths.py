"""
The path in a loosely written object of a field that the API names, and decoding with such paths.

The API's messages name fields as it has them; people look for what they wrote. A path is followed
through the object as written: by key, by key in another case, by a name that was corrected. A field
that is missing keeps the API's name: its place is that of the nearest parent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from dryrack.hardware.names import amount, identifier
from dryrack.kinds.decode import DecodeError, decode
from dryrack.kinds.text.source_positions import parse_path

if TYPE_CHECKING:
    from dryrack.hardware.config_formats.fields import SourceValue
    from dryrack.hardware.config_formats.report import Report
    from dryrack.kinds.shape import Mismatch, Path
    from dryrack.kinds.validation.problems import FieldProblem

Model = TypeVar("Model", bound=msgspec.Struct)


def find_path(root: SourceValue, steps: Path) -> Path:
    """Return the path as written of the value that has this path in the API."""
    return _follow(root, steps)[0]


def find_refused_path(root: SourceValue, steps: Path, problem: FieldProblem) -> Path:
    """
    Return the path as written of the value that the API refuses.

    If the API refuses a key, it names only the map.
    """
    path, value = _follow(root, steps)
    if not isinstance(value, Mapping) or not isinstance(problem.value, str):
        return path
    wrong = str(problem.value)
    keys = (key for key in value if _is_spelling_of(key, wrong) or key.endswith(f"/{wrong}"))
    key = next(keys, None)
    return path if key is None else (*path, key)


def decode_value(
    document: SourceValue, model: type[Model], written: SourceValue, report: Report
) -> Model | None:
    """Return the typed value; refuse each value of a wrong type at its place, and return None."""
    try:
        return decode(document.value, model)
    except DecodeError as error:
        for mismatch in error.mismatches:
            path, value = _follow(written, parse_path(mismatch.path))
            what = f"expected {mismatch.expected}, got {mismatch.got}"
            report.refuse(path, what, _find_type_remedy(mismatch, value))
    return None


def _find_type_remedy(mismatch: Mismatch, value: Any) -> str:
    number_or_flag = mismatch.got.startswith("the number") or mismatch.got in ("true", "false")
    match mismatch.expected:
        case "a string":
            return "put it in quotes" if number_or_flag else "write a string"
        case "a quantity":
            quantity = amount(value) if isinstance(value, str) else None
            return f"write {quantity}" if quantity else "write a number with a unit, as in 16Gi"
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


def _follow(root: SourceValue, steps: Path) -> tuple[Path, Any]:
    """Return the path as written and the value; None for a value that is missing."""
    value, path = root
    for position, step in enumerate(steps):
        key: str | int | None = None
        if isinstance(value, list | tuple):
            key = step if isinstance(step, int) and step < len(value) else None
        elif isinstance(value, Mapping):
            name = str(step)
            key = name
            if name not in value:
                key = next((each for each in value if _is_spelling_of(each, name)), None)
        if key is None:
            return (*path, *steps[position:]), None
        value = value[key]
        path = (*path, key)
    return path, value


def _is_spelling_of(key: str, name: str) -> bool:
    return key == name or key.lower() == name.lower() or identifier(key) == name
