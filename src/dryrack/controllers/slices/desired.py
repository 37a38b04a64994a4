"""
The desired slices of a node and of the whole cluster, and the writes that lead there.

A source that could not be read since the start may still be in force: whatever it has caused is
left as it is, and so is a node on which it would have been asked before those that now speak up.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from dryrack.client.endpoints import SLICES
from dryrack.client.informer import name_of
from dryrack.controllers.objects import annotations_of, fault_annotations, labels_of, uid_of
from dryrack.controllers.pods.virtual import KWOK_NODE, is_virtual
from dryrack.controllers.slices.published_counts import Row
from dryrack.controllers.writes import Create, Delete, Plan, Update, Write
from dryrack.hardware import (
    MANAGED_BY,
    MANAGER,
    NO_FAULTS,
    SOURCE,
    Matcher,
    SourceKind,
    ThisNode,
    node_owner,
    slices_of,
    source_label,
)
from dryrack.hardware.pool_plan import (
    CreateSlice,
    PoolId,
    UpdateSlice,
    document,
    is_same_spec,
    plan_pools,
    pool_of,
    with_known_times,
)
from dryrack.kinds.core import Node
from dryrack.kinds.meta import ObjectMeta
from dryrack.kinds.paths import get
from dryrack.kinds.selectors import strict_node_selector

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from dryrack.controllers.slices import PublisherSettings
    from dryrack.hardware import Assignment, Inventory, Matched, NodeFaults, Pool, Source
    from dryrack.hardware.pool_plan import SliceWrite
    from dryrack.kinds.meta import OwnerReference
    from dryrack.kinds.raw import Raw


# Which kind of source is asked first; those that are asked together have one number.
_PRECEDENCE = {
    SourceKind.OVERLAY: 0,
    SourceKind.CONFIG_MAP: 1,
    SourceKind.CONFIG: 1,
    SourceKind.CATALOGUE: 2,
}

_NO_SOURCE = 3


_CONTENTS = ("devices", "sharedCounters")


# The key of the pools of the whole cluster. No node has this name.
SHARED = ""


@dataclass(frozen=True, slots=True)
class Desired:
    """The slices of each pool, and which sources want them."""

    pools: Mapping[PoolId, Sequence[Raw]]
    row: Row
    precedence: int = _NO_SOURCE


NOTHING = Desired({}, Row({}))

# Where there is no node any more, all goes, whether the source that wanted it was read or not.
GONE = Desired({}, Row({}), precedence=-1)

# Where the driver is gone but for its slices, they stay, whatever they say.
AS_IT_IS = Desired({}, Row({}), precedence=-2)


# What a kubelet says of itself; KWOK says "kwok-v0.7.0", or "fake".
_KUBELET_VERSION = re.compile(r"v[0-9]+\.")


def is_ours(slice_: Raw) -> bool:
    """Return True if dryrack publishes the slice; all others belong to a driver."""
    return labels_of(slice_).get(MANAGED_BY) == MANAGER


def key_of(slice_: Raw) -> str:
    """Return the node of a slice, or `SHARED`: slices with one key are reconciled together."""
    return str(slice_["spec"].get("nodeName") or SHARED)


class DesiredSlices:
    """One inventory, ready to be asked for nodes."""

    def __init__(self, inventory: Inventory) -> None:
        self._matcher = Matcher(inventory)
        self._unread = {source_label(each): _PRECEDENCE[each.kind] for each in inventory.unread}
        self.has_shared = any(map(_is_shared, _assignments(inventory)))

    def on(self, node: Raw, faults: NodeFaults = NO_FAULTS) -> Desired:
        """What is to be on a node with these faults."""
        owner = node_owner(node["metadata"]["name"], node["metadata"]["uid"])
        matched = self._matcher.pools_of(typed(node))
        if faults.devices:
            pools = tuple(_faulty(pool, faults) for pool in matched.pools)
            matched = replace(matched, pools=pools)
        return _desired(matched, owner)

    def matched_by(self, node: Raw) -> tuple[int, ...]:
        """What a node matches of the whole cluster's, as numbers for `shared`."""
        return self._matcher.shared_of(typed(node)) if self.has_shared else ()

    def shared(self, matched: Iterable[int]) -> Desired:
        """What is to be there for the whole cluster."""
        return _desired(self._matcher.shared_pools(matched), None)

    def plans(self, desired: Desired, observed: Sequence[Raw]) -> dict[PoolId, Plan]:
        """What is to be written about each pool; those that are right are left out."""
        held = [(pool_of(each), self._held(each)) for each in observed] if self._unread else []
        if desired.row.is_node:
            if any(number is not None and number < desired.precedence for _, number in held):
                return {}
            left = {pool for pool, number in held if number == desired.precedence}
        else:
            left = {pool for pool, number in held if number is not None}
        plans = plan_pools(desired.pools, observed, untouched=left)
        return {pool: Plan(tuple(map(_write, writes))) for pool, writes in plans.items()}

    def _held(self, slice_: Raw) -> int | None:
        """The precedence of the unread source that a slice is from; None if it was read."""
        return self._unread.get(labels_of(slice_).get(SOURCE, ""))


def _write(write: SliceWrite) -> Write:
    obj = write.slice
    if isinstance(write, CreateSlice):
        return Create(SLICES, obj)
    if isinstance(write, UpdateSlice):
        return Update(SLICES, obj)
    return Delete(SLICES, name_of(obj), uid_of(obj), obj["metadata"]["resourceVersion"])


def _desired(matched: Matched, owner: OwnerReference | None) -> Desired:
    counts: Counter[Source] = Counter()
    pools = {}
    for pool in matched.pools:
        slices = slices_of(pool, owner=owner)
        counts.update(_sources(pool, [each.metadata.labels[SOURCE] for each in slices]))
        if slices:
            pools[PoolId(pool.driver, pool.name)] = [document(each) for each in slices]
    notes = frozenset((note.origin.source, note.message) for note in matched.notes)
    precedence = min((_PRECEDENCE[source.kind] for source in counts), default=_NO_SOURCE)
    return Desired(pools, Row(counts, notes, is_node=owner is not None), precedence)


def _faulty(pool: Pool, faults: NodeFaults) -> Pool:
    sections = tuple(replace(each, devices=faults.apply(each.devices)) for each in pool.sections)
    return replace(pool, sections=sections)


def _sources(pool: Pool, labels: Sequence[str]) -> Iterator[Source]:
    by_label = {source_label(each.origin.source): each.origin.source for each in pool.sections}
    return (by_label[label] for label in labels)


def _assignments(inventory: Inventory) -> Iterator[Assignment]:
    yield from (overlay.assignment for overlay in inventory.overlays)
    yield from inventory.assignments
    yield from (inventory.instance_types or {}).values()


def _is_shared(assignment: Assignment) -> bool:
    return any(not isinstance(batch.reach, ThisNode) for batch in assignment.batches)


class SharedMatches:
    """
    Which pools of the whole cluster at least one node matches, by the matcher's numbers.

    Counting makes a node that comes or goes cost the same however many others there are.
    """

    def __init__(self) -> None:
        self._by_node: dict[str, tuple[int, ...]] = {}
        self._counts: Counter[int] = Counter()

    @property
    def matched(self) -> frozenset[int]:
        return frozenset(self._counts)

    def replace(self, node: str, matched: tuple[int, ...]) -> bool:
        """Says what a node matches now; whether that changes what is matched at all."""
        old = self._by_node.pop(node, ())
        if matched:
            self._by_node[node] = matched
        if old == matched:
            return False
        before = self.matched
        self._counts.update(matched)
        self._counts.subtract(old)
        self._counts = +self._counts
        return self.matched != before


class DroppedFields:
    """
    Slices that the server did not store as they were sent; there are few, or all are.

    A server whose gates are off drops fields without a word. Slices would then differ from what is
    desired for ever, and be written for ever. What has become of a slice once is what it will
    become again, so that is what is desired from then on, until something else is.
    """

    def __init__(self) -> None:
        self._kept: dict[str, tuple[Raw, Raw]] = {}

    def learn(self, sent: Raw, stored: Raw) -> bool:
        """Whether something of it was dropped."""
        name = stored["metadata"]["name"]
        [timed] = with_known_times([sent], [stored])
        if is_same_spec(timed["spec"], stored["spec"]):
            self._kept.pop(name, None)
            return False
        self._kept[name] = _untimed(sent["spec"]), _contents(stored["spec"])
        return True

    def adapted(self, desired: Desired) -> Desired:
        """What will become of slices that are desired."""
        if not self._kept:
            return desired
        pools = {pool: [self._slice(each) for each in got] for pool, got in desired.pools.items()}
        return replace(desired, pools=pools)

    def _slice(self, desired: Raw) -> Raw:
        known = self._kept.get(desired["metadata"]["name"])
        if known is None or known[0] != _untimed(desired["spec"]):
            return desired
        spec = {key: value for key, value in desired["spec"].items() if key not in _CONTENTS}
        return desired | {"spec": spec | known[1]}

    def forget(self, name: str) -> None:
        """A slice that is gone need not be remembered."""
        self._kept.pop(name, None)


def _contents(spec: Mapping[str, Any]) -> Raw:
    return {key: spec[key] for key in _CONTENTS if key in spec}


def _untimed(spec: Mapping[str, Any]) -> Raw:
    contents = _contents(spec)
    devices = [_untimed_device(device) for device in contents.get("devices", ())]
    return contents | {"devices": devices}


def _untimed_device(device: Raw) -> Raw:
    taints = [
        {key: value for key, value in taint.items() if key != "timeAdded"}
        for taint in device.get("taints", ())
    ]
    return device | {"taints": taints} if taints else device


def is_kwok_node(node: Raw) -> bool:
    """Whether a node is marked as Karpenter marks those of its KWOK provider."""
    return KWOK_NODE in annotations_of(node)


def has_kubelet(node: Raw) -> bool:
    """Whether a machine stands behind a node, by what it tells about itself."""
    told = get(node, "status.nodeInfo", {})
    return not is_virtual(node) and bool(_KUBELET_VERSION.match(told.get("kubeletVersion") or ""))


def typed(node: Raw) -> Node:
    """As much of a node as selectors look at."""
    metadata = ObjectMeta(
        name=node["metadata"]["name"], labels=labels_of(node), annotations=_mark(node)
    )
    return Node(metadata=metadata)


class NodeFilter:
    """Tells the nodes that devices are published for from the others."""

    def __init__(self, options: PublisherSettings) -> None:
        self._selected = strict_node_selector(options.nodes) if options.nodes else None
        self._real_nodes = options.real_nodes

    def matches(self, node: Raw) -> bool:
        if has_kubelet(node) and not self._real_nodes:
            return False
        if self._selected is not None:
            return self._selected.matches(typed(node))
        return is_kwok_node(node) or self._real_nodes


def relevant_fields(node: Raw | None) -> tuple[object, ...]:
    """All about a node that decides which devices it has; its reports on itself do not."""
    if node is None:
        return ()
    return (
        node["metadata"].get("uid"),
        labels_of(node),
        _mark(node),
        has_kubelet(node),
        fault_annotations(node),
    )


def _mark(node: Raw) -> dict[str, str]:
    """Karpenter's annotation; no other says which devices there are."""
    return {key: value for key, value in annotations_of(node).items() if key == KWOK_NODE}
