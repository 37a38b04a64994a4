"""Requirements for registration and connections."""

from __future__ import annotations

import asyncio
import signal
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import grpc

from dryrack.kubelet.conformance.bench import LOOK_SECONDS
from dryrack.kubelet.conformance.contract import (
    PREPARE,
    UNPREPARE,
    check_cdi,
    check_same,
    check_unprepared,
    requirement,
    show,
)
from dryrack.kubelet.conformance.program import BenchError
from dryrack.kubelet.conformance.report import NotMetError, SkippedError
from dryrack.kubelet.instance import SERVICES, CallError, Instance
from dryrack.kubelet.registration import REGISTRY
from dryrack.kubeletapi import REGISTRATION, message

if TYPE_CHECKING:
    from pathlib import Path

    from dryrack.kubelet.conformance.bench import Bench

_NOTIFY_SECONDS_MAX = 5.0
_STOP_SECONDS_MAX = 15.0


@requirement("A driver offers v1.DRAPlugin, which every kubelet from 1.34 on prefers.")
async def registration_offers_v1(bench: Bench) -> None:
    instance = await bench.instance()
    if instance.service != "v1.DRAPlugin":
        raise NotMetError("GetInfo", f"the driver offers {instance.service} first")


@requirement("A driver stays registered: it does not drop its registration socket by itself.")
async def registration_is_stable(bench: Bench) -> None:
    await bench.instance()
    await asyncio.sleep(1)
    if bench.driver not in bench.registrations.drivers:
        raise NotMetError("waited a second", "the registration socket does not exist")


@requirement("A kubelet that starts again registers a driver that runs, and calls it.")
async def registration_after_a_kubelet_restart(bench: Bench) -> None:
    claim = await bench.claim()
    before = (await bench.prepare(claim))[claim.uid]
    await bench.restart_kubelet()
    await _register_again(bench, "GetInfo and NotifyRegistrationStatus of a new kubelet")
    after = (await bench.prepare(claim))[claim.uid]
    check_same(before, after, f"{PREPARE}, restart of the kubelet, {PREPARE}")


@requirement("A driver that a kubelet refused can be registered by the next kubelet.")
async def a_refused_registration_is_survived(bench: Bench) -> None:
    sent = "NotifyRegistrationStatus with an error"
    await bench.instance()
    for path in _registration_sockets(bench):
        with suppress(grpc.aio.AioRpcError):
            await _notify(path, "driver-test: the kubelet refuses the driver")
    await bench.restart_kubelet()
    await _register_again(bench, sent)
    claim = await bench.claim()
    await bench.prepare(claim)


async def _register_again(bench: Bench, sent: str) -> None:
    try:
        await bench.instance()
    except BenchError as error:
        raise NotMetError(sent, str(error)) from None


def _registration_sockets(bench: Bench) -> list[Path]:
    return [e for e in (bench.directory / REGISTRY).rglob("*") if e.is_socket()]


async def _notify(path: Path, error: str) -> None:
    async with grpc.aio.insecure_channel(f"unix:{path}") as channel:
        call: Any = channel.unary_unary(
            f"/{REGISTRATION}.Registration/NotifyRegistrationStatus",
            request_serializer=lambda each: each.SerializeToString(),
            response_deserializer=message(REGISTRATION, "RegistrationStatusResponse").FromString,
        )
        status = message(REGISTRATION, "RegistrationStatus")
        await call(status(plugin_registered=False, error=error), timeout=_NOTIFY_SECONDS_MAX)


@requirement("A driver answers on new connections after a kubelet has closed one.")
async def calls_work_after_a_reconnect(bench: Bench) -> None:
    claim = await bench.claim()
    own = await bench.instance()
    before = (await bench.prepare(claim))[claim.uid]
    for method in (PREPARE, UNPREPARE):
        instance = Instance(own.driver, own.endpoint, own.service)
        try:
            if method == PREPARE:
                await instance.prepare([claim])
            else:
                await instance.unprepare([claim])
        except CallError as error:
            raise await bench.failure(f"{method} on a new connection", error) from None
        finally:
            await instance.channel.close()
    check_unprepared(bench, before, claim, f"{UNPREPARE} on a new connection")


@requirement("Both versions of the service give the same answer.")
async def the_versions_agree(bench: Bench) -> None:
    claim = await bench.claim()
    own = await bench.instance()
    first = (await bench.prepare(claim))[claim.uid]
    other = next(each for each in SERVICES if each != own.service)
    instance = Instance(own.driver, own.endpoint, other)
    try:
        second = (await instance.prepare([claim]))[claim.uid]
    except CallError as error:
        if "Unimplemented" in str(error):
            raise SkippedError(f"the driver does not serve {other}") from None
        raise await bench.failure(f"{PREPARE} over {other}", error) from None
    finally:
        await instance.channel.close()
    if sorted(map(repr, first)) != sorted(map(repr, second)):
        raise NotMetError(f"{PREPARE} over {other}", f"{show(second)} instead of {show(first)}")


@requirement("A driver that gets SIGTERM ends within 15 s, and removes its registration socket.")
async def sigterm_ends_the_driver(bench: Bench) -> None:
    program = bench.own_program()
    # A driver that still starts can leave a socket.
    await bench.devices()
    await bench.instance()
    status = await program.stop(signal.SIGTERM, _STOP_SECONDS_MAX)
    sockets = _registration_sockets(bench)
    await program.start()
    await bench.instance()
    if status is None:
        raise NotMetError("SIGTERM", f"the driver ran on for {_STOP_SECONDS_MAX:g} s")
    if sockets:
        raise NotMetError("SIGTERM", f"left {', '.join(each.name for each in sockets)}")


@requirement("In a rolling update, the new instance takes over the claims of the old one.")
async def a_rolling_update_keeps_claims(bench: Bench) -> None:
    old = bench.own_program()
    new = bench.successor
    if new is None:
        raise SkippedError(
            "the program has no {uid}; pass it to the option for the UID of the pod, for example "
            "--pod-uid {uid}"
        )
    claims = [await bench.claim(each) for each in (await bench.devices())[:2]]
    first = await bench.instance()
    before = await bench.prepare(claims[0])
    await new.start()
    try:
        await _wait_for_successor(bench, first)
        after = await bench.prepare(claims[0])
        sent = f"{PREPARE} to the old instance, and to the new one"
        check_same(before[claims[0].uid], after[claims[0].uid], sent)
        more = await bench.prepare(claims[-1])
        await old.stop(signal.SIGTERM)
        sent = f"{PREPARE} to the old instance, SIGTERM for it, {UNPREPARE} to the new one"
        await bench.until(
            lambda: bench.registrations.instance(bench.driver) not in (None, first),
            "the new instance is not registered after the end of the old one",
        )
        check_cdi(bench, more[claims[-1].uid], "SIGTERM for the old instance")
        await bench.unprepare(*claims)
        check_unprepared(bench, before[claims[0].uid], claims[0], sent)
        if not await bench.slices():
            raise NotMetError("SIGTERM for the old instance", "the ResourceSlices were deleted")
    finally:
        await new.stop(signal.SIGTERM)
        if not old.is_running:
            await old.start()
        await bench.instance()


async def _wait_for_successor(bench: Bench, first: Instance) -> None:
    """Wait until the new instance gets the calls; the old one must stay registered."""
    try:
        async with asyncio.timeout(bench.patience):
            while bench.registrations.instance(bench.driver) in (None, first):  # noqa: ASYNC110
                await asyncio.sleep(LOOK_SECONDS)
    except TimeoutError:
        tail = bench.successor.tail() if bench.successor is not None else ""
        raise NotMetError(
            "started a second instance",
            f"it did not register within {bench.patience:g} s\n{tail}".rstrip(),
        ) from None
    await bench.instance()
