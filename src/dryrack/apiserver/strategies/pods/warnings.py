"""What the server takes about a pod or a template, and warns of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dryrack.kinds.quantity import Quantity
from dryrack.kinds.quoting import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

Raw = dict[str, Any]

_LISTS = ("initContainers", "containers", "ephemeralContainers")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_NO_SELECTOR = "a null labelSelector results in matching no pod"
_WHOLE_BYTES = ("memory", "ephemeral-storage")


def warnings_of(at: str, spec: Raw) -> Iterator[str]:
    """In the server's order; `at` is the path of the spec."""
    for position, constraint in enumerate(spec.get("topologySpreadConstraints") or ()):
        if constraint.get("labelSelector") is None:
            yield f"{at}.topologySpreadConstraints[{position}].labelSelector: {_NO_SELECTOR}"
    for path, container in _containers(at, spec):
        yield from _fractions(path, container)
        yield from _hidden(path, container)
    yield from _same_ports(at, spec)
    yield from _same_port_names(at, spec)
    if (spec.get("terminationGracePeriodSeconds") or 0) < 0:
        told = "must be >= 0; negative values are invalid and will be treated as 1"
        yield f"{at}.terminationGracePeriodSeconds: {told}"
    yield from _affinity(f"{at}.affinity", spec.get("affinity") or {})


def _containers(at: str, spec: Raw) -> Iterator[tuple[str, Raw]]:
    for key in _LISTS:
        for position, container in enumerate(spec.get(key) or ()):
            yield f"{at}.{key}[{position}]", container


def _fractions(at: str, container: Raw) -> Iterator[str]:
    resources = container.get("resources") or {}
    for name in _WHOLE_BYTES:
        for part in ("limits", "requests"):
            amounts = resources.get(part) or {}
            amount = Quantity.from_json(amounts[name]) if name in amounts else None
            if amount is not None and amount.milli_value() % 1000:
                shown = quoted(str(amount))
                told = f"fractional byte value {shown} is invalid, must be an integer"
                yield f"{at}.resources.{part}[{name}]: {told}"


def _hidden(at: str, container: Raw) -> Iterator[str]:
    """Variables that are said twice, unless the later one builds upon the former."""
    seen: set[str] = set()
    for position, variable in enumerate(container.get("env") or ()):
        name, value = variable.get("name") or "", variable.get("value") or ""
        former = f"$({name})"
        builds = former in value and value != former and variable.get("valueFrom") is None
        if name in seen and not builds:
            told = f"hides previous definition of {quoted(name)}, which may be dropped when using"
            yield f"{at}.env[{position}]: {told} apply"
        seen.add(name)


def _ports(at: str, spec: Raw) -> Iterator[tuple[str, Raw]]:
    for path, container in _containers(at, spec):
        for position, port in enumerate(container.get("ports") or ()):
            yield f"{path}.ports[{position}]", port


def _same_ports(at: str, spec: Raw) -> Iterator[str]:
    known: list[tuple[str, Raw]] = []
    for path, port in _ports(at, spec):
        for other, former in known:
            relation = _relation(port, former)
            if relation:
                yield f"{path}: {relation} port definition with {other}"
        known.append((path, port))


def _relation(port: Raw, other: Raw) -> str:
    if any(port.get(key) != other.get(key) for key in ("containerPort", "protocol")):
        return ""
    address, others = port.get("hostIP") or "", other.get("hostIP") or ""
    number, former = port.get("hostPort") or 0, other.get("hostPort") or 0
    if (address, number) == (others, former):
        return "duplicate"
    if not number or not former:
        return "overlapping"
    return "dangerously ambiguous" if number == former and (not address or not others) else ""


def _same_port_names(at: str, spec: Raw) -> Iterator[str]:
    known: dict[str, str] = {}
    for path, port in _ports(at, spec):
        name = port.get("name") or ""
        if name in known:
            first = known[name]
            told = f"services and probes that select ports by name will use {first}"
            yield f"{path}: duplicate port name {quoted(name)} with {first}, {told}"
        elif name:
            known[name] = path


def _affinity(at: str, given: Raw) -> Iterator[str]:
    for key in ("podAffinity", "podAntiAffinity"):
        terms = given.get(key) or {}
        for position, term in enumerate(terms.get(_REQUIRED) or ()):
            if term.get("labelSelector") is None:
                yield f"{at}.{key}.{_REQUIRED}[{position}].labelSelector: {_NO_SELECTOR}"
        for position, wish in enumerate(terms.get(_PREFERRED) or ()):
            if (wish.get("podAffinityTerm") or {}).get("labelSelector") is None:
                path = f"{at}.{key}.{_PREFERRED}[{position}].podAffinityTerm.labelSelector"
                yield f"{path}: {_NO_SELECTOR}"
