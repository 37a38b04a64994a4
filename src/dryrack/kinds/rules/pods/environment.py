"""Validation of environment variables, and of references to fields of a pod."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.kinds.quantity import Quantity
from dryrack.kinds.rules import checks
from dryrack.kinds.validation.names import checked, label_key, subdomain, subdomain_prefix
from dryrack.kinds.validation.problems import invalid, not_supported, required

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from dryrack.kinds.raw import Raw
    from dryrack.kinds.validation import FieldProblem

_ENV_NAME = (
    "a valid environment variable name must consist only of printable ASCII characters other "
    "than '='"
)
_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
# What a variable can be of a pod; a file can be less, and more of it.
_ENV_FIELDS = (
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
)
FILE_FIELDS = (
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
)
_FIELDS = {*_ENV_FIELDS, *FILE_FIELDS, "spec.restartPolicy", "spec.schedulerName", "status.phase"}
_AMOUNTS = tuple(
    f"{part}.{name}"
    for part in ("limits", "requests")
    for name in ("cpu", "ephemeral-storage", "memory")
)
_CPU_DIVISORS = ("1m", "1")
_BYTE_DIVISORS = ("1", *(f"1{unit}{i}" for i in ("", "i") for unit in "kKMGTPE"))
_BYTE_DIVISORS_SHOWN = "1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei"


def variables(at: str, given: Sequence[Raw]) -> Iterator[FieldProblem]:
    """Check the variables in `env`."""
    for position, variable in enumerate(given):
        path = f"{at}[{position}]"
        name = variable.get("name") or ""
        if not name:
            yield required(f"{path}.name")
        elif not _is_name(name):
            yield invalid(f"{path}.name", name, _ENV_NAME)
        if variable.get("valueFrom") is not None:
            yield from _source(f"{path}.valueFrom", variable)


def _is_name(name: str) -> bool:
    return name.isascii() and name.isprintable() and "=" not in name


def _source(at: str, variable: Raw) -> Iterator[FieldProblem]:
    source = variable["valueFrom"]
    found = [key for key in _SOURCES if source.get(key) is not None]
    for key in found:
        yield from _CHECKS[key](f"{at}.{key}", source[key])
    if not found:
        *most, last = (f"`{key}`" for key in _SOURCES)
        yield invalid(at, "", f"must specify one of: {', '.join(most)} or {last}")
    elif variable.get("value"):
        yield invalid(at, "", "may not be specified when `value` is not empty")
    elif len(found) > 1:
        yield invalid(at, "", "may not have more than one field specified at a time")


def field_source(at: str, given: Raw, known: Sequence[str] = _ENV_FIELDS) -> Iterator[FieldProblem]:
    """Check a reference to a field of the pod."""
    path = given.get("fieldPath") or ""
    if not path:
        yield required(f"{at}.fieldPath")
        return
    if given.get("apiVersion") != "v1":
        error = f"unsupported pod version: {given.get('apiVersion')}"
        yield invalid(f"{at}.fieldPath", path, f"error converting fieldPath: {error}")
        return
    name, bracket, key = path.partition("['")
    if bracket and name in ("metadata.annotations", "metadata.labels") and key.endswith("']"):
        subscript = key.removesuffix("']")
        lowered = subscript.lower() if name.endswith("annotations") else subscript
        yield from checked(at, lowered, label_key)
    elif path not in _FIELDS:
        detail = f"error converting fieldPath: field label not supported: {path}"
        yield invalid(f"{at}.fieldPath", path, detail)
    elif path not in known:
        yield not_supported(f"{at}.fieldPath", path, known)


def amount_source(at: str, given: Raw) -> Iterator[FieldProblem]:
    """Check a reference to a request or limit of a container."""
    name = given.get("resource") or ""
    if not name:
        yield required(f"{at}.resource")
    elif name not in _AMOUNTS and not _is_of_pages(name):
        yield not_supported(f"{at}.resource", name, _AMOUNTS)
    yield from _divisor(f"{at}.divisor", name, Quantity.from_json(given.get("divisor") or "0"))


def amount_of_other(at: str, given: Raw) -> Iterator[FieldProblem]:
    """Check a reference in a volume, which must name the container."""
    if not given.get("containerName"):
        yield required(f"{at}.containerName")
    else:
        yield from amount_source(at, given)


def _is_of_pages(name: str) -> bool:
    return name.startswith(("limits.hugepages-", "requests.hugepages-"))


def _divisor(at: str, name: str, divisor: Quantity) -> Iterator[FieldProblem]:
    if not divisor.nanos:
        return
    if name not in _AMOUNTS and not _is_of_pages(name):
        return
    what = name.partition(".")[2]
    if what == "cpu" and str(divisor) not in _CPU_DIVISORS:
        detail = "only divisor's values 1m and 1 are supported with the cpu resource"
        yield invalid(at, name, detail)
    elif what != "cpu" and str(divisor) not in _BYTE_DIVISORS:
        names = {"memory": "memory", "ephemeral-storage": "local ephemeral storage"}
        shown = names.get(what, "hugepages")
        detail = f"only divisor's values {_BYTE_DIVISORS_SHOWN} are supported with the {shown}"
        yield invalid(at, name, f"{detail} resource")


def _key_source(at: str, given: Raw) -> Iterator[FieldProblem]:
    yield from checked(f"{at}.name", given.get("name") or "", subdomain)
    key = given.get("key") or ""
    if key:
        yield from checked(f"{at}.key", key, checks.config_key)
    else:
        yield required(f"{at}.key")


def _file_source(at: str, given: Raw) -> Iterator[FieldProblem]:
    for key in ("key", "volumeName", "path"):
        if not given.get(key):
            yield required(f"{at}.{key}")


_CHECKS: Mapping[str, Callable[[str, Raw], Iterator[FieldProblem]]] = {
    "fieldRef": field_source,
    "resourceFieldRef": amount_source,
    "configMapKeyRef": _key_source,
    "secretKeyRef": _key_source,
    "fileKeyRef": _file_source,
}


def sources(at: str, given: Sequence[Raw]) -> Iterator[FieldProblem]:
    """Those that come from elsewhere all at once."""
    for position, source in enumerate(given):
        path = f"{at}[{position}]"
        prefix = source.get("prefix") or ""
        if prefix and not _is_name(prefix):
            yield invalid(f"{path}.prefix", prefix, _ENV_NAME)
        found = [key for key in ("configMapRef", "secretRef") if source.get(key) is not None]
        for key in found:
            name = source[key].get("name") or ""
            if name:
                yield from checked(f"{path}.{key}.name", name, subdomain_prefix)
            else:
                yield required(f"{path}.{key}.name")
        if not found:
            yield invalid(at, "", "must specify one of: `configMapRef` or `secretRef`")
        elif len(found) > 1:
            yield invalid(at, "", "may not have more than one field specified at a time")
