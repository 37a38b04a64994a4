"""What is wrong with a container."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dryrack.apiserver.strategies import checks
from dryrack.kinds.quantity import Quantity
from dryrack.kinds.validation.names import (
    checked,
    label,
    label_key,
    subdomain,
    subdomain_prefix,
)
from dryrack.kinds.validation.problems import (
    FieldProblem,
    Reason,
    Token,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

Raw = dict[str, Any]

_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_MESSAGE_POLICIES = ("File", "FallbackToLogsOnError")
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_STANDARD = ("cpu", "ephemeral-storage", "memory")
_ENV_NAME = (
    "a valid environment variable name must consist only of printable ASCII characters other "
    "than '='"
)
_ENV_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
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
_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_COUNTS = (
    "initialDelaySeconds",
    "timeoutSeconds",
    "periodSeconds",
    "successThreshold",
    "failureThreshold",
)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the containers of a pod refer to."""

    volumes: frozenset[str]
    claims: Mapping[str, Sequence[FieldProblem]] = field(default_factory=dict)
    """Problems of the use of claims, by the field of the container."""


def containers(at: str, given: Sequence[Raw], around: Surroundings) -> Iterator[FieldProblem]:
    """The containers that run together."""
    if not given:
        yield required(at)
    seen: set[str] = set()
    for position, container in enumerate(given):
        path, name = f"{at}[{position}]", container.get("name") or ""
        yield from _common(path, container, around)
        if name in seen:
            yield duplicate(f"{path}.name", name)
        seen.add(name)
        yield from _handlers(path, container)
        yield from _probes(path, container)
    yield from _host_ports(at, given)


def init_containers(
    at: str, given: Sequence[Raw], regular: Sequence[Raw], around: Surroundings
) -> Iterator[FieldProblem]:
    """The containers that come first."""
    seen = {container.get("name") or "" for container in regular}
    for position, container in enumerate(given):
        path, name = f"{at}[{position}]", container.get("name") or ""
        yield from _common(path, container, around)
        if container.get("restartPolicy") not in (None, "Always", "Never", "OnFailure"):
            known = ("Always", "Never", "OnFailure")
            yield not_supported(f"{path}.restartPolicy", container["restartPolicy"], known)
        if name in seen:
            yield duplicate(f"{path}.name", name)
        seen.add(name)
        yield from _host_ports(at, [container])
        if container.get("restartPolicy") == "Always":
            yield from _handlers(path, container)
            yield from _probes(path, container)
        else:
            yield from _not_for_init(path, container)


def _not_for_init(at: str, container: Raw) -> Iterator[FieldProblem]:
    detail = "may not be set for init containers without restartPolicy=Always"
    for key in ("lifecycle", *_PROBES):
        if container.get(key) is not None:
            yield forbidden(f"{at}.{key}", detail)


def _common(at: str, given: Raw, around: Surroundings) -> Iterator[FieldProblem]:
    name = given.get("name") or ""
    yield from checked(f"{at}.name", name, label) if name else (required(f"{at}.name"),)
    if not given.get("image"):
        yield required(f"{at}.image")
    policy = given.get("terminationMessagePolicy") or ""
    yield from checks.one_of(f"{at}.terminationMessagePolicy", policy, _MESSAGE_POLICIES)
    yield from _ports(f"{at}.ports", given.get("ports") or ())
    yield from _env(f"{at}.env", given.get("env") or ())
    yield from _env_from(f"{at}.envFrom", given.get("envFrom") or ())
    yield from _mounts(f"{at}.volumeMounts", given.get("volumeMounts") or (), around.volumes)
    yield from checks.one_of(
        f"{at}.imagePullPolicy", given.get("imagePullPolicy") or "", _PULL_POLICIES
    )
    yield from resources(f"{at}.resources", given.get("resources") or {})
    yield from around.claims.get(at, ())
    yield from identities(f"{at}.securityContext", given.get("securityContext") or {})


def identities(at: str, given: Raw) -> Iterator[FieldProblem]:
    """Users and groups that there can be."""
    for key in ("fsGroup", "runAsUser", "runAsGroup"):
        if given.get(key) is not None:
            yield from checks.in_range(f"{at}.{key}", given[key], 0, checks.INT32_MAX)
    for position, group in enumerate(given.get("supplementalGroups") or ()):
        path = f"{at}.supplementalGroups[{position}]"
        yield from checks.in_range(path, group, 0, checks.INT32_MAX)


def _ports(at: str, given: Sequence[Raw]) -> Iterator[FieldProblem]:
    seen: set[str] = set()
    for position, port in enumerate(given):
        path, name = f"{at}[{position}]", port.get("name") or ""
        complaints = checks.port_name(name) if name else ()
        yield from (invalid(f"{path}.name", name, complaint) for complaint in complaints)
        if name and not complaints and name in seen:
            yield duplicate(f"{path}.name", name)
        seen.add(name)
        number = port.get("containerPort")
        if number:
            yield from checks.port_number(f"{path}.containerPort", number)
        else:
            yield required(f"{path}.containerPort")
        if port.get("hostPort"):
            yield from checks.port_number(f"{path}.hostPort", port["hostPort"])
        yield from checks.one_of(f"{path}.protocol", port.get("protocol") or "", _PROTOCOLS)


def _host_ports(at: str, given: Sequence[Raw]) -> Iterator[FieldProblem]:
    seen: set[str] = set()
    for index, container in enumerate(given):
        for position, port in enumerate(container.get("ports") or ()):
            if not port.get("hostPort"):
                continue
            known = f"{port.get('protocol')}/{port.get('hostIP', '')}/{port['hostPort']}"
            if known in seen:
                yield duplicate(f"{at}[{index}].ports[{position}].hostPort", known)
            seen.add(known)


def _env(at: str, given: Sequence[Raw]) -> Iterator[FieldProblem]:
    for position, variable in enumerate(given):
        path, name = f"{at}[{position}]", variable.get("name") or ""
        if not name:
            yield required(f"{path}.name")
        elif not _is_env_name(name):
            yield invalid(f"{path}.name", name, _ENV_NAME)
        if variable.get("valueFrom") is not None:
            yield from _env_source(f"{path}.valueFrom", variable)


def _is_env_name(name: str) -> bool:
    return name.isascii() and name.isprintable() and "=" not in name


def _env_source(at: str, variable: Raw) -> Iterator[FieldProblem]:
    source = variable["valueFrom"]
    found = [key for key in _ENV_SOURCES if source.get(key) is not None]
    for key in found:
        yield from _ENV_CHECKS[key](f"{at}.{key}", source[key])
    if not found:
        *most, last = (f"`{key}`" for key in _ENV_SOURCES)
        yield invalid(at, "", f"must specify one of: {', '.join(most)} or {last}")
    elif variable.get("value"):
        yield invalid(at, "", "may not be specified when `value` is not empty")
    elif len(found) > 1:
        yield invalid(at, "", "may not have more than one field specified at a time")


def _field_source(at: str, given: Raw) -> Iterator[FieldProblem]:
    path = given.get("fieldPath") or ""
    if not path:
        yield required(f"{at}.fieldPath")
        return
    if given.get("apiVersion") != "v1":
        told = f"unsupported pod version: {given.get('apiVersion')}"
        yield invalid(f"{at}.fieldPath", path, f"error converting fieldPath: {told}")
        return
    name, bracket, key = path.partition("['")
    if bracket and name in ("metadata.annotations", "metadata.labels") and key.endswith("']"):
        subscript = key.removesuffix("']")
        lowered = subscript.lower() if name.endswith("annotations") else subscript
        yield from checked(at, lowered, label_key)
    elif path not in _ENV_FIELDS:
        known = "metadata.annotations", "metadata.labels"
        if path in known:
            yield not_supported(f"{at}.fieldPath", path, _ENV_FIELDS)
            return
        detail = f"error converting fieldPath: field label not supported: {path}"
        yield invalid(f"{at}.fieldPath", path, detail)


def _resource_source(at: str, given: Raw) -> Iterator[FieldProblem]:
    if not given.get("resource"):
        yield required(f"{at}.resource")


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


_ENV_CHECKS: Mapping[str, Callable[[str, Raw], Iterator[FieldProblem]]] = {
    "fieldRef": _field_source,
    "resourceFieldRef": _resource_source,
    "configMapKeyRef": _key_source,
    "secretKeyRef": _key_source,
    "fileKeyRef": _file_source,
}


def _env_from(at: str, given: Sequence[Raw]) -> Iterator[FieldProblem]:
    for position, source in enumerate(given):
        path = f"{at}[{position}]"
        prefix = source.get("prefix") or ""
        if prefix and not _is_env_name(prefix):
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


def _mounts(at: str, given: Sequence[Raw], volumes: frozenset[str]) -> Iterator[FieldProblem]:
    seen: set[str] = set()
    for position, mount in enumerate(given):
        path, name = f"{at}[{position}]", mount.get("name") or ""
        where = mount.get("mountPath") or ""
        if not name:
            yield required(f"{path}.name")
        if name not in volumes:
            yield FieldProblem(Reason.NOT_FOUND, f"{path}.name", name)
        if not where:
            yield required(f"{path}.mountPath")
        if where in seen:
            yield invalid(f"{path}.mountPath", where, "must be unique")
        seen.add(where)
        yield from _sub_paths(at, mount)


def _sub_paths(at: str, mount: Raw) -> Iterator[FieldProblem]:
    for key in ("subPath", "subPathExpr"):
        path = mount.get(key) or ""
        if path.startswith("/"):
            yield invalid(f"{at}.{key}", path, "must be a relative path")
        if ".." in path.split("/"):
            yield invalid(f"{at}.{key}", path, "must not contain '..'")


def resources(at: str, given: Raw) -> Iterator[FieldProblem]:
    """Requests and limits, in the order of their names."""
    limits = {name: Quantity.from_json(each) for name, each in (given.get("limits") or {}).items()}
    requests = {
        name: Quantity.from_json(each) for name, each in (given.get("requests") or {}).items()
    }
    for name, amount in sorted(limits.items()):
        yield from _amount(f"{at}.limits[{name}]", name, amount)
    for name, amount in sorted(requests.items()):
        yield from _amount(f"{at}.requests[{name}]", name, amount)
        yield from _within_limit(at, name, amount, limits)
    names = {*limits, *requests}
    if any(name.startswith("hugepages-") for name in names) and not names & {"cpu", "memory"}:
        yield forbidden(at, "HugePages require cpu or memory")


def _amount(at: str, name: str, amount: Quantity) -> Iterator[FieldProblem]:
    complaints = [invalid(at, Token(name), each) for each in label_key(name)]
    yield from complaints
    is_known = name in _STANDARD or name.startswith("hugepages-")
    if not complaints and "/" not in name and not is_known:
        yield invalid(at, Token(name), "must be a standard resource type or fully qualified")
    if "/" not in name and not is_known:
        yield invalid(at, Token(name), "must be a standard resource for containers")
    elif "/" in name and not _is_extended(name) and not checks.is_native(name):
        yield invalid(at, Token(name), "doesn't follow extended resource name standard")
    yield from checks.quantity_problems(at, name, amount)


def _is_extended(name: str) -> bool:
    """Whether quota could name it: what everybody's own resources have to allow for."""
    if checks.is_native(name) or name.startswith("requests."):
        return False
    return not label_key(f"requests.{name}")


def _within_limit(
    at: str, name: str, amount: Quantity, limits: Mapping[str, Quantity]
) -> Iterator[FieldProblem]:
    limit, is_shareable = limits.get(name), checks.is_native(name) and "hugepages-" not in name
    if limit is None and not is_shareable:
        detail = "Limit must be set for non overcommitable resources"
        yield required(f"{at}.limits", detail)
    elif limit is not None and amount != limit and not is_shareable:
        detail = f"must be equal to {name} limit of {limit}"
        yield invalid(f"{at}.requests", str(amount), detail)
    elif limit is not None and amount > limit:
        detail = f"must be less than or equal to {name} limit of {limit}"
        yield invalid(f"{at}.requests", str(amount), detail)


def _handlers(at: str, container: Raw) -> Iterator[FieldProblem]:
    for key in ("postStart", "preStop"):
        hook = (container.get("lifecycle") or {}).get(key)
        if hook is not None:
            yield from _handler(f"{at}.lifecycle.{key}", hook)


def _probes(at: str, container: Raw) -> Iterator[FieldProblem]:
    for key in _PROBES:
        probe = container.get(key)
        if probe is None:
            continue
        path = f"{at}.{key}"
        yield from _handler(path, probe)
        for name in _COUNTS:
            yield from checks.non_negative(f"{path}.{name}", probe.get(name))
        once = probe.get("successThreshold", 1)
        if key != "readinessProbe" and once != 1:
            yield invalid(f"{path}.successThreshold", once, "must be 1")


def _handler(at: str, given: Raw) -> Iterator[FieldProblem]:
    found = [key for key in _HANDLERS if given.get(key) is not None]
    if not found:
        yield required(at, "must specify a handler type")
        return
    first, *others = found
    yield from _action(f"{at}.{first}", first, given[first])
    for key in others:
        yield forbidden(f"{at}.{key}", "may not specify more than 1 handler type")


def _action(at: str, kind: str, given: Raw) -> Iterator[FieldProblem]:
    if kind == "exec" and not given.get("command"):
        yield required(f"{at}.command")
    if kind in ("httpGet", "tcpSocket", "grpc"):
        yield from checks.port(f"{at}.port", given.get("port", 0))
    if kind == "httpGet" and given.get("scheme") not in ("HTTP", "HTTPS"):
        yield not_supported(f"{at}.scheme", given.get("scheme") or "", ("HTTP", "HTTPS"))
