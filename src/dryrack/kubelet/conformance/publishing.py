"""Requirements for ResourceSlices."""

from __future__ import annotations

import asyncio
import re
import signal
from typing import TYPE_CHECKING

from dryrack.client.endpoints import SLICES
from dryrack.kinds.paths import get
from dryrack.kubelet.conformance.bench import LOOK_SECONDS
from dryrack.kubelet.conformance.contract import requirement
from dryrack.kubelet.conformance.published import pools_of
from dryrack.kubelet.conformance.report import NotMetError, SkippedError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dryrack.kinds.raw import Raw
    from dryrack.kubelet.conformance.bench import Bench

# The controller of Kubernetes waits for 30 s, in case the deletion is its own.
_RESTORE_SECONDS_MAX = 90.0
_QUIET_SECONDS = 3.0
_CHANGE_SECONDS_MAX = 60.0
# The fields of optional features, which an API server without the feature drops.
_OPTIONAL_FIELDS = (
    "sharedCounters",
    "consumesCounters",
    "allowMultipleAllocations",
    "taints",
    "bindingConditions",
)
_NOTICE = re.compile(r"drop|disabled|feature|strip|unsupported|not supported", re.IGNORECASE)


@requirement("A pool is complete: it has as many slices of one generation as each slice states.")
async def slices_form_complete_pools(bench: Bench) -> None:
    await bench.devices()
    for pool in pools_of(await bench.slices()):
        if pool.problem:
            raise NotMetError(f"listed the ResourceSlices of pool {pool.name}", pool.problem)


@requirement("A driver does not write ResourceSlices when nothing changes.")
async def slices_are_quiet(bench: Bench) -> None:
    await bench.devices()
    await asyncio.sleep(_QUIET_SECONDS)
    before = await _versions(bench)
    await asyncio.sleep(_QUIET_SECONDS)
    after = await _versions(bench)
    changed = [name for name in after if before.get(name) != after[name]]
    if changed:
        raise NotMetError(f"waited {_QUIET_SECONDS:g} s", f"slices {', '.join(changed)} changed")


@requirement("A driver writes its ResourceSlices again after another client deleted them.")
async def slices_are_restored(bench: Bench) -> None:
    before = sorted(await bench.read_published())
    for each in await bench.slices():
        await bench.client.delete(SLICES, each["metadata"]["name"])
    after = sorted(await bench.read_published(seconds=_RESTORE_SECONDS_MAX))
    if before != after:
        raise NotMetError("deleted the ResourceSlices", f"devices {before} became {after}")


@requirement("A driver publishes its devices at its start, after a kubelet deleted the slices.")
async def slices_are_published_at_the_start(bench: Bench) -> None:
    program = bench.own_program()
    before = sorted(await bench.read_published())
    await program.stop(signal.SIGKILL)
    # A kubelet does this at its start, and 30 s after the driver is gone.
    for each in await bench.slices():
        await bench.client.delete(SLICES, each["metadata"]["name"])
    await bench.restart(signal.SIGKILL)
    after = sorted(await bench.read_published())
    if before != after:
        raise NotMetError(
            "kill -9, deletion of the ResourceSlices, start", f"devices {before} became {after}"
        )


@requirement("The ResourceSlices are the same after a restart: no new pool, no lower generation.")
async def slices_survive_a_restart(bench: Bench) -> None:
    await bench.devices()
    before = await _generations(bench)
    await bench.restart(signal.SIGTERM)
    await bench.devices()
    after = await _generations(bench)
    if any(after.get(name, -1) < number for name, number in before.items()):
        raise NotMetError("SIGTERM and a start", f"pools {before} became {after}")


@requirement("ResourceSlices follow changes of devices, in pools that become complete.")
async def slices_follow_device_changes(bench: Bench) -> None:
    if bench.change is None:
        raise SkippedError("no command that changes devices; pass one with --change COMMAND")
    await bench.devices()
    before, generations = await _contents(bench), await _generations(bench)
    await bench.change.start()
    assert bench.change.process is not None, "it is started"
    status = await bench.change.process.wait()
    if status:
        raise SkippedError(f"the command of --change ended with status {status}")
    try:
        async with asyncio.timeout(_CHANGE_SECONDS_MAX):
            while await _contents(bench) == before or _problem(await bench.slices()):  # noqa: ASYNC110
                await asyncio.sleep(LOOK_SECONDS)
    except TimeoutError:
        problem = _problem(await bench.slices()) or "the ResourceSlices did not change"
        raise NotMetError(
            f"ran the command of --change, and waited {_CHANGE_SECONDS_MAX:g} s", problem
        ) from None
    after = await _generations(bench)
    if any(after.get(name, number) < number for name, number in generations.items()):
        raise NotMetError("ran the command of --change", f"pools {generations} became {after}")


@requirement("A driver reports that an API server drops fields of its slices, and stops writing.")
async def dropped_fields_are_noticed(bench: Bench) -> None:
    if bench.limited is None or bench.program is None:
        raise SkippedError("the suite did not start the driver, so it cannot start another one")
    slices = await bench.slices() if await bench.devices() else ()
    used = [
        field
        for field in _OPTIONAL_FIELDS
        if any(
            part.get(field)
            for each in slices
            for part in (each["spec"], *get(each, "spec.devices", ()))
        )
    ]
    if not used:
        raise SkippedError("the slices of the driver have no fields of optional features")
    sent = f"published slices with {', '.join(used)} to an API server without these features"
    # A driver with fixed directories cannot run twice.
    await bench.program.stop()
    async with bench.limited() as limited:
        assert limited.program is not None, "a copy of the program"
        await limited.program.start()
        await asyncio.sleep(_QUIET_SECONDS)
        before = await _list_versions(limited)
        await asyncio.sleep(_QUIET_SECONDS)
        after = await _list_versions(limited)
        output = limited.program.output()
        is_noticed = _NOTICE.search(output) is not None or limited.program.has_ended
    await bench.program.start()
    await bench.instance()
    if any(name in before and before[name] != after[name] for name in after):
        raise NotMetError(sent, "the driver writes the same slices again and again")
    # A driver that publishes nothing has noticed, too.
    if after and not is_noticed:
        raise NotMetError(sent, "the log of the driver does not mention it")


async def _list_versions(bench: Bench) -> Mapping[str, str]:
    """Return the versions of all slices: the driver has no name yet."""
    listing = await bench.client.list(SLICES)
    return {e["metadata"]["name"]: e["metadata"]["resourceVersion"] for e in listing.items}


async def _versions(bench: Bench) -> Mapping[str, str]:
    return {e["metadata"]["name"]: e["metadata"]["resourceVersion"] for e in await bench.slices()}


async def _contents(bench: Bench) -> list[str]:
    """Return the devices of all slices as text, without generations."""
    return sorted(
        str({key: value for key, value in each["spec"].items() if key != "pool"})
        for each in await bench.slices()
    )


def _problem(slices: Sequence[Raw]) -> str:
    return next((f"pool {e.name}: {e.problem}" for e in pools_of(slices) if e.problem), "")


async def _generations(bench: Bench) -> Mapping[str, int]:
    return {each.name: each.generation for each in pools_of(await bench.slices())}
