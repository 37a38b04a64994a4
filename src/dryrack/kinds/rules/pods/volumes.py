"""Validation of the volumes of a pod."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.kinds.paths import get, spec_of
from dryrack.kinds.quantity import Quantity
from dryrack.kinds.rules.checks import driver_name, not_reserved, steps_back
from dryrack.kinds.rules.pods.environment import (
    FILE_FIELDS,
    amount_of_other,
    field_source,
)
from dryrack.kinds.rules.volume_claims import claim_problems
from dryrack.kinds.validation.names import checked, label, subdomain
from dryrack.kinds.validation.problems import (
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from dryrack.kinds.raw import Raw
    from dryrack.kinds.validation import FieldProblem

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
_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_MODE_MAX = 0o777
_MODE = "must be a number between 0 and 0777 (octal), both inclusive"
_TOKEN_SECONDS_MIN = 600
_TOKEN_SECONDS_MAX = 2**32
# By kind of volume: the fields without which it says nothing.
_NEEDED: Mapping[str, tuple[str, ...]] = {
    "hostPath": ("path",),
    "secret": ("secretName",),
    "nfs": ("server", "path"),
    "configMap": ("name",),
    "persistentVolumeClaim": ("claimName",),
}


_FIRST = ("emptyDir", "hostPath", "secret", "nfs", "persistentVolumeClaim", "downwardAPI")


def _rank(kind: str) -> tuple[int, str]:
    """The order in which the server looks at kinds of volumes: of two the first counts."""
    return (_FIRST.index(kind) if kind in _FIRST else len(_FIRST), kind)


def volumes(
    at: str, given: Sequence[Raw], *, of_pod: bool
) -> tuple[list[FieldProblem], dict[str, Raw]]:
    """The problems, and the volumes that are well, by name; templates may leave out images."""
    problems: list[FieldProblem] = []
    known: dict[str, Raw] = {}
    for position, volume in enumerate(given):
        found = list(_volume(f"{at}[{position}]", volume, known))
        if of_pod and not (volume.get("image") or {"reference": "x"}).get("reference"):
            found.insert(0, required(f"{at}[{position}].image.reference"))
        problems += found
        if not found:
            known[volume["name"]] = volume
    return problems, known


def _volume(at: str, given: Raw, known: Mapping[str, Raw]) -> Iterator[FieldProblem]:
    kinds = sorted((key for key in given if key != "name"), key=_rank)
    for position, kind in enumerate(kinds):
        if position:
            yield forbidden(f"{at}.{kind}", "may not specify more than 1 volume type")
        else:
            yield from source_problems(f"{at}.{kind}", kind, given[kind])
    name = given.get("name") or ""
    yield from checked(f"{at}.name", name, label) if name else (required(f"{at}.name"),)
    if name in known:
        yield duplicate(f"{at}.name", name)


def source_problems(at: str, kind: str, given: Raw) -> Iterator[FieldProblem]:
    """Check one volume source, by its kind."""
    missing = [key for key in _NEEDED.get(kind, ()) if not given.get(key)]
    yield from (required(f"{at}.{key}") for key in missing)
    yield from _mode(f"{at}.defaultMode", given.get("defaultMode"))
    if kind == "hostPath" and missing:
        return
    check = _CHECKS.get(kind)
    if check is not None:
        yield from check(at, given)


def _mode(at: str, mode: int | None) -> Iterator[FieldProblem]:
    if mode is not None and not 0 <= mode <= _MODE_MAX:
        yield invalid(at, mode, _MODE)


def _empty(at: str, given: Raw) -> Iterator[FieldProblem]:
    if Quantity.from_json(given.get("sizeLimit") or "0").sign < 0:
        yield forbidden(f"{at}.sizeLimit", "SizeLimit field must be a valid resource quantity")


def _host_path(at: str, given: Raw) -> Iterator[FieldProblem]:
    if steps_back(given["path"]):
        yield invalid(f"{at}.path", given["path"], "must not contain '..'")
    if given.get("type") not in (None, *_PATH_TYPES):
        yield not_supported(f"{at}.type", given["type"], _PATH_TYPES)


def _nfs(at: str, given: Raw) -> Iterator[FieldProblem]:
    path = given.get("path") or ""
    if not path.startswith("/"):
        yield invalid(f"{at}.path", path, "must be an absolute path")


def _csi(at: str, given: Raw) -> Iterator[FieldProblem]:
    yield from driver_name(f"{at}.driver", given.get("driver") or "")
    secret = given.get("nodePublishSecretRef")
    if secret is not None and not secret.get("name"):
        yield required(f"{at}.nodePublishSecretRef.name")
    elif secret is not None:
        yield from checked(f"{at}.name", secret["name"], subdomain)


def _image(at: str, given: Raw) -> Iterator[FieldProblem]:
    policy = given.get("pullPolicy") or ""
    if policy not in _PULL_POLICIES:
        yield not_supported(f"{at}.pullPolicy", policy, _PULL_POLICIES)


def _ephemeral(at: str, given: Raw) -> Iterator[FieldProblem]:
    template = given.get("volumeClaimTemplate")
    if template is None:
        yield required(f"{at}.volumeClaimTemplate")
    else:
        yield from claim_problems(f"{at}.volumeClaimTemplate.spec", spec_of(template))


def _items(at: str, given: Raw) -> Iterator[FieldProblem]:
    for position, item in enumerate(get(given, "items", ())):
        yield from _item(f"{at}.items[{position}]", item)


def _item(at: str, given: Raw) -> Iterator[FieldProblem]:
    for key in ("key", "path"):
        if not given.get(key):
            yield required(f"{at}.{key}")
    yield from not_reserved(f"{at}.path", given.get("path") or "")
    yield from _mode(f"{at}.mode", given.get("mode"))


def _fields(at: str, given: Raw) -> Iterator[FieldProblem]:
    """Files about the pod itself; the server does not say which."""
    for item in get(given, "items", ()):
        yield from _field(at, item)


def _field(at: str, item: Raw) -> Iterator[FieldProblem]:
    if not item.get("path"):
        yield required(f"{at}.path")
    yield from not_reserved(f"{at}.path", item.get("path") or "")
    field = item.get("fieldRef")
    amount = item.get("resourceFieldRef")
    if field is not None:
        yield from field_source(f"{at}.fieldRef", field, FILE_FIELDS)
        if amount is not None:
            detail = "fieldRef and resourceFieldRef can not be specified simultaneously"
            yield invalid(at, "resource", detail)
    elif amount is not None:
        yield from amount_of_other(f"{at}.resourceFieldRef", amount)
    else:
        yield required(at, "one of fieldRef and resourceFieldRef is required")
    yield from _mode(f"{at}.mode", item.get("mode"))


def _projected_volume(at: str, given: Raw) -> Iterator[FieldProblem]:
    """Check a projected volume."""
    paths: set[str] = set()
    for position, source in enumerate(get(given, "sources", ())):
        path = f"{at}.sources[{position}]"
        found = [kind for kind in _PROJECTED if kind in source]
        for kind in found:
            yield from _part(at, f"{path}.{kind}", source[kind], paths)
        if len(found) > 1:
            yield forbidden(path, "may not specify more than 1 volume type per source")


_PROJECTED = ("secret", "configMap", "downwardAPI", "serviceAccountToken")


def _part(at: str, path: str, given: Raw, paths: set[str]) -> Iterator[FieldProblem]:
    kind = path.rpartition(".")[2]
    if kind == "serviceAccountToken":
        seconds = given.get("expirationSeconds") or 0
        if seconds < _TOKEN_SECONDS_MIN:
            detail = "may not specify a duration less than 10 minutes"
            yield invalid(f"{path}.expirationSeconds", seconds, detail)
        if seconds > _TOKEN_SECONDS_MAX:
            detail = "may not specify a duration larger than 2^32 seconds"
            yield invalid(f"{path}.expirationSeconds", seconds, detail)
        if not given.get("path"):
            yield required(f"{at}.path")
        else:
            yield from not_reserved(f"{at}.path", given["path"])
        return
    if kind != "downwardAPI" and not given.get("name"):
        yield required(f"{path}.name")
    for position, item in enumerate(get(given, "items", ())):
        where = item.get("path") or ""
        if kind == "downwardAPI":
            yield from _field(path, item)
        else:
            yield from _item(f"{path}.items[{position}]", item)
        if where in paths:
            shown = where if kind == "downwardAPI" else given.get("name") or ""
            yield invalid(at, shown, "conflicting duplicate paths")
        elif where:
            paths.add(where)


_CHECKS: Mapping[str, Callable[[str, Raw], Iterator[FieldProblem]]] = {
    "configMap": _items,
    "csi": _csi,
    "downwardAPI": _fields,
    "emptyDir": _empty,
    "ephemeral": _ephemeral,
    "hostPath": _host_path,
    "image": _image,
    "nfs": _nfs,
    "projected": _projected_volume,
    "secret": _items,
}
