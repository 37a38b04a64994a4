"""
Devices and nodes that fail and come back, at random or at given times.

A device that failed has a taint with the effect NoExecute, as a driver would report it: its pods
end, and no pod gets it. A node that failed, or was removed, does not exist until it comes back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from dryrack.base.draws import Draws
from dryrack.base.text import hint
from dryrack.kinds.resource import DeviceTaint
from dryrack.simulation.tables import Table, TraceError

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

    from dryrack.kinds.core import Node
    from dryrack.simulation.engine import Settings
    from dryrack.simulation.world import World

_TAINT = DeviceTaint(key="dryrack.dev/failed", effect="NoExecute")
# Nodes that failed come back after an hour, unless the options name another time.
REPAIR_SECONDS = 3600.0


class Change(msgspec.Struct, frozen=True):
    """A failure or a repair of a device, or of a node if no device is named."""

    time: float
    is_repair: bool
    # Both are empty for a random one that is chosen at that time.
    node: str = ""
    device: str = ""
    # Whether it is one of a series of random failures of devices, or of nodes.
    series: str = ""


_COLUMNS = ("time", "event", "node", "device")


def read_changes(lines: Sequence[str], source: str) -> tuple[Change, ...]:
    """Read failures and repairs at given times from CSV; raises `TraceError`."""
    changes = []
    for row in Table(lines, source, required=_COLUMNS[:3], known=_COLUMNS):
        event = row.text("event")
        if event not in ("fail", "repair"):
            raise row.error("event", f"{event!r} is neither fail nor repair")
        if not row.text("node"):
            raise row.error("node", "the name of the node is missing")
        is_repair = event == "repair"
        changes.append(Change(row.number("time"), is_repair, row.text("node"), row.text("device")))
    return tuple(changes)


class FailureSource:
    """The failures of a run, which depend on its seed."""

    def __init__(self, world: World, settings: Settings) -> None:
        self._world = world
        self._settings = settings
        self._draws = Draws(settings.seed, "failures")
        self._nodes: dict[str, Node] = {state.name: state.node for state in world.fleet.states()}
        self._names = sorted(self._nodes)
        self._devices = [
            (name, device.name)
            for name in self._names
            for each in world.slices_on(name)
            for device in each.spec.devices
        ]
        for change in settings.changes:
            self._check(change)
        self._gone: set[str] = set()
        self._failed: set[tuple[str, str]] = set()
        self._chosen: dict[Change, Change] = {}

    def _check(self, change: Change) -> None:
        """Raise `TraceError` if the fleet has no such node or device."""
        if change.node not in self._nodes:
            problem = hint(change.node, self._names)
            raise TraceError(f"changes: the fleet has no node {change.node!r}; {problem}")
        names = [device for node, device in self._devices if node == change.node]
        if change.device and change.device not in names:
            problem = hint(change.device, names)
            where = f"node {change.node} has no device {change.device!r}"
            raise TraceError(f"changes: {where}; {problem}")

    def first(self) -> Iterator[Change]:
        """Yield the given changes, and the first of each series."""
        yield from self._settings.changes
        for series in ("device", "node"):
            yield from self._next(series, 0.0)

    def _next(self, series: str, now: float) -> Iterator[Change]:
        settings = self._settings
        mean = settings.device_mtbf if series == "device" else settings.node_mtbf
        number = len(self._devices) if series == "device" else len(self._names)
        if mean and number:
            yield Change(now + self._draws.exponential(mean / number), False, series=series)

    def _choose(self, change: Change) -> Change:
        """Return the change with its device or node, which is chosen once."""
        if change.node or not change.series:
            return change
        known = self._chosen.get(change)
        if known is None:
            # A device or a node that has failed already does not fail again.
            if change.series == "device":
                node, device = self._draws.choice(self._devices)
                has_failed = node in self._gone or (node, device) in self._failed
            else:
                node, device = self._draws.choice(self._names), ""
                has_failed = node in self._gone
            if has_failed:
                node, device = "", ""
            known = msgspec.structs.replace(change, node=node, device=device)
            self._chosen[change] = known
        return known

    def holders(self, change: Change) -> Sequence[Hashable]:
        """Return the pods that the change interrupts."""
        change = self._choose(change)
        state = self._world.fleet.get(change.node)
        if change.is_repair or state is None:
            return ()
        if not change.device:
            return tuple(state.occupants)
        return tuple(
            key
            for key, occupant in state.occupants.items()
            if any(
                result.device == change.device and result.pool in self._pools(change.node)
                for claim in occupant.claims
                if (allocation := self._world.allocator.allocation_of(claim)) is not None
                for result in allocation.devices.results
            )
        )

    def _pools(self, node: str) -> set[str]:
        return {each.spec.pool.name for each in self._world.slices_on(node)}

    def apply(self, change: Change) -> Sequence[str]:
        """Carry out the change; return the nodes that may take more pods now."""
        change = self._choose(change)
        name = change.node
        if not name:
            return ()
        if change.device:
            self._mark(name, change.device, failed=not change.is_repair)
        elif change.is_repair and name in self._gone:
            self._gone.discard(name)
            self._world.put_node(self._nodes[name])
        elif not change.is_repair and name in self._nodes and name not in self._gone:
            self._gone.add(name)
            self._world.drop_node(name)
        return (name,) if change.is_repair else ()

    def _mark(self, node: str, device: str, *, failed: bool) -> None:
        """Add the taint to a device, or remove it."""
        (self._failed.add if failed else self._failed.discard)((node, device))
        for each in tuple(self._world.slices_on(node)):
            if all(it.name != device for it in each.spec.devices):
                continue
            devices = tuple(
                msgspec.structs.replace(
                    it,
                    taints=(
                        *(taint for taint in it.taints if taint.key != _TAINT.key),
                        *((_TAINT,) if failed else ()),
                    ),
                )
                if it.name == device
                else it
                for it in each.spec.devices
            )
            spec = msgspec.structs.replace(each.spec, devices=devices)
            self._world.replace_slice(msgspec.structs.replace(each, spec=spec))

    def after(self, change: Change, now: float) -> Iterator[Change]:
        """Yield the repair that follows a random failure, and the next failure of its series."""
        if not change.series or change.is_repair:
            return
        settings = self._settings
        mean = settings.device_repair if change.series == "device" else settings.node_repair
        chosen = self._choose(change)
        self._chosen.pop(change, None)
        if chosen.node:
            repaired = now + self._draws.exponential(mean or REPAIR_SECONDS)
            yield Change(repaired, True, chosen.node, chosen.device, change.series)
        yield from self._next(change.series, now)
