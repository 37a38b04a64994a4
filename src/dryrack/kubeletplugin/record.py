"""
Records of prepared claims, and an index of the records of one driver on one node.

A record has all that is needed to answer the kubelet again, to write the CDI spec again, and to
unprepare the claim, without the API server and without the device kind.

A node may have a thousand prepared claims, and each new claim needs its first number and the
holders of its devices. The cost of an index lookup does not depend on the number of claims.
"""

from __future__ import annotations

import heapq
from enum import StrEnum
from typing import TYPE_CHECKING, TypeVar

import msgspec

from dryrack.kubeletplugin.device_kind import ContainerEdits

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


class State(StrEnum):
    """The state of a claim."""

    PREPARING = "preparing"
    """The state on disk; everything else is made from it again after a restart."""
    PREPARED = "prepared"
    UNPREPARING = "unpreparing"


_Key = TypeVar("_Key")

# A heap may have this many dropped claims before it is cleaned up.
_SLACK = 64

_Device = tuple[str, str]

"""The pool and the name of a device."""


class PreparedDevice(msgspec.Struct, frozen=True, omit_defaults=True):
    """One device of a claim, with its container edits."""

    requests: tuple[str, ...]
    pool: str
    device: str
    cdi_ids: tuple[str, ...] = ()
    share_id: str | None = None
    has_admin_access: bool = False
    edits: ContainerEdits = ContainerEdits()

    @property
    def is_exclusive(self) -> bool:
        """True if no other claim may have the device at the same time."""
        return self.share_id is None and not self.has_admin_access


class RequestMetadata(msgspec.Struct, frozen=True):
    """The file in containers that lists the devices of a request."""

    request: str
    cdi_id: str
    container_path: str
    content: str


class ClaimRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """A claim and its devices."""

    uid: str
    namespace: str
    name: str
    state: State
    devices: tuple[PreparedDevice, ...]
    consumers: tuple[str, ...] = ()
    """UIDs of the pods, or of the PodGroup, that it was reserved for when it was prepared."""
    is_of_one_pod: bool = False
    """Whether it was created for one pod, so that no other pod will ever use it."""
    first_number: int = 0
    sequence: int = 0
    """The position of the claim in the order of preparation."""
    metadata: tuple[RequestMetadata, ...] = ()

    @property
    def end_number(self) -> int:
        """The first number after its own numbers."""
        return self.first_number + sum(device.edits.numbers for device in self.devices)


class RecordIndex:
    """Records by UID, and by devices, consumers and namespaces."""

    def __init__(self, records: Iterable[ClaimRecord] = ()) -> None:
        self._records: dict[str, ClaimRecord] = {}
        self._by_device: dict[_Device, dict[str, None]] = {}
        self._by_consumer: dict[str, dict[str, None]] = {}
        self._ends: dict[str, list[tuple[int, str]]] = {}
        """By namespace: a heap of the end numbers of claims for any pod, the highest first."""
        self._last_sequence = 0
        for record in records:
            self.put(record)

    @property
    def by_uid(self) -> Mapping[str, ClaimRecord]:
        return self._records

    @property
    def next_sequence(self) -> int:
        return self._last_sequence + 1

    def put(self, record: ClaimRecord) -> None:
        """Add a record; for an existing record, only the state may change."""
        is_new = record.uid not in self._records
        self._records[record.uid] = record
        if not is_new:
            return
        self._last_sequence = max(self._last_sequence, record.sequence)
        for device in record.devices:
            self._by_device.setdefault((device.pool, device.device), {})[record.uid] = None
        for consumer in record.consumers:
            self._by_consumer.setdefault(consumer, {})[record.uid] = None
        if not record.is_of_one_pod:
            ends = self._ends.setdefault(record.namespace, [])
            if len(ends) > 2 * len(self._records) + _SLACK:
                ends[:] = sorted(each for each in ends if each[1] in self._records)
            heapq.heappush(ends, (-record.end_number, record.uid))

    def drop(self, uid: str) -> None:
        """Remove an existing record."""
        record = self._records.pop(uid)
        for device in record.devices:
            _remove(self._by_device, (device.pool, device.device), uid)
        for consumer in record.consumers:
            _remove(self._by_consumer, consumer, uid)

    def first_number(self, claim: ClaimRecord) -> int:
        """
        Return the first number for a claim that no other claim of the same container has.

        These are claims of the same pod, and claims of the same namespace that any pod may use:
        a later pod may use two of them together, and then both have their numbers already.
        """
        neighbors = {uid for each in claim.consumers for uid in self._by_consumer.get(each, ())}
        numbers = [
            self._records[uid].end_number
            for uid in neighbors
            if uid != claim.uid and self._records[uid].namespace == claim.namespace
        ]
        ends = self._ends.get(claim.namespace, [])
        # Dropped claims leave the heap when they come to its top.
        while ends and ends[0][1] not in self._records:
            heapq.heappop(ends)
        return max([*numbers, -ends[0][0] if ends else 0])

    def holders(self, pool: str, device: str) -> Iterator[tuple[ClaimRecord, PreparedDevice]]:
        """Yield the claims that have a device, with the device as it was prepared for them."""
        for uid in self._by_device.get((pool, device), ()):
            record = self._records[uid]
            for each in record.devices:
                if (each.pool, each.device) == (pool, device):
                    yield record, each


def _remove(index: dict[_Key, dict[str, None]], key: _Key, uid: str) -> None:
    uids = index.get(key, {})
    uids.pop(uid, None)
    if not uids:
        index.pop(key, None)
