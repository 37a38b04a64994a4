"""Requirements for crashes, reboots, and damaged files."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

from dryrack.kubelet.conformance.contract import (
    PREPARE,
    UNPREPARE,
    check_cdi,
    check_same,
    check_unprepared,
    requirement,
)
from dryrack.kubelet.conformance.program import BenchError
from dryrack.kubelet.conformance.report import NotMetError, SkippedError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dryrack.kubelet.conformance.bench import Bench

# The driver writes its files within these milliseconds of a call.
_CRASH_MILLISECONDS = (0, 1, 2, 4, 8)


@requirement("A prepared claim survives a crash of the driver: the next call has the same answer.")
async def prepare_after_a_crash(bench: Bench) -> None:
    bench.own_program()
    claim = await bench.claim()
    before = (await bench.prepare(claim))[claim.uid]
    await bench.restart(signal.SIGKILL)
    after = (await bench.prepare(claim))[claim.uid]
    check_same(before, after, f"{PREPARE}, kill -9, {PREPARE}")
    check_cdi(bench, after, f"{PREPARE} after kill -9")


@requirement("NodeUnprepareResources works after a crash of the driver.")
async def unprepare_after_a_crash(bench: Bench) -> None:
    bench.own_program()
    claim = await bench.claim()
    devices = (await bench.prepare(claim))[claim.uid]
    await bench.restart(signal.SIGKILL)
    await bench.unprepare(claim)
    check_unprepared(bench, devices, claim, f"{PREPARE}, kill -9, {UNPREPARE}")


@requirement("A crash between any two calls changes no answer.")
async def a_crash_between_any_two_calls(bench: Bench) -> None:
    bench.own_program()
    claim = await bench.claim()
    devices = None
    done: list[str] = []
    for method in (PREPARE, PREPARE, UNPREPARE, UNPREPARE, PREPARE, UNPREPARE):
        done += [method]
        sent = ", kill -9, ".join(done)
        if method == PREPARE:
            answer = (await bench.prepare(claim))[claim.uid]
            check_same(devices or answer, answer, sent)
            check_cdi(bench, answer, sent)
            devices = answer
        else:
            await bench.unprepare(claim)
            check_unprepared(bench, devices or (), claim, sent)
        await bench.restart(signal.SIGKILL)


@requirement("After a crash, the driver still gives no device to two claims.")
async def a_device_has_one_claim_after_a_crash(bench: Bench) -> None:
    bench.own_program()
    published = await bench.read_published()
    [device, *_] = await bench.devices()
    if published[device].get("allowMultipleAllocations"):
        raise SkippedError("several claims can have the device")
    first = await bench.claim(device)
    await bench.prepare(first)
    await bench.restart(signal.SIGKILL)
    second = await bench.claim(device)
    if not await bench.prepare_error(second):
        raise NotMetError(
            f"{PREPARE} for {first.name} with device {'/'.join(device)}, kill -9, {PREPARE} for "
            f"{second.name} with the same device",
            "success",
        )


@requirement("After a crash during NodePrepareResources, the driver prepares the claim.")
async def a_crash_during_prepare_is_survived(bench: Bench) -> None:
    bench.own_program()
    [device, *_] = await bench.devices()
    for milliseconds in _CRASH_MILLISECONDS:
        claim = await bench.claim(device)
        instance = await bench.instance()
        task = asyncio.ensure_future(instance.prepare([claim]))
        await asyncio.sleep(milliseconds / 1000)
        await bench.restart(signal.SIGKILL)
        await asyncio.gather(task, return_exceptions=True)
        devices = (await bench.prepare(claim))[claim.uid]
        check_cdi(bench, devices, f"{PREPARE} after kill -9 within {PREPARE}")
        await bench.unprepare(claim)
        check_unprepared(bench, devices, claim, f"{UNPREPARE} after kill -9 within {PREPARE}")


@requirement("After a crash during NodeUnprepareResources, the driver unprepares the claim.")
async def a_crash_during_unprepare_is_survived(bench: Bench) -> None:
    bench.own_program()
    [device, *_] = await bench.devices()
    for milliseconds in _CRASH_MILLISECONDS:
        claim = await bench.claim(device)
        devices = (await bench.prepare(claim))[claim.uid]
        instance = await bench.instance()
        task = asyncio.ensure_future(instance.unprepare([claim]))
        await asyncio.sleep(milliseconds / 1000)
        await bench.restart(signal.SIGKILL)
        await asyncio.gather(task, return_exceptions=True)
        await bench.unprepare(claim)
        check_unprepared(bench, devices, claim, f"{UNPREPARE} after kill -9 within {UNPREPARE}")


@requirement("After a reboot, which clears the CDI specs, prepared claims can be prepared again.")
async def prepare_after_a_reboot(bench: Bench) -> None:
    claim = await bench.claim()
    await bench.prepare(claim)
    await _reboot(bench)
    devices = (await bench.prepare(claim))[claim.uid]
    check_cdi(bench, devices, f"{PREPARE}, a reboot that clears the CDI specs, {PREPARE}")


@requirement("After a reboot, claims can be unprepared, and their devices are free.")
async def unprepare_after_a_reboot(bench: Bench) -> None:
    [device, *_] = await bench.devices()
    claim = await bench.claim(device)
    await bench.prepare(claim)
    await _reboot(bench)
    await bench.unprepare(claim)
    following = await bench.claim(device)
    devices = (await bench.prepare(following))[following.uid]
    check_cdi(bench, devices, f"a reboot, {UNPREPARE}, {PREPARE} for another claim")


async def _reboot(bench: Bench) -> None:
    await bench.own_program().stop(signal.SIGKILL)
    bench.clear_cdi()
    await bench.restart(signal.SIGKILL)


@requirement("A truncated checkpoint neither stops the driver nor makes it panic.")
async def a_truncated_checkpoint_is_survived(bench: Bench) -> None:
    await _damage(bench, "the first half of", lambda content: content[: len(content) // 2])


@requirement("An empty checkpoint neither stops the driver nor makes it panic.")
async def an_empty_checkpoint_is_survived(bench: Bench) -> None:
    await _damage(bench, "nothing in", lambda _: b"")


@requirement("A checkpoint with other bytes neither stops the driver nor makes it panic.")
async def a_damaged_checkpoint_is_survived(bench: Bench) -> None:
    await _damage(bench, "zeros in", lambda content: bytes(len(content)))


async def _damage(bench: Bench, what: str, change: Callable[[bytes], bytes]) -> None:
    """Damage the files of a driver that has a prepared claim, and call it."""
    program = bench.own_program()
    claim = await bench.claim()
    await bench.prepare(claim)
    files = _state_files(bench)
    if not files:
        raise SkippedError(f"the driver keeps no files below {bench.directory / 'plugins'}")
    await program.stop(signal.SIGKILL)
    for each in files:
        each.write_bytes(change(each.read_bytes()))
    sent = f"{PREPARE}, kill -9, {what} {', '.join(each.name for each in files)}"
    try:
        try:
            await bench.restart(signal.SIGKILL)
        except (NotMetError, BenchError) as error:
            got = error.got if isinstance(error, NotMetError) else str(error)
            raise NotMetError(f"{sent}, start", got) from None
        try:
            # An error is allowed: the driver has lost what it knew.
            await bench.prepare_error(claim)
        except NotMetError as error:
            raise NotMetError(f"{sent}, start, {PREPARE}", error.got) from None
        await _check_unprepare(bench, claim, f"{sent}, start, {UNPREPARE}")
    finally:
        await bench.reset()


async def _check_unprepare(bench: Bench, claim: object, sent: str) -> None:
    try:
        await bench.unprepare(claim)  # type: ignore[arg-type]
    except NotMetError as error:
        if "code = Unavailable" in error.got or bench.has_ended:
            raise NotMetError(sent, error.got) from None


def _state_files(bench: Bench) -> Sequence[Path]:
    """Return the files in which the driver keeps its state, without empty ones such as locks."""
    found = []
    for directory, _, names in os.walk(bench.directory / "plugins"):
        for name in names:
            path = Path(directory, name)
            if path.is_file() and path.stat().st_size:
                found.append(path)
    return sorted(found)
