"""
Memory of long searches, so that no search is made twice.

Most searches end at once; some take seconds to rule out a solution, or stop at the
limit. The nodes of a fleet are mostly alike, and pods that wait for devices are tried again and
again: without a memory every node and every attempt would take the same seconds.

A search depends on nothing but `search_key`, which has no name of a node, a pool, a device or a
claim, and no attribute that the claims do not read. The search has the same result on nodes that
are alike for the claims, and on a node without a relevant change.

A solution is remembered by the numbers of the devices. Only an error has names in it, and is
remembered together with all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from dryrack.allocation.model.identity import claim_name
from dryrack.allocation.search.problem import FOLD
from dryrack.allocation.search.walk import Ending
from dryrack.kinds.quantity import Quantity

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from dryrack.allocation.demand.constraints import Column
    from dryrack.allocation.search.problem import Problem, RequestRow
    from dryrack.allocation.search.walk import Walk

# Facts about a node with a hundred devices are some kilobytes.
ENDINGS_MAX = 1000


@dataclass(frozen=True, slots=True)
class Conclusion:
    """The result of a search."""

    ending: Ending
    # The solution, in the order of the results: request, way to satisfy it, device.
    chosen: tuple[tuple[int, int, int], ...] = ()
    ways: tuple[tuple[int, int], ...] = ()
    # The error that ends the attempt altogether.
    error: str = ""

    @staticmethod
    def of(walk: Walk, ending: Ending) -> Conclusion:
        """Return the result of a walk that has ended by itself."""
        if ending is not Ending.FOUND:
            return Conclusion(ending)
        chosen = tuple((row.request, row.sub, device) for row, device in walk.chosen())
        return Conclusion(ending, chosen, tuple(walk.chosen_ways.items()))

    def choices(self, problem: Problem) -> list[tuple[RequestRow, int]]:
        """Return the solution for a problem with the same key."""
        return [(problem.requests[request][sub], device) for request, sub, device in self.chosen]


class SearchMemo:
    """The results of the latest searches, of one release and one set of features."""

    def __init__(self) -> None:
        self._known: dict[Hashable, Conclusion] = {}

    def get(self, key: Hashable) -> Conclusion | None:
        """Return the result of the search, if it was made."""
        conclusion = self._known.pop(key, None)
        if conclusion is not None:
            self._known[key] = conclusion
        return conclusion

    def keep(self, key: Hashable, conclusion: Conclusion) -> None:
        """Remember the result of a search."""
        self._known[key] = conclusion
        if len(self._known) > ENDINGS_MAX:
            del self._known[next(iter(self._known))]


def search_key(problem: Problem) -> Hashable:
    """Return everything that a search reads, after the problem's table is complete."""
    ledger = problem.ledger
    devices = range(len(problem.devices))
    rows = [row for ways in problem.requests for row in ways]
    return (
        _encode([(c.spec.devices.requests, c.spec.devices.constraints) for c in problem.claims]),
        tuple(map(_status, rows)),
        tuple(map(_values, problem.columns, [devices] * len(problem.columns))),
        tuple(problem.draws.get(device) for device in devices) if problem.draws else (),
        tuple(ledger.left),
        tuple(name.counter for name in ledger.names),
        tuple(_capacities(problem, rows)),
        (tuple(sorted(problem.groups.items())), tuple(problem.group_ledger.left)),
        # An expression can read anything of a device.
        tuple(pooled.shape for pooled in problem.devices) if problem.has_derived else (),
    )


def key_with_names(problem: Problem, key: Hashable) -> Hashable:
    """Return the key together with everything else that an error can contain."""
    failures = [way.failures.items() for ways in problem.requests for way in ways]
    return (
        key,
        tuple(map(claim_name, problem.claims)),
        tuple(pooled.id for pooled in problem.devices),
        tuple(map(tuple, failures)),
    )


def _status(row: RequestRow) -> Hashable:
    needs = tuple(sorted(row.needs.items()))
    return bytes(row.status.translate(FOLD)), tuple(row.all_devices), needs


def _values(column: Column, devices: range) -> Hashable:
    """The values by number; lists with their members, because lists can overlap."""
    numbers = tuple(column[device] for device in devices)
    return numbers if column.scalar else (numbers, *column.members)


def _capacities(problem: Problem, rows: list[RequestRow]) -> Iterator[Hashable]:
    """Yield the capacity of shareable devices; "all" looks at the capacity of any device."""
    wanted_whole = {device for row in rows for device in row.all_devices}
    for device, pooled in enumerate(problem.devices):
        if device in wanted_whole or problem.shareable(device):
            offered = _encode(pooled.device.capacity)
            room = tuple(problem.room(device))
            yield device, problem.shareable(device), offered, room, problem.already_counted(device)


def _encode_quantity(value: object) -> str:
    # Whether an amount is a default may depend on how it is written.
    assert isinstance(value, Quantity), "all other values of a claim or a device are JSON"
    return value.text


_encode = msgspec.json.Encoder(enc_hook=_encode_quantity).encode
