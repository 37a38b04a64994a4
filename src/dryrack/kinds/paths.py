"""
Read values of raw objects by their path, as in `get(obj, "status.certificate", "")`.

A field that is missing counts as unset, and so does a field that is null: Kubernetes makes no
difference between them. On hot paths, prefer `metadata_of`, `spec_of`, and `status_of`, which do
not split a path.
"""

from typing import Any, TypeVar, overload

from dryrack.kinds.raw import Raw

T = TypeVar("T")


@overload
def get(obj: Any, path: str) -> Any: ...
@overload
def get(obj: Any, path: str, default: Raw) -> Raw: ...
@overload
def get(obj: Any, path: str, default: list[Any]) -> list[Any]: ...
@overload
def get(obj: Any, path: str, default: tuple[()]) -> list[Any] | tuple[()]: ...
@overload
def get(obj: Any, path: str, default: T) -> T: ...


def get(obj: Any, path: str, default: Any = None) -> Any:
    """
    Return the value at a dotted path, or the default if a part of the path is unset.

    An empty value of the wrong type counts as unset if the default is a collection, so that the
    result can be read as the collection that the caller expects.
    """
    value = obj
    for key in path.split("."):
        if not isinstance(value, dict):
            return default
        value = value.get(key)
    if value is None or (not value and isinstance(default, dict | list | tuple)):
        return default
    return value


def metadata_of(obj: Raw) -> Raw:
    """Return the metadata of an object, or {}."""
    return obj.get("metadata") or {}


def spec_of(obj: Raw) -> Raw:
    """Return the spec of an object, or {}."""
    return obj.get("spec") or {}


def status_of(obj: Raw) -> Raw:
    """Return the status of an object, or {}."""
    return obj.get("status") or {}
