"""Nodes."""

from __future__ import annotations

from ipaddress import ip_interface
from typing import TYPE_CHECKING

from dryrack.kinds.paths import get, status_of
from dryrack.kinds.quantity import Quantity
from dryrack.kinds.rules import checks
from dryrack.kinds.rules.json_edit import update_at
from dryrack.kinds.rules.kind_rules import KindRules
from dryrack.kinds.validation.names import label_value
from dryrack.kinds.validation.problems import FieldProblem, Reason, invalid

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dryrack.kinds.raw import Raw

_UNIQUE = "taints must be unique by key and effect pair"


class NodeRules(KindRules):
    """Node; the kubelet creates it with a status."""

    def __init__(self) -> None:
        super().__init__(namespaced=False, has_status=True)

    def default(self, obj: Raw) -> Raw:
        return update_at(update_at(obj, "spec", _ranges), "status", _allocatable)

    def as_new(self, obj: Raw) -> Raw:
        return obj

    def problems(self, obj: Raw) -> Sequence[FieldProblem]:
        return [*taint_problems(obj), *resource_problems(obj), *_range_problems(obj)]


def _ranges(spec: Raw) -> Raw:
    """Return the spec with equal podCIDR and podCIDRs; the old field has only the first range."""
    first = spec.get("podCIDR")
    ranges = get(spec, "podCIDRs", [])
    if first and not ranges:
        return {**spec, "podCIDRs": [first]}
    if ranges and ranges[0] != first:
        # The old field wins: old clients change only that one.
        return {**spec, "podCIDRs": [first]} if first else {**spec, "podCIDR": ranges[0]}
    return spec


def _allocatable(status: Raw) -> Raw:
    if "capacity" not in status or "allocatable" in status:
        return status
    return {**status, "allocatable": status["capacity"]}


def taint_problems(node: Raw) -> Iterator[FieldProblem]:
    """Check the taints of a node."""
    seen: set[tuple[str, str]] = set()
    for position, taint in enumerate(get(node, "spec.taints", ())):
        at = f"metadata.taints[{position}]"
        key = taint.get("key") or ""
        effect = taint.get("effect") or ""
        value = taint.get("value") or ""
        yield from checks.qualified_name(f"{at}.key", key)
        complaints = label_value(value)
        if complaints:
            yield invalid(f"{at}.value", value, ";".join(complaints))
        yield from checks.taint_effect(f"{at}.effect", effect, may_be_empty=False)
        if (key, effect) in seen:
            yield FieldProblem(Reason.DUPLICATE, at, taint, _UNIQUE)
        seen.add((key, effect))


def resource_problems(node: Raw) -> Iterator[FieldProblem]:
    """Check the amounts of resources in the status."""
    status = status_of(node)
    for part in ("capacity", "allocatable"):
        for name, amount in sorted((status.get(part) or {}).items()):
            at = f"status.{part}.{name}"
            yield from checks.quantity_problems(at, name, Quantity.from_json(amount))


def _range_problems(node: Raw) -> Iterator[FieldProblem]:
    ranges = get(node, "spec.podCIDRs", [])
    for position, text in enumerate(ranges):
        if not _is_range(text):
            detail = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
            yield invalid(f"spec.podCIDRs[{position}]", text, detail)
    if len(ranges) < 2:
        return
    wrong = [position for position, text in enumerate(ranges) if not _is_range(text)]
    for position in wrong[:1]:
        error = f"invalid CIDR[{position}]: <nil> (invalid CIDR address: {ranges[position]})"
        detail = f"invalid PodCIDRs. failed to check with dual stack with error:{error}"
        yield FieldProblem(Reason.INTERNAL, "spec.podCIDRs", ranges, detail)
    families = [":" in text for text in ranges]
    if wrong or len(families) > len(set(families)):
        detail = "may specify no more than one CIDR for each IP family"
        yield invalid("spec.podCIDRs", ranges, detail)


def _is_range(text: str) -> bool:
    try:
        ip_interface(text)
    except ValueError:
        return False
    return text.rpartition("/")[2].isdigit()
