"""The scale of a custom kind: where the number of replicas stands in its objects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dryrack.apiserver.gotext import plain, type_name
from dryrack.kinds.validation.problems import FieldProblem, invalid

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Raw = dict[str, Any]
_REPLICAS_MAX = 2**31 - 1


@dataclass(frozen=True, slots=True)
class ScalePaths:
    """As the definition writes them, with a dot in front."""

    spec: str
    status: str
    selector: str = ""

    @staticmethod
    def of(raw: Mapping[str, Any] | None) -> ScalePaths | None:
        if raw is None:
            return None
        return ScalePaths(
            raw.get("specReplicasPath") or "",
            raw.get("statusReplicasPath") or "",
            raw.get("labelSelectorPath") or "",
        )


class _WrongTypeError(Exception):
    """A value on the way is not what the path needs."""


def _at(obj: Raw, path: str, wanted: type) -> Any:
    """The value at a path; None if it is not there."""
    value: Any = obj
    walked = ""
    for name in path.removeprefix(".").split("."):
        if not isinstance(value, dict):
            told = f"{plain(value)} is of the type {type_name(value)}"
            expected = "map[string]interface{}"
            raise _WrongTypeError(f"{walked} accessor error: {told}, expected {expected}")
        if name not in value:
            return None
        walked += f".{name}"
        value = value[name]
    if isinstance(value, bool) or not isinstance(value, wanted):
        expected = "int64" if wanted is int else "string"
        told = f"{plain(value)} is of the type {type_name(value)}"
        raise _WrongTypeError(f"{walked} accessor error: {told}, expected {expected}")
    return value


def scale_problems(
    paths: ScalePaths | None, obj: Raw, *, status_alone: bool = False
) -> Iterator[FieldProblem]:
    """Replicas that are no count."""
    if paths is None:
        return
    if not status_alone:
        yield from _replicas_problems(obj, paths.spec)
    yield from _replicas_problems(obj, paths.status)
    if paths.selector:
        try:
            _at(obj, paths.selector, str)
        except _WrongTypeError as error:
            yield invalid(paths.selector, "", str(error))


def _replicas_problems(obj: Raw, path: str) -> Iterator[FieldProblem]:
    try:
        replicas = _at(obj, path, int) or 0
    except _WrongTypeError as error:
        yield invalid(path, 0, str(error))
        return
    if replicas < 0:
        yield invalid(path, replicas, "should be a non-negative integer")
    elif replicas > _REPLICAS_MAX:
        yield invalid(path, replicas, f"should be less than or equal to {_REPLICAS_MAX}")


@dataclass(frozen=True, slots=True)
class Found:
    """What an object says about its scale; `wanted` is None if it does not say."""

    wanted: int | None
    there: int
    selector: str


def found_in(obj: Raw, paths: ScalePaths) -> Found:
    """What stands at the paths; values of other types count as not there."""
    try:
        return Found(
            _at(obj, paths.spec, int),
            _at(obj, paths.status, int) or 0,
            (_at(obj, paths.selector, str) if paths.selector else None) or "",
        )
    except _WrongTypeError:
        return Found(None, 0, "")


def rescaled(obj: Raw, paths: ScalePaths, replicas: int) -> Raw:
    """An object that wants another number of replicas."""
    changed: Raw = _with(obj, paths.spec.removeprefix(".").split("."), replicas)
    return changed


def _with(value: Any, path: list[str], wanted: int) -> Any:
    if not path:
        return wanted
    inner = value if isinstance(value, dict) else {}
    return {**inner, path[0]: _with(inner.get(path[0]), path[1:], wanted)}
