"""
Sharing of equal parts between objects, to save memory.

Most objects of one kind come from one template, and most changes leave most of an object as it was.
Decoded JSON shares nothing; here each part that equals the same part of another object is replaced
by that part. A large object is decoded part by part, and a part whose text was decoded before is
not decoded again. Afterwards objects share parts by identity, so that they must not be changed.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec

_ABSENT = object()

# Small objects are decoded faster as a whole, and share parts with the object that they replace.
LARGE_BYTES_MIN = 8192
# The size of the attributes, the capacity, or the counters of a device.
_PART_BYTES_MAX = 1024
# Enough for the parts of a few dozen instance types, and of the last nodes; 10 MB.
_PARTS_MAX = 8192
_SMALLEST_BYTES = 24

_decode = msgspec.json.Decoder().decode
_decode_parts = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_items = msgspec.json.Decoder(list[msgspec.Raw]).decode


class SharedDecoder:
    """
    Decodes large JSON objects so that parts with the same text are one value.

    Metadata is not shared: it is never the same, and informers change it.
    """

    def __init__(self) -> None:
        self._cached = lru_cache(maxsize=_PARTS_MAX)(self._read)

    def decode(self, text: bytes | msgspec.Raw) -> dict[str, Any]:
        parts: dict[str, Any] = _decode_parts(text)
        for key, part in parts.items():
            parts[key] = _decode(part) if key == "metadata" else self._part(part)
        return parts

    def _part(self, part: msgspec.Raw) -> Any:
        text = bytes(part)
        return self._cached(text) if len(text) <= _PART_BYTES_MAX else self._read(text)

    def _read(self, text: bytes) -> Any:
        if len(text) > _SMALLEST_BYTES:
            if text[0] == _OBJECT:
                parts: dict[str, Any] = _decode_parts(text)
                for key, part in parts.items():
                    parts[key] = self._part(part)
                return parts
            if text[0] == _LIST:
                return [self._part(part) for part in _decode_items(text)]
        return _decode(text)


_OBJECT, _LIST = b"{["


def share_parts(new: Any, like: Any) -> Any:
    """
    Return `new` with the parts of `like` that are equal, or `like` if all parts are equal.

    This changes `new`, which must not be shared yet. True is not equal to 1, nor 1 to 1.0.
    """
    if new is like:
        return like
    kind = type(new)
    if kind is not type(like):
        return new
    if kind is dict:
        return _of_dicts(new, like)
    if kind is list:
        return _of_lists(new, like)
    return like if new == like else new


def _of_dicts(new: dict[str, Any], like: dict[str, Any]) -> dict[str, Any]:
    is_same = len(new) == len(like)
    for key, value in new.items():
        there = like.get(key, _ABSENT)
        part = share_parts(value, there)
        if part is there:
            new[key] = part
        else:
            is_same = False
    return like if is_same else new


def _of_lists(new: list[Any], like: list[Any]) -> list[Any]:
    is_same = len(new) == len(like)
    # If one list is longer, its end has no counterpart to compare with.
    for index, (value, there) in enumerate(zip(new, like, strict=False)):
        part = share_parts(value, there)
        if part is there:
            new[index] = part
        else:
            is_same = False
    return like if is_same else new
