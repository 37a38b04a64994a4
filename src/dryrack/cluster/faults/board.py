"""
The faults of the API and of engines that are in force, for one cluster.

A board stands between engines and their API server. It decides by a clock and a chance of its own,
so the same seed gives the same faults, and a cluster that meets none goes as one without a board.

    board = FaultBoard(clock=clock, chance=SeededChance(seed))
    async with embedded(options, board=board) as cluster:
        await board.begin(ApiFault(conflicts=0.1), seconds=30)
        await board.begin(EngineCrash("scheduler"))
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, assert_never

from dryrack.cluster.engines import UnknownEngineError
from dryrack.cluster.faults.faulty_transport import FaultyTransport
from dryrack.cluster.faults.model import (
    RESTART_SECONDS,
    ApiFault,
    CrashPoint,
    EngineCrash,
    Subject,
    WatchLoss,
)
from dryrack.cluster.ports import SeededChance

if TYPE_CHECKING:
    from dryrack.base.ports import Chance
    from dryrack.client.client import Client
    from dryrack.client.timekeeping import Timekeeper
    from dryrack.cluster.faults.faulty_transport import FaultyStream
    from dryrack.cluster.faults.model import EngineFault, Healing


_FAULTS_SEED = 2**32
# What engines share goes on when one of them dies.
INFORMERS = "informers"


class FaultBoard:
    """
    See the module's docstring.

    With `informers_apart` every family of engines reads through informers of its own, as processes
    of their own do; else they share them until the first of them has died.
    """

    def __init__(self, *, clock: Timekeeper, chance: Chance, informers_apart: bool = False) -> None:
        self.clock = clock
        self.chance = chance
        self.informers_apart = informers_apart
        self._api: list[ApiFault] = []
        self._lives: dict[str, Life] = {}
        self._beginning: set[asyncio.Task[None]] = set()

    @classmethod
    def seeded(cls, seed: int, *, clock: Timekeeper, informers_apart: bool = False) -> FaultBoard:
        """Return a board for a cluster with this seed."""
        # The faults do not take their chance from that of the cluster, so that names and
        # identifiers are the same with and without them.
        chance = SeededChance(seed + _FAULTS_SEED)
        return cls(clock=clock, chance=chance, informers_apart=informers_apart)

    def begin_soon(self, fault: EngineFault, seconds: float | None) -> None:
        """The same for whoever cannot wait; what there is not is refused at once."""
        if isinstance(fault, EngineCrash):
            self._matching(fault.engine)
        task = asyncio.get_running_loop().create_task(self.begin(fault, seconds), name="fault")
        self._beginning.add(task)
        task.add_done_callback(self._beginning.discard)

    async def begin(self, fault: EngineFault, seconds: float | None = None) -> None:
        """From now on, for so long; None: until it is ended. A crash lasts until the restart."""
        match fault:
            case ApiFault():
                self._api.append(fault)
                self._refresh()
                if seconds is not None:
                    self.clock.call_at(self.clock.now() + seconds, lambda: self.drop(fault))
            case WatchLoss():
                for life in self._matching(fault.engine or "*"):
                    for stream in tuple(life.streams):
                        await stream.lose(fault.end)
            case EngineCrash():
                down = RESTART_SECONDS if seconds is None else seconds
                for life in self._matching(fault.engine):
                    if life.engine != INFORMERS:
                        life.doom(fault, down)
            case _:
                assert_never(fault)

    def end(self, healing: Healing) -> None:
        """What is meant is over; who is down starts."""
        if healing.subject in (Subject.ALL, Subject.API):
            self._api = [
                each for each in self._api if not fnmatchcase(each.engine or "*", healing.name)
            ]
            self._refresh()
        if healing.subject in (Subject.ALL, Subject.ENGINE):
            for life in self._lives.values():
                if fnmatchcase(life.engine, healing.name):
                    life.revive()

    def engines(self) -> tuple[str, ...]:
        """Those that can crash."""
        return tuple(name for name in self._lives if name != INFORMERS)

    def life_of(self, engine: str) -> Life:
        """A new life; the one before is over."""
        life = self._lives[engine] = Life(engine, self)
        self._refresh()
        return life

    def _matching(self, pattern: str) -> list[Life]:
        found = [life for name, life in self._lives.items() if fnmatchcase(name, pattern)]
        if not found:
            known = ", ".join(self.engines()) or "none"
            raise UnknownEngineError(f"no engine {pattern!r}; use one of: {known}")
        return found

    def drop(self, fault: ApiFault) -> None:
        """It is over."""
        if fault in self._api:
            self._api.remove(fault)
            self._refresh()

    def _refresh(self) -> None:
        for name, life in self._lives.items():
            hits = [each for each in self._api if not each.engine or fnmatchcase(name, each.engine)]
            merged = hits[0] if hits else None
            for each in hits[1:]:
                merged = each.plus(merged) if merged is not None else each
            life.api = merged


@dataclass(slots=True, eq=False)
class Life:
    """One life of a family of engines, until it crashes, and the conditions that it lives under."""

    engine: str
    board: FaultBoard
    api: ApiFault | None = None
    streams: dict[FaultyStream, None] = field(default_factory=dict)
    is_over: bool = False
    over: asyncio.Event = field(default_factory=asyncio.Event)
    may_start: asyncio.Event = field(default_factory=asyncio.Event)
    _doom: EngineCrash | None = None
    _writes: int = 0
    _down_seconds: float = 0.0

    @property
    def clock(self) -> Timekeeper:
        return self.board.clock

    @property
    def chance(self) -> Chance:
        return self.board.chance

    @property
    def is_quiet(self) -> bool:
        """Whether no request of the engine meets anything."""
        return self.api is None and self._doom is None

    def client(self, plain: Client) -> Client:
        """The same client, for as long as this life lasts."""
        return plain.through(lambda to: FaultyTransport(to, self))

    def doom(self, fault: EngineCrash, down_seconds: float) -> None:
        """It will die, or does now."""
        if self.is_over:
            return
        self._doom = fault
        self._down_seconds = down_seconds
        self._writes = fault.write
        if fault.point is CrashPoint.NOW:
            self.die()

    def die(self) -> None:
        """From now on it reaches nobody, also not to clean up."""
        assert self._doom is not None, "an engine dies of something"
        if self.is_over:
            return
        self.is_over = True
        self.over.set()
        self.clock.call_at(self.clock.now() + self._down_seconds, self.may_start.set)

    def revive(self) -> None:
        """Starts again if it is dead, and does not die if it is not."""
        if self.is_over:
            self.may_start.set()
        else:
            self._doom = None

    def check(self) -> None:
        """The dead do not hear that something failed, and try nothing else."""
        if self.is_over:
            raise asyncio.CancelledError(f"the {self.engine} has crashed")

    def on_write(self) -> WriteFate:
        """A write is about to be sent."""
        self._writes -= 1
        is_hit = self._doom is not None and self._writes < 0
        return WriteFate(self, self._doom.point if is_hit and self._doom else None)

    def opened(self, stream: FaultyStream) -> None:
        self.streams[stream] = None

    def closed(self, stream: FaultyStream) -> None:
        self.streams.pop(stream, None)


@dataclass(frozen=True, slots=True)
class WriteFate:
    """Whether the one who writes dies of it, and on which side of the write."""

    life: Life
    point: CrashPoint | None

    def before(self) -> None:
        """Raises if it dies before the write is sent."""
        # It may have died while the write was on its way.
        if self.point is CrashPoint.BEFORE_WRITE:
            self.life.die()
        self.life.check()

    def after(self) -> None:
        """Raises if it dies before it hears the answer."""
        if self.point is CrashPoint.AFTER_WRITE:
            self.life.die()
        self.life.check()
