"""What a board does to the requests of engines and to engines themselves, in virtual time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from tests.controllers import scenes
from tests.scheduler.gang_scenes import member

from dryrack.client.endpoints import CLAIMS, CONFIG_MAPS, PODS, TEMPLATES
from dryrack.client.errors import ConflictError, TooManyRequestsError, TransportError
from dryrack.client.informer import Informers
from dryrack.client.timekeeping import VirtualClock, run_virtual
from dryrack.cluster import SeededChance, UnknownEngineError
from dryrack.cluster.control_plane import ControlPlaneOptions
from dryrack.cluster.embedded import embedded
from dryrack.cluster.faults import EngineCrash, FaultBoard, Subject, WatchLoss
from dryrack.cluster.faults.model import ApiFault, CrashPoint, Healing, WatchEnd

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from dryrack.client.client import Client
    from dryrack.cluster.embedded import EmbeddedCluster

Raw = dict[str, Any]
MAP: Raw = {"metadata": {"name": "a", "namespace": "default"}}
EVERYTHING_ENDS = Healing(Subject.ALL)


class World:
    """A cluster with a board."""

    def __init__(self, cluster: EmbeddedCluster, clock: VirtualClock, board: FaultBoard) -> None:
        self.cluster = cluster
        self.clock = clock
        self.board = board

    def engine(self) -> Client:
        """A client of an engine that meets faults."""
        return self.board.life_of("engine").client(self.cluster.plane.client("engine"))

    async def fleet(self) -> None:
        client = self.cluster.client
        await scenes.make_class(client)
        await client.create(TEMPLATES, scenes.template_in("default"))
        for number in range(2):
            await scenes.make_node(client, f"node-{number}", devices=2)

    async def gang(self, size: int) -> None:
        client = self.cluster.client
        for number in range(size):
            await client.create(PODS, member(f"g{number}", "gang", size))

    async def bound(self) -> list[str]:
        pods = (await self.cluster.client.list(PODS)).items
        return [each["metadata"]["name"] for each in pods if each["spec"].get("nodeName")]


def play(
    story: Callable[[World], Awaitable[None]], *, engines: Any = (), seed: int = 0, **options: Any
) -> None:
    """Tells a story to a world."""

    async def run() -> None:
        clock = VirtualClock()
        board = FaultBoard(clock=clock, chance=SeededChance(seed), **options)
        plane = ControlPlaneOptions(clock=clock, chance=SeededChance(1))
        async with embedded(plane, engines=engines, board=board) as cluster:
            await story(World(cluster, clock, board))

    run_virtual(run())


def test_what_fails_is_told_as_a_server_tells_it() -> None:
    """Conflicts hit changes alone, a 429 says how long to wait, and time heals them."""

    async def story(world: World) -> None:
        client = world.engine()
        await world.board.begin(ApiFault(conflicts=1.0), seconds=10)
        made = await client.create(CONFIG_MAPS, MAP)
        with pytest.raises(ConflictError):
            await client.update(CONFIG_MAPS, made)
        await world.board.begin(ApiFault(too_many=1.0), seconds=5)
        with pytest.raises(TooManyRequestsError) as refused:
            await client.get(CONFIG_MAPS, "a", "default")
        assert refused.value.retry_after_seconds == 1
        await world.clock.advance(5)
        await client.get(CONFIG_MAPS, "a", "default")
        await world.clock.advance(5)
        await client.update(CONFIG_MAPS, made)

    play(story)


def test_an_error_comes_before_the_write_and_a_lost_answer_after_it() -> None:
    """Both look the same to the engine; the server knows better."""

    async def story(world: World) -> None:
        client = world.engine()
        other = world.cluster.client
        for fault, stored in ((ApiFault(errors=1.0), 1), (ApiFault(lost_answers=1.0), 2)):
            await world.board.begin(fault)
            with pytest.raises(TransportError):
                await client.create(CONFIG_MAPS, MAP)
            world.board.end(EVERYTHING_ENDS)
            found = (await other.list(CONFIG_MAPS)).items
            assert len([each for each in found if each["metadata"]["name"] == "a"]) == stored - 1

    play(story)


def test_latency_passes_by_the_clock() -> None:
    """A request takes at least half of what is said, at most all of it, and nobody sleeps."""

    async def story(world: World) -> None:
        client = world.engine()
        await world.board.begin(ApiFault(latency_seconds=2.0))
        done: list[float] = []

        async def ask() -> None:
            await client.get(CONFIG_MAPS, "kube-root-ca.crt", "default")

        task = asyncio.ensure_future(ask())
        task.add_done_callback(lambda _: done.append(world.clock.now()))
        began = world.clock.now()
        await world.clock.advance(0.9)
        assert not done
        await world.clock.advance(1.2)
        assert done
        assert 1.0 <= done[0] - began <= 2.0
        task.exception()

    play(story)


@pytest.mark.parametrize("end", WatchEnd)
def test_a_lost_watch_loses_no_change(end: WatchEnd) -> None:
    """The informer hears of what happened meanwhile, whether it goes on or lists again."""

    async def story(world: World) -> None:
        client = world.engine()
        other = world.cluster.client
        informers = Informers(client, clock=world.clock, chance=SeededChance(2))
        informer = informers.of(CONFIG_MAPS)
        heard: list[str] = []
        informer.listen(lambda _, new: heard.append(new["metadata"]["name"] if new else "gone"))
        task = asyncio.ensure_future(informers.run())
        await world.clock.advance(1)
        await world.board.begin(WatchLoss(end))
        await other.create(CONFIG_MAPS, MAP)
        assert heard == []
        await world.clock.advance(5)
        assert heard == ["a"]
        await other.delete(CONFIG_MAPS, "a", namespace="default")
        await world.clock.advance(1)
        assert heard == ["a", "gone"]
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    play(story)


@pytest.mark.parametrize("point", [CrashPoint.BEFORE_WRITE, CrashPoint.AFTER_WRITE])
@pytest.mark.parametrize("write", [0, 2, 5, 7])
def test_a_scheduler_that_dies_at_a_write_goes_on_in_its_next_life(
    point: CrashPoint, write: int
) -> None:
    """At whichever write of a gang it dies, nothing is written until it starts again; then all."""

    async def story(world: World) -> None:
        await world.fleet()
        await world.board.begin(EngineCrash("scheduler", point, write), seconds=20)
        await world.gang(3)
        await world.clock.advance(10)
        assert len(await world.bound()) < 3
        revision = [each["metadata"]["resourceVersion"] for each in await claims(world)]
        await world.clock.advance(5)
        assert revision == [each["metadata"]["resourceVersion"] for each in await claims(world)]
        await world.clock.advance(60)
        assert await world.bound() == ["g0", "g1", "g2"]

    play(story, engines=None, informers_apart=True)


async def claims(world: World) -> tuple[Raw, ...]:
    return (await world.cluster.client.list(CLAIMS)).items


def test_an_engine_starts_again_when_it_is_healed() -> None:
    """Also one that shared its informers with others; these go on all the time."""

    async def story(world: World) -> None:
        await world.fleet()
        await world.board.begin(EngineCrash("scheduler"), seconds=1000)
        await world.gang(2)
        await world.clock.advance(100)
        assert await world.bound() == []
        assert len(await claims(world)) == 2, "the controllers live"
        world.board.end(Healing(Subject.ENGINE, "scheduler"))
        await world.clock.advance(30)
        assert await world.bound() == ["g0", "g1"]

    play(story, engines=None)


def test_all_engines_crash_one_after_the_other_and_the_gang_runs() -> None:
    """Controllers and scheduler have their state in the API server alone."""

    async def story(world: World) -> None:
        await world.fleet()
        await world.gang(3)
        for engine in ("controllers", "scheduler", "*"):
            await world.board.begin(EngineCrash(engine), seconds=2)
            await world.clock.advance(5)
        await world.clock.advance(60)
        pods = (await world.cluster.client.list(PODS)).items
        assert [each["status"]["phase"] for each in pods] == ["Running"] * 3

    play(story, engines=None, informers_apart=True)


def test_an_engine_that_there_is_not_is_refused_with_those_that_there_are() -> None:
    """By name."""

    async def story(world: World) -> None:
        with pytest.raises(UnknownEngineError, match="no engine 'x'; use one of: controllers, sch"):
            await world.board.begin(EngineCrash("x"))

    play(story, engines=None)


def history(board: bool, faults: tuple[ApiFault, ...] = (), seed: int = 0) -> list[tuple[str, int]]:
    """Every write of a gang's life, in order."""
    told: list[tuple[str, int]] = []

    async def run() -> None:
        clock = VirtualClock()
        made = FaultBoard(clock=clock, chance=SeededChance(seed)) if board else None
        plane = ControlPlaneOptions(clock=clock, chance=SeededChance(1))
        async with embedded(plane, board=made) as cluster:
            for resource in (PODS.resource, "resourceclaims.resource.k8s.io", "events"):
                cluster.plane.store.subscribe(
                    resource, lambda event: told.append((str(event.stored.key), event.revision))
                )
            world = World(cluster, clock, made or FaultBoard(clock=clock, chance=SeededChance(0)))
            await world.fleet()
            for fault in faults:
                await world.board.begin(fault)
            await world.gang(3)
            await clock.advance(60)

    run_virtual(run())
    return told


def test_a_board_without_faults_changes_nothing() -> None:
    """Every write at the same revision as without a board."""
    assert history(board=True) == history(board=False)


def test_the_same_seed_gives_the_same_faults() -> None:
    """And another seed others."""
    faults = (ApiFault(conflicts=0.3, errors=0.1, lost_answers=0.1, latency_seconds=0.05),)
    first = history(board=True, faults=faults, seed=7)
    assert first == history(board=True, faults=faults, seed=7)
    assert first != history(board=True, faults=faults, seed=8)


def test_engines_stop_although_no_request_of_theirs_is_answered() -> None:
    """A scheduler in the middle of a plan does not wait for the server to say what came of it."""

    async def story(world: World) -> None:
        await world.fleet()
        await world.board.begin(ApiFault(latency_seconds=60.0, engine="scheduler"))
        await world.gang(2)
        await world.clock.advance(3)
        assert await world.bound() == []

    play(story, engines=None)


def test_a_scheduler_that_begins_while_it_is_refused_begins_when_it_is_not() -> None:
    """It does not take for served what nobody could tell it about, and wait for it without end."""

    async def story(world: World) -> None:
        await world.fleet()
        await world.board.begin(ApiFault(too_many=1.0, engine="scheduler"), seconds=20)
        await world.board.begin(EngineCrash("scheduler"))
        await world.gang(2)
        await world.clock.advance(15)
        assert await world.bound() == []
        await world.clock.advance(60)
        assert await world.bound() == ["g0", "g1"]

    play(story, engines=None)
