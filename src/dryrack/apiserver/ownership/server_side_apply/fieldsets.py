"""
Sets of fields, as `managedFields` writes them.

A set is a tree whose keys are path elements: `f:name` for a field, `k:{…}` for an item of a list
by its keys, `v:…` for an item of a set by its value, `i:0` for one by its position. A place with
nothing below it is a member of the set; one with something below it is a member too only if `.`
is among its keys. So a set is held exactly as it is sent, and `{}` is the empty set.

Trees are never changed once they are made, except by `insert` while they are being made.
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
# Texts that JSON writes as they are, and Go too.
_is_plain = re.compile(r"[A-Za-z0-9_./: -]*").fullmatch
# Go writes these three so that JSON can stand in HTML.
_HTML = (("<", "\\u003c"), (">", "\\u003e"), ("&", "\\u0026"))


class FieldSetError(ValueError):
    """A set of fields that nobody could have written."""


def element_json(value: Any) -> str:
    """A value inside a path element, in the one way in which it is written."""
    if isinstance(value, str) and _is_plain(value):
        return f'"{value}"'
    if isinstance(value, float) and value == int(value):
        value = int(value)
    return escaped_html(_encode(value).decode())


def escaped_html(text: str) -> str:
    """JSON with what Go escapes in it."""
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
    """Makes the place a member; the whole object is nobody's."""
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
    made: FieldSet = {}
    for path in paths:
        insert(made, path)
    return made


def has(root: FieldSet, path: Sequence[str]) -> bool:
    node: FieldSet | None = root
    for element in path:
        node = None if node is None else node.get(element)
    return bool(path) and node is not None and is_member(node)


def below(node: FieldSet, element: str) -> FieldSet:
    """The set of what is below a place, the place itself not included."""
    inner: FieldSet = node.get(element, {})
    return {key: value for key, value in inner.items() if key != SELF} if SELF in inner else inner


def _node(children: FieldSet, *, member: bool) -> FieldSet | None:
    """A place with these children, or None if nothing of it is in the set."""
    if not children:
        return {} if member else None
    return {SELF: {}, **children} if member else children


def union(left: FieldSet, right: FieldSet) -> FieldSet:
    if not left or not right:
        return left or right
    made = dict(left)
    for element, node in right.items():
        mine = left.get(element)
        made[element] = node if mine is None else _united(mine, node)
    return made


def _united(left: FieldSet, right: FieldSet) -> FieldSet:
    children = union(_children(left), _children(right))
    node = _node(children, member=is_member(left) or is_member(right))
    assert node is not None, "a place that is in a set is in its union with another"
    return node


def _children(node: FieldSet) -> FieldSet:
    return {key: value for key, value in node.items() if key != SELF} if SELF in node else node


def difference(left: FieldSet, right: FieldSet) -> FieldSet:
    """What is in the left set only. What is below a place of the right one stays."""
    if not left or not right:
        return left
    made: FieldSet = {}
    for element, node in left.items():
        other = right.get(element)
        kept = node if other is None else _differing(node, other)
        if kept is not None:
            made[element] = kept
    return made


def _differing(left: FieldSet, right: FieldSet) -> FieldSet | None:
    children = difference(_children(left), _children(right))
    return _node(children, member=is_member(left) and not is_member(right))


def without(left: FieldSet, right: FieldSet) -> FieldSet:
    """What is in the left set and neither in the right one nor below a member of it."""
    if not left or not right:
        return left
    made: FieldSet = {}
    for element, node in left.items():
        other = right.get(element)
        if other is not None and is_member(other):
            continue
        kept: FieldSet | None = node
        if other is not None:
            kept = _node(without(_children(node), other), member=is_member(node))
        if kept is not None:
            made[element] = kept
    return made


def intersection(left: FieldSet, right: FieldSet) -> FieldSet:
    made: FieldSet = {}
    for element, node in left.items():
        other = right.get(element)
        if other is None:
            continue
        children = intersection(_children(node), _children(other))
        kept = _node(children, member=is_member(node) and is_member(other))
        if kept is not None:
            made[element] = kept
    return made


def paths(root: FieldSet, prefix: Path = ()) -> Iterator[Path]:
    """The members in the order in which the server tells them: those of a level first."""
    elements = sorted((key for key in root if key != SELF), key=_rank)
    for element in elements:
        if is_member(root[element]):
            yield (*prefix, element)
    for element in elements:
        yield from paths(_children(root[element]), (*prefix, element))


def in_order(root: FieldSet) -> FieldSet:
    """The same set with its keys in the order in which the server writes them."""
    # Names of fields, which most sets are made of, stand in the order of their texts.
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
    """A path as people read it: `.spec.containers[name="a"].image`."""
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


def decoded(raw: Any) -> FieldSet:
    """A set as somebody sent it; elements of kinds that nobody knows are left out."""
    if not isinstance(raw, dict):
        raise FieldSetError(f"expected a map of fields, got {type(raw).__name__}")
    made: FieldSet = {}
    for key, inner in raw.items():
        if key == SELF:
            made[SELF] = {}
            continue
        element = _canonical(key)
        if element is not None:
            made[element] = decoded(inner)
    return made


@lru_cache(maxsize=4096)
def _canonical(key: str) -> str | None:
    if len(key) < 2 or key[1] != ":":
        raise FieldSetError(f"{key!r} is not a path element; begin it with f:, k:, v: or i:")
    kind = key[0]
    content = key[2:]
    if kind not in _KINDS:
        return None
    if kind == "f":
        return key
    try:
        return _recoded(kind, content)
    except (ValueError, OverflowError, TypeError, RecursionError) as error:
        raise FieldSetError(f"{key!r} is not a path element: {error}") from error


def _recoded(kind: str, content: str) -> str:
    value = json.loads(content)
    if kind == "i":
        return f"i:{int(value)}"
    if kind == "v":
        return item_by_value(value)
    if not isinstance(value, dict):
        raise FieldSetError("the keys of an item are a map")
    return item_by_keys(value)
