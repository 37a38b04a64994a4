"""Requirements for NodePrepareResources and NodeUnprepareResources."""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING

from dryrack.kubelet.conformance.contract import (
    PREPARE,
    UNPREPARE,
    call_all,
    check_cdi,
    check_same,
    check_unprepared,
    expect_error,
    own_cdi_names,
    requirement,
    show,
)
from dryrack.kubelet.conformance.report import NotMetError, SkippedError
from dryrack.kubelet.instance import CallError, ClaimReference

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Any

    from dryrack.kubelet.cdi import ContainerEdits
    from dryrack.kubelet.conformance.bench import Bench, Key, Prepared

_PARALLEL = 8
_SLOW_SECONDS = 1.0
_OTHER = "other.driver-test.invalid"


@requirement("The answer has exactly one result for each claim of the call.")
async def prepare_answers_each_claim(bench: Bench) -> None:
    claims = [await bench.claim(each) for each in (await bench.devices())[:3]]
    prepared = await bench.prepare(*claims)
    if set(prepared) != {each.uid for each in claims}:
        raise NotMetError(f"{PREPARE} for {len(claims)} claims", f"results for {sorted(prepared)}")


@requirement("A result has the allocated devices of the driver, and no others.")
async def prepare_returns_the_allocated_devices(bench: Bench) -> None:
    devices = (await bench.devices())[:2]
    claim = await bench.claim(*devices)
    prepared = (await bench.prepare(claim))[claim.uid]
    sent = f"{PREPARE} for {', '.join('/'.join(each) for each in devices)}"
    # A device without an entry adds nothing to a container, which is allowed.
    for each in prepared:
        if (each.pool, each.device) not in devices:
            raise NotMetError(sent, f"device {each.pool}/{each.device}")
        request = f"r{devices.index((each.pool, each.device))}"
        if not set(each.requests) <= {request}:
            raise NotMetError(sent, f"requests {list(each.requests)} for {each.device}")


@requirement("A driver ignores the results and the configuration of other drivers in a claim.")
async def results_of_other_drivers_are_ignored(bench: Bench) -> None:
    parameters = {"apiVersion": "other.invalid/v1", "kind": "Other"}
    opaque = {"driver": _OTHER, "parameters": parameters}
    result = {"request": "r1", "driver": _OTHER, "pool": "other", "device": "other-0"}
    config = {"source": "FromClaim", "opaque": opaque}
    [device, *_] = await bench.devices()
    claim = await bench.claim(device, more=(result, config))
    prepared = (await bench.prepare(claim))[claim.uid]
    others = [each for each in prepared if each.device == "other-0"]
    if others:
        raise NotMetError(f"{PREPARE} for a claim with a device of {_OTHER}", show(tuple(others)))
    check_cdi(bench, prepared, f"{PREPARE} for a claim with a device of {_OTHER}")


@requirement("The requests of a result have no names of subrequests: a kubelet reads none.")
async def requests_have_no_subrequests(bench: Bench) -> None:
    claim = await bench.claim(alternative="small")
    for each in (await bench.prepare(claim))[claim.uid]:
        if not set(each.requests) <= {"r0"}:
            raise NotMetError(
                f"{PREPARE} for a result of request r0/small", f"requests {list(each.requests)}"
            )


@requirement("The CDI devices of a result exist in the CDI specs when the call returns.")
async def prepare_writes_cdi_specs_first(bench: Bench) -> None:
    claim = await bench.claim()
    check_cdi(bench, (await bench.prepare(claim))[claim.uid], PREPARE)


@requirement("NodePrepareResources is idempotent: a kubelet repeats it when it lost the answer.")
async def prepare_is_idempotent(bench: Bench) -> None:
    claim = await bench.claim()
    first = (await bench.prepare(claim))[claim.uid]
    second = (await bench.prepare(claim))[claim.uid]
    check_same(first, second, f"{PREPARE} twice for the same claim")
    check_cdi(bench, second, f"{PREPARE} again")


@requirement("A claim that could not be prepared is prepared when the reason no longer exists.")
async def prepare_succeeds_after_an_error(bench: Bench) -> None:
    [device, *_] = await bench.devices()
    claim = await bench.claim(allocated=False)
    await bench.prepare_error(claim)
    await bench.allocate(claim, device)
    check_cdi(bench, (await bench.prepare(claim))[claim.uid], f"{PREPARE} after an error")


@requirement("NodeUnprepareResources is idempotent, and a claim can be prepared again after it.")
async def unprepare_is_idempotent(bench: Bench) -> None:
    claim = await bench.claim()
    await bench.prepare(claim)
    await bench.unprepare(claim)
    await bench.unprepare(claim)
    check_cdi(bench, (await bench.prepare(claim))[claim.uid], f"{PREPARE} after {UNPREPARE}")


@requirement("NodeUnprepareResources of a claim that the driver does not know succeeds.")
async def unprepare_of_an_unknown_claim_succeeds(bench: Bench) -> None:
    await bench.unprepare(ClaimReference("driver-test", "never-seen", "00000000-dead-beef"))
    await bench.unprepare(await bench.claim())


@requirement("NodeUnprepareResources succeeds although the claim is deleted in the API server.")
async def unprepare_needs_no_claim_object(bench: Bench) -> None:
    claim = await bench.claim()
    devices = (await bench.prepare(claim))[claim.uid]
    await bench.delete(claim)
    await bench.unprepare(claim)
    check_unprepared(bench, devices, claim, f"{UNPREPARE} of a claim that is deleted")


@requirement("NodeUnprepareResources removes the CDI devices of the claim.")
async def unprepare_removes_cdi_devices(bench: Bench) -> None:
    claim = await bench.claim()
    devices = (await bench.prepare(claim))[claim.uid]
    if not own_cdi_names(devices, claim):
        raise SkippedError("the driver has no CDI devices that are named after the claim")
    await bench.unprepare(claim)
    check_unprepared(bench, devices, claim, f"{UNPREPARE} of {claim.name}")


@requirement("NodeUnprepareResources of a claim does not change other claims.")
async def unprepare_leaves_other_claims(bench: Bench) -> None:
    first, second = await _two_devices(bench)
    kept = await bench.claim(first)
    ended = await bench.claim(second)
    before = await bench.prepare(kept, ended)
    await bench.unprepare(ended)
    sent = f"{PREPARE} for two claims, {UNPREPARE} for one of them"
    check_cdi(bench, before[kept.uid], sent)
    check_same(before[kept.uid], (await bench.prepare(kept))[kept.uid], sent)


@requirement("After NodeUnprepareResources, another claim can have the device.")
async def unprepare_frees_the_device(bench: Bench) -> None:
    [device, *_] = await bench.devices()
    for _ in range(3):
        claim = await bench.claim(device)
        check_cdi(bench, (await bench.prepare(claim))[claim.uid], f"{PREPARE} for a free device")
        await bench.unprepare(claim)


@requirement("A claim that is allocated again, with the same UID, has its new devices.")
async def a_new_allocation_has_its_devices(bench: Bench) -> None:
    first, second = await _two_devices(bench)
    claim = await bench.claim(first)
    await bench.prepare(claim)
    await bench.unprepare(claim)
    await bench.deallocate(claim)
    await bench.allocate(claim, second)
    devices = (await bench.prepare(claim))[claim.uid]
    old = [each for each in devices if (each.pool, each.device) == first]
    if old:
        raise NotMetError(
            f"{PREPARE} for {'/'.join(first)}, {UNPREPARE}, {PREPARE} for {'/'.join(second)}",
            show(devices),
        )


@requirement("A CDI name never gets another content, because a runtime caches CDI specs.")
async def cdi_names_are_never_reused(bench: Bench) -> None:
    seen: dict[str, ContainerEdits] = {}
    for device in (await _two_devices(bench))[:2]:
        claim = await bench.claim(device, name="same-name")
        for each in (await bench.prepare(claim))[claim.uid]:
            for name in each.cdi_ids:
                edits = bench.edits_of({name: None})
                if seen.setdefault(name, edits) != edits:
                    raise NotMetError(
                        f"{PREPARE} for two claims with the same name and different UIDs",
                        f"CDI device {name} is used again with another content",
                    )
        await bench.unprepare(claim)
        await bench.delete(claim)


@requirement("A claim with the name of a deleted claim, and another UID, is another claim.")
async def a_new_uid_is_a_new_claim(bench: Bench) -> None:
    [device, *_] = await bench.devices()
    old = await bench.claim(device, name="same-name")
    await bench.prepare(old)
    await bench.delete(old)
    new = await bench.claim(device, name="same-name")
    await bench.unprepare(old)
    if not await bench.prepare_error(old):
        raise NotMetError(f"{UNPREPARE}, then {PREPARE} with the UID of the old claim", "success")
    await bench.unprepare(old)
    check_cdi(bench, (await bench.prepare(new))[new.uid], f"{PREPARE} for the new claim")


@requirement("A claim that does not exist is not prepared.")
async def a_missing_claim_is_an_error(bench: Bench) -> None:
    missing = ClaimReference("driver-test", "missing", "00000000-missing")
    await expect_error(bench, missing, "does not exist")


@requirement("A repeated call for a claim that was unprepared and deleted does not prepare it.")
async def a_deleted_claim_is_not_prepared_again(bench: Bench) -> None:
    claim = await bench.claim()
    await bench.prepare(claim)
    await bench.unprepare(claim)
    await bench.delete(claim)
    await expect_error(bench, claim, "is unprepared and deleted")


@requirement("A claim without allocation is not prepared.")
async def an_unallocated_claim_is_an_error(bench: Bench) -> None:
    await expect_error(bench, await bench.claim(allocated=False), "is not allocated")


@requirement("A claim with a device that the driver does not have is not prepared.")
async def an_unknown_device_is_an_error(bench: Bench) -> None:
    [(pool, _), *_] = await bench.devices()
    claim = await bench.claim((pool, "no-such-device"))
    await expect_error(bench, claim, "has the device no-such-device")


@requirement("An error of one claim does not keep other claims of the call from being prepared.")
async def errors_are_per_claim(bench: Bench) -> None:
    [(pool, _), *_] = await bench.devices()
    good = await bench.claim()
    bad = await bench.claim((pool, "no-such-device"))
    if not await bench.prepare_error(bad):
        raise SkippedError("the driver prepares a device that it does not have")
    sent = f"{PREPARE} for {good.name}, and {bad.name} with a device that does not exist"
    await _check_errors(bench, good, bad, sent)


@requirement("Opaque configuration that is invalid is an error of the claim that has it.")
async def invalid_configuration_is_an_error(bench: Bench) -> None:
    config = {"apiVersion": "driver-test.invalid/v1", "kind": "NoSuchKind", "x": [1]}
    first, second = await _two_devices(bench)
    good = await bench.claim(first)
    bad = await bench.claim(second, config=config)
    sent = f"{PREPARE} for {good.name}, and {bad.name} with opaque parameters of an unknown kind"
    await _check_errors(bench, good, bad, sent)


async def _check_errors(bench: Bench, good: ClaimReference, bad: ClaimReference, sent: str) -> None:
    """Check that a call has an error for one claim, and prepares the other one."""
    instance = await bench.instance()
    try:
        answers = await instance.prepare_each([good, bad])
    except CallError as error:
        raise await bench.failure(sent, CallError(f"an error of the call: {error}")) from None
    if not isinstance(answers.get(bad.uid), str):
        raise NotMetError(sent, f"no error for {bad.name}")
    devices = answers.get(good.uid, "no result")
    if isinstance(devices, str):
        raise NotMetError(sent, f"for {good.name}: {devices}")
    check_cdi(bench, devices, sent)


@requirement("Opaque configuration that is valid is accepted.")
async def valid_configuration_is_accepted(bench: Bench) -> None:
    if bench.parameters is None:
        raise SkippedError("no parameters; pass them with --config FILE")
    claim = await bench.claim()
    check_cdi(bench, (await bench.prepare(claim))[claim.uid], f"{PREPARE} with the parameters")


@requirement("The driver is the last line of defense: it gives no device to two claims.")
async def a_device_has_one_claim(bench: Bench) -> None:
    device = await _exclusive_device(bench)
    first = await bench.claim(device)
    before = (await bench.prepare(first))[first.uid]
    second = await bench.claim(device)
    if not await bench.prepare_error(second):
        raise NotMetError(
            f"{PREPARE} for {second.name} with device {'/'.join(device)}, which is prepared for "
            f"{first.name}",
            "success",
        )
    await bench.unprepare(second)
    check_same(before, (await bench.prepare(first))[first.uid], f"{PREPARE} for the first claim")
    check_cdi(bench, before, f"{PREPARE} for the first claim")


@requirement("Parallel calls for the same device prepare one claim.")
async def parallel_claims_for_a_device(bench: Bench) -> None:
    device = await _exclusive_device(bench)
    claims = [await bench.claim(device) for _ in range(_PARALLEL)]
    errors = await asyncio.gather(*(bench.prepare_error(each) for each in claims))
    prepared = [each.name for each, error in zip(claims, errors, strict=True) if not error]
    if len(prepared) != 1:
        raise NotMetError(
            f"{PREPARE} for {len(claims)} claims with device {'/'.join(device)} in parallel calls",
            f"{len(prepared)} claims are prepared: {', '.join(prepared) or 'none'}",
        )


@requirement("A claim with admin access gets a device that another claim has.")
async def admin_access_does_not_take_devices(bench: Bench) -> None:
    [device, *_] = await bench.devices()
    user = await bench.claim(device)
    before = (await bench.prepare(user))[user.uid]
    admin = await bench.claim(device, fields=({"adminAccess": True},))
    check_cdi(bench, (await bench.prepare(admin))[admin.uid], f"{PREPARE} with admin access")
    await bench.unprepare(admin)
    sent = f"{PREPARE} and {UNPREPARE} of a claim with admin access"
    check_cdi(bench, before, sent)
    check_same(before, (await bench.prepare(user))[user.uid], sent)


@requirement("Calls of several pods run at the same time.")
async def calls_run_in_parallel(bench: Bench) -> None:
    claims = [await bench.claim(device) for device in (await bench.devices())[:_PARALLEL]]
    instance = await bench.instance()
    sent = f"in {len(claims)} parallel calls"
    await call_all([instance.prepare([each]) for each in claims], f"{PREPARE} {sent}")
    await call_all([instance.unprepare([each]) for each in claims], f"{UNPREPARE} {sent}")


@requirement("The same claim in parallel calls has the same answer.")
async def parallel_calls_for_a_claim_agree(bench: Bench) -> None:
    claim = await bench.claim()
    sent = f"{PREPARE} in {_PARALLEL} parallel calls for one claim"
    answers = await call_all([_prepare_one(bench, claim) for _ in range(_PARALLEL)], sent)
    for each in answers:
        if each != answers[0]:
            raise NotMetError(sent, "different answers")


@requirement("Parallel calls to prepare and to unprepare a claim leave no half of it.")
async def prepare_and_unprepare_can_race(bench: Bench) -> None:
    claim = await bench.claim()
    instance = await bench.instance()
    calls = [instance.prepare([claim]) for _ in range(_PARALLEL)]
    ends = [instance.unprepare([claim]) for _ in range(_PARALLEL)]
    sent = f"{PREPARE} and {UNPREPARE} of a claim in parallel calls"
    await asyncio.gather(*calls, *ends, return_exceptions=True)
    devices = await _prepare_one(bench, claim)
    check_cdi(bench, devices, f"{sent}, then {PREPARE}")
    await bench.unprepare(claim)
    check_unprepared(bench, devices, claim, f"{sent}, then {UNPREPARE}")


@requirement("A call that the kubelet gave up can be repeated.")
async def a_canceled_call_can_be_repeated(bench: Bench) -> None:
    claim = await bench.claim()
    instance = await bench.instance()
    for milliseconds in (0, 1, 3):
        await _give_up(instance.prepare([claim]), milliseconds / 1000)
        devices = await _prepare_one(bench, claim)
        check_cdi(bench, devices, f"{PREPARE} after a canceled call")
        await _give_up(instance.unprepare([claim]), milliseconds / 1000)
        await bench.unprepare(claim)
        check_unprepared(bench, devices, claim, f"{UNPREPARE} after a canceled call")


@requirement("A driver that was slow for longer than the deadline of a call recovers.")
async def a_slow_driver_recovers(bench: Bench) -> None:
    program = bench.own_program()
    claim = await bench.claim()
    instance = await bench.instance()
    program.send(signal.SIGSTOP)
    try:
        await _give_up(instance.prepare([claim]), _SLOW_SECONDS)
    finally:
        program.send(signal.SIGCONT)
    sent = f"SIGSTOP, {PREPARE} with a deadline of {_SLOW_SECONDS:g} s, SIGCONT, {PREPARE}"
    devices = await _prepare_one(bench, claim)
    check_cdi(bench, devices, sent)
    await bench.unprepare(claim)
    check_unprepared(bench, devices, claim, f"{sent}, {UNPREPARE}")


@requirement("A claim that is deleted while it is prepared can be unprepared, and leaves nothing.")
async def a_claim_can_be_deleted_meanwhile(bench: Bench) -> None:
    [device, *_] = await bench.devices()
    for milliseconds in (0, 2):
        claim = await bench.claim(device)
        instance = await bench.instance()
        call = asyncio.ensure_future(instance.prepare([claim]))
        await asyncio.sleep(milliseconds / 1000)
        await bench.delete(claim)
        [answer] = await asyncio.gather(call, return_exceptions=True)
        await bench.unprepare(claim)
        if not isinstance(answer, BaseException):
            sent = f"{PREPARE}, deletion of the claim, {UNPREPARE}"
            check_unprepared(bench, answer[claim.uid], claim, sent)
    claim = await bench.claim(device)
    check_cdi(bench, await _prepare_one(bench, claim), f"{PREPARE} for the next claim")


async def _give_up(call: Coroutine[Any, Any, object], seconds: float) -> None:
    """Cancel a call after some time; its outcome is unknown then, as for a kubelet."""
    task = asyncio.ensure_future(call)
    await asyncio.wait([task], timeout=seconds)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def _prepare_one(bench: Bench, claim: ClaimReference) -> Prepared:
    return (await bench.prepare(claim))[claim.uid]


async def _two_devices(bench: Bench) -> list[Key]:
    devices = await bench.devices()
    if len(devices) < 2:
        raise SkippedError("the driver has only one device")
    return devices[:2]


async def _exclusive_device(bench: Bench) -> Key:
    published = await bench.read_published()
    for each in await bench.devices():
        if not published[each].get("allowMultipleAllocations"):
            return each
    raise SkippedError("several claims can have each device")
