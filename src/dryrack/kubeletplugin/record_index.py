"""
The claims that are prepared of one driver on one node, found by what they have.

A node may have a thousand of them, and each new one asks for its number and who has its devices:
nothing here takes longer because others are there.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from dryrack.kubeletplugin.record import ClaimRecord, PreparedDevice

_Key = TypeVar("_Key")
# Below this nobody notices claims in a heap that are gone.
_SLACK = 64
_Device = tuple[str, str]
"""Its pool and its name."""


class RecordIndex:
    """Records by UID, and by devices, consumers and namespaces."""

    def __init__(self, records: Iterable[ClaimRecord] = ()) -> None:
        self._records: dict[str, ClaimRecord] = {}
        self._by_device: dict[_Device, dict[str, None]] = {}
        self._by_consumer: dict[str, dict[str, None]] = {}
        self._ends: dict[str, list[tuple[int, str]]] = {}
        """By namespace the ends of claims that any pod may use, the highest first; a heap."""
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
        """Adds a record; one that is there already changes its state, and nothing else."""
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
        """Forgets a record that is there."""
        record = self._records.pop(uid)
        for device in record.devices:
            _forget(self._by_device, (device.pool, device.device), uid)
        for consumer in record.consumers:
            _forget(self._by_consumer, consumer, uid)

    def first_number(self, claim: ClaimRecord) -> int:
        """
        The first number for a claim that no claim has which a container may have beside it.

        Those are claims of the same pod, and claims of the same namespace that any pod may use:
        later pods may use two of them together, and by then both have their numbers.
        """
        beside = {uid for each in claim.consumers for uid in self._by_consumer.get(each, ())}
        numbers = [
            self._records[uid].end_number
            for uid in beside
            if uid != claim.uid and self._records[uid].namespace == claim.namespace
        ]
        return max([*numbers, self._end_in(claim.namespace)])

    def holders(self, pool: str, device: str) -> Iterator[tuple[ClaimRecord, PreparedDevice]]:
        """Who has a device, and what was made of it for them."""
        for uid in self._by_device.get((pool, device), ()):
            record = self._records[uid]
            for each in record.devices:
                if (each.pool, each.device) == (pool, device):
                    yield record, each

    def _end_in(self, namespace: str) -> int:
        ends = self._ends.get(namespace, [])
        # Claims that are gone go from the heap when they come to its top.
        while ends and ends[0][1] not in self._records:
            heapq.heappop(ends)
        return -ends[0][0] if ends else 0


def _forget(index: dict[_Key, dict[str, None]], key: _Key, uid: str) -> None:
    uids = index.get(key, {})
    uids.pop(uid, None)
    if not uids:
        index.pop(key, None)
