"""
JSON patch (RFC 6902), with the liberties that the real server takes.

An index may count from the end; a replacement may replace what is not there; what comes before
the first slash of a path is ignored.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from dryrack.apiserver.ownership.patching.problems import (
    PatchError,
    Problem,
    bad_patch,
    does_not_apply,
)
from dryrack.kinds.text.go_json import type_name

OPERATIONS_MAX = 10_000
# Copies of copies double what they copy; nothing that is stored comes near this.
_COPIED_BYTES_MAX = 16 * 1024 * 1024
_INDEX = re.compile(r"[+-]?[0-9]+")
_ESCAPE = re.compile("~[01]")
_FIELDS = ("op", "path", "from", "value")


def operations(patch: Any) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    """The operations of a decoded patch, and the complaints of strict decoding."""
    if patch is None:
        return [], ()
    if not isinstance(patch, list):
        raise _unreadable(patch, "value of type []handlers.jsonPatchOp")
    strict: list[str] = []
    for index, operation in enumerate(patch):
        if not isinstance(operation, dict | None):
            raise _unreadable(operation, "value of type handlers.jsonPatchOp")
        unknown = (name for name in operation or () if name not in _FIELDS)
        strict += [f'json patch unknown field "[{index}].{name}"' for name in unknown]
        _check_texts(operation or {})
    if len(patch) > OPERATIONS_MAX:
        text = (
            f"The allowed maximum operations in a JSON patch is {OPERATIONS_MAX}, got {len(patch)}"
        )
        raise PatchError(Problem(413, "RequestEntityTooLarge", f"Request entity too large: {text}"))
    return [operation or {} for operation in patch], tuple(strict)


def _check_texts(operation: dict[str, Any]) -> None:
    for name in ("op", "path", "from"):
        value = operation.get(name)
        if value is not None and not isinstance(value, str):
            raise _unreadable(value, f"struct field jsonPatchOp.{name} of type string")


def _unreadable(value: Any, target: str) -> PatchError:
    what = f"json: cannot unmarshal {type_name(value)} into Go {target}"
    return bad_patch(f"error decoding patch: {what}")


def apply(live: dict[str, Any], wanted: list[dict[str, Any]]) -> Any:
    """The object after all operations; the one that was given is not changed."""
    document = _Document(_copied(live))
    for operation in wanted:
        document.do(operation)
    return document.root


def _copied(value: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(value))


class _Document:
    """A document that is being patched."""

    def __init__(self, root: Any) -> None:
        self.root = root
        self.copied_bytes = 0

    def do(self, operation: dict[str, Any]) -> None:
        match operation.get("op"):
            case "add":
                self._add(self._path(operation), operation.get("value"))
            case "remove":
                self._remove(self._path(operation))
            case "replace":
                self._replace(self._path(operation), operation.get("value"))
            case "move":
                source = self._path(operation, "from")
                value = self._get(source)
                self._remove(source)
                self._add(self._path(operation), value)
            case "copy":
                value = self._get(self._path(operation, "from"))
                self._add(self._path(operation), self._duplicate(value))
            case "test":
                self._test(self._path(operation), operation.get("value"))
            case other:
                raise does_not_apply(f"Unexpected kind: {other or 'unknown'}")

    def _path(self, operation: dict[str, Any], name: str = "path") -> str:
        path = operation.get(name)
        if path is None:
            raise does_not_apply(f"operation missing {name} field: missing value")
        return str(path)

    def _duplicate(self, value: Any) -> Any:
        content = msgspec.json.encode(value)
        self.copied_bytes += len(content)
        if self.copied_bytes > _COPIED_BYTES_MAX:
            raise does_not_apply("copies are too large")
        return msgspec.json.decode(content)

    def _container(self, path: str) -> tuple[Any, str]:
        """What holds the place, and the key of the place in it."""
        parts = path.split("/")
        if len(parts) < 2:
            raise does_not_apply(f"doc is missing path: {path!r}: missing value")
        container = self.root
        for part in parts[1:-1]:
            container = _at(container, _unescaped(part), path)
            if not isinstance(container, dict | list):
                raise does_not_apply(f"doc is missing path: {path!r}: missing value")
        return container, _unescaped(parts[-1])

    def _get(self, path: str) -> Any:
        container, key = self._container(path)
        return _at(container, key, path)

    def _add(self, path: str, value: Any) -> None:
        container, key = self._container(path)
        if isinstance(container, dict):
            container[key] = value
        elif key == "-":
            container.append(value)
        else:
            container.insert(_index(key, len(container) + 1, path), value)

    def _remove(self, path: str) -> None:
        container, key = self._container(path)
        if isinstance(container, list):
            container.pop(_index(key, len(container), path))
        elif key in container:
            del container[key]
        else:
            raise does_not_apply(f"Unable to remove nonexistent key: {key}: missing value")

    def _replace(self, path: str, value: Any) -> None:
        if path == "":
            if not isinstance(value, dict | list):
                raise does_not_apply("replace operation value must be object or array")
            self.root = value
            return
        container, key = self._container(path)
        if isinstance(container, list):
            container[_index(key, len(container), path)] = value
        else:
            container[key] = value

    def _test(self, path: str, value: Any) -> None:
        found = self.root if path == "" else self._get(path)
        if not _identical(found, value):
            raise does_not_apply(f"testing value {path} failed: test failed")


def _at(container: Any, key: str, path: str) -> Any:
    if isinstance(container, dict):
        return container.get(key)
    return container[_index(key, len(container), path)]


def _index(key: str, length: int, path: str) -> int:
    if not _INDEX.fullmatch(key):
        raise does_not_apply(f"value was not a proper array index: '{key}' in {path!r}")
    # More digits than any list has items: not a number worth making.
    index = int(key) if len(key) < 20 else length
    if not -length <= index < length:
        raise does_not_apply(f"Unable to access invalid index: {key}: invalid index referenced")
    return index + length if index < 0 else index


def _unescaped(part: str) -> str:
    return _ESCAPE.sub(lambda found: "/" if found[0] == "~1" else "~", part)


def _identical(left: Any, right: Any) -> bool:
    """Equal as they are written: 1 is not 1.0."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(
            _identical(left[key], right[key]) for key in left
        )
    if isinstance(left, list):
        return len(left) == len(right) and all(map(_identical, left, right))
    return bool(left == right)
