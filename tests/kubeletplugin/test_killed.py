"""
kill -9 at every file operation of prepare, unprepare and recovery, and a restart after it.

All fault points are gone through: the scenario is repeated with one more operation allowed, until
it gets to its end.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.kubeletplugin.faults import NEVER, Killed, MortalFileSystem, VolatileFileSystem
from tests.kubeletplugin.nodes import bench, metadata_objects

from dryrack.kubeletplugin import PrepareError
from dryrack.kubeletplugin.kinds.fake import FakeKind
from dryrack.kubeletplugin.kinds.file import FileKind
from dryrack.kubeletplugin.record import State

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.kubeletplugin.nodes import Bench

    from dryrack.kubeletplugin import ClaimReference, NodePlugin

SHARE = "11111111-1111-1111-1111-111111111111"
OTHER_SHARE = "22222222-2222-2222-2222-222222222222"
# Directories made, and the claim written to the checkpoint; the effects are to come.
HALF_PREPARED = 5


NAMES = ("fake", "file", "metadata")


def made(directory: Path, name: str) -> Bench:
    """A node with devices that need one file, a file of the host too, or metadata files too."""
    kind = FileKind(1, str(directory / "etc"), is_shared=True) if name == "file" else FakeKind()
    world = bench(directory, kind)
    world.writes_metadata = name == "metadata"
    return world


async def claims(world: Bench) -> tuple[ClaimReference, ClaimReference]:
    """One that is there all the time, and one that is prepared and given back."""
    if isinstance(world.kind, FakeKind):
        return (
            await world.claim("stays", ["fake-0"], pods=["pod-of-stays"]),
            await world.claim("comes", ["fake-1"], pods=["pod-of-comes"]),
        )
    return (
        await world.claim("stays", ["file1"], pods=["pod-of-stays"], share_id=SHARE),
        await world.claim("comes", ["file1"], pods=["pod-of-comes"], share_id=OTHER_SHARE),
    )


def checkpoints(world: Bench) -> Path:
    return world.plugin_directory / "checkpoints"


def check_whole(world: Bench, plugin: NodePlugin, expected: set[str]) -> None:
    """Memory, checkpoint, CDI specs and host files say the same, and nothing is left over."""
    driver = world.kind.driver
    uids = {record.uid for record in plugin.records}
    specs = {path.name for path in world.cdi.iterdir()}
    files = list(checkpoints(world).iterdir())
    remembered = {path.name for path in files}
    expected_specs = {f"{driver}-{uid}.json" for uid in uids}
    below = world.plugin_directory / "dra-device-metadata"
    described = {path.relative_to(below).as_posix() for path in below.rglob("*") if path.is_file()}
    if world.writes_metadata:
        expected_specs |= {f"{driver}_metadata_{uid}_req.json" for uid in uids}

        assert described == {f"default_{each.name}/req/metadata.json" for each in plugin.records}
        for record in plugin.records:
            file = below / f"default_{record.name}/req/metadata.json"
            written, _ = metadata_objects(file)

            assert written["metadata"]["uid"] == record.uid
    assert uids == expected
    assert specs == expected_specs
    assert remembered == {f"{uid}.json" for uid in uids}
    assert {record.state for record in plugin.records} <= {State.PREPARED}
    for path in world.kind.host_files():
        names = [f"pod-of-{record.name}\n" for record in plugin.records]

        assert Path(path).read_text() == "".join(names)


async def die_everywhere(
    world: Bench,
    act: Callable[[Bench, NodePlugin, ClaimReference], Awaitable[None]],
    *,
    is_half_done: bool,
) -> int:
    """Acts with a process that dies at its n-th operation, for every n; how many there were."""
    directory = world.directory
    stays, comes = await claims(world)
    for last in itertools.count(1):
        world.directory = directory / str(last)
        first = world.plugin(MortalFileSystem())
        first.recover()
        await first.prepare([stays])
        try:
            await act(world, world.plugin(MortalFileSystem(last, is_half_done)), comes)
        except Killed:
            pass
        else:
            return last - 1
        again = world.plugin(MortalFileSystem())
        assert again.recover() == ()
        known = {record.uid for record in again.records}
        assert stays.uid in known
        check_whole(world, again, known)
        # The kubelet asks again for what it had no answer to; then all pods end.
        answers = await again.prepare([stays, comes])
        assert all(isinstance(answer, tuple) for answer in answers.values())
        check_whole(world, again, {stays.uid, comes.uid})
        assert set((await again.unprepare([comes, stays])).values()) == {None}
        check_whole(world, again, set())
    raise AssertionError("itertools.count has no end")


@pytest.mark.parametrize("is_half_done", [False, True], ids=["before", "halfway"])
@pytest.mark.parametrize("name", NAMES)
def test_a_kill_while_preparing_loses_and_leaks_nothing(
    tmp_path: Path, name: str, is_half_done: bool
) -> None:
    """After a restart a claim is there whole or not at all, and prepare gets to its end."""

    async def act(_: Bench, plugin: NodePlugin, comes: ClaimReference) -> None:
        plugin.recover()
        await plugin.prepare([comes])

    points = asyncio.run(die_everywhere(made(tmp_path, name), act, is_half_done=is_half_done))

    assert points >= 6


@pytest.mark.parametrize("is_half_done", [False, True], ids=["before", "halfway"])
@pytest.mark.parametrize("name", NAMES)
def test_a_kill_while_unpreparing_loses_and_leaks_nothing(
    tmp_path: Path, name: str, is_half_done: bool
) -> None:
    """After a restart unprepare can be asked again, and leaves nothing behind."""

    async def act(_: Bench, plugin: NodePlugin, comes: ClaimReference) -> None:
        plugin.recover()
        await plugin.prepare([comes])
        await plugin.unprepare([comes])

    points = asyncio.run(die_everywhere(made(tmp_path, name), act, is_half_done=is_half_done))

    assert points >= 9


@pytest.mark.parametrize("name", NAMES)
def test_a_kill_in_the_recovery_from_a_kill_is_recovered_from(tmp_path: Path, name: str) -> None:
    """Also the process that puts things in order may die, at any point of that."""

    async def act(world: Bench, plugin: NodePlugin, comes: ClaimReference) -> None:
        # A process died with a claim half prepared, and the machine was started again.
        before = world.plugin(MortalFileSystem(HALF_PREPARED))
        with contextlib.suppress(Killed):
            before.recover()
            await before.prepare([comes])
        assert (checkpoints(world) / f"{comes.uid}.json").exists()
        for path in world.cdi.iterdir():
            path.unlink()
        plugin.recover()

    points = asyncio.run(die_everywhere(made(tmp_path, name), act, is_half_done=True))

    assert points >= 6


@pytest.mark.parametrize("name", NAMES)
def test_a_disk_that_fails_once_is_told_and_the_next_attempt_succeeds(
    tmp_path: Path, name: str
) -> None:
    """An error of the disk is the claim's answer, and nothing is lost or leaked by it."""

    async def fail_at(world: Bench, number: int) -> bool:
        stays = ready[0]
        comes = ready[1]
        files = MortalFileSystem()
        plugin = world.plugin(files)
        plugin.recover()
        await plugin.prepare([stays])
        files.last, files.error = files.done + number, OSError("no space left on device")
        first: object = (await plugin.prepare([comes]))[comes.uid]
        if isinstance(first, tuple):
            first = (await plugin.unprepare([comes]))[comes.uid]
        has_failed = files.last <= files.done
        assert isinstance(first, PrepareError) == has_failed
        files.last = NEVER
        await plugin.prepare([comes])
        check_whole(world, plugin, {stays.uid, comes.uid})
        await plugin.unprepare([comes])
        check_whole(world, plugin, {stays.uid})
        return has_failed

    async def scenario() -> int:
        world = made(tmp_path, name)
        ready.extend(await claims(world))
        for number in itertools.count(1):
            world.directory = tmp_path / str(number)
            if not await fail_at(world, number):
                return number - 1
        raise AssertionError("itertools.count has no end")

    ready: list[ClaimReference] = []

    assert asyncio.run(scenario()) >= 7


@pytest.mark.parametrize("name", NAMES)
async def test_what_the_kubelet_was_told_outlives_a_power_failure(
    tmp_path: Path, name: str
) -> None:
    """Only the checkpoint waits for the disk; everything else is made again from it."""
    world = made(tmp_path, name)
    stays, comes = await claims(world)
    files = VolatileFileSystem()
    etc = tmp_path / "etc"
    etc.mkdir()

    def restarted() -> NodePlugin:
        files.lose_power(world.directory / "plugins", world.cdi, etc)
        plugin = world.plugin(files)
        assert plugin.recover() == ()
        return plugin

    first = world.plugin(files)
    first.recover()
    await first.prepare([stays, comes])
    second = restarted()
    check_whole(world, second, {stays.uid, comes.uid})
    await second.unprepare([comes])
    check_whole(world, restarted(), {stays.uid})
