"""
Nodes.

A real server taints a new node as not ready, and a controller takes the taint away when the
kubelet has reported. Virtual nodes report at once, so that nothing is gained by it here.
"""

from __future__ import annotations

from ipaddress import ip_interface
from typing import TYPE_CHECKING

from dryrack.apiserver.strategies import checks
from dryrack.apiserver.strategies.copies import within
from dryrack.apiserver.strategy import PlainStrategy, keep_status, object_meta
from dryrack.kinds.quantity import Quantity
from dryrack.kinds.validation.meta import metadata
from dryrack.kinds.validation.names import label_value
from dryrack.kinds.validation.problems import FieldProblem, Reason, duplicate, forbidden, invalid

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from dryrack.apiserver.strategy import Write
    from dryrack.kinds.raw import Raw

_FIXED = 'node updates may not change {name} except from "" to valid'
_UNIQUE = "taints must be unique by key and effect pair"


class NodeStrategy(PlainStrategy):
    """Nodes as the server stores them."""

    selectable_fields = ("spec.unschedulable",)
    field_refusal = "field label not supported: {label}"

    def __init__(self) -> None:
        super().__init__(namespaced=False, has_status=True)

    def default(self, obj: Raw, write: Write) -> Raw:
        return within(within(obj, "spec", _ranges), "status", _allocatable)

    def prepare_create(self, obj: Raw, write: Write) -> Raw:
        """A node comes with its status: the kubelet has always done so."""
        return obj

    def problems(self, obj: Raw, write: Write) -> Sequence[FieldProblem]:
        return [*_taints(obj), *_resources(obj), *_range_problems(obj)]

    def prepare_update(self, obj: Raw, old: Raw, write: Write) -> Raw:
        if write.subresource == "status":
            return {**obj, "spec": old.get("spec") or {}}
        return keep_status(obj, old)

    def change_problems(self, obj: Raw, old: Raw, write: Write) -> Sequence[FieldProblem]:
        found = list(_changes(obj, old))
        if write.subresource == "status":
            return found
        whole = [*metadata(object_meta(obj), self.naming, namespaced=False)]
        return [*whole, *self.problems(obj, write), *found]

    def fields(self, obj: Raw) -> Mapping[str, str]:
        is_closed = bool((obj.get("spec") or {}).get("unschedulable"))
        return {"spec.unschedulable": "true" if is_closed else "false"}


def _ranges(spec: Raw) -> Raw:
    """The range has an old name for the first and a new one for all."""
    first, ranges = spec.get("podCIDR"), spec.get("podCIDRs") or []
    if first and not ranges:
        return {**spec, "podCIDRs": [first]}
    if ranges and ranges[0] != first:
        # The old name wins: who knows only that one changes only that one.
        return {**spec, "podCIDRs": [first]} if first else {**spec, "podCIDR": ranges[0]}
    return spec


def _allocatable(status: Raw) -> Raw:
    if "capacity" not in status or "allocatable" in status:
        return status
    return {**status, "allocatable": status["capacity"]}


def _taints(node: Raw) -> Iterator[FieldProblem]:
    seen: set[tuple[str, str]] = set()
    for position, taint in enumerate((node.get("spec") or {}).get("taints") or ()):
        at, key = f"metadata.taints[{position}]", taint.get("key") or ""
        effect, value = taint.get("effect") or "", taint.get("value") or ""
        yield from checks.qualified(f"{at}.key", key)
        complaints = label_value(value)
        if complaints:
            yield invalid(f"{at}.value", value, ";".join(complaints))
        yield from checks.taint_effect(f"{at}.effect", effect, may_be_empty=False)
        if (key, effect) in seen:
            shown = {"Key": key, "Value": value, "Effect": effect}
            shown["TimeAdded"] = taint.get("timeAdded")
            yield FieldProblem(Reason.DUPLICATE, at, shown, _UNIQUE)
        seen.add((key, effect))


def _resources(node: Raw) -> Iterator[FieldProblem]:
    status = node.get("status") or {}
    for part in ("capacity", "allocatable"):
        for name, amount in sorted((status.get(part) or {}).items()):
            at = f"status.{part}.{name}"
            yield from checks.quantity_problems(at, name, Quantity.from_json(amount))


def _range_problems(node: Raw) -> Iterator[FieldProblem]:
    ranges = (node.get("spec") or {}).get("podCIDRs") or []
    for position, text in enumerate(ranges):
        if not _is_range(text):
            detail = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
            yield invalid(f"spec.podCIDRs[{position}]", text, detail)
    if len(ranges) < 2:
        return
    wrong = [position for position, text in enumerate(ranges) if not _is_range(text)]
    for position in wrong[:1]:
        told = f"invalid CIDR[{position}]: <nil> (invalid CIDR address: {ranges[position]})"
        detail = f"invalid PodCIDRs. failed to check with dual stack with error:{told}"
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


def _changes(node: Raw, old: Raw) -> Iterator[FieldProblem]:
    yield from _resources(node)
    seen: list[Raw] = []
    for position, address in enumerate((node.get("status") or {}).get("addresses") or ()):
        if address in seen:
            yield duplicate(f"status.addresses[{position}]", address)
        seen.append(address)
    spec, before = node.get("spec") or {}, old.get("spec") or {}
    if before.get("podCIDRs") and before["podCIDRs"] != spec.get("podCIDRs"):
        yield forbidden("spec.podCIDRs", _FIXED.format(name="podCIDR"))
    if before.get("providerID") and before["providerID"] != spec.get("providerID"):
        yield forbidden("spec.providerID", _FIXED.format(name="providerID"))
    yield from _taints(node)
