"""
The state of the cluster for the dashboard: typed objects, and the rows that each change concerns.

`Tracked.change` gets every created, changed or deleted object; `take` returns the rows that differ
now. The module never waits, reads a clock or calls the cluster.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dryrack.client.endpoints import (
    CLAIMS,
    CLASSES,
    EVENTS,
    NODES,
    PODS,
    SLICES,
    TAINT_RULES,
    TEMPLATES,
)
from dryrack.dashboard.data.fleet import Fleet, PoolKey, PoolRow
from dryrack.dashboard.data.listed import event_row, node_row, pod_row, unhealthy_resources
from dryrack.dashboard.data.rows import Buckets, RowChanges, Rows
from dryrack.kinds.core import Node, Pod
from dryrack.kinds.decode import DecodeError, decode
from dryrack.kinds.expansion.pod_claims import named_claim
from dryrack.kinds.resource import DeviceTaintRule, ResourceClaim
from dryrack.placement import Membership, claims_of, definitions, gangs_of, membership

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from dryrack.client.endpoints import Endpoint
    from dryrack.kinds.meta import KubernetesObject
    from dryrack.kinds.raw import Raw
    from dryrack.placement import GangKey, GangView

Document = dict[str, Any]
# Number of rows computed before other tasks run: some milliseconds.
_POOLS_MAX = 50
_ROWS_MAX = 200


@dataclass(slots=True)
class Changes:
    """The changed rows of the page."""

    pools: RowChanges[PoolKey, PoolRow] = field(default_factory=RowChanges)
    nodes: RowChanges[str, Document] = field(default_factory=RowChanges)
    claims: RowChanges[str, Document] = field(default_factory=RowChanges)
    gangs: RowChanges[GangKey, tuple[Document, ...]] = field(default_factory=RowChanges)
    pods: RowChanges[str, Document] = field(default_factory=RowChanges)
    events: RowChanges[str, Document] = field(default_factory=RowChanges)

    def __bool__(self) -> bool:
        parts = (self.pools, self.nodes, self.claims, self.gangs, self.pods, self.events)
        return any(map(bool, parts))


class Tracked:
    """Typed objects of the cluster, and the rows that are computed from them."""

    def __init__(self, group_models: Mapping[Endpoint, type[KubernetesObject]]) -> None:
        """`group_models` are the kinds that define gangs."""
        self._group_models = group_models
        self.fleet = Fleet()
        self.nodes: Rows[str, Document] = Rows(self._node_row)
        self.claims: Rows[str, Document] = Rows(self._claim_row)
        self.gangs: Rows[GangKey, tuple[Document, ...]] = Rows(self._gang_rows)
        self.pods: Rows[str, Document] = Rows(self._pod_row)
        self.events: Rows[str, Document] = Rows(self._event_row)
        self._nodes: dict[str, Node] = {}
        self._pods: dict[str, Pod] = {}
        self._claims: dict[str, ResourceClaim] = {}
        self._events: dict[str, Raw] = {}
        # Events by the kind and name of their object.
        self._about: Buckets[tuple[str, str], Raw] = Buckets()
        # Pods by claim, and by the definition of their gang.
        self._users: Buckets[str, Pod] = Buckets()
        self._members: Buckets[GangKey, Pod] = Buckets()
        self._on_nodes: Buckets[str, Pod] = Buckets()
        self._groups: Buckets[GangKey, KubernetesObject] = Buckets()

    def pod(self, name: str) -> Pod | None:
        return self._pods.get(name)

    def node(self, name: str) -> Node | None:
        return self._nodes.get(name)

    def pods_on(self, node: str) -> Mapping[str, Pod]:
        """Return the pods that are bound to a node."""
        return self._on_nodes.of(node)

    def claim(self, name: str) -> ResourceClaim | None:
        return self._claims.get(name)

    def users_of(self, claim: str) -> Mapping[str, Pod]:
        """Return the pods that use a claim."""
        return self._users.of(claim)

    def gang_views(self, definition: GangKey) -> tuple[GangView, ...]:
        """Return the gangs of one definition."""
        return gangs_of(self._members.of(definition).values(), self._groups.of(definition).values())

    def events_about(self, kind: str, names: Iterable[str]) -> list[Document]:
        """Return the events about objects of a kind, named "namespace/name"."""
        events = (event for name in names for event in self._about.of((kind, name)))
        return [self.events.current[each] for each in events if each in self.events.current]

    def change(self, kind: Endpoint, old: Raw | None, new: Raw | None) -> None:
        """Update the rows after an object was created, changed or deleted."""
        raw = new or old
        assert raw is not None, "a change has an old or a new object"
        name = _name(raw)
        if kind == SLICES:
            self.fleet.change_slice(old, new)
        elif kind == PODS:
            self._change_pod(name, decode(new, Pod) if new is not None else None)
            self.fleet.change_health(name, unhealthy_resources(new or {}))
        elif kind == CLAIMS:
            self._change_claim(name, decode(new, ResourceClaim) if new is not None else None)
        elif kind == NODES:
            node = decode(new, Node) if new is not None else None
            _put(self._nodes, name, node)
            self.nodes.mark(name)
            self.fleet.change_node(name, node)
        elif kind == TAINT_RULES:
            self.fleet.change_rule(name, decode(new, DeviceTaintRule) if new is not None else None)
        elif kind == EVENTS:
            self._change_event(name, new)
        elif kind in self._group_models:
            self._change_group(kind, old, new)
        else:
            assert kind in (CLASSES, TEMPLATES), f"unexpected kind {kind.resource}"

    def take(self) -> Changes:
        """Return some of the changed rows; call it until `is_marked` is False."""
        return Changes(
            self.fleet.take(_POOLS_MAX),
            self.nodes.take(_ROWS_MAX),
            self.claims.take(_ROWS_MAX),
            self.gangs.take(_ROWS_MAX),
            self.pods.take(_ROWS_MAX),
            self.events.take(_ROWS_MAX),
        )

    @property
    def is_marked(self) -> bool:
        parts = (self.nodes, self.claims, self.gangs, self.pods, self.events)
        return self.fleet.pools.is_marked or any(each.is_marked for each in parts)

    def _change_pod(self, name: str, new: Pod | None) -> None:
        old = self._pods.get(name)
        _put(self._pods, name, new)
        self.pods.mark(name)
        for each in (old, new):
            if each is not None and each.spec.node_name:
                self._on_nodes.put(each.spec.node_name, name, new if each is new else None)
            for claim in _claims_of(each):
                self._users.put(claim, name, new if each is new else None)
                self.claims.mark(claim)
            member = membership(each) if each is not None else None
            definition = member.key.definition if isinstance(member, Membership) else None
            if definition is not None:
                self._members.put(definition, name, new if each is new else None)
                self.gangs.mark(definition)
        namespace, _, bare = name.partition("/")
        self.fleet.change_pod(namespace, bare, new)

    def _change_claim(self, name: str, new: ResourceClaim | None) -> None:
        self.fleet.change_claim(name, self._claims.get(name), new)
        _put(self._claims, name, new)
        self.claims.mark(name)

    def _change_group(self, kind: Endpoint, old: Raw | None, new: Raw | None) -> None:
        for raw, stays in ((old, False), (new, True)):
            group = _group(raw, self._group_models[kind])
            if raw is None or group is None:
                continue
            name = f"{kind.api_version} {_name(raw)}"
            for each in definitions(group):
                self._groups.put(each.key, name, group if stays else None)
                self.gangs.mark(each.key)

    def _change_event(self, name: str, new: Raw | None) -> None:
        old = self._events.get(name)
        if old is not None:
            self._about.put(_about(old), name, None)
        if new is not None:
            self._about.put(_about(new), name, new)
        _put(self._events, name, new)
        self.events.mark(name)

    def _node_row(self, name: str) -> Document | None:
        node = self._nodes.get(name)
        return node_row(node) if node is not None else None

    def _claim_row(self, name: str) -> Document | None:
        claim = self._claims.get(name)
        if claim is None:
            return None
        [view] = claims_of([claim], self._users.of(name).values())
        return view.document()

    def _gang_rows(self, definition: GangKey) -> tuple[Document, ...] | None:
        return tuple(each.document() for each in self.gang_views(definition)) or None

    def _pod_row(self, name: str) -> Document | None:
        pod = self._pods.get(name)
        return pod_row(pod) if pod is not None else None

    def _event_row(self, name: str) -> Document | None:
        raw = self._events.get(name)
        return event_row(raw) if raw is not None else None


def _put(objects: dict[str, Any], name: str, new: object | None) -> None:
    if new is None:
        objects.pop(name, None)
    else:
        objects[name] = new


def _claims_of(pod: Pod | None) -> Iterator[str]:
    if pod is None:
        return
    for entry in pod.spec.resource_claims:
        name = named_claim(pod, entry)
        if name:
            yield f"{pod.metadata.namespace}/{name}"
    extended = pod.status.extended_resource_claim_status
    if extended is not None and extended.resource_claim_name:
        yield f"{pod.metadata.namespace}/{extended.resource_claim_name}"


def _group(raw: Raw | None, model: type[KubernetesObject]) -> KubernetesObject | None:
    """Return the group; None for a custom object with unexpected fields."""
    try:
        return decode(raw, model) if raw is not None else None
    except DecodeError:
        return None


def _about(raw: Raw) -> tuple[str, str]:
    about = event_row(raw)["object"]
    return about["kind"], f"{about['namespace']}/{about['name']}"


def _name(raw: Raw) -> str:
    metadata = raw["metadata"]
    namespace = metadata.get("namespace", "")
    return f"{namespace}/{metadata['name']}" if namespace else str(metadata["name"])
