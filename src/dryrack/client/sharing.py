"""
Keeping once what many objects have in common.

Objects of one kind mostly come from one template, and an object that changes mostly stays as it
was. What is read from JSON is new in every part; here each part that equals the same part of
another object is replaced by that one. A large object is read part by part, and a part whose text
was read before is not read again. Parts are shared by identity afterwards, so nobody may change
them.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec

_ABSENT = object()

# Small objects are read faster as a whole, and are shared with what they replace.
LARGE_BYTES_MIN = 8192
# The attributes, the capacity or the counters of a device, and everything smaller.
_PART_BYTES_MAX = 1024
# What a few dozen types of machines have in common, and the last nodes have to themselves; 10 MB.
_PARTS_MAX = 8192
_SMALLEST_BYTES = 24

_decode = msgspec.json.Decoder().decode
_decode_parts = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_items = msgspec.json.Decoder(list[msgspec.Raw]).decode


class SharedDecoder:
    """
    Reads large JSON objects so that parts with the same text are one value.

    Metadata is everybody's own: it is never the same, and is changed by those who keep objects.
    """

    def __init__(self) -> None:
        self._known = lru_cache(maxsize=_PARTS_MAX)(self._read)

    def decode(self, text: bytes | msgspec.Raw) -> dict[str, Any]:
        parts: dict[str, Any] = _decode_parts(text)
        for key, part in parts.items():
            parts[key] = _decode(part) if key == "metadata" else self._part(part)
        return parts

    def _part(self, part: msgspec.Raw) -> Any:
        text = bytes(part)
        return self._known(text) if len(text) <= _PART_BYTES_MAX else self._read(text)

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


def shared(new: Any, like: Any) -> Any:
    """
    `new`, with the parts of `like` where the two are the same; `like` if they are the same.

    Changes `new`, which must be nobody else's. True is not 1, and 1 is not 1.0.
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
        kept = shared(value, there)
        if kept is there:
            new[key] = kept
        else:
            is_same = False
    return like if is_same else new


def _of_lists(new: list[Any], like: list[Any]) -> list[Any]:
    is_same = len(new) == len(like)
    # The ends of lists differ in length, and then there is nothing to compare.
    for index, (value, there) in enumerate(zip(new, like, strict=False)):
        kept = shared(value, there)
        if kept is there:
            new[index] = kept
        else:
            is_same = False
    return like if is_same else new
