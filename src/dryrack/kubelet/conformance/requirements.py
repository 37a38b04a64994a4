"""
The requirements for DRA drivers: what Kubernetes promises to users of the kubelet's protocol.

Each is one function that makes calls as a kubelet does, also after crashes, and raises if the
answers break the contract.
"""

from __future__ import annotations

import asyncio
import shutil
import signal
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dryrack.client.endpoints import SLICES
from dryrack.kubelet.conformance.report import NotMetError, SkippedError
from dryrack.kubelet.instance import SERVICES, CallError, ClaimReference, Instance

if TYPE_CHECKING:
    from dryrack.kubelet.conformance.bench import Bench, Prepared

Check = Callable[["Bench"], Awaitable[None]]
PREPARE = "NodePrepareResources"
UNPREPARE = "NodeUnprepareResources"
RESTORE_SECONDS_MAX = 90.0


@dataclass(frozen=True, slots=True)
class Requirement:
    """A sentence of the contract, and the function that checks it."""

    name: str
    contract: str
    check: Check


REQUIREMENTS: list[Requirement] = []


def _requirement(contract: str) -> Callable[[Check], Check]:
    def add(check: Check) -> Check:
        name = check.__name__.replace("_", "-")
        REQUIREMENTS.append(Requirement(name, contract, check))
        return check

    return add


@_requirement("A driver offers v1.DRAPlugin, which every kubelet from 1.34 on prefers.")
async def registration_offers_v1(bench: Bench) -> None:
    instance = await bench.instance()
    if instance.service != "v1.DRAPlugin":
        raise NotMetError("GetInfo", f"the driver offers {instance.service} first")


@_requirement("A driver stays registered: it does not drop its registration socket by itself.")
async def registration_is_stable(bench: Bench) -> None:
    await bench.instance()
    await asyncio.sleep(1)
    if bench.driver not in bench.registrations.drivers:
        raise NotMetError("waited a second", "the registration socket does not exist")


@_requirement("A pool is complete: it has as many slices of one generation as each slice states.")
async def slices_form_complete_pools(bench: Bench) -> None:
    pools: dict[str, list[dict[str, int]]] = {}
    await bench.devices()
    for each in await bench.slices():
        pools.setdefault(each["spec"]["pool"]["name"], []).append(each["spec"]["pool"])
    for name, members in pools.items():
        newest = max(each.get("generation", 0) for each in members)
        current = [each for each in members if each.get("generation", 0) == newest]
        counts = {each["resourceSliceCount"] for each in current}
        if counts != {len(current)}:
            raise NotMetError(
                f"listed the ResourceSlices of pool {name}",
                f"{len(current)} slices of generation {newest} state the counts {sorted(counts)}",
            )


@_requirement("A driver writes its ResourceSlices again after another client deleted them.")
async def slices_are_restored(bench: Bench) -> None:
    before = sorted(await bench.devices())
    for each in await bench.slices():
        await bench.client.delete(SLICES, each["metadata"]["name"])
    # The controller of Kubernetes waits for 30 s, in case the deletion is its own.
    after = sorted(await bench.devices(seconds=RESTORE_SECONDS_MAX))
    if before != after:
        raise NotMetError("deleted the ResourceSlices", f"devices {before} became {after}")


@_requirement("The answer has exactly one result for each claim of the call.")
async def prepare_answers_each_claim(bench: Bench) -> None:
    claims = [await bench.claim() for _ in range(min(3, len(await bench.devices())))]
    prepared = await bench.prepare(*claims)
    if set(prepared) != {each.uid for each in claims}:
        raise NotMetError(f"{PREPARE} for {len(claims)} claims", f"results for {sorted(prepared)}")


@_requirement("A result has the allocated devices of the driver, and no others.")
async def prepare_returns_the_allocated_devices(bench: Bench) -> None:
    [device, *_] = await bench.devices()
    claim = await bench.claim(device)
    for each in (await bench.prepare(claim))[claim.uid]:
        if (each.pool, each.device) != device:
            raise NotMetError(
                f"{PREPARE} for device {'/'.join(device)}", f"device {each.pool}/{each.device}"
            )
        if not set(each.requests) <= {"r0"}:
            raise NotMetError(f"{PREPARE} for request r0", f"requests {list(each.requests)}")


@_requirement("The CDI devices of a result exist in the CDI specs when the call returns.")
async def prepare_writes_cdi_specs_first(bench: Bench) -> None:
    claim = await bench.claim()
    _check_cdi(bench, (await bench.prepare(claim))[claim.uid], PREPARE)


@_requirement("NodePrepareResources is idempotent: a kubelet repeats it when it lost the answer.")
async def prepare_is_idempotent(bench: Bench) -> None:
    claim = await bench.claim()
    first = await bench.prepare(claim)
    second = await bench.prepare(claim)
    if first[claim.uid] != second[claim.uid]:
        raise NotMetError(
            f"{PREPARE} twice for the same claim",
            f"first {_show(first[claim.uid])}, then {_show(second[claim.uid])}",
        )
    _check_cdi(bench, second[claim.uid], f"{PREPARE} again")


@_requirement("NodeUnprepareResources is idempotent, and a claim can be prepared again after it.")
async def unprepare_is_idempotent(bench: Bench) -> None:
    claim = await bench.claim()
    await bench.prepare(claim)
    await bench.unprepare(claim)
    await bench.unprepare(claim)
    _check_cdi(bench, (await bench.prepare(claim))[claim.uid], f"{PREPARE} after {UNPREPARE}")


@_requirement("NodeUnprepareResources of a claim that the driver does not know succeeds.")
async def unprepare_of_an_unknown_claim_succeeds(bench: Bench) -> None:
    await bench.unprepare(ClaimReference("driver-test", "never-seen", "00000000-dead-beef"))


@_requirement("NodeUnprepareResources succeeds although the claim is deleted in the API server.")
async def unprepare_needs_no_claim_object(bench: Bench) -> None:
    claim = await bench.claim()
    await bench.prepare(claim)
    await bench.delete(claim)
    await bench.unprepare(claim)


@_requirement("NodeUnprepareResources removes the CDI devices of the claim.")
async def unprepare_removes_cdi_devices(bench: Bench) -> None:
    claim = await bench.claim()
    devices = (await bench.prepare(claim))[claim.uid]
    own = [n for each in devices for n in each.cdi_ids if claim.uid in n]
    if not own:
        raise SkippedError("the driver has no CDI devices that are named after the claim")
    await bench.unprepare(claim)
    if not bench.edits(devices).error:
        raise NotMetError(f"{UNPREPARE} of {claim.name}", f"CDI devices {own} still exist")


@_requirement("CDI names contain the UID of the claim, because a runtime caches CDI specs.")
async def cdi_names_are_never_reused(bench: Bench) -> None:
    [device, *_] = await bench.devices()
    names = []
    for _ in range(2):
        claim = await bench.claim(device, name="same-name")
        devices = (await bench.prepare(claim))[claim.uid]
        names.append({name for each in devices for name in each.cdi_ids})
        await bench.unprepare(claim)
        await bench.delete(claim)
    if names[0] and names[0] == names[1]:
        raise NotMetError(
            f"{PREPARE} for two claims with the same name and different UIDs",
            f"the same CDI devices {sorted(names[0])}",
        )


@_requirement("A claim with the name of a deleted claim, and another UID, is another claim.")
async def a_new_uid_is_a_new_claim(bench: Bench) -> None:
    [device, *_] = await bench.devices()
    old = await bench.claim(device, name="same-name")
    await bench.prepare(old)
    await bench.delete(old)
    new = await bench.claim(device, name="same-name")
    await bench.unprepare(old)
    if not await bench.prepare_error(old):
        raise NotMetError(f"{UNPREPARE}, then {PREPARE} with the UID of the old claim", "success")
    _check_cdi(bench, (await bench.prepare(new))[new.uid], f"{PREPARE} for the new claim")


@_requirement("A claim that does not exist is not prepared.")
async def a_missing_claim_is_an_error(bench: Bench) -> None:
    await _expect_error(
        bench, ClaimReference("driver-test", "missing", "00000000-missing"), "does not exist"
    )


@_requirement("A claim without allocation is not prepared.")
async def an_unallocated_claim_is_an_error(bench: Bench) -> None:
    await _expect_error(bench, await bench.claim(allocated=False), "is not allocated")


@_requirement("A claim with a device that the driver does not have is not prepared.")
async def an_unknown_device_is_an_error(bench: Bench) -> None:
    [(pool, _), *_] = await bench.devices()
    claim = await bench.claim((pool, "no-such-device"))
    await _expect_error(bench, claim, "has the device no-such-device")


@_requirement("An error of one claim does not keep other claims of the call from being prepared.")
async def errors_are_per_claim(bench: Bench) -> None:
    [(pool, _), *_] = await bench.devices()
    good = await bench.claim()
    bad = await bench.claim((pool, "no-such-device"))
    instance = await bench.instance()
    sent = f"{PREPARE} for {good.name}, and {bad.name} with a device that does not exist"
    try:
        answers = await instance.prepare_each([good, bad])
    except CallError as error:
        raise NotMetError(sent, f"an error of the call: {error}") from None
    if not isinstance(answers.get(bad.uid), str):
        raise NotMetError(sent, f"no error for {bad.name}")
    devices = answers.get(good.uid, "no result")
    if isinstance(devices, str):
        raise NotMetError(sent, f"for {good.name}: {devices}")
    _check_cdi(bench, devices, sent)


@_requirement("The driver is the last line of defense: it gives no device to two claims.")
async def a_device_has_one_claim(bench: Bench) -> None:
    [device, *_] = await bench.devices()
    if await _shares(bench, device):
        raise SkippedError("several claims can have the device")
    first = await bench.claim(device)
    await bench.prepare(first)
    second = await bench.claim(device)
    if not await bench.prepare_error(second):
        raise NotMetError(
            f"{PREPARE} for {second.name} with device {'/'.join(device)}, which is prepared for "
            f"{first.name}",
            "success",
        )
    await bench.unprepare(second)
    _check_cdi(bench, (await bench.prepare(first))[first.uid], f"{PREPARE} for the first claim")


@_requirement("Opaque configuration that is invalid is an error of the claim.")
async def invalid_configuration_is_an_error(bench: Bench) -> None:
    config = {"apiVersion": "driver-test.invalid/v1", "kind": "NoSuchKind", "x": [1]}
    await _expect_error(bench, await bench.claim(config=config), "has invalid parameters")


@_requirement("Calls of several pods run at the same time.")
async def calls_run_in_parallel(bench: Bench) -> None:
    claims = [await bench.claim(device) for device in (await bench.devices())[:8]]
    instance = await bench.instance()
    answers = await asyncio.gather(
        *(instance.prepare([each]) for each in claims), return_exceptions=True
    )
    _check_all(answers, f"{PREPARE} in {len(claims)} parallel calls")
    ends = await asyncio.gather(
        *(instance.unprepare([each]) for each in claims), return_exceptions=True
    )
    _check_all(ends, f"{UNPREPARE} in {len(claims)} parallel calls")


@_requirement("The same claim in parallel calls has the same answer.")
async def parallel_calls_for_a_claim_agree(bench: Bench) -> None:
    claim = await bench.claim()
    instance = await bench.instance()
    answers = await asyncio.gather(
        *(instance.prepare([claim]) for _ in range(8)), return_exceptions=True
    )
    _check_all(answers, f"{PREPARE} in 8 parallel calls for one claim")
    devices = [each[claim.uid] for each in answers if not isinstance(each, BaseException)]
    if any(each != devices[0] for each in devices):
        raise NotMetError(f"{PREPARE} in 8 parallel calls", "different answers")


@_requirement("A call that the kubelet gave up can be repeated.")
async def a_cancelled_call_can_be_repeated(bench: Bench) -> None:
    claim = await bench.claim()
    instance = await bench.instance()
    task = asyncio.ensure_future(instance.prepare([claim]))
    await asyncio.sleep(0.001)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    _check_cdi(bench, (await bench.prepare(claim))[claim.uid], f"{PREPARE} after a canceled call")


@_requirement("A prepared claim survives a crash of the driver: the next call has the same answer.")
async def prepare_after_a_crash(bench: Bench) -> None:
    claim = await bench.claim()
    before = (await bench.prepare(claim))[claim.uid]
    await bench.restart(signal.SIGKILL)
    after = (await bench.prepare(claim))[claim.uid]
    if before != after:
        raise NotMetError(
            f"{PREPARE}, kill -9, {PREPARE}", f"first {_show(before)}, then {_show(after)}"
        )
    _check_cdi(bench, after, f"{PREPARE} after kill -9")


@_requirement("NodeUnprepareResources works after a crash of the driver.")
async def unprepare_after_a_crash(bench: Bench) -> None:
    claim = await bench.claim()
    devices = (await bench.prepare(claim))[claim.uid]
    await bench.restart(signal.SIGKILL)
    await bench.unprepare(claim)
    if any(claim.uid in n for d in devices for n in d.cdi_ids) and not bench.edits(devices).error:
        raise NotMetError(f"{PREPARE}, kill -9, {UNPREPARE}", "the CDI devices still exist")


@_requirement("After a crash during NodePrepareResources, the driver prepares the claim.")
async def a_crash_during_prepare_is_survived(bench: Bench) -> None:
    for milliseconds in (0, 1, 2, 4, 8):
        claim = await bench.claim()
        instance = await bench.instance()
        task = asyncio.ensure_future(instance.prepare([claim]))
        await asyncio.sleep(milliseconds / 1000)
        await bench.restart(signal.SIGKILL)
        await asyncio.gather(task, return_exceptions=True)
        devices = (await bench.prepare(claim))[claim.uid]
        _check_cdi(bench, devices, f"{PREPARE} after kill -9 within {PREPARE}")
        await bench.unprepare(claim)


@_requirement("After a reboot, which clears the CDI specs, prepared claims can be prepared again.")
async def prepare_after_a_reboot(bench: Bench) -> None:
    claim = await bench.claim()
    await bench.prepare(claim)
    if bench.program is None:
        raise SkippedError("the suite did not start the driver, so it cannot restart it")
    await bench.program.stop(signal.SIGKILL)
    shutil.rmtree(bench.cdi)
    bench.cdi.mkdir()
    await bench.restart(signal.SIGKILL)
    devices = (await bench.prepare(claim))[claim.uid]
    _check_cdi(bench, devices, f"{PREPARE} after a reboot without CDI specs")


@_requirement("A damaged checkpoint neither stops the driver nor makes it panic.")
async def a_damaged_checkpoint_is_survived(bench: Bench) -> None:
    claim = await bench.claim()
    await bench.prepare(claim)
    own = bench.directory / "plugins" / bench.driver
    files = [each for each in own.rglob("*") if each.is_file() and each.stat().st_size]
    if not files:
        raise SkippedError(f"the driver keeps no files below {own}")
    if bench.program is None:
        raise SkippedError("the suite did not start the driver, so it cannot restart it")
    await bench.program.stop(signal.SIGKILL)
    for each in files:
        each.write_bytes(each.read_bytes()[: each.stat().st_size // 2])
    damaged = ", ".join(each.name for each in files)
    try:
        await bench.restart(signal.SIGKILL)
        error = await bench.prepare_error(claim)
        if "Unavailable" in error:
            raise NotMetError(f"{PREPARE} with half of {damaged}", error)
    finally:
        # The requirements that follow need a driver that works.
        await bench.program.stop(signal.SIGKILL)
        for each in files:
            each.unlink(missing_ok=True)
        await bench.program.start()


@_requirement("A driver that gets SIGTERM ends within 15 s, and removes its registration socket.")
async def sigterm_ends_the_driver(bench: Bench) -> None:
    if bench.program is None:
        raise SkippedError("the suite did not start the driver, so it cannot stop it")
    status = await bench.program.stop(signal.SIGTERM)
    sockets = list((bench.directory / "plugins_registry").rglob("*.sock"))
    await bench.program.start()
    await bench.instance()
    if status is None:
        raise NotMetError("SIGTERM", "the driver ran on for 15 s")
    if sockets:
        raise NotMetError("SIGTERM", f"left {', '.join(each.name for each in sockets)}")


@_requirement("The ResourceSlices are the same after a restart: no new pool, no lower generation.")
async def slices_survive_a_restart(bench: Bench) -> None:
    await bench.devices()
    before = {
        e["spec"]["pool"]["name"]: e["spec"]["pool"]["generation"] for e in await bench.slices()
    }
    await bench.restart(signal.SIGTERM)
    await bench.devices()
    after = {
        e["spec"]["pool"]["name"]: e["spec"]["pool"]["generation"] for e in await bench.slices()
    }
    if any(after.get(name, -1) < number for name, number in before.items()):
        raise NotMetError("SIGTERM and a start", f"pools {before} became {after}")


@_requirement("Both versions of the service give the same answer.")
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
        raise NotMetError(f"{PREPARE} over {other}", str(error)) from None
    finally:
        await instance.channel.close()
    if first != second:
        raise NotMetError(f"{PREPARE} over {other}", f"{_show(second)} instead of {_show(first)}")


async def _expect_error(bench: Bench, claim: ClaimReference, what: str) -> None:
    error = await bench.prepare_error(claim)
    if not error:
        raise NotMetError(f"{PREPARE} for a claim that {what}", "success")
    if "code = Unavailable" in error:
        raise NotMetError(f"{PREPARE} for a claim that {what}", error)
    await bench.unprepare(claim)


async def _shares(bench: Bench, device: tuple[str, str]) -> bool:
    return any(
        entry.get("allowMultipleAllocations") and entry["name"] == device[1]
        for each in await bench.slices()
        for entry in each["spec"].get("devices", ())
    )


def _check_cdi(bench: Bench, devices: Prepared, sent: str) -> None:
    error = bench.edits(devices).error
    if error:
        raise NotMetError(sent, f"{error}; searched /etc/cdi, /var/run/cdi and {bench.cdi}")


def _check_all(answers: Sequence[object], sent: str) -> None:
    errors = [str(each) for each in answers if isinstance(each, BaseException)]
    if errors:
        raise NotMetError(sent, errors[0])


def _show(devices: Prepared) -> str:
    return ", ".join(f"{e.pool}/{e.device} {list(e.cdi_ids)}" for e in devices) or "no devices"
