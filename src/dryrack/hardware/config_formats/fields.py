"""
Fields of loosely written objects, under the names that the API has for them.

Publishers decode with Go's JSON decoder, which takes a key in any case: `String` is `string`. It
also drops what it does not know without a word, which hides every slip of the pen; here that is
refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from dryrack.hardware.config_formats.report import Topic
from dryrack.hardware.names import suggestion
from dryrack.kinds.shape import Anything, Entries, Fields, Integer, Items, Scalar, described

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from dryrack.hardware.config_formats.report import Report
    from dryrack.kinds.shape import Path, Shape


# Nothing that a person writes is longer; what is, would only keep everybody waiting.
ITEMS_MAX = 10_000


class Given(NamedTuple):
    """A value of a document, and where it stands."""

    value: Any
    path: Path


def fields(
    given: Given, known: Collection[str], report: Report, *, hint: str = ""
) -> dict[str, Given]:
    """
    The fields of an object by their right names; those that are null are not there.

    `hint` is what to do with a field that is not known.
    """
    if not isinstance(given.value, Mapping):
        if given.value is not None:
            what = f"expected an object, got {described(given.value)}"
            report.refuse(given.path, what, f"write an object with {', '.join(known)}")
        return {}
    folded = {name.lower(): name for name in known}
    found: dict[str, Given] = {}
    for key, value in given.value.items():
        name = key if key in known else folded.get(key.lower())
        if name is None:
            fix = suggestion(key, known) or hint or f"known here: {', '.join(known)}"
            report.refuse((*given.path, key), f"unknown field {key!r}", fix)
        elif name in found:
            other = str(found[name].path[-1])
            report.refuse((*given.path, key), f"{key!r} and {other!r} are one field", "remove one")
        else:
            _spelt(key, name, given.path, report)
            found[name] = Given(value, (*given.path, key))
    return {name: each for name, each in found.items() if each.value is not None}


def _spelt(key: str, name: str, path: Path, report: Report) -> None:
    if key != name:
        what = f"{key!r} is {name!r} in the API"
        report.remark(Topic.SPELLING, (*path, key), what, f"write {name!r}")


def items(given: Given | None, report: Report) -> list[Given]:
    """The items of a list; none where there is no list."""
    if given is None:
        return []
    if not isinstance(given.value, list | tuple):
        fix = "write a list: each item after a dash"
        report.refuse(given.path, f"expected a list, got {described(given.value)}", fix)
        return []
    if len(given.value) > ITEMS_MAX:
        what = f"{len(given.value)} items, which is more than {ITEMS_MAX}"
        report.refuse(given.path, what, "write fewer; count makes many devices of one entry")
        return []
    return [Given(value, (*given.path, index)) for index, value in enumerate(given.value)]


def entries(given: Given | None, report: Report) -> list[tuple[str, Given]]:
    """The entries of a map whose keys the user chooses."""
    if given is None:
        return []
    if not isinstance(given.value, Mapping):
        what = f"expected an object, got {described(given.value)}"
        report.refuse(given.path, what, "write a line with a key and a value for each entry")
        return []
    return [(key, Given(value, (*given.path, key))) for key, value in given.value.items()]


def text(given: Given | None, report: Report) -> str:
    """A string; "" where there is none, or where it is something else, which is refused."""
    if given is None:
        return ""
    if isinstance(given.value, str):
        return given.value
    report.refuse(given.path, f"expected a string, got {described(given.value)}", quoting(given))
    return ""


def quoting(given: Given) -> str:
    """How a value that YAML takes for something else becomes a string."""
    scalar = isinstance(given.value, bool | int | float)
    return "put it in quotes" if scalar else "write a string"


def folded(given: Given, shape: Shape, report: Report) -> Any:
    """The same value with all keys that the shape knows in their right spelling."""
    match shape:
        case Fields(fields=known) if isinstance(given.value, Mapping):
            found = fields(given, known, report)
            return {name: folded(each, known[name], report) for name, each in found.items()}
        case Entries(value=inner) if isinstance(given.value, Mapping):
            return {key: folded(each, inner, report) for key, each in _inside(given)}
        case Items(item=inner) if isinstance(given.value, list | tuple):
            return [folded(each, inner, report) for _, each in _inside(given)]
        case Anything() | Scalar() | Integer() | Fields() | Entries() | Items():
            return given.value


def _inside(given: Given) -> Iterator[tuple[Any, Given]]:
    value = given.value
    pairs = value.items() if isinstance(value, Mapping) else enumerate(value)
    for step, inner in pairs:
        yield step, Given(inner, (*given.path, step))
