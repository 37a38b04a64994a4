"""
Makes a failing case small.

A generated case that fails is pages long, and all but a few lines of it do not matter. Parts
are left out, larger ones first, as long as the case still fails; what remains is the reason.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Json: TypeAlias = "dict[str, Any]"
Path: TypeAlias = "tuple[str | int, ...]"

# A case of a few hundred parts is small long before this; beyond it nothing gets better.
TRIALS_MAX = 5000


def shrink(
    case: Json, fails: Callable[[Json], bool], *, keep: frozenset[str] = frozenset()
) -> Json:
    """
    A smaller case that fails too; the case itself if nothing can be left out.

    Parts whose names are in `keep` go only together with the whole that they belong to.
    """
    trials = 0
    progress = True
    while progress and trials < TRIALS_MAX:
        progress = False
        for smaller in reduced(case, keep):
            trials += 1
            if trials > TRIALS_MAX:
                break
            if fails(smaller):
                case = smaller
                progress = True
                break
    return case


def reduced(case: Json, keep: frozenset[str]) -> Iterator[Json]:
    """The case without one of its parts, from the outermost to the innermost."""
    for path in sorted(_paths(case), key=len):
        part = _at(case, path)
        if isinstance(part, list):
            if len(part) > 3:
                yield _replaced(case, path, part[: len(part) // 2])
                yield _replaced(case, path, part[len(part) // 2 :])
            for index in range(len(part)):
                yield _replaced(case, path, part[:index] + part[index + 1 :])
        else:
            for name in (name for name in part if name not in keep):
                rest = {other: value for other, value in part.items() if other != name}
                yield _replaced(case, path, rest)


def _paths(part: Any, path: Path = ()) -> Iterator[Path]:
    if isinstance(part, dict):
        yield path
        for name, inner in part.items():
            yield from _paths(inner, (*path, name))
    elif isinstance(part, list):
        yield path
        for index, inner in enumerate(part):
            yield from _paths(inner, (*path, index))


def _at(part: Any, path: Path) -> Any:
    for step in path:
        part = part[step]
    return part


def _replaced(part: Any, path: Path, value: Any) -> Any:
    if not path:
        return value
    copy = part.copy()
    copy[path[0]] = _replaced(part[path[0]], path[1:], value)
    return copy
