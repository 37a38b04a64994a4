"""
Keeping once what many objects have in common.

Objects of one kind mostly come from one template, and an object that changes mostly stays as it
was. What is read from JSON is new in every part; here each part that equals the same part of
another object is replaced by that one. Parts are shared by identity afterwards, so nobody may
change them.
"""

from __future__ import annotations

from typing import Any

_ABSENT = object()


def shared(new: Any, like: Any) -> Any:
    """
    `new`, with the parts of `like` where the two are the same; `like` if they are the same.

    Changes `new`, which must be nobody else's. True is not 1, and 1 is not 1.0.
    """
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
