"""Warnings about pods and pod templates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dryrack.kinds.paths import get, spec_of
from dryrack.kinds.quantity import Quantity
from dryrack.kinds.text.quoting import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dryrack.kinds.raw import Raw

_LISTS = ("initContainers", "containers", "ephemeralContainers")
_WHOLE_BYTES = ("memory", "ephemeral-storage")


def warnings_of(at: str, pod: Raw) -> Iterator[str]:
    """In the server's order; `at` is the path of a template, and "" for a pod itself."""
    prefix = f"{at}." if at else ""
    spec = spec_of(pod)
    path = f"{prefix}spec"
    for where, container in _containers(path, spec):
        yield from _fractions(f"{where}.resources", get(container, "resources", {}), _WHOLE_BYTES)
        yield from _hidden(where, container)
    yield from _same_ports(path, spec)
    yield from _same_port_names(path, spec)
    if (spec.get("terminationGracePeriodSeconds") or 0) < 0:
        advice = "must be >= 0; negative values are invalid and will be treated as 1"
        yield f"{path}.terminationGracePeriodSeconds: {advice}"


def _containers(at: str, spec: Raw) -> Iterator[tuple[str, Raw]]:
    for key in _LISTS:
        for position, container in enumerate(spec.get(key) or ()):
            yield f"{at}.{key}[{position}]", container


def _fractions(at: str, resources: Raw, names: Sequence[str]) -> Iterator[str]:
    for name in names:
        for part in ("limits", "requests"):
            amounts = resources.get(part) or {}
            amount = Quantity.from_json(amounts[name]) if name in amounts else None
            if amount is not None and amount.milli_value() % 1000:
                shown = quoted(str(amount))
                told = f"fractional byte value {shown} is invalid, must be an integer"
                yield f"{at}.{part}[{name}]: {told}"


def _hidden(at: str, container: Raw) -> Iterator[str]:
    """Variables that are said twice, unless the later one builds upon the former."""
    seen: set[str] = set()
    for position, variable in enumerate(get(container, "env", ())):
        name = variable.get("name") or ""
        value = variable.get("value") or ""
        former = f"$({name})"
        builds = former in value and value != former and variable.get("valueFrom") is None
        if name in seen and not builds:
            told = f"hides previous definition of {quoted(name)}, which may be dropped when using"
            yield f"{at}.env[{position}]: {told} apply"
        seen.add(name)


def _ports(at: str, spec: Raw) -> Iterator[tuple[str, Raw]]:
    for path, container in _containers(at, spec):
        for position, port in enumerate(get(container, "ports", ())):
            yield f"{path}.ports[{position}]", port


def _same_ports(at: str, spec: Raw) -> Iterator[str]:
    # Only ports with the same number and protocol can be at odds.
    known: dict[tuple[Any, Any], list[tuple[str, Raw]]] = {}
    for path, port in _ports(at, spec):
        alike = known.setdefault((port.get("containerPort"), port.get("protocol")), [])
        for other, former in alike:
            relation = _relation(port, former)
            if relation:
                yield f"{path}: {relation} port definition with {other}"
        alike.append((path, port))


def _relation(port: Raw, other: Raw) -> str:
    if any(port.get(key) != other.get(key) for key in ("containerPort", "protocol")):
        return ""
    address = port.get("hostIP") or ""
    others = other.get("hostIP") or ""
    number = port.get("hostPort") or 0
    former = other.get("hostPort") or 0
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
