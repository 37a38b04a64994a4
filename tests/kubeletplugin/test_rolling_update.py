"""Two instances of a plugin on one node, as a rolling update has them for a while."""

from __future__ import annotations

import asyncio
import itertools
import random
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.client.planes import site
from tests.kubeletplugin.faults import NEVER, Killed, MortalFileSystem
from tests.kubeletplugin.nodes import NODE, bench
from tests.kubeletplugin.test_killed import NAMES, check_whole, claims, made
from tests.kubeletplugin.test_serving import dra, short_path

from dryrack.client.endpoints import NODES, SLICES
from dryrack.client.timekeeping import settle
from dryrack.cluster.process.instances import InstanceError, instance
from dryrack.cluster.process.node_plugins import NodePlugins, NodeSite
from dryrack.kubeletapi import DRA_V1
from dryrack.kubeletplugin import Sockets, serving_kubelet
from dryrack.kubeletplugin.kinds.fake import DRIVER, FakeKind

if TYPE_CHECKING:
    from tests.client.planes import Site
    from tests.kubeletplugin.nodes import Bench

    from dryrack.kubeletplugin import NodePlugin

__all__ = ["short_path"]
UIDS = ("5e2c7ba1-0000-4000-8000-000000000001", "5e2c7ba1-0000-4000-8000-000000000002")
CLAIMS = 20
STEPS = 600


def started(world: Bench, files: MortalFileSystem | None = None) -> NodePlugin:
    plugin = world.plugin(files or MortalFileSystem())
    plugin.recover()
    return plugin


@pytest.mark.parametrize("name", NAMES)
async def test_either_instance_gives_back_what_the_other_prepared(
    tmp_path: Path, name: str
) -> None:
    """Numbers, refusals and lines of files go by the claims of both."""
    world = made(tmp_path, name)
    world.is_shared = True
    stays, comes = await claims(world)
    old = started(world)
    new = started(world)
    await old.prepare([stays])
    await new.prepare([comes])
    again = await old.prepare([stays, comes])
    check_whole(world, old, {stays.uid, comes.uid})
    await old.unprepare([comes])
    check_whole(world, old, {stays.uid})
    await new.unprepare([stays])
    check_whole(world, new, set())
    await old.prepare([comes])
    check_whole(world, old, {comes.uid})

    assert all(isinstance(each, tuple) for each in again.values())


async def test_a_device_that_the_other_instance_prepared_is_refused(tmp_path: Path) -> None:
    """Until the claim is given back, to either of them."""
    world = bench(tmp_path)
    world.is_shared = True
    first = await world.claim("first", ["fake-0"])
    second = await world.claim("second", ["fake-0"])
    old = started(world)
    new = started(world)
    await old.prepare([first])
    refused = (await new.prepare([second]))[second.uid]
    await new.unprepare([first])
    given = (await old.prepare([second]))[second.uid]

    assert "is prepared for claim default/first" in str(refused)
    assert isinstance(given, tuple)


@pytest.mark.parametrize("verb", ["prepare", "unprepare"])
@pytest.mark.parametrize("name", NAMES)
def test_the_other_instance_finishes_what_a_killed_one_has_begun(
    tmp_path: Path, name: str, verb: str
) -> None:
    """At every file operation, halfway through it, and without a restart of the one that lives."""

    async def scenario() -> int:
        world = made(tmp_path, name)
        world.is_shared = True
        stays, comes = await claims(world)
        for last in itertools.count(1):
            world.directory = tmp_path / str(last)
            living = started(world)
            files = MortalFileSystem()
            await living.prepare([stays])
            mortal = started(world, files)
            if verb == "unprepare":
                await mortal.prepare([comes])
            files.last = files.done + last
            files.is_half_done = True
            with suppress(Killed):
                await getattr(mortal, verb)([comes])
            has_ended = files.done < files.last
            await getattr(living, verb)([comes])
            check_whole(world, living, {stays.uid} | ({comes.uid} if verb == "prepare" else set()))
            await living.unprepare([stays, comes])
            check_whole(world, living, set())
            if has_ended:
                return last - 1
        raise AssertionError("itertools.count has no end")

    assert asyncio.run(scenario()) >= 3


def test_no_history_of_two_instances_loses_a_claim_or_leaks_one(tmp_path: Path) -> None:
    """Calls land in either, in both at once too; each may be killed and started again."""
    dice = random.Random(7)

    async def scenario() -> int:
        world = bench(tmp_path, FakeKind(CLAIMS))
        kills = 0
        world.is_shared = True
        known = [await world.claim(f"claim-{n}", [f"fake-{n}"]) for n in range(CLAIMS)]
        files = [MortalFileSystem(), MortalFileSystem()]
        plugins = [started(world, each) for each in files]
        prepared: set[str] = set()
        for _ in range(STEPS):
            some = dice.sample(known, 2)
            mortal = dice.randrange(2)
            verb = "prepare" if dice.random() < 0.6 else "unprepare"
            if dice.random() < 0.2:
                files[mortal].last = files[mortal].done + dice.randint(1, 6)
            calls = [
                getattr(each, verb)([claim]) for each, claim in zip(plugins, some, strict=True)
            ]
            answers = await asyncio.gather(*calls, return_exceptions=True)
            for number, answer in enumerate(answers):
                if isinstance(answer, Killed):
                    kills += 1
                    # The kubelet has no answer, and asks the other one, which goes on as it is.
                    await getattr(plugins[1 - number], verb)([some[number]])
                    files[number] = MortalFileSystem()
                    plugins[number] = started(world, files[number])
            files[mortal].last = NEVER
            uids = {each.uid for each in some}
            prepared = prepared | uids if verb == "prepare" else prepared - uids
        for plugin in plugins:
            await plugin.reconcile()
            check_whole(world, plugin, prepared)
        return kills

    assert asyncio.run(scenario()) > STEPS // 20


async def test_calls_over_the_sockets_of_either_instance_are_answered(short_path: Path) -> None:
    """Each has its own; the end of one leaves those of the other, and what is prepared."""
    world = bench(short_path)
    world.is_shared = True
    claim = await world.claim("mine", ["fake-0"])
    first, second = [Sockets.of(world.directory, DRIVER, uid) for uid in UIDS]
    async with serving_kubelet(started(world), second):
        async with serving_kubelet(started(world), first):
            prepared = await dra(first, DRA_V1, "NodePrepareResources", [claim])
        left = sorted(path.name for path in world.directory.rglob("*.sock"))
        again = await dra(second, DRA_V1, "NodePrepareResources", [claim])
        await dra(second, DRA_V1, "NodeUnprepareResources", [claim])

    assert prepared.claims[claim.uid].devices == again.claims[claim.uid].devices
    assert left == [second.dra.name, second.registration.name]
    assert list(world.cdi.iterdir()) == []


@pytest.mark.parametrize(
    ("driver", "begins"),
    [
        ("a.example.com", f"a.example.com-{UIDS[0]}-reg.sock"),
        ("a" * 40 + ".com", "a" * 40 + ".com-"),
        ("a" * 59 + ".com", "dra-"),
    ],
)
def test_a_socket_path_that_is_too_long_is_shortened(driver: str, begins: str) -> None:
    """First the UID is, and then the name of the driver too."""
    first, second = [Sockets.of(Path("/var/lib/kubelet"), driver, uid) for uid in UIDS]

    assert first.registration.name.startswith(begins)
    assert max(len(str(each)) for each in (first.registration, first.dra)) <= 107
    assert len({first.dra, second.dra, first.registration, second.registration}) == 4


def test_who_wants_to_be_alone_is_alone_and_others_share(tmp_path: Path) -> None:
    """Without a UID one instance may run; with a UID, others with a UID may run too."""
    first, second = UIDS
    with (
        instance(tmp_path),
        pytest.raises(InstanceError, match="another plugin uses this directory"),
    ):
        instance(tmp_path).__enter__()
    with instance(tmp_path), pytest.raises(InstanceError, match="without --rolling-update-uid"):
        instance(tmp_path, first).__enter__()
    with instance(tmp_path, first) as old:
        with instance(tmp_path, second) as new:
            with pytest.raises(InstanceError, match="another plugin uses this directory"):
                instance(tmp_path).__enter__()
            with pytest.raises(InstanceError, match="another plugin has the UID"):
                instance(tmp_path, second).__enter__()

            assert (old.is_newest(), new.is_newest()) == (False, True)
            assert (old.is_last(), new.is_last()) == (False, False)
        # The new one was taken back: the old one goes on as before.
        assert old.is_newest()
        assert old.is_last()
    assert list(tmp_path.glob("plugin-*.lock")) == []


def plugins_of(world: Site, directory: Path, kind: FakeKind, uid: str) -> NodePlugins:
    where = NodeSite(NODE, directory, directory / "cdi", uid)
    return NodePlugins(world.client, [kind], where, clock=world.clock, chance=world.chance)


def test_sockets_of_a_killed_instance_go_when_the_next_one_comes(short_path: Path) -> None:
    """Its lock ended with it; those of an instance that lives stay."""

    async def scenario() -> None:
        world: Site = site()
        await world.client.create(NODES, {"metadata": {"name": NODE}})
        own = short_path / "plugins" / DRIVER
        killed, living = [Sockets.of(short_path, DRIVER, uid) for uid in (UIDS[0], "living")]
        own.mkdir(parents=True)
        (short_path / "plugins_registry").mkdir()
        (own / f"plugin-{UIDS[0]}.lock").touch()
        for path in (killed.dra, killed.registration, living.dra, living.registration):
            path.touch()
        with instance(own, "living"):
            stop = asyncio.Event()
            stop.set()
            await plugins_of(world, short_path, FakeKind(1), UIDS[1]).run(stop)

    asyncio.run(scenario())

    left = sorted(path.name for path in short_path.rglob("*.*"))

    assert [name for name in left if name.endswith(".sock")] == [
        "dra-living.sock",
        f"{DRIVER}-living-reg.sock",
    ]
    assert f"plugin-{UIDS[0]}.lock" not in left


def test_the_newer_instance_says_what_the_node_has_and_keeps_it(short_path: Path) -> None:
    """Two of different counts do not fight, and the older one takes no slices with it."""

    async def scenario() -> list[list[int]]:
        world: Site = site()
        seen: list[list[int]] = []
        await world.client.create(NODES, {"metadata": {"name": NODE}})
        stops = [asyncio.Event(), asyncio.Event()]

        async def counts(expected: list[int]) -> None:
            found = None
            while found != expected:
                await settle()
                items = (await world.client.list(SLICES)).items
                found = [len(each["spec"]["devices"]) for each in items]
            seen.append(expected)

        async with asyncio.TaskGroup() as group:
            old = plugins_of(world, short_path, FakeKind(2), UIDS[0])
            ending = group.create_task(old.run(stops[0], removes_slices=True), name="old")
            await counts([2])
            new = plugins_of(world, short_path, FakeKind(3), UIDS[1])
            group.create_task(new.run(stops[1], removes_slices=True), name="new")
            await counts([3])
            stops[0].set()
            await ending
            await counts([3])
            stops[1].set()
        await counts([])
        return seen

    assert asyncio.run(scenario()) == [[2], [3], [3], []]
