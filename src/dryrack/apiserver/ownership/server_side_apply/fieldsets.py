"""
Sets of fields, as `managedFields` writes them.

A set is a tree whose keys are path elements: `f:name` for a field, `k:{…}` for an item of a list
by its keys, `v:…` for an item of a set by its value, `i:0` for an item by its position. A node
without children is a member of the set; a node with children is a member only if `.` is among its
keys. So a set has the form in which it is sent, and `{}` is the empty set.

Trees never change once they are built, except by `insert` while they are being built.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec

from dryrack.kinds.text.go_json import compact
from dryrack.kinds.text.quoting import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

FieldSet = dict[str, Any]
Path = tuple[str, ...]

SELF = "."
_KINDS = "fkvi"
_encode = msgspec.json.Encoder(order="deterministic").encode
_decode = msgspec.json.Decoder().decode
# Text that JSON and Go write without escapes.
_is_plain = re.compile(r"[A-Za-z0-9_./: -]*").fullmatch
# Go escapes these three so that JSON can be part of HTML.
_HTML = (("<", "\\u003c"), (">", "\\u003e"), ("&", "\\u0026"))


class FieldSetError(ValueError):
    """A text that is no set of fields."""


def element_json(value: Any) -> str:
    """Return the canonical JSON of a value inside a path element."""
    if isinstance(value, str) and _is_plain(value):
        return f'"{value}"'
    if isinstance(value, float) and value == int(value):
        value = int(value)
    text = _encode(value).decode()
    for character, escaped in _HTML:
        text = text.replace(character, escaped)
    return text


def field(name: str) -> str:
    return f"f:{name}"


def item_by_keys(keys: dict[str, Any]) -> str:
    inner = ",".join(f"{element_json(key)}:{element_json(keys[key])}" for key in sorted(keys))
    return f"k:{{{inner}}}"


def item_by_value(value: Any) -> str:
    return f"v:{element_json(value)}"


def is_member(node: FieldSet) -> bool:
    return not node or SELF in node


def insert(root: FieldSet, path: Sequence[str]) -> None:
    """Add a path to a set that is being built; the empty path is never a member."""
    node = root
    for element in path[:-1]:
        below = node.get(element)
        if below is None:
            below = node[element] = {}
        elif not below:
            below[SELF] = {}
        node = below
    if path:
        below = node.setdefault(path[-1], {})
        if below:
            below[SELF] = {}


def of_paths(paths: Sequence[Path]) -> FieldSet:
    fields: FieldSet = {}
    for path in paths:
        insert(fields, path)
    return fields


def has(root: FieldSet, path: Sequence[str]) -> bool:
    node: FieldSet | None = root
    for element in path:
        node = None if node is None else node.get(element)
    return bool(path) and node is not None and is_member(node)


def _node(children: FieldSet, *, member: bool) -> FieldSet | None:
    """Return a node with these children, or None if neither it nor a child is a member."""
    if not children:
        return {} if member else None
    return {SELF: {}, **children} if member else children


def _children(node: FieldSet) -> FieldSet:
    return {key: value for key, value in node.items() if key != SELF} if SELF in node else node


def union(left: FieldSet, right: FieldSet) -> FieldSet:
    if not left or not right:
        return left or right
    result = dict(left)
    for element, node in right.items():
        other = left.get(element)
        if other is not None:
            children = union(_children(other), _children(node))
            united = _node(children, member=is_member(other) or is_member(node))
            assert united is not None, "a node of a set is in its union with another"
            node = united
        result[element] = node
    return result


def difference(left: FieldSet, right: FieldSet) -> FieldSet:
    """Return the members of the left set that are not in the right one; their children stay."""
    if not left or not right:
        return left
    result: FieldSet = {}
    for element, node in left.items():
        other = right.get(element)
        rest: FieldSet | None = node
        if other is not None:
            children = difference(_children(node), _children(other))
            rest = _node(children, member=is_member(node) and not is_member(other))
        if rest is not None:
            result[element] = rest
    return result


def without(left: FieldSet, right: FieldSet) -> FieldSet:
    """Return the left set without the members of the right one and all fields below them."""
    if not left or not right:
        return left
    result: FieldSet = {}
    for element, node in left.items():
        other = right.get(element)
        if other is not None and is_member(other):
            continue
        rest: FieldSet | None = node
        if other is not None:
            rest = _node(without(_children(node), other), member=is_member(node))
        if rest is not None:
            result[element] = rest
    return result


def intersection(left: FieldSet, right: FieldSet) -> FieldSet:
    result: FieldSet = {}
    for element, node in left.items():
        other = right.get(element)
        if other is None:
            continue
        children = intersection(_children(node), _children(other))
        common = _node(children, member=is_member(node) and is_member(other))
        if common is not None:
            result[element] = common
    return result


def paths(root: FieldSet, prefix: Path = ()) -> Iterator[Path]:
    """Yield the members in the server's order: those of a level first."""
    elements = sorted((key for key in root if key != SELF), key=_rank)
    for element in elements:
        if is_member(root[element]):
            yield (*prefix, element)
    for element in elements:
        yield from paths(_children(root[element]), (*prefix, element))


def in_order(root: FieldSet) -> FieldSet:
    """Return the set with its keys in the order in which the server writes them."""
    # Field names, which most sets consist of, are sorted as text.
    is_named = all(element[0] in "f." for element in root)
    elements = sorted(root) if is_named else sorted(root, key=_rank)
    return {element: in_order(node) if (node := root[element]) else node for element in elements}


@lru_cache(maxsize=4096)
def _rank(element: str) -> tuple[Any, ...]:
    match element[:1]:
        case ".":
            return (-1,)
        case "f":
            return (0, element[2:])
        case "k":
            keys = _decode(element[2:])
            return (1, tuple((key, _value_rank(value)) for key, value in sorted(keys.items())))
        case "v":
            return (2, _value_rank(_decode(element[2:])))
        case _:
            return (3, int(element[2:]))


def _value_rank(value: Any) -> tuple[int, Any]:
    match value:
        case bool():
            return (2, value)
        case int() | float():
            return (0, value)
        case str():
            return (1, value)
        case None:
            return (5, 0)
        case _:
            return (4, element_json(value))


def path_text(path: Sequence[str]) -> str:
    """Return a path for people: `.spec.containers[name="a"].image`."""
    return "".join(element_text(element) for element in path)


@lru_cache(maxsize=4096)
def element_text(element: str) -> str:
    content = element[2:]
    match element[0]:
        case "f":
            return f".{content}"
        case "k":
            keys = json.loads(content)
            shown = ",".join(f"{key}={_shown(value)}" for key, value in sorted(keys.items()))
            return f"[{shown}]"
        case "v":
            return f"[={_shown(json.loads(content))}]"
        case _:
            return f"[{content}]"


def _shown(value: Any) -> str:
    if value is None:
        return "null"
    return quoted(value) if isinstance(value, str) else compact(value)


def decode(raw: Any) -> FieldSet:
    """Return the set that a client sent, without elements of unknown kinds."""
    if not isinstance(raw, dict):
        raise FieldSetError(f"expected a map of fields, got {type(raw).__name__}")
    fields: FieldSet = {}
    for key, inner in raw.items():
        if key == SELF:
            fields[SELF] = {}
            continue
        element = _canonical(key)
        if element is not None:
            fields[element] = decode(inner)
    return fields


@lru_cache(maxsize=4096)
def _canonical(key: str) -> str | None:
    """Return a path element in its canonical form, or None if its kind is unknown."""
    if len(key) < 2 or key[1] != ":":
        raise FieldSetError(f"{key!r} is not a path element; begin it with f:, k:, v: or i:")
    kind = key[0]
    if kind not in _KINDS:
        return None
    if kind == "f":
        return key
    try:
        value = json.loads(key[2:])
        if kind == "i":
            return f"i:{int(value)}"
        if kind == "v":
            return item_by_value(value)
        if not isinstance(value, dict):
            raise FieldSetError("the keys of an item are a map")
        return item_by_keys(value)
    except (ValueError, OverflowError, TypeError, RecursionError) as error:
        raise FieldSetError(f"{key!r} is not a path element: {error}") from error
