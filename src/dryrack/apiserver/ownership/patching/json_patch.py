"""
JSON patch (RFC 6902), with the deviations of the real server.

An index may count from the end; `replace` may set a missing member; text before the first slash of
a path is ignored.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from dryrack.apiserver.ownership.patching.problems import (
    PatchError,
    PatchProblem,
    bad_patch,
    does_not_apply,
)
from dryrack.kinds.text.go_json import type_name

OPERATIONS_MAX = 10_000
# Copies of copies double the object; no stored object comes near this size.
_COPIED_BYTES_MAX = 16 * 1024 * 1024
_INDEX = re.compile(r"[+-]?[0-9]+")
_ESCAPE = re.compile("~[01]")
_FIELDS = ("op", "path", "from", "value")


def read_operations(patch: Any) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    """Return the operations of a decoded patch, and the complaints of strict decoding."""
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
        for name in ("op", "path", "from"):
            text = (operation or {}).get(name)
            if text is not None and not isinstance(text, str):
                raise _unreadable(text, f"struct field jsonPatchOp.{name} of type string")
    if len(patch) > OPERATIONS_MAX:
        message = (
            f"The allowed maximum operations in a JSON patch is {OPERATIONS_MAX}, got {len(patch)}"
        )
        reason = "RequestEntityTooLarge"
        raise PatchError(PatchProblem(413, reason, f"Request entity too large: {message}"))
    return [operation or {} for operation in patch], tuple(strict)


def _unreadable(value: Any, target: str) -> PatchError:
    what = f"json: cannot unmarshal {type_name(value)} into Go {target}"
    return bad_patch(f"error decoding patch: {what}")


def apply(live: dict[str, Any], operations: list[dict[str, Any]]) -> Any:
    """Return the object after all operations; the argument is not changed."""
    document = _Document(msgspec.json.decode(msgspec.json.encode(live)))
    for operation in operations:
        document.apply(operation)
    return document.root


class _Document:
    """A document to which operations are applied in place."""

    def __init__(self, root: Any) -> None:
        self.root = root
        self.copied_bytes = 0

    def apply(self, operation: dict[str, Any]) -> None:
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
                self._add(self._path(operation), self._copy(value))
            case "test":
                path = self._path(operation)
                current = self.root if path == "" else self._get(path)
                if not _is_identical(current, operation.get("value")):
                    raise does_not_apply(f"testing value {path} failed: test failed")
            case other:
                raise does_not_apply(f"Unexpected kind: {other or 'unknown'}")

    def _path(self, operation: dict[str, Any], name: str = "path") -> str:
        path = operation.get(name)
        if path is None:
            raise does_not_apply(f"operation missing {name} field: missing value")
        return str(path)

    def _copy(self, value: Any) -> Any:
        content = msgspec.json.encode(value)
        self.copied_bytes += len(content)
        if self.copied_bytes > _COPIED_BYTES_MAX:
            raise does_not_apply("copies are too large")
        return msgspec.json.decode(content)

    def _container(self, path: str) -> tuple[Any, str]:
        """Return the map or list that contains the value at a path, and the key in it."""
        parts = path.split("/")
        if len(parts) < 2:
            raise does_not_apply(f"doc is missing path: {path!r}: missing value")
        container = self.root
        for part in parts[1:-1]:
            container = _member(container, _unescape(part), path)
            if not isinstance(container, dict | list):
                raise does_not_apply(f"doc is missing path: {path!r}: missing value")
        return container, _unescape(parts[-1])

    def _get(self, path: str) -> Any:
        container, key = self._container(path)
        return _member(container, key, path)

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


def _member(container: Any, key: str, path: str) -> Any:
    if isinstance(container, dict):
        return container.get(key)
    return container[_index(key, len(container), path)]


def _index(key: str, length: int, path: str) -> int:
    if not _INDEX.fullmatch(key):
        raise does_not_apply(f"value was not a proper array index: '{key}' in {path!r}")
    # No list is so long, and converting a long number takes time.
    index = int(key) if len(key) < 20 else length
    if not -length <= index < length:
        raise does_not_apply(f"Unable to access invalid index: {key}: invalid index referenced")
    return index + length if index < 0 else index


def _unescape(part: str) -> str:
    return _ESCAPE.sub(lambda match: "/" if match[0] == "~1" else "~", part)


def _is_identical(left: Any, right: Any) -> bool:
    """Return whether two values have the same JSON: 1 is not 1.0."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(
            _is_identical(left[key], right[key]) for key in left
        )
    if isinstance(left, list):
        return len(left) == len(right) and all(map(_is_identical, left, right))
    return bool(left == right)
