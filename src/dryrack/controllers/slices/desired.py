"""
The desired slices of a node and of the whole cluster, and the writes that lead to them.

A source that could not be read since the start may still be valid in the cluster. So slices from it
stay as they are, and a node stays as it is if such a source has precedence over the sources that
now have devices for the node.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

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
    from collections.abc import Iterable, Mapping, Sequence

    from dryrack.controllers.slices import PublisherSettings
    from dryrack.hardware import Inventory, Matched, NodeFaults, Source
    from dryrack.hardware.pool_plan import SliceWrite
    from dryrack.kinds.meta import OwnerReference
    from dryrack.kinds.raw import Raw

# The kinds of sources in the order of their precedence. Kinds with one number are used together.
_PRECEDENCE = {
    SourceKind.OVERLAY: 0,
    SourceKind.CONFIG_MAP: 1,
    SourceKind.CONFIG: 1,
    SourceKind.CATALOGUE: 2,
}
_NO_SOURCE = 3
_CONTENTS = (
    *("devices", "partitionTypeAttribute", "perDeviceNodeSelection", "sharedCounters"),
    "skipNodeOperations",
)

# The key of the pools of the whole cluster. No node has this name.
SHARED = ""

# The version that a kubelet reports. KWOK reports "kwok-v0.7.0" or "fake".
_KUBELET_VERSION = re.compile(r"v[0-9]+\.")


def is_ours(slice_: Raw) -> bool:
    """Return True if dryrack publishes the slice; all others belong to a driver."""
    return labels_of(slice_).get(MANAGED_BY) == MANAGER


def key_of(slice_: Raw) -> str:
    """Return the node of a slice, or `SHARED`: slices with one key are reconciled together."""
    return str(slice_["spec"].get("nodeName") or SHARED)


@dataclass(frozen=True, slots=True)
class Desired:
    """The slices of each pool, and the sources that want them."""

    pools: Mapping[PoolId, Sequence[Raw]]
    row: Row
    precedence: int = _NO_SOURCE


NOTHING = Desired({}, Row({}))
# For a node that no longer exists: all slices are deleted, also those of unread sources.
GONE = Desired({}, Row({}), precedence=-1)
# For a driver that a fault has removed: its slices stay as they are.
AS_IT_IS = Desired({}, Row({}), precedence=-2)


class DesiredSlices:
    """Computes the desired slices of nodes from one inventory."""

    def __init__(self, inventory: Inventory) -> None:
        self._matcher = Matcher(inventory)
        self._unread = {source_label(each): _PRECEDENCE[each.kind] for each in inventory.unread}
        assignments = (
            *(overlay.assignment for overlay in inventory.overlays),
            *inventory.assignments,
            *(inventory.instance_types or {}).values(),
        )
        self.has_shared = any(
            not isinstance(batch.reach, ThisNode) for each in assignments for batch in each.batches
        )

    def on(self, node: Raw, faults: NodeFaults = NO_FAULTS) -> Desired:
        """Return what is desired on a node with these faults."""
        matched = self._matcher.pools_of(typed_node(node))
        if faults.devices:
            pools = tuple(
                replace(
                    pool,
                    sections=tuple(
                        replace(each, devices=faults.apply(each.devices)) for each in pool.sections
                    ),
                )
                for pool in matched.pools
            )
            matched = replace(matched, pools=pools)
        return _desired(matched, node_owner(node["metadata"]["name"], node["metadata"]["uid"]))

    def matched_by(self, node: Raw) -> tuple[int, ...]:
        """Return the numbers of the pools of the whole cluster that a node matches."""
        return self._matcher.shared_of(typed_node(node)) if self.has_shared else ()

    def shared(self, matched: Iterable[int]) -> Desired:
        """Return what is desired for the whole cluster, by the numbers of `matched_by`."""
        return _desired(self._matcher.shared_pools(matched), None)

    def plans(self, desired: Desired, observed: Sequence[Raw]) -> dict[PoolId, Plan]:
        """Return the writes for each pool that is not as desired."""
        # The precedence of the unread source that each slice is from.
        unread = [
            (pool_of(each), self._unread[label])
            for each in observed
            if self._unread and (label := labels_of(each).get(SOURCE, "")) in self._unread
        ]
        if desired.row.is_node:
            if any(precedence < desired.precedence for _, precedence in unread):
                return {}
            untouched = {pool for pool, number in unread if number == desired.precedence}
        else:
            untouched = {pool for pool, _ in unread}
        plans = plan_pools(desired.pools, observed, untouched=untouched)
        return {pool: Plan(tuple(map(_write_of, writes))) for pool, writes in plans.items()}


def _write_of(write: SliceWrite) -> Write:
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
        sources = {source_label(each.origin.source): each.origin.source for each in pool.sections}
        counts.update(sources[each.metadata.labels[SOURCE]] for each in slices)
        if slices:
            pools[PoolId(pool.driver, pool.name)] = [document(each) for each in slices]
    notes = frozenset((note.origin.source, note.message) for note in matched.notes)
    precedence = min((_PRECEDENCE[source.kind] for source in counts), default=_NO_SOURCE)
    return Desired(pools, Row(counts, notes, is_node=owner is not None), precedence)


class SharedMatches:
    """
    The pools of the whole cluster that at least one node matches, by the matcher's numbers.

    Because they are counted, the cost of a node does not depend on the number of the others.
    """

    def __init__(self) -> None:
        self._by_node: dict[str, tuple[int, ...]] = {}
        self._counts: Counter[int] = Counter()

    @property
    def matched(self) -> frozenset[int]:
        return frozenset(self._counts)

    def replace(self, node: str, matched: tuple[int, ...]) -> bool:
        """Set what a node matches; return True if that changes `matched`."""
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
    The contents of slices from which the API server dropped fields.

    A server with disabled feature gates drops fields without an error. To write the same slice
    again would change nothing, so the stored contents become the desired ones, until the publisher
    desires other contents.
    """

    def __init__(self) -> None:
        self._stored: dict[str, tuple[Raw, Raw]] = {}
        """By the name of a slice: the contents that were sent, and those that were stored."""

    def learn(self, sent: Raw, stored: Raw) -> bool:
        """Compare a sent slice with the stored one; return True if fields were dropped."""
        name = stored["metadata"]["name"]
        [timed] = with_known_times([sent], [stored])
        if is_same_spec(timed["spec"], stored["spec"]):
            self._stored.pop(name, None)
            return False
        self._stored[name] = _without_times(sent["spec"]), _contents(stored["spec"])
        return True

    def adapt(self, desired: Desired) -> Desired:
        """Return what is desired, with the stored contents where fields would be dropped again."""
        if not self._stored:
            return desired

        def adapt_slice(slice_: Raw) -> Raw:
            known = self._stored.get(slice_["metadata"]["name"])
            if known is None or known[0] != _without_times(slice_["spec"]):
                return slice_
            rest = {key: value for key, value in slice_["spec"].items() if key not in _CONTENTS}
            return slice_ | {"spec": rest | known[1]}

        pools = {pool: list(map(adapt_slice, slices)) for pool, slices in desired.pools.items()}
        return replace(desired, pools=pools)

    def forget(self, name: str) -> None:
        """Forget a slice that was deleted."""
        self._stored.pop(name, None)


def _contents(spec: Raw) -> Raw:
    return {key: spec[key] for key in _CONTENTS if key in spec}


def _without_times(spec: Raw) -> Raw:
    """Return the contents of a spec without the times of taints, which the server sets."""
    contents = _contents(spec)
    devices = []
    for device in contents.get("devices", ()):
        taints = [
            {key: value for key, value in taint.items() if key != "timeAdded"}
            for taint in device.get("taints", ())
        ]
        devices.append(device | {"taints": taints} if taints else device)
    return contents | {"devices": devices}


class NodeFilter:
    """
    Selects the nodes that devices are published for.

    Without a selector these are the nodes with Karpenter's annotation; labels like those of KWOK do
    not count. A node with a kubelet is left out even if a selector matches it: its pods would wait
    for devices that no driver on the node can prepare.
    """

    def __init__(self, settings: PublisherSettings) -> None:
        self._selector = strict_node_selector(settings.nodes) if settings.nodes else None
        self._real_nodes = settings.real_nodes

    def matches(self, node: Raw) -> bool:
        if has_kubelet(node) and not self._real_nodes:
            return False
        if self._selector is not None:
            return self._selector.matches(typed_node(node))
        return is_kwok_node(node) or self._real_nodes


def is_kwok_node(node: Raw) -> bool:
    """Return True if a node has the annotation of Karpenter's KWOK provider."""
    return KWOK_NODE in annotations_of(node)


def has_kubelet(node: Raw) -> bool:
    """Return True if the status of a node shows that it is a real machine."""
    version = get(node, "status.nodeInfo.kubeletVersion", "")
    return not is_virtual(node) and bool(_KUBELET_VERSION.match(version))


def typed_node(node: Raw) -> Node:
    """Return the parts of a node that selectors read."""
    return Node(
        metadata=ObjectMeta(
            name=node["metadata"]["name"], labels=labels_of(node), annotations=_kwok_mark(node)
        )
    )


def relevant_fields(node: Raw | None) -> tuple[object, ...]:
    """Return the fields of a node that decide which devices it has."""
    if node is None:
        return ()
    return (
        node["metadata"].get("uid"),
        labels_of(node),
        _kwok_mark(node),
        has_kubelet(node),
        fault_annotations(node),
    )


def _kwok_mark(node: Raw) -> dict[str, str]:
    """Return Karpenter's annotation, the only one by which devices are chosen."""
    return {key: value for key, value in annotations_of(node).items() if key == KWOK_NODE}
