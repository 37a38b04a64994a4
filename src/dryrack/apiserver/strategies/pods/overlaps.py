"""Files of one volume that get into each other's way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.kinds.text.quoting import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dryrack.kinds.raw import Raw

_NAMED = (("configMap", "ConfigMap", "name"), ("secret", "Secret", "secretName"))


def overlaps(volume: Raw) -> Iterator[str]:
    """A warning of each pair of paths of which one is, or holds, the other."""
    for key, kind, name in _NAMED:
        given = volume.get(key) or {}
        told = f"{kind} {quoted(given.get(name) or '')}"
        yield from _warnings(volume, told, ((path, "") for path in _paths(given)))
    files = ((path, "") for path in _paths(volume.get("downwardAPI") or {}))
    yield from _warnings(volume, "DownwardAPI", files)
    for source in (volume.get("projected") or {}).get("sources") or ():
        if not source:
            name = quoted(volume.get("name") or "")
            yield f"volume {name} (Projected) has no sources provided"
    yield from _warnings(volume, "Projected", _projected(volume.get("projected") or {}))


def _paths(given: Raw) -> Iterator[str]:
    return (item.get("path") or "" for item in given.get("items") or ())


def _projected(given: Raw) -> Iterator[tuple[str, str]]:
    """Paths, and where each comes from."""
    for source in given.get("sources") or ():
        for key, kind in (("configMap", "ConfigMap"), ("secret", "Secret")):
            inner = source.get(key) or {}
            told = f"{kind} {quoted(inner.get('name') or '')}"
            yield from ((path, told) for path in _paths(inner))
        yield from ((path, "DownwardAPI") for path in _paths(source.get("downwardAPI") or {}))
        token = source.get("serviceAccountToken")
        if token is not None:
            yield token.get("path") or "", "ServiceAccountToken"


def _warnings(volume: Raw, told: str, files: Iterable[tuple[str, str]]) -> Iterator[str]:
    known: list[tuple[str, str]] = []
    name = quoted(volume.get("name") or "")
    for given, source in files:
        path = given.rstrip("/")
        for other, from_where in known:
            if path and _collide(path, other):
                pair = f"{_shown(path, source)} with {_shown(other, from_where)}"
                yield f"volume {name} ({told}): overlapping paths: {pair}"
        known.append((path, source))


def _collide(path: str, other: str) -> bool:
    return bool(other) and (
        f"{path}/".startswith(f"{other}/") or f"{other}/".startswith(f"{path}/")
    )


def _shown(path: str, source: str) -> str:
    return f"{quoted(path)} ({source})" if source else quoted(path)
