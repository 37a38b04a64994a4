"""
NodeAllocationState: a node's fake devices, the claims that have them, and the prepared claims.

It is for people; no program decides by it. It is compared with the wanted state whenever a claim, a
device or the node changes, and written if it differs.
"""

from __future__ import annotations

import asyncio
import logging
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dryrack.client.client import Selection
from dryrack.client.endpoints import CLAIMS, NODES, Endpoint
from dryrack.client.errors import ApiError, NotFoundError, TransportError
from dryrack.client.informer import Informer
from dryrack.client.timekeeping import sleep
from dryrack.hardware import node_owner
from dryrack.kinds.decode import decode, to_builtins
from dryrack.kinds.paths import get
from dryrack.kinds.resource import ResourceClaim
from dryrack.kubeletplugin.device_kind import PrepareError
from dryrack.kubeletplugin.kinds.fake import split_of, uuid_of
from dryrack.kubeletplugin.prepare import NodeDevices, allocated_devices
from dryrack.kubeletplugin.record import State

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from dryrack.base.ports import Chance
    from dryrack.client.client import Client
    from dryrack.client.informer import Informers
    from dryrack.client.timekeeping import Timekeeper
    from dryrack.kinds.raw import Raw
    from dryrack.kubeletplugin.kinds.fake import FakeKind
    from dryrack.kubeletplugin.plugin import NodePlugin
    from dryrack.kubeletplugin.record import ClaimRecord, PreparedDevice
    from dryrack.kubeletplugin.virtual import VirtualDrivers

_logger = logging.getLogger(__name__)

STATES = Endpoint(
    "nas.fake.resource.3-shake.com", "v1alpha1", "nodeallocationstates", "NodeAllocationState"
)
STATE_NAMESPACE = "fake-system"
_RETRY_SECONDS = 1.0
# A definition that was just applied is served soon; a person may apply it much later.
_UNSERVED_SECONDS_MAX = 30.0
_DEVICE_VARIABLE = re.compile(r"FAKE_DEVICE_\d+")


def allocation_state(
    kind: FakeKind,
    node: Raw,
    claims: Iterable[ResourceClaim],
    prepared: Iterable[ClaimRecord],
    *,
    namespace: str,
    is_ready: bool,
) -> Raw:
    """Return the object of a node; `claims` are those with devices on it."""
    name = node["metadata"]["name"]
    uid = node["metadata"]["uid"]
    devices = NodeDevices.of(kind, name)
    offered = kind.devices(name)
    # By the name of a child device: the UUID of the whole device.
    wholes = {each.name: each.attributes.get("parentUUID") for each in offered}
    parents = {key: parent.string_value or "" for key, parent in wholes.items() if parent}
    spec: Raw = {
        "allocatableDevice": [
            {"fake": {"uuid": uuid_of(name, device.name), "name": kind.model}} for device in offered
        ],
        "allocatedClaims": {
            claim.metadata.uid: {"fake": {"devices": _allocated_devices(claim, devices)}}
            for claim in claims
        },
        "preparedDevices": {
            record.uid: {
                "fake": {"devices": [e for d in record.devices for e in _ready(d, name, parents)]}
            }
            for record in prepared
        },
    }
    owner = to_builtins(node_owner(name, uid))
    return {
        "metadata": {"name": name, "namespace": namespace, "ownerReferences": [owner]},
        "spec": {field: value for field, value in spec.items() if value},
        "status": "Ready" if is_ready else "NotReady",
    }


def _allocated_devices(claim: ResourceClaim, devices: NodeDevices) -> list[Raw]:
    try:
        return [
            {"uuid": uuid_of(devices.node, device.device), "split": split_of(device)}
            for device in allocated_devices(claim, devices)
        ]
    except PrepareError:
        # Invalid parameters or lost devices: the pod has an event about them.
        return []


def _ready(device: PreparedDevice, node: str, parents: Mapping[str, str]) -> Iterator[Raw]:
    own = uuid_of(node, device.device)
    for name, uuid in device.edits.env:
        if _DEVICE_VARIABLE.fullmatch(name):
            parent = parents.get(device.device) if uuid == own else own
            yield {"uuid": uuid, "parentUUID": parent} if parent else {"uuid": uuid}


@dataclass(frozen=True, slots=True)
class StateCaches:
    """The caches of the states, and of the objects that they depend on."""

    nodes: Informer
    claims: Informer
    states: Informer
    own: tuple[Informer, ...]
    """The informers that `AllocationStates` has to run."""


@dataclass(frozen=True, slots=True)
class StateTerms:
    """The nodes that have states, and the sources of their contents."""

    namespace: str
    includes: Callable[[Raw], bool]
    is_ready: Callable[[Raw], bool]
    prepared: Callable[[str], Iterable[ClaimRecord]]


class AllocationStates:
    """Keeps the NodeAllocationState objects of nodes with fake devices."""

    def __init__(
        self,
        client: Client,
        kind: FakeKind,
        caches: StateCaches,
        terms: StateTerms,
        *,
        clock: Timekeeper,
    ) -> None:
        self.driver = kind.driver
        self._client = client
        self._kind = kind
        self._caches = caches
        self._terms = terms
        self._clock = clock
        self._by_node = caches.claims.index(f"nodes of {kind.driver}", self._nodes_of)
        self._due: set[str] = set()
        self._changed = asyncio.Event()

    async def run(self) -> None:
        """Run until it is cancelled."""
        await self._wait_until_served()
        caches = self._caches
        async with asyncio.TaskGroup() as group:
            for informer in caches.own:
                group.create_task(informer.run(), name=f"cache of {informer.endpoint.plural}")
            for informer in (caches.nodes, caches.claims, caches.states):
                await informer.synced.wait()
            caches.nodes.listen(self._on_node)
            caches.claims.listen(self._on_claim)
            caches.states.listen(self._on_state)
            while True:
                await self._changed.wait()
                self._changed.clear()
                for name in sorted(self._due):
                    self._due.discard(name)
                    await self._write(name)

    def mark(self, node: str) -> None:
        """Write the state of a node again."""
        self._due.add(node)
        self._changed.set()

    async def retire(self, node: str) -> None:
        """Mark the state of a node as NotReady, when the plugin ends for good."""
        try:
            state = await self._client.get(STATES, node, self._terms.namespace)
            await self._client.update(STATES, {**state, "status": "NotReady"})
        except (ApiError, TransportError) as error:
            _logger.debug("allocation state of %s not written: %s", node, error)

    async def _wait_until_served(self) -> None:
        """Wait until the kind is served."""
        selection = Selection(namespace=self._terms.namespace)
        is_reported = False
        seconds = _RETRY_SECONDS
        while True:
            try:
                return await self._client.peek(STATES, selection)
            except NotFoundError:
                if not is_reported:
                    hint = "apply the output of `dryrack plugin --print-crds`, or use --no-nas"
                    _logger.warning("NodeAllocationState is not served: %s", hint)
                    is_reported = True
            except (ApiError, TransportError) as error:
                _logger.warning("allocation states not written: %s", error)
            await sleep(self._clock, seconds)
            seconds = min(2 * seconds, _UNSERVED_SECONDS_MAX)

    async def _write(self, name: str) -> None:
        terms = self._terms
        node = self._caches.nodes.get("", name)
        if node is None or not terms.includes(node) or "deletionTimestamp" in node["metadata"]:
            return
        claims = [decode(each, ResourceClaim) for each in self._by_node.get(name)]
        wanted = allocation_state(
            self._kind,
            node,
            claims,
            terms.prepared(name),
            namespace=terms.namespace,
            is_ready=terms.is_ready(node),
        )
        stored = self._caches.states.get(terms.namespace, name)
        try:
            if stored is None:
                await self._client.create(STATES, wanted)
            elif _content(wanted) != _content(stored):
                revision = stored["metadata"]["resourceVersion"]
                metadata = {**wanted["metadata"], "resourceVersion": revision}
                await self._client.update(STATES, {**wanted, "metadata": metadata})
        except (ApiError, TransportError) as error:
            # Mostly the cache lacks the last write; the next try succeeds.
            _logger.debug("allocation state of %s not written: %s", name, error)
            self.mark(name)
            await sleep(self._clock, _RETRY_SECONDS)

    def _on_node(self, old: Raw | None, new: Raw | None) -> None:
        if new is None:
            return
        if old is None or self._terms.is_ready(old) != self._terms.is_ready(new):
            self.mark(new["metadata"]["name"])

    def _on_claim(self, old: Raw | None, new: Raw | None) -> None:
        for each in (old, new):
            for name in self._nodes_of(each) if each is not None else ():
                self.mark(name)

    def _on_state(self, old: Raw | None, new: Raw | None) -> None:
        for each in (old, new):
            if each is not None:
                self.mark(each["metadata"]["name"])

    def _nodes_of(self, claim: Raw) -> tuple[str, ...]:
        allocation = get(claim, "status.allocation", {})
        results = get(allocation, "devices.results", ())
        pools = {each["pool"] for each in results if each["driver"] == self._kind.driver}
        return tuple(sorted(pools))


def states_of_node(
    client: Client,
    plugin: NodePlugin,
    kind: FakeKind,
    namespace: str,
    *,
    clock: Timekeeper,
    chance: Chance,
) -> AllocationStates:
    """Return the state of the node of a plugin, by the claims that the plugin has prepared."""

    def informer(endpoint: Endpoint, selection: Selection) -> Informer:
        return Informer(client, endpoint, clock=clock, chance=chance, selection=selection)

    this = f"metadata.name={plugin.node}"
    nodes = informer(NODES, Selection(fields=this))
    claims = informer(CLAIMS, Selection())
    states = informer(STATES, Selection(namespace=namespace, fields=this))
    terms = StateTerms(
        namespace,
        includes=lambda node: node["metadata"]["name"] == plugin.node,
        is_ready=lambda _: True,
        prepared=lambda _: (record for record in plugin.records if record.state is State.PREPARED),
    )
    caches = StateCaches(nodes, claims, states, (nodes, claims, states))
    states_writer = AllocationStates(client, kind, caches, terms, clock=clock)
    plugin.listen(lambda: states_writer.mark(plugin.node))
    return states_writer


def states_of_virtual_nodes(
    client: Client,
    informers: Informers,
    kind: FakeKind,
    drivers: VirtualDrivers,
    *,
    clock: Timekeeper,
    is_virtual: Callable[[Raw], bool],
) -> AllocationStates:
    """Return the states of all virtual nodes."""
    states = informers.new_informer(STATES, Selection(namespace=STATE_NAMESPACE))
    caches = StateCaches(informers.of(NODES), informers.of(CLAIMS), states, (states,))
    terms = StateTerms(
        STATE_NAMESPACE,
        includes=is_virtual,
        is_ready=_is_node_ready,
        prepared=lambda node: drivers.records(kind.driver, node),
    )
    states_writer = AllocationStates(client, kind, caches, terms, clock=clock)
    drivers.listen(states_writer.mark)
    return states_writer


def _is_node_ready(node: Raw) -> bool:
    conditions = get(node, "status.conditions", ())
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def _content(state: Raw) -> tuple[Any, ...]:
    owners = get(state["metadata"], "ownerReferences", ())
    return state.get("spec"), state.get("status"), [owner["uid"] for owner in owners]
