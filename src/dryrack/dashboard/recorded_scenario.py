"""
Run a scenario in virtual time, record its writes, and show them on the dashboard.

The writes are repeated on a control plane without engines, whose time stands still at the end of
the run. The timeline is that of the scenario, to the microsecond.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from dryrack.apiserver.runtime_config import parse
from dryrack.client.timekeeping import VirtualClock, micro_timestamp
from dryrack.cluster import ControlPlaneOptions, Past, PastWrite, SystemChance, build_control_plane
from dryrack.dashboard.live import Live
from dryrack.scenario import EmbeddedRun, run_in_virtual_time
from dryrack.store import Conflict, Event, EventType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.scenario import LoadedScenario, Outcome
    from dryrack.store import Key, Record, Store, Stored

# As many moments as the history keeps.
_WRITES_MAX = 20_000
_decode = msgspec.json.Decoder().decode


def run_recorded(loaded: LoadedScenario, how: EmbeddedRun) -> tuple[Outcome, Live]:
    """Run a scenario; return its result and its state for the dashboard."""
    records: list[tuple[Record, float]] = []
    how = replace(how, on_write=lambda record, time: records.append((record, time)))
    outcome = run_in_virtual_time(loaded, how)
    clock = VirtualClock(records[-1][1]) if records else VirtualClock()
    # The scenario may use any API version.
    plane = build_control_plane(
        ControlPlaneOptions(
            clock=clock,
            runtime_config=parse("api/all=true"),
            feature_gates={"AllAlpha": True, "AllBeta": True},
        )
    )
    writes = [_repeat_write(plane.store, record, time) for record, time in records]

    def read_past(resources: Sequence[str], writes_max: int) -> Past:
        return _past([each for each in writes if each and each.resource in resources], writes_max)

    client = plane.client("dryrack-dashboard")
    live = Live(
        client,
        clock=clock,
        chance=SystemChance(),
        read_past=read_past,
        past_writes_max=_WRITES_MAX,
    )
    return outcome, live


def _repeat_write(store: Store, record: Record, time: float) -> PastWrite | None:
    """Repeat a write; return None if there was nothing to delete."""
    previous = store.get(record.key)
    if record.json is None:
        stored = store.delete(record.key, expected=None)
        kind = EventType.DELETED
    else:
        stored = store.put(record.key, _decode(record.json), expected=None)
        kind = EventType.MODIFIED if previous is not None else EventType.ADDED
    if isinstance(stored, Conflict):
        return None
    return PastWrite(Event(kind, stored, previous), micro_timestamp(time))


def _past(writes: Sequence[PastWrite | None], writes_max: int) -> Past:
    """Return the last writes, and the objects before them."""
    done = [each for each in writes if each is not None]
    objects: dict[Key, Stored] = {}
    for each in done[:-writes_max]:
        stored = each.event.stored
        if each.event.type is EventType.DELETED:
            objects.pop(stored.key, None)
        else:
            objects[stored.key] = stored
    return Past(tuple(objects.values()), tuple(done[-writes_max:]))
