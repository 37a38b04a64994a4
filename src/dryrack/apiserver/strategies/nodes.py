"""
Nodes.

A real server taints a new node as not ready until the kubelet reports. Virtual nodes report at
once, so dryrack does not taint them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.apiserver.strategy import Strategy, keep_status, object_meta
from dryrack.kinds.paths import get, spec_of
from dryrack.kinds.rules.nodes import NodeRules, resource_problems, taint_problems
from dryrack.kinds.validation.meta import metadata
from dryrack.kinds.validation.problems import duplicate, forbidden

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from dryrack.apiserver.strategy import Write
    from dryrack.kinds.raw import Raw
    from dryrack.kinds.validation import FieldProblem


_FIXED = 'node updates may not change {name} except from "" to valid'


class NodeStrategy(Strategy):
    """Nodes. A new node can have a status."""

    selectable_fields = ("spec.unschedulable",)
    field_refusal = "field label not supported: {label}"

    def __init__(self) -> None:
        super().__init__(NodeRules())

    def prepare_create(self, obj: Raw, write: Write) -> Raw:
        """Keep the status: the kubelet creates a node with its status."""
        return obj

    def prepare_update(self, obj: Raw, old: Raw, write: Write) -> Raw:
        if write.subresource == "status":
            return {**obj, "spec": spec_of(old)}
        return keep_status(obj, old)

    def change_problems(self, obj: Raw, old: Raw, write: Write) -> Sequence[FieldProblem]:
        found = list(_changes(obj, old))
        if write.subresource == "status":
            return found
        whole = [*metadata(object_meta(obj), self.naming, namespaced=False)]
        return [*whole, *self.rules.problems(obj), *found]

    def fields(self, obj: Raw) -> Mapping[str, str]:
        is_closed = bool(get(obj, "spec.unschedulable"))
        return {"spec.unschedulable": "true" if is_closed else "false"}


def _changes(node: Raw, old: Raw) -> Iterator[FieldProblem]:
    yield from resource_problems(node)
    seen: list[Raw] = []
    for position, address in enumerate(get(node, "status.addresses", ())):
        if address in seen:
            yield duplicate(f"status.addresses[{position}]", address)
        seen.append(address)
    spec = spec_of(node)
    before = spec_of(old)
    if before.get("podCIDRs") and before["podCIDRs"] != spec.get("podCIDRs"):
        yield forbidden("spec.podCIDRs", _FIXED.format(name="podCIDR"))
    if before.get("providerID") and before["providerID"] != spec.get("providerID"):
        yield forbidden("spec.providerID", _FIXED.format(name="providerID"))
    yield from taint_problems(node)
