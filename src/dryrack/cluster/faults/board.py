"""
The faults of the API and of engines that are in force, for one cluster.

A board stands between engines and their API server. It has a clock and a random source of its own,
so the same seed gives the same faults, and a board without faults changes nothing.

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
    The faults of one cluster; see the docstring of the module.

    With `informers_apart`, every family of engines has informers of its own, as separate processes
    have; otherwise families share them until they crash.
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
        """Begin a fault in a task; raise at once if the engine does not exist."""
        if isinstance(fault, EngineCrash):
            self._find_lives(fault.engine)
        task = asyncio.get_running_loop().create_task(self.begin(fault, seconds), name="fault")
        self._beginning.add(task)
        task.add_done_callback(self._beginning.discard)

    async def begin(self, fault: EngineFault, seconds: float | None = None) -> None:
        """
        Begin a fault, for some seconds or (None) until it is ended.

        A crash lasts until the restart.
        """
        match fault:
            case ApiFault():
                self._api.append(fault)
                self._refresh()
                if seconds is not None:
                    self.clock.call_at(self.clock.now() + seconds, lambda: self.drop(fault))
            case WatchLoss():
                for life in self._find_lives(fault.engine or "*"):
                    for stream in tuple(life.streams):
                        await stream.lose(fault.end)
            case EngineCrash():
                down = RESTART_SECONDS if seconds is None else seconds
                for life in self._find_lives(fault.engine):
                    if life.engine != INFORMERS:
                        life.doom(fault, down)
            case _:
                assert_never(fault)

    def end(self, healing: Healing) -> None:
        """End the faults that `healing` selects; engines that are down start."""
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
        """Return the engines that can crash."""
        return tuple(name for name in self._lives if name != INFORMERS)

    def life_of(self, engine: str) -> Life:
        """Begin a new life of an engine, and return it; the previous one is over."""
        life = self._lives[engine] = Life(engine, self)
        self._refresh()
        return life

    def _find_lives(self, pattern: str) -> list[Life]:
        found = [life for name, life in self._lives.items() if fnmatchcase(name, pattern)]
        if not found:
            known = ", ".join(self.engines()) or "none"
            raise UnknownEngineError(f"no engine {pattern!r}; use one of: {known}")
        return found

    def drop(self, fault: ApiFault) -> None:
        """End one fault of the API."""
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
    """One life of a family of engines, until it crashes, with the faults that it meets."""

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
        """True if no fault affects the requests of the engine."""
        return self.api is None and self._doom is None

    def client(self, plain: Client) -> Client:
        """Return the client with the faults of this life."""
        return plain.through(lambda to: FaultyTransport(to, self))

    def doom(self, fault: EngineCrash, down_seconds: float) -> None:
        """Let the engine crash, now or at a later write."""
        if self.is_over:
            return
        self._doom = fault
        self._down_seconds = down_seconds
        self._writes = fault.write
        if fault.point is CrashPoint.NOW:
            self.die()

    def die(self) -> None:
        """Crash: from now on no request of the engine reaches the server, also no clean-up."""
        assert self._doom is not None, "an engine dies of something"
        if self.is_over:
            return
        self.is_over = True
        self.over.set()
        self.clock.call_at(self.clock.now() + self._down_seconds, self.may_start.set)

    def revive(self) -> None:
        """Start the engine again if it is down, and cancel a crash that has not happened."""
        if self.is_over:
            self.may_start.set()
        else:
            self._doom = None

    def check(self) -> None:
        """
        Raise CancelledError if the life is over: a crashed engine handles no errors.
        """
        if self.is_over:
            raise asyncio.CancelledError(f"the {self.engine} has crashed")

    def on_write(self) -> WriteFate:
        """Return whether the engine crashes at the write that it is about to send."""
        self._writes -= 1
        is_hit = self._doom is not None and self._writes < 0
        return WriteFate(self, self._doom.point if is_hit and self._doom else None)

    def opened(self, stream: FaultyStream) -> None:
        self.streams[stream] = None

    def closed(self, stream: FaultyStream) -> None:
        self.streams.pop(stream, None)


@dataclass(frozen=True, slots=True)
class WriteFate:
    """The side of a write on which the engine crashes, if it does."""

    life: Life
    point: CrashPoint | None

    def before(self) -> None:
        """Raise if the engine crashes before the write is sent."""
        # It may have died while the write was on its way.
        if self.point is CrashPoint.BEFORE_WRITE:
            self.life.die()
        self.life.check()

    def after(self) -> None:
        """Raise if the engine crashes before it gets the response."""
        if self.point is CrashPoint.AFTER_WRITE:
            self.life.die()
        self.life.check()
