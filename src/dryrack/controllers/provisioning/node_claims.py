"""The loop that moves NodeClaims through their life, and removes nodes without a NodeClaim."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.client.endpoints import NODE_CLAIMS, NODES, PODS, SLICES
from dryrack.client.informer import Name
from dryrack.controllers.objects import (
    finalizers_of,
    has_condition,
    is_deleted,
    node_names,
    spec_of,
    uid_of,
)
from dryrack.controllers.provisioning import lifecycle
from dryrack.controllers.provisioning.draining import must_leave
from dryrack.controllers.provisioning.lifecycle import Launching, NodeState
from dryrack.controllers.provisioning.node_bodies import PROVIDER
from dryrack.controllers.provisioning.offers import choose
from dryrack.controllers.reconciler import Reconciler
from dryrack.controllers.writes import (
    NOTHING,
    Delete,
    EngineContext,
    Plan,
    Write,
    without_finalizer,
)
from dryrack.kinds.decode import DecodeError, decode
from dryrack.kinds.provisioning import FINALIZER, NodeClaim

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from dryrack.controllers.provisioning.machines import Machine
    from dryrack.kinds.raw import Raw


def drivers_with_pools(slices: Iterable[Raw]) -> Collection[str]:
    """Return the drivers of which all pools among these slices are complete."""
    pools: dict[tuple[str, str], list[Raw]] = {}
    for each in slices:
        spec = spec_of(each)
        pools.setdefault((spec["driver"], spec["pool"]["name"]), []).append(spec["pool"])
    complete: dict[str, bool] = {}
    for (driver, _), parts in pools.items():
        newest = max(part.get("generation", 0) for part in parts)
        current = [part for part in parts if part.get("generation", 0) == newest]
        is_complete = len(current) >= current[0].get("resourceSliceCount", 1)
        complete[driver] = complete.get(driver, True) and is_complete
    return frozenset(driver for driver, is_complete in complete.items() if is_complete)


def remove_orphan(node: Raw) -> Plan:
    """Return the writes that remove a node whose NodeClaim does not exist."""
    if not str(spec_of(node).get("providerID") or "").startswith(PROVIDER):
        return NOTHING
    writes: list[Write] = []
    if not is_deleted(node):
        writes.append(Delete(NODES, Name("", node["metadata"]["name"]), uid_of(node)))
    elif FINALIZER in finalizers_of(node):
        writes.append(without_finalizer(NODES, node, FINALIZER))
    return Plan(tuple(writes))


class NodeClaims(Reconciler[str]):
    """Launches, initializes and removes the nodes of NodeClaims; keys are names of both."""

    def __init__(self, context: EngineContext, machines: Sequence[Machine]) -> None:
        super().__init__(context, "dryrack-provisioner")
        self._machines = {each.name: each for each in machines}
        self._claims = self.watch(NODE_CLAIMS)
        self._nodes = self.watch(NODES, self._on_object)
        self._pods = self.watch(PODS)
        self._by_node = self._pods.index("node", node_names)
        self._slices = self.watch(SLICES)
        self._slices_by_node = self._slices.index("node", node_names)
        self._claims.listen(self._on_object)
        self._pods.listen(self._on_pod)
        self._slices.listen(self._on_slice)

    def _on_object(self, old: Raw | None, new: Raw | None) -> None:
        obj = new or old
        if obj is not None:
            self.queue.add(obj["metadata"]["name"])

    def _on_pod(self, old: Raw | None, new: Raw | None) -> None:
        name = spec_of(new or old or {}).get("nodeName") or ""
        claim = self._claims.get("", name)
        if claim is not None and is_deleted(claim):
            self.queue.add(name)

    def _on_slice(self, old: Raw | None, new: Raw | None) -> None:
        name = spec_of(new or old or {}).get("nodeName") or ""
        claim = self._claims.get("", name)
        if claim is not None and not has_condition(claim, lifecycle.INITIALIZED_CONDITION):
            self.queue.add(name)

    async def decide(self, name: str) -> Plan:
        claim = self._claims.get("", name)
        node = self._nodes.get("", name)
        if claim is None:
            return NOTHING if node is None else remove_orphan(node)
        now = self._clock.now()
        draining = [each for each in self._by_node.get(name) if must_leave(each, now)]
        published = drivers_with_pools(self._slices_by_node.get(name))
        state = NodeState(node, draining, published)
        is_launched = has_condition(claim, lifecycle.LAUNCHED)
        launching = Launching(None) if is_launched else self._choose_machine(claim)
        return lifecycle.plan(claim, state, launching, now)

    def _choose_machine(self, claim: Raw) -> Launching:
        try:
            typed = decode(claim, NodeClaim)
        except DecodeError as error:
            return Launching(None, failure=f"the NodeClaim cannot be read: {error}")
        found = choose(
            typed.spec.requirements, typed.metadata.labels, list(self._machines.values())
        )
        if found is None:
            return Launching(None, failure="no instance type meets the requirements")
        return Launching(*found)
