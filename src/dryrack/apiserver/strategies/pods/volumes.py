"""What is wrong with the volumes of a pod."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dryrack.apiserver.strategies.volume_claims import claim_problems
from dryrack.kinds.validation.names import checked, label
from dryrack.kinds.validation.problems import (
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from dryrack.kinds.validation import FieldProblem

Raw = dict[str, Any]

_PATH_TYPES = (
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
)
_MODE_MAX = 0o777
_MODE = "must be a number between 0 and 0777 (octal), both inclusive"
# By kind of volume: the fields without which it says nothing.
_NEEDED: Mapping[str, tuple[str, ...]] = {
    "hostPath": ("path",),
    "secret": ("secretName",),
    "nfs": ("server", "path"),
    "configMap": ("name",),
    "persistentVolumeClaim": ("claimName",),
    "csi": ("driver",),
}


_FIRST = ("emptyDir", "hostPath", "secret", "nfs", "persistentVolumeClaim", "downwardAPI")


def _rank(kind: str) -> tuple[int, str]:
    """The order in which the server looks at kinds of volumes: of two the first counts."""
    return (_FIRST.index(kind) if kind in _FIRST else len(_FIRST), kind)


def volumes(at: str, given: Sequence[Raw]) -> tuple[list[FieldProblem], frozenset[str]]:
    """The problems, and the names of the volumes that are well."""
    problems: list[FieldProblem] = []
    names: set[str] = set()
    for position, volume in enumerate(given):
        found = list(_volume(f"{at}[{position}]", volume, names))
        problems += found
        if not found:
            names.add(volume["name"])
    return problems, frozenset(names)


def _volume(at: str, given: Raw, names: set[str]) -> Iterator[FieldProblem]:
    kinds = sorted((key for key in given if key != "name"), key=_rank)
    for position, kind in enumerate(kinds):
        if position:
            yield forbidden(f"{at}.{kind}", "may not specify more than 1 volume type")
        else:
            yield from _source(f"{at}.{kind}", kind, given[kind])
    name = given.get("name") or ""
    yield from checked(f"{at}.name", name, label) if name else (required(f"{at}.name"),)
    if name in names:
        yield duplicate(f"{at}.name", name)


def _source(at: str, kind: str, given: Raw) -> Iterator[FieldProblem]:
    for key in _NEEDED.get(kind, ()):
        if not given.get(key):
            yield required(f"{at}.{key}")
    mode = given.get("defaultMode")
    if mode is not None and not 0 <= mode <= _MODE_MAX:
        yield invalid(f"{at}.defaultMode", mode, _MODE)
    if kind in ("secret", "configMap"):
        for position, item in enumerate(given.get("items") or ()):
            yield from _item(f"{at}.items[{position}]", item)
    if kind == "hostPath":
        yield from _host_path(at, given)
    if kind == "ephemeral":
        yield from _ephemeral(f"{at}.volumeClaimTemplate", given.get("volumeClaimTemplate"))
    if kind == "projected":
        for position, source in enumerate(given.get("sources") or ()):
            yield from _projected(f"{at}.sources[{position}]", source)


def _host_path(at: str, given: Raw) -> Iterator[FieldProblem]:
    if ".." in (given.get("path") or "").split("/"):
        yield invalid(f"{at}.path", given["path"], "must not contain '..'")
    if given.get("type") not in (None, *_PATH_TYPES):
        yield not_supported(f"{at}.type", given["type"], _PATH_TYPES)


def _ephemeral(at: str, template: Raw | None) -> Iterator[FieldProblem]:
    if template is None:
        yield required(at)
    else:
        yield from claim_problems(f"{at}.spec", template.get("spec") or {})


def _projected(at: str, source: Raw) -> Iterator[FieldProblem]:
    for kind, key in (("secret", "name"), ("configMap", "name"), ("serviceAccountToken", "path")):
        given = source.get(kind)
        if given is not None and not given.get(key):
            yield required(f"{at}.{kind}.{key}")
        for position, item in enumerate((given or {}).get("items") or ()):
            yield from _item(f"{at}.{kind}.items[{position}]", item)


def _item(at: str, given: Raw) -> Iterator[FieldProblem]:
    path = given.get("path") or ""
    for key in ("key", "path"):
        if not given.get(key):
            yield required(f"{at}.{key}")
    if path.startswith("/"):
        yield invalid(f"{at}.path", path, "must be a relative path")
    if ".." in path.split("/"):
        yield invalid(f"{at}.path", path, "must not contain '..'")
    if path.startswith("..") and not path.startswith("../"):
        yield invalid(f"{at}.path", path, "must not start with '..'")
