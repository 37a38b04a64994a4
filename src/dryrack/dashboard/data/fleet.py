"""
The devices of every pool with their states, and the number of free devices by model.

States and free counts come from the code of `dryrack devices`, for one pool at a time: a changed
slice, claim, pod or node concerns few pools, and the others stay as they are. The dashboard adds
two states: `prepared`, a device whose pod runs, and `unhealthy`, a device that its taints or the
status of its pod report as unhealthy.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from dryrack.allocation import apply_taint_rules
from dryrack.dashboard.data.placements import Placement, placements_of
from dryrack.dashboard.data.rows import Buckets, Rows
from dryrack.kinds.decode import decode
from dryrack.kinds.paths import get, spec_of
from dryrack.kinds.pool_generation import newest_generation
from dryrack.kinds.resource import ResourceSlice
from dryrack.placement import DeviceState, ModelSummary, devices_of, free_at_once

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from dryrack.dashboard.data.rows import RowChanges
    from dryrack.kinds.core import Node, Pod
    from dryrack.kinds.quantity import Quantity
    from dryrack.kinds.raw import Raw
    from dryrack.kinds.resource import DeviceTaint, DeviceTaintRule, ResourceClaim
    from dryrack.placement import DeviceView

PREPARED = "prepared"
UNHEALTHY = "unhealthy"
# In the order of the page; devices in the first two states can be allocated.
STATES = (
    *("free", "shared", "allocated", PREPARED, "conflict", "blocked", "tainted", UNHEALTHY),
    *("cordoned", "not ready", "no node", "incomplete", "withdrawn"),
)
# A device in one of these states is used by a claim.
_USED = frozenset(("shared", "allocated", PREPARED, "conflict"))

PoolKey = tuple[str, str]


class DeviceRow(NamedTuple):
    """A device on the map."""

    name: str
    node: str
    model: str
    state: str
    # The used percentage of a device that claims share; else -1.
    level: int = -1
    # The physical device of a partition: the first set of counters that it takes from.
    counter_set: str = ""
    placement: Placement | None = None
    # The memory of the device, such as "80Gi"; "" if it publishes none.
    memory: str = ""

    def document(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "node": self.node,
            "model": self.model,
            "state": self.state,
            "level": self.level,
            "counterSet": self.counter_set,
            "placement": self.placement.document() if self.placement is not None else None,
            "memory": self.memory,
        }


class FreeCount(NamedTuple):
    """The devices of a model in a pool that can be allocated at the same time on a node."""

    node: str
    model: str
    free: int
    is_exact: bool


class PoolRow(NamedTuple):
    """The devices of a pool, in its order, and how many of them can be allocated."""

    driver: str
    name: str
    devices: tuple[DeviceRow, ...]
    free: tuple[FreeCount, ...] = ()

    def document(self) -> dict[str, Any]:
        devices = [each.document() for each in self.devices]
        return {"driver": self.driver, "pool": self.name, "devices": devices}


class Fleet:
    """Devices and their states, from slices, claims, pods, nodes and taint rules."""

    def __init__(self) -> None:
        self.pools: Rows[PoolKey, PoolRow] = Rows(self._pool_row)
        self.summaries = Summaries()
        self._slices: Buckets[PoolKey, Raw] = Buckets()
        self._claims: Buckets[PoolKey, ResourceClaim] = Buckets()
        self._rules: dict[str, DeviceTaintRule] = {}
        self._nodes: dict[str, Node] = {}
        # Slices by the node that they name; "" for slices of several nodes.
        self._slices_on: Buckets[str, PoolKey] = Buckets()
        self._running: set[tuple[str, str]] = set()
        # By pod, "namespace/name": messages by device that its kubelet reports as unhealthy.
        self._unhealthy: dict[str, Mapping[str, str]] = {}
        # By pod: the claims that are reserved for it.
        self._used: Buckets[tuple[str, str], ResourceClaim] = Buckets()

    def change_slice(self, old: Raw | None, new: Raw | None) -> None:
        for each, stays in ((old, False), (new, True)):
            if each is None:
                continue
            spec = spec_of(each)
            key = (str(spec.get("driver", "")), str(get(spec, "pool", {}).get("name", "")))
            name = each["metadata"]["name"]
            self._slices.put(key, name, each if stays else None)
            self._slices_on.put(spec.get("nodeName") or "", name, key if stays else None)
            self.pools.mark(key)

    def change_node(self, name: str, new: Node | None) -> None:
        """Set a node; its readiness, labels and cordon decide which devices are free."""
        if _node_facts(self._nodes.get(name)) == _node_facts(new):
            return
        if new is None:
            del self._nodes[name]
        else:
            self._nodes[name] = new
        self.pools.mark(*self._slices_on.of(name).values(), *self._slices_on.of("").values())

    def change_claim(self, name: str, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        for claim, stays in ((old, False), (new, True)):
            if claim is None:
                continue
            kept = claim if stays else None
            for user in claim.status.reserved_for:
                self._used.put((claim.metadata.namespace, user.name), name, kept)
            for key in _pools_of(claim):
                self._claims.put(key, name, kept)
                self.pools.mark(key)

    def change_rule(self, name: str, new: DeviceTaintRule | None) -> None:
        if new is None:
            self._rules.pop(name, None)
        else:
            self._rules[name] = new
        self.pools.mark_all(self._slices)

    def change_health(self, pod: str, unhealthy: Mapping[str, str]) -> None:
        """Set the devices that the kubelet of a pod reports as unhealthy."""
        if unhealthy == self._unhealthy.get(pod, {}):
            return
        if unhealthy:
            self._unhealthy[pod] = unhealthy
        else:
            del self._unhealthy[pod]
        namespace, _, name = pod.partition("/")
        for claim in self._used.of((namespace, name)).values():
            self.pools.mark(*_pools_of(claim))

    def change_pod(self, namespace: str, name: str, pod: Pod | None) -> None:
        key = (namespace, name)
        runs = pod is not None and pod.status.phase == "Running"
        if runs == (key in self._running):
            return
        (self._running.add if runs else self._running.discard)(key)
        for claim in self._used.of(key).values():
            self.pools.mark(*_pools_of(claim))

    def take(self, count_max: int) -> RowChanges[PoolKey, PoolRow]:
        """Return the changed pools, and update the summaries."""
        changes = self.pools.take(count_max)
        for key in changes.after:
            self.summaries.change(changes.before[key], changes.after[key])
        return changes

    def slices_of(self, key: PoolKey) -> Sequence[ResourceSlice]:
        """Return the slices of a pool, sorted by name."""
        found = self._slices.of(key)
        return [decode(found[name], ResourceSlice) for name in sorted(found)]

    def views_of(self, key: PoolKey) -> tuple[DeviceView, ...]:
        """Return the devices of a pool as `dryrack devices` shows them."""
        return self._views(key, self.slices_of(key))

    def _views(self, key: PoolKey, slices: Sequence[ResourceSlice]) -> tuple[DeviceView, ...]:
        held = self._claims.of(key)
        claims = [held[name] for name in sorted(held)]
        # A pool of one node must not cost as much as the cluster has nodes.
        names: Iterable[str] = self._nodes
        if all(each.spec.node_name for each in slices):
            names = dict.fromkeys(each.spec.node_name or "" for each in slices)
        nodes = [self._nodes[name] for name in names if name in self._nodes]
        views = devices_of(slices, claims, list(self._rules.values()), nodes)
        # The same claims may have devices of other pools.
        return tuple(each for each in views if (each.driver, each.pool) == key)

    def state_of(self, view: DeviceView) -> str:
        """Return the state of a device on the map."""
        if self.health_reports(view) or any(_reports_failure(taint) for taint in view.taints):
            return UNHEALTHY
        if view.state is DeviceState.ALLOCATED and self._is_prepared(view):
            return PREPARED
        return str(view.state)

    def health_reports(self, view: DeviceView) -> Mapping[str, str]:
        """Return the message for each pod whose kubelet reports this device as unhealthy."""
        claims = self._claims.of((view.driver, view.pool))
        reports = {}
        for holder in view.holders:
            for pod in (each for each in holder.pods if each in self._unhealthy):
                names = _names(claims[holder.claim], view)
                for name, message in self._unhealthy[pod].items():
                    if {name, name.partition("=")[2]} & names:
                        reports[pod] = message
        return reports

    def pools_on(self, node: str) -> Iterable[PoolKey]:
        """Return the pools of the slices that may have devices on a node."""
        return dict.fromkeys((*self._slices_on.of(node).values(), *self._slices_on.of("").values()))

    def taints_of(self, key: PoolKey, name: str) -> Iterator[dict[str, str]]:
        """Yield the taints of a device, each with the DeviceTaintRule that adds it."""
        slices = newest_generation(self.slices_of(key), lambda each: each.spec.pool).slices
        before: tuple[DeviceTaint, ...] = ()
        for rule in (None, *self._rules.values()):
            tainted = apply_taint_rules(slices, [rule]) if rule is not None else slices
            devices = (each for one in tainted for each in one.spec.devices if each.name == name)
            taints = next((each.taints for each in devices), ())
            if rule is None:
                before = taints
            for taint in taints if rule is None else taints[len(before) :]:
                yield {
                    "key": taint.key,
                    "value": taint.value,
                    "effect": taint.effect,
                    "since": taint.time_added or "",
                    "rule": rule.metadata.name if rule is not None else "",
                }

    def _is_prepared(self, view: DeviceView) -> bool:
        """Return whether a pod runs: its devices were prepared before its containers started."""
        users = [tuple(pod.split("/", 1)) for each in view.holders for pod in each.pods]
        return any(each in self._running for each in users)

    def _pool_row(self, key: PoolKey) -> PoolRow | None:
        rows = []
        slices = self.slices_of(key)
        views = self._views(key, slices)
        placements = placements_of(slices)
        for view in views:
            used = [
                used_percent(view.capacity[name], left)
                for name, left in view.left.items()
                if name in view.capacity
            ]
            row = DeviceRow(
                view.device,
                view.node,
                view.model,
                self.state_of(view),
                level=max(used, default=-1),
                counter_set=view.counter_sets[0] if view.counter_sets else "",
                placement=placements.get(view.device),
                memory=_memory(view.capacity),
            )
            rows.append(row)
        return PoolRow(*key, tuple(rows), tuple(_free_counts(views, rows))) if rows else None


def _memory(capacity: Mapping[str, Quantity]) -> str:
    """Return the capacity `memory`, which may have the domain of its driver."""
    own = capacity.get("memory")
    if own is not None:
        return str(own)
    return next((str(each) for name, each in capacity.items() if name.endswith("/memory")), "")


def _free_counts(views: Sequence[DeviceView], rows: Sequence[DeviceRow]) -> Iterator[FreeCount]:
    """Yield the free counts of a pool; an unhealthy device is not free."""
    found: dict[tuple[str, str], list[DeviceView]] = defaultdict(list)
    for view, row in zip(views, rows, strict=True):
        if row.state in ("free", "shared"):
            found[view.node, view.model].append(view)
    for (node, model), free in found.items():
        at_once = free_at_once(free)
        yield FreeCount(node, model, at_once.count, at_once.is_exact)


class Summaries:
    """Counts of devices by driver and model, updated with each changed pool."""

    def __init__(self) -> None:
        self._models: dict[tuple[str, str], _Model] = defaultdict(_Model)

    def change(self, old: PoolRow | None, new: PoolRow | None) -> None:
        for row, sign in ((old, -1), (new, 1)):
            if row is None:
                continue
            changed: dict[tuple[str, str], _NodeCount] = defaultdict(_NodeCount)
            for device in row.devices:
                if device.state != DeviceState.WITHDRAWN:
                    count = changed[device.model, device.node]
                    count.devices += sign
                    count.used += sign * (device.state in _USED)
                    self._models[row.driver, device.model].states[device.state] += sign
            for each in row.free:
                changed[each.model, each.node].free += sign * each.free
                changed[each.model, each.node].inexact += sign * (not each.is_exact)
            for (model, node), count in changed.items():
                self._models[row.driver, model].add(node, count)
        for kind in [each for each, model in self._models.items() if not model.nodes]:
            del self._models[kind]

    def states(self) -> dict[str, int]:
        """Return the number of devices by state."""
        counts: Counter[str] = sum((each.states for each in self._models.values()), Counter())
        return {state: counts[state] for state in STATES if counts[state]}

    def documents(self) -> list[dict[str, Any]]:
        """Return the summaries of `dryrack devices -o json`, with states and fragmentation."""
        return [model.document(*kind) for kind, model in sorted(self._models.items())]


@dataclass(slots=True)
class _NodeCount:
    """The devices of a model on a node."""

    devices: int = 0
    used: int = 0
    free: int = 0
    # The number of pools for which only a lower bound of the free devices is known.
    inexact: int = 0


class _Model:
    """The devices of a model, by node."""

    def __init__(self) -> None:
        self.nodes: dict[str, _NodeCount] = {}
        self.states: Counter[str] = Counter()
        # The number of nodes by free devices and all devices.
        self._histogram: Counter[tuple[int, int]] = Counter()
        # The free devices on nodes of which no device of the model is used.
        self._untouched = 0
        self._inexact = 0

    def add(self, node: str, change: _NodeCount) -> None:
        count = self.nodes.setdefault(node, _NodeCount())
        self._count(count, -1)
        count.devices += change.devices
        count.used += change.used
        count.free += change.free
        count.inexact += change.inexact
        self._count(count, 1)
        if not count.devices:
            del self.nodes[node]

    def _count(self, node: _NodeCount, sign: int) -> None:
        if node.devices:
            self._histogram[node.free, node.devices] += sign
            self._untouched += 0 if node.used else sign * node.free
            self._inexact += sign * node.inexact

    def document(self, driver: str, model: str) -> dict[str, Any]:
        summary = ModelSummary.of(driver, model, +self._histogram, is_exact=not self._inexact)
        return {
            **summary.document(),
            "states": {state: self.states[state] for state in STATES if self.states[state]},
            # The share of free devices on nodes where other devices of the model are used.
            "fragmentation": round(1 - self._untouched / summary.free, 3) if summary.free else 0.0,
        }


def fleet_document(pools: Sequence[PoolRow], nodes: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the map in columns, which compress well: 80,000 devices are some megabytes."""
    names, models, sets, memories = _Table(), _Table(), _Table(), _Table()
    placements: dict[Placement | None, int] = {None: -1}
    places = _Table(each["name"] for each in nodes)
    columns: dict[str, list[int]] = {
        each: []
        for each in (
            *("pool", "node", "name", "model", "state", "level"),
            *("counterSet", "placement", "memory"),
        )
    }
    states = {state: place for place, state in enumerate(STATES)}
    for number, pool in enumerate(pools):
        for device in pool.devices:
            columns["pool"].append(number)
            columns["node"].append(places[device.node])
            columns["name"].append(names[device.name])
            columns["model"].append(models[device.model])
            columns["state"].append(states[device.state])
            columns["level"].append(device.level)
            columns["counterSet"].append(sets[device.counter_set])
            number_known = len(placements) - 1
            columns["placement"].append(placements.setdefault(device.placement, number_known))
            columns["memory"].append(memories[device.memory])
    known = len(nodes)
    return {
        "states": list(STATES),
        "names": list(names),
        "models": list(models),
        "counterSets": list(sets),
        "placements": [each.document() for each in placements if each is not None],
        "memories": list(memories),
        "nodes": {
            "name": list(places),
            **{
                column: [*(each[column] for each in nodes), *([default] * (len(places) - known))]
                for column, default in _NODE_COLUMNS.items()
            },
        },
        "pools": {
            "driver": [each.driver for each in pools],
            "name": [each.name for each in pools],
        },
        "devices": columns,
    }


# Values for a node that the cluster does not have.
_NODE_COLUMNS: Mapping[str, Any] = {
    "zone": "",
    "rack": "",
    "instanceType": "",
    "ready": None,
    "cordoned": None,
}


class _Table(dict[str, int]):
    """Texts and their numbers, in the order of the first use."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        super().__init__((text, place) for place, text in enumerate(texts))

    def __missing__(self, text: str) -> int:
        self[text] = len(self)
        return self[text]


def used_percent(total: Quantity, left: Quantity) -> int:
    """Return the used percentage of a capacity."""
    return 100 * (total.nanos - left.nanos) // total.nanos if total.nanos else 0


def _pools_of(claim: ResourceClaim) -> Iterator[PoolKey]:
    allocation = claim.status.allocation
    results = allocation.devices.results if allocation is not None else ()
    yield from dict.fromkeys((each.driver, each.pool) for each in results)


def _names(claim: ResourceClaim, view: DeviceView) -> set[str]:
    """
    Return the names that a kubelet may use for a device of a claim.

    They are "driver/pool/name" and the CDI devices in the status of the claim. Most drivers compose
    the name of a CDI device, the part after "=", from the UID of the claim and the device name.
    """
    key = (view.driver, view.pool, view.device)
    allocation = claim.status.allocation
    results = allocation.devices.results if allocation is not None else ()
    uid = claim.metadata.uid
    names = {"/".join(key), f"{uid}-{view.device}"}
    for each in results:
        if (each.driver, each.pool, each.device) == key and each.share_id:
            names.add(f"{uid}-{view.device}-{each.share_id}")
    for status in claim.status.devices:
        if (status.driver, status.pool, status.device) == key and isinstance(status.data, dict):
            cdi_ids = status.data.get("cdiDeviceIDs")
            names.update(map(str, cdi_ids if isinstance(cdi_ids, list) else ()))
    return names


def _node_facts(node: Node | None) -> object:
    """Return what decides whether the devices of a node are free."""
    if node is None:
        return None
    ready = [each.status for each in node.status.conditions if each.type == "Ready"]
    return ready, node.spec.unschedulable, node.metadata.labels


def _reports_failure(taint: str) -> bool:
    """Return whether a taint, "key:effect", means that the device does not work."""
    key, _, effect = taint.rpartition(":")
    return effect == "NoExecute" or "health" in key.lower()
