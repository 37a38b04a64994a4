"""
The status of NodePools: whether a pool can be used, and the resources of its nodes.

A pool that cannot be used creates no nodes; the condition says why.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.base.errors import DryrackError
from dryrack.client.endpoints import NODE_CLAIMS, NODE_POOLS, NODES
from dryrack.client.informer import name_of
from dryrack.client.timekeeping import timestamp
from dryrack.controllers.objects import is_deleted, labels_of, status_of, uid_of, with_condition
from dryrack.controllers.reconciler import Reconciler
from dryrack.controllers.writes import NOTHING, EngineContext, Patch, Plan
from dryrack.kinds.decode import DecodeError, decode
from dryrack.kinds.paths import get
from dryrack.kinds.provisioning import NODE_POOL, NodePool
from dryrack.kinds.quantity import Quantity
from dryrack.kinds.rules.cron_schedules import ScheduleError, parse_schedule

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dryrack.kinds.raw import Raw

# Several changes of the nodes of a pool become one write.
_COLLECT_SECONDS = 0.5


class InvalidPoolError(DryrackError):
    """A NodePool that cannot be used; the message says which field, why, and the fix."""


def decode_pool(raw: Raw) -> NodePool:
    """Return a NodePool, or raise `InvalidPoolError` if a field cannot be read."""
    try:
        return decode(raw, NodePool)
    except DecodeError as error:
        raise InvalidPoolError(str(error)) from None


def read_pool(raw: Raw) -> NodePool:
    """Return a NodePool that dryrack can use, or raise `InvalidPoolError`."""
    pool = decode_pool(raw)
    if pool.spec.replicas is not None:
        raise InvalidPoolError("spec.replicas: fixed numbers of nodes are not supported; remove it")
    policy = pool.spec.disruption.consolidation_policy
    if policy not in ("WhenEmpty", "WhenEmptyOrUnderutilized"):
        raise InvalidPoolError(
            f"spec.disruption.consolidationPolicy: {policy} is not supported; "
            "use WhenEmpty or WhenEmptyOrUnderutilized"
        )
    for number, budget in enumerate(pool.spec.disruption.budgets):
        try:
            if budget.schedule:
                parse_schedule(budget.schedule)
        except ScheduleError as error:
            field = f"spec.disruption.budgets[{number}].schedule"
            raise InvalidPoolError(f"{field}: {error}") from None
    return pool


def resources_of(nodes: Iterable[Raw]) -> dict[str, str]:
    """Return the sum of the resources of some NodeClaims or Nodes, and their number."""
    totals: dict[str, Quantity] = {}
    count = 0
    for node in nodes:
        count += 1
        for name, amount in get(node, "status.capacity", {}).items():
            quantity = Quantity.parse(str(amount))
            totals[name] = totals[name] + quantity if name in totals else quantity
    return {name: str(total) for name, total in sorted(totals.items())} | {"nodes": str(count)}


def plan(pool: Raw, nodes: Sequence[Raw], now: float) -> Plan:
    """Return the status of a pool with these nodes or NodeClaims, if it has changed."""
    if is_deleted(pool):
        return NOTHING
    try:
        read_pool(pool)
        failure = ""
    except InvalidPoolError as error:
        failure = str(error)
    conditions: Sequence[Raw] = get(pool, "status.conditions", ())
    for kind, is_about_spec in (
        ("ValidationSucceeded", True),
        ("NodeClassReady", False),
        ("Ready", True),
    ):
        is_true = not (failure and is_about_spec)
        new = {
            "type": kind,
            "status": "True" if is_true else "False",
            "reason": kind if is_true else "NodePoolValidationFailed",
            "message": "" if is_true else failure,
            "observedGeneration": pool["metadata"].get("generation", 1),
        }
        old = next((each for each in conditions if each["type"] == kind), {})
        if any(old.get(key, "") != value for key, value in new.items()):
            conditions = with_condition(conditions, {**new, "lastTransitionTime": timestamp(now)})
    resources = resources_of(nodes)
    wanted: Raw = {
        "conditions": list(conditions),
        "nodes": int(resources["nodes"]),
        "resources": resources,
    }
    status = status_of(pool)
    if all(status.get(key) == value for key, value in wanted.items()):
        return NOTHING
    gone: dict[str, str | None] = {
        key: None for key in get(pool, "status.resources", {}) if key not in resources
    }
    patch = {
        "metadata": {"uid": uid_of(pool)},
        "status": {**wanted, "resources": {**gone, **resources}},
    }
    return Plan((Patch(NODE_POOLS, name_of(pool), patch, "status"),))


class NodePools(Reconciler[str]):
    """Reports the status of NodePools."""

    def __init__(self, context: EngineContext) -> None:
        super().__init__(context, "dryrack-provisioner")
        self._claims = self.watch(NODE_CLAIMS)
        self._by_pool = self._claims.index("pool", _pool_names)
        self._nodes = self.watch(NODES)
        self._pools = self.watch(NODE_POOLS, self._on_pool)
        self._claims.listen(self._on_member)
        self._nodes.listen(self._on_member)

    def _on_pool(self, old: Raw | None, new: Raw | None) -> None:
        if new is not None:
            self.queue.add(new["metadata"]["name"])

    def _on_member(self, old: Raw | None, new: Raw | None) -> None:
        is_same = old is not None and new is not None and _capacity(old) == _capacity(new)
        for name in () if is_same else _pool_names(new or old or {}):
            self.queue.add_after(name, _COLLECT_SECONDS)

    async def decide(self, name: str) -> Plan:
        pool = self._pools.get("", name)
        if pool is None:
            return NOTHING
        members = [
            self._nodes.get("", each["metadata"]["name"]) or each
            for each in self._by_pool.get(name)
        ]
        return plan(pool, members, self._clock.now())


def _capacity(obj: Raw) -> object:
    return get(obj, "status.capacity", {}), labels_of(obj).get(NODE_POOL)


def _pool_names(obj: Raw) -> Sequence[str]:
    name = labels_of(obj).get(NODE_POOL) if obj else None
    return (name,) if name else ()
