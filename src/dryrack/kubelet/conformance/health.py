"""Requirements for the health service of a driver, which is optional."""

from __future__ import annotations

import asyncio
import signal
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import grpc

from dryrack.kubelet.conformance.contract import PREPARE, requirement
from dryrack.kubelet.conformance.report import NotMetError, SkippedError
from dryrack.kubelet.instance import text_of
from dryrack.kubeletapi import HEALTH_V1, HEALTH_V1ALPHA1, message

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from dryrack.kubelet.conformance.bench import Bench, Key

_WATCH = "NodeWatchResources"
_PACKAGES = (HEALTH_V1, HEALTH_V1ALPHA1)
# A kubelet takes a device as Unknown if it hears nothing for so long.
_FIRST_SECONDS_MAX = 30.0
_MESSAGE_MAX = 1024
# Clocks of one machine do not differ, but a driver can round.
_CLOCK_SECONDS = 5.0
_END_SECONDS_MAX = 10.0


@requirement("The health stream begins with the health of all devices.")
async def health_has_all_devices(bench: Bench) -> None:
    for package in await _find_versions(bench):
        async with _stream(bench, package) as stream:
            health = await _first(stream, package)
        published = set(await bench.read_published())
        unknown = sorted(set(health) - published)
        missing = sorted(published - set(health))
        if unknown:
            raise NotMetError(f"{package} {_WATCH}", f"device {'/'.join(unknown[0])} has no slice")
        if missing:
            raise NotMetError(f"{package} {_WATCH}", f"no health of {'/'.join(missing[0])}")


@requirement("The entries of a health stream are valid: health, time, and message.")
async def health_entries_are_valid(bench: Bench) -> None:
    for package in await _find_versions(bench):
        async with _stream(bench, package) as stream:
            health = await _first(stream, package)
        for key, each in health.items():
            problem = ""
            if each.health not in (0, 1, 2):
                problem = f"health {each.health}"
            elif each.last_updated_time > time.time() + _CLOCK_SECONDS:
                problem = f"last_updated_time {each.last_updated_time} is in the future"
            elif each.health_check_timeout_seconds < 0:
                problem = f"health_check_timeout_seconds {each.health_check_timeout_seconds}"
            elif len(each.message) > _MESSAGE_MAX:
                problem = f"a message of {len(each.message)} characters"
            if problem:
                raise NotMetError(f"{package} {_WATCH}", f"device {'/'.join(key)}: {problem}")


@requirement("A kubelet can open the health stream again, and gets the health of all devices.")
async def health_streams_can_reconnect(bench: Bench) -> None:
    for package in await _find_versions(bench):
        async with _stream(bench, package) as stream:
            before = set(await _first(stream, package))
        for _ in range(2):
            async with _stream(bench, package) as stream:
                after = set(await _first(stream, package))
            if before != after:
                raise NotMetError(
                    f"{package} {_WATCH}, the end of the stream, {_WATCH}",
                    f"{len(after)} devices instead of {len(before)}",
                )


@requirement("A health stream stays open, and does not keep claims from being prepared.")
async def health_streams_stay_open(bench: Bench) -> None:
    for package in await _find_versions(bench):
        async with _stream(bench, package) as stream:
            await _first(stream, package)
            claim = await bench.claim()
            await bench.prepare(claim)
            await bench.unprepare(claim)
            await asyncio.sleep(1)
            if stream.done():
                raise NotMetError(f"{package} {_WATCH}, {PREPARE}", "the driver ended the stream")


@requirement("After a crash of the driver, its next instance serves the health stream.")
async def health_after_a_crash(bench: Bench) -> None:
    bench.own_program()
    for package in await _find_versions(bench):
        async with _stream(bench, package) as stream:
            before = set(await _first(stream, package))
            await bench.restart(signal.SIGKILL)
        async with _stream(bench, package) as stream:
            after = set(await _first(stream, package))
        if before != after:
            raise NotMetError(
                f"{package} {_WATCH}, kill -9, {_WATCH}",
                f"{len(after)} devices instead of {len(before)}",
            )


@requirement("A driver with an open health stream ends after SIGTERM.")
async def health_streams_do_not_keep_the_driver(bench: Bench) -> None:
    program = bench.own_program()
    [package, *_] = await _find_versions(bench)
    async with _stream(bench, package) as stream:
        await _first(stream, package)
        status = await program.stop(signal.SIGTERM, _END_SECONDS_MAX)
    await program.start()
    await bench.instance()
    if status is None:
        raise NotMetError(f"{package} {_WATCH}, SIGTERM", f"it ran for {_END_SECONDS_MAX:g} s")


@requirement("Both versions of the health service give the same health.")
async def the_health_versions_agree(bench: Bench) -> None:
    served = await _find_versions(bench)
    if len(served) < len(_PACKAGES):
        raise SkippedError(f"the driver serves only {served[0]}")
    seen = []
    for package in served:
        async with _stream(bench, package) as stream:
            health = await _first(stream, package)
        seen.append({key: each.health for key, each in health.items()})
    if seen[0] != seen[1]:
        raise NotMetError(f"{_WATCH} over {' and '.join(served)}", f"{seen[0]} and {seen[1]}")


async def _find_versions(bench: Bench) -> list[str]:
    """Return the versions that the driver serves; raise `SkippedError` if there is none."""
    found = []
    for package in _PACKAGES:
        async with _stream(bench, package) as stream:
            try:
                await _first(stream, package)
            except NotMetError as error:
                if "code = Unimplemented" in error.got:
                    continue
                raise
            found.append(package)
    if not found:
        raise SkippedError("the driver has no health service")
    return found


@asynccontextmanager
async def _stream(bench: Bench, package: str) -> AsyncIterator[Any]:
    """Yield a health stream on a connection of its own."""
    endpoint = (await bench.instance()).endpoint
    async with grpc.aio.insecure_channel(f"unix:{endpoint}") as channel:
        watch: Any = channel.unary_stream(
            f"/{package}.DRAResourceHealth/{_WATCH}",
            request_serializer=lambda each: each.SerializeToString(),
            response_deserializer=message(package, f"{_WATCH}Response").FromString,
        )
        stream = watch(message(package, f"{_WATCH}Request")())
        try:
            yield stream
        finally:
            stream.cancel()


async def _first(stream: Any, package: str) -> Mapping[Key, Any]:
    """Return the first health of each device."""
    try:
        async with asyncio.timeout(_FIRST_SECONDS_MAX):
            answer = await stream.read()
    except TimeoutError:
        raise NotMetError(
            f"{package} {_WATCH}", f"no message within {_FIRST_SECONDS_MAX:g} s"
        ) from None
    except grpc.aio.AioRpcError as error:
        raise NotMetError(f"{package} {_WATCH}", text_of(error)) from None
    if answer is grpc.aio.EOF:
        raise NotMetError(f"{package} {_WATCH}", "the stream ended without a message")
    return {(e.device.pool_name, e.device.device_name): e for e in answer.devices}
