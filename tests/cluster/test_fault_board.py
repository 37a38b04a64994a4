"""What a board does to the requests of engines and to engines themselves, in virtual time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

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
    from tests.stage import Stage

    from dryrack.client.client import Client
    from dryrack.kinds.raw import Raw

pytestmark = pytest.mark.stage(only=())

MAP: Raw = {"metadata": {"name": "a", "namespace": "default"}}
EVERYTHING_ENDS = Healing(Subject.ALL)


async def make_fleet(client: Client) -> None:
    await scenes.make_class(client)
    await client.create(TEMPLATES, scenes.template_in("default"))
    for number in range(2):
        await scenes.make_node(client, f"node-{number}", devices=2)


async def make_gang(client: Client, size: int) -> None:
    for number in range(size):
        await client.create(PODS, member(f"g{number}", "gang", size))


async def test_what_fails_is_told_as_a_server_tells_it(stage: Stage) -> None:
    """Conflicts hit changes alone, a 429 says how long to wait, and time heals them."""
    client = stage.engine()
    await stage.board.begin(ApiFault(conflicts=1.0), seconds=10)
    made = await client.create(CONFIG_MAPS, MAP)
    with pytest.raises(ConflictError):
        await client.update(CONFIG_MAPS, made)
    await stage.board.begin(ApiFault(too_many=1.0), seconds=5)
    with pytest.raises(TooManyRequestsError) as refused:
        await client.get(CONFIG_MAPS, "a", "default")
    assert refused.value.retry_after_seconds == 1
    await stage.advance(5)
    await client.get(CONFIG_MAPS, "a", "default")
    await stage.advance(5)
    await client.update(CONFIG_MAPS, made)


async def test_an_error_comes_before_the_write_and_a_lost_answer_after_it(stage: Stage) -> None:
    """Both look the same to the engine; the server knows better."""
    client = stage.engine()
    other = stage.client
    for fault, stored in ((ApiFault(errors=1.0), 1), (ApiFault(lost_answers=1.0), 2)):
        await stage.board.begin(fault)
        with pytest.raises(TransportError):
            await client.create(CONFIG_MAPS, MAP)
        stage.board.end(EVERYTHING_ENDS)
        found = (await other.list(CONFIG_MAPS)).items
        assert len([each for each in found if each["metadata"]["name"] == "a"]) == stored - 1


async def test_latency_passes_by_the_clock(stage: Stage) -> None:
    """A request takes at least half of what is said, at most all of it, and nobody sleeps."""
    client = stage.engine()
    await stage.board.begin(ApiFault(latency_seconds=2.0))
    done: list[float] = []

    async def ask() -> None:
        await client.get(CONFIG_MAPS, "kube-root-ca.crt", "default")

    task = asyncio.ensure_future(ask())
    task.add_done_callback(lambda _: done.append(stage.clock.now()))
    began = stage.clock.now()
    await stage.advance(0.9)
    assert not done
    await stage.advance(1.2)
    assert done
    assert 1.0 <= done[0] - began <= 2.0
    task.exception()


@pytest.mark.parametrize("end", WatchEnd)
async def test_a_lost_watch_loses_no_change(end: WatchEnd, stage: Stage) -> None:
    """The informer hears of what happened meanwhile, whether it goes on or lists again."""
    client = stage.engine()
    other = stage.client
    informers = Informers(client, clock=stage.clock, chance=SeededChance(2))
    informer = informers.of(CONFIG_MAPS)
    heard: list[str] = []
    informer.listen(lambda _, new: heard.append(new["metadata"]["name"] if new else "gone"))
    task = asyncio.ensure_future(informers.run())
    await stage.advance(1)
    await stage.board.begin(WatchLoss(end))
    await other.create(CONFIG_MAPS, MAP)
    assert heard == []
    await stage.advance(5)
    assert heard == ["a"]
    await other.delete(CONFIG_MAPS, "a", namespace="default")
    await stage.advance(1)
    assert heard == ["a", "gone"]
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@pytest.mark.parametrize("point", [CrashPoint.BEFORE_WRITE, CrashPoint.AFTER_WRITE])
@pytest.mark.parametrize("write", [0, 2, 5, 7])
@pytest.mark.stage(only=None, informers_apart=True)
async def test_a_scheduler_that_dies_at_a_write_goes_on_in_its_next_life(
    point: CrashPoint, write: int, stage: Stage
) -> None:
    """At whichever write of a gang it dies, nothing is written until it starts again; then all."""
    await make_fleet(stage.client)
    await stage.board.begin(EngineCrash("scheduler", point, write), seconds=20)
    await make_gang(stage.client, 3)
    await stage.advance(10)
    assert len(await stage.bound()) < 3
    revision = [each["metadata"]["resourceVersion"] for each in await claims(stage)]
    await stage.advance(5)
    assert revision == [each["metadata"]["resourceVersion"] for each in await claims(stage)]
    await stage.advance(60)
    assert await stage.bound() == ["g0", "g1", "g2"]


async def claims(stage: Stage) -> tuple[Raw, ...]:
    return (await stage.client.list(CLAIMS)).items


@pytest.mark.stage(only=None)
async def test_an_engine_starts_again_when_it_is_healed(stage: Stage) -> None:
    """Also one that shared its informers with others; these go on all the time."""
    await make_fleet(stage.client)
    await stage.board.begin(EngineCrash("scheduler"), seconds=1000)
    await make_gang(stage.client, 2)
    await stage.advance(100)
    assert await stage.bound() == []
    assert len(await claims(stage)) == 2, "the controllers live"
    stage.board.end(Healing(Subject.ENGINE, "scheduler"))
    await stage.advance(30)
    assert await stage.bound() == ["g0", "g1"]


@pytest.mark.stage(only=None, informers_apart=True)
async def test_all_engines_crash_one_after_the_other_and_the_gang_runs(stage: Stage) -> None:
    """Controllers and scheduler have their state in the API server alone."""
    await make_fleet(stage.client)
    await make_gang(stage.client, 3)
    for engine in ("controllers", "scheduler", "*"):
        await stage.board.begin(EngineCrash(engine), seconds=2)
        await stage.advance(5)
    await stage.advance(60)
    pods = (await stage.client.list(PODS)).items
    assert [each["status"]["phase"] for each in pods] == ["Running"] * 3


@pytest.mark.stage(only=None)
async def test_an_engine_that_there_is_not_is_refused_with_those_that_there_are(
    stage: Stage,
) -> None:
    """By name."""
    with pytest.raises(UnknownEngineError, match="no engine 'x'; use one of: controllers, sch"):
        await stage.board.begin(EngineCrash("x"))


def history(board: bool, faults: tuple[ApiFault, ...] = (), seed: int = 0) -> list[tuple[str, int]]:
    """Return every write of a gang's life, in order."""
    writes: list[tuple[str, int]] = []

    async def run() -> None:
        clock = VirtualClock()
        made = FaultBoard(clock=clock, chance=SeededChance(seed)) if board else None
        options = ControlPlaneOptions(clock=clock, chance=SeededChance(1))
        async with embedded(options, board=made) as cluster:
            for resource in (PODS.resource, "resourceclaims.resource.k8s.io", "events"):
                cluster.plane.store.subscribe(
                    resource, lambda event: writes.append((str(event.stored.key), event.revision))
                )
            await make_fleet(cluster.client)
            for fault in faults:
                assert made is not None
                await made.begin(fault)
            await make_gang(cluster.client, 3)
            await clock.advance(60)

    run_virtual(run())
    return writes


def test_a_board_without_faults_changes_nothing() -> None:
    """Every write at the same revision as without a board."""
    assert history(board=True) == history(board=False)


def test_the_same_seed_gives_the_same_faults() -> None:
    """And another seed others."""
    faults = (ApiFault(conflicts=0.3, errors=0.1, lost_answers=0.1, latency_seconds=0.05),)
    first = history(board=True, faults=faults, seed=7)
    assert first == history(board=True, faults=faults, seed=7)
    assert first != history(board=True, faults=faults, seed=8)


@pytest.mark.stage(only=None)
async def test_engines_stop_although_no_request_of_theirs_is_answered(stage: Stage) -> None:
    """A scheduler in the middle of a plan does not wait for the server to say what came of it."""
    await make_fleet(stage.client)
    await stage.board.begin(ApiFault(latency_seconds=60.0, engine="scheduler"))
    await make_gang(stage.client, 2)
    await stage.advance(3)
    assert await stage.bound() == []


@pytest.mark.stage(only=None)
async def test_a_scheduler_that_begins_while_it_is_refused_begins_when_it_is_not(
    stage: Stage,
) -> None:
    """It does not take for served what nobody could tell it about, and wait for it without end."""
    await make_fleet(stage.client)
    await stage.board.begin(ApiFault(too_many=1.0, engine="scheduler"), seconds=20)
    await stage.board.begin(EngineCrash("scheduler"))
    await make_gang(stage.client, 2)
    await stage.advance(15)
    assert await stage.bound() == []
    await stage.advance(60)
    assert await stage.bound() == ["g0", "g1"]
