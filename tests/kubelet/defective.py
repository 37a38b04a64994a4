"""
The plugin of dryrack with a planted defect: a driver that breaks one promise.

    python -m tests.kubelet.defective DEFECT plugin --devices fake:4 ...
    python -m tests.kubelet.defective --table [DEFECT...]

A defect names the requirements of the conformance suite that must find it. The second form runs
the suite on these or all defects, and prints what found each one.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dryrack.client.endpoints import SLICES
from dryrack.client.timekeeping import sleep
from dryrack.cluster import SystemClock
from dryrack.kubeletplugin import cdi, checkpoint, device_health, plugin, prepare, serving, slices
from dryrack.kubeletplugin.device_kind import PrepareError

if TYPE_CHECKING:
    from collections.abc import Callable

_PLUGIN = ("plugin", "--no-nas", "--kubelet-dir", "{kubelet}", "--cdi-dir", "{cdi}")
# These take up to a minute each; a defect that they must find names them.
_SLOW = ("slices-are-restored", "random-sequences", "a-crash-during", "a-crash-between")


@dataclass(frozen=True)
class Defect:
    """A change of the plugin, and the requirements that find it."""

    plant: Callable[[], None]
    found_by: frozenset[str]
    devices: str = "fake:4"


DEFECTS: dict[str, Defect] = {}


def defect(*found_by: str, devices: str = "fake:4") -> Callable[[Callable[[], None]], None]:
    def add(plant: Callable[[], None]) -> None:
        name = plant.__name__.replace("_", "-")
        DEFECTS[name] = Defect(plant, frozenset(found_by), devices)

    return add


def patch(target: Any, name: str, make: Callable[[Any], Any]) -> None:
    """Replace an attribute by what `make` returns for it."""
    setattr(target, name, make(getattr(target, name)))


@defect(
    "a-device-has-one-claim",
    "parallel-claims-for-a-device",
    "a-device-has-one-claim-after-a-crash",
)
def shared_devices() -> None:
    """Give a device to two claims."""
    patch(prepare, "_check_free", lambda _: lambda *_: None)


@defect("a-device-has-one-claim-after-a-crash")
def no_checkpoint() -> None:
    """Forget the prepared claims when the process ends."""
    patch(checkpoint.Checkpoint, "save", lambda _: lambda *_: None)


@defect("prepare-after-a-reboot", "random-sequences")
def no_specs_after_a_reboot() -> None:
    """Write the CDI specs of a claim once, although a reboot clears them."""

    def carry(run: Any) -> Any:
        def carry_out(self: Any, record: Any) -> None:
            self.written = record.uid
            run(self, record)

        return carry_out

    def write_once(run: Any) -> Any:
        def write_specs(self: Any, record: Any) -> None:
            if getattr(self, "written", "") == record.uid:
                self.written = ""
                run(self, record)

        return write_specs

    patch(plugin.NodePlugin, "_carry_out", carry)
    patch(plugin.NodePlugin, "_write_specs", write_once)


@defect("unprepare-of-an-unknown-claim-succeeds")
def unknown_claims_are_errors() -> None:
    """Refuse to unprepare a claim that it has not prepared."""
    seen = set()

    def remember(run: Any) -> Any:
        async def prepare_claim(self: Any, claim: Any) -> Any:
            seen.add(claim.uid)
            return await run(self, claim)

        return prepare_claim

    def refuse(run: Any) -> Any:
        async def unprepare(self: Any, uid: str) -> None:
            if uid.startswith("00000000-dead") and uid not in seen:
                raise PrepareError("unknown claim")
            await run(self, uid)

        return unprepare

    patch(plugin.NodePlugin, "_prepare", remember)
    patch(plugin.NodePlugin, "_unprepare", refuse)


@defect("requests-have-no-subrequests")
def subrequests_in_results() -> None:
    """Return the names of subrequests."""

    def keep(run: Any) -> Any:
        def prepare_device(device: Any, *rest: Any) -> Any:
            prepared = run(device, *rest)
            return type(prepared)(
                **{
                    name: getattr(prepared, name)
                    for name in prepared.__struct_fields__
                    if name != "requests"
                },
                requests=(device.request,),
            )

        return prepare_device

    patch(prepare, "_prepare", keep)


@defect("a-new-uid-is-a-new-claim")
def claims_by_name() -> None:
    """Prepare the claim with the name, whatever its UID is."""

    def ignore(run: Any) -> Any:
        async def get(self: Any, claim: Any) -> Any:
            client = self._client

            class Renamed:
                async def get(self, *words: Any) -> Any:
                    raw = await client.get(*words)
                    return raw | {"metadata": raw["metadata"] | {"uid": claim.uid}}

            self._client = Renamed()
            try:
                return await run(self, claim)
            finally:
                self._client = client

        return get

    patch(plugin.NodePlugin, "_prepare", ignore)


@defect("results-of-other-drivers-are-ignored")
def results_of_all_drivers() -> None:
    """Take devices of other drivers for its own."""

    def rename(run: Any) -> Any:
        def allocated(claim: Any, devices: Any) -> Any:
            allocation = claim.status.allocation
            results = allocation.devices.results if allocation is not None else ()
            if any(each.driver != devices.kind.driver for each in results):
                raise PrepareError("a device of another driver")
            return run(claim, devices)

        return allocated

    patch(prepare, "allocated_devices", rename)


@defect("invalid-configuration-is-an-error", "errors-are-per-claim")
def errors_of_the_call() -> None:
    """Fail the whole call if one claim cannot be prepared."""

    def fail(run: Any) -> Any:
        async def answer(self: Any, request: Any) -> Any:
            response = await run(self, request)
            errors = [each.error for each in response.claims.values() if each.error]
            if errors:
                raise PrepareError(errors[0])
            return response

        return answer

    patch(serving._DraService, "prepare", fail)


@defect(
    "share-ids-are-those-of-the-allocation",
    "a-claim-has-two-shares-of-a-device",
    devices="gpu:4,shared=true",
)
def wrong_share_ids() -> None:
    """Return shares with other IDs."""

    def clear(run: Any) -> Any:
        async def answer(self: Any, request: Any) -> Any:
            response = await run(self, request)
            for entry in response.claims.values():
                for device in entry.devices:
                    if hasattr(device, "share_id"):
                        device.share_id = f"{device.share_id}-other"
            return response

        return answer

    patch(serving._DraService, "prepare", clear)


@defect("admin-access-does-not-take-devices")
def admin_access_needs_a_free_device() -> None:
    """Refuse a claim with admin access if another claim has the device."""

    def check(run: Any) -> Any:
        def check_free(device: Any, claim: Any, others: Any) -> None:
            if device.has_admin_access and list(others.holders(device.pool, device.device)):
                raise PrepareError("the device is in use")
            run(device, claim, others)

        return check_free

    patch(prepare, "_check_free", check)


@defect(
    "a-truncated-checkpoint-is-survived",
    "an-empty-checkpoint-is-survived",
    "a-damaged-checkpoint-is-survived",
)
def damaged_checkpoints_are_fatal() -> None:
    """End if a checkpoint cannot be read."""

    def load(run: Any) -> Any:
        def strict(*args: Any, **kwargs: Any) -> Any:
            records, damages = run(*args, **kwargs)
            if damages:
                sys.exit(f"damaged checkpoint: {damages[0].why}")
            return records, damages

        return strict

    patch(checkpoint.Checkpoint, "load", load)


@defect("slices-are-quiet")
def slices_are_rewritten() -> None:
    """Write the slices again every second."""

    tasks: list[asyncio.Task[None]] = []

    async def rewrite(client: Any) -> None:
        for turn in range(1000):
            await sleep(SystemClock(), 1.0)
            for each in (await client.list(SLICES)).items:
                labels = {"turn": str(turn)}
                await client.update(
                    SLICES, each | {"metadata": each["metadata"] | {"labels": labels}}
                )

    def publish(run: Any) -> Any:
        async def start(client: Any, *rest: Any) -> bool:
            if not tasks:
                tasks.append(asyncio.create_task(rewrite(client)))
            return bool(await run(client, *rest))

        return start

    patch(slices, "publish", publish)


@defect("dropped-fields-are-noticed", devices="gpu:2,partitions=2")
def dropped_fields_are_ignored() -> None:
    """Say nothing about dropped fields."""
    patch(slices.DroppedGates, "learn", lambda _: lambda *_: None)


@defect("health-has-all-devices")
def incomplete_health() -> None:
    """Leave out the last device in the health stream."""

    def shorten(run: Any) -> Any:
        def response(self: Any, package: str, current: Any) -> Any:
            answer = run(self, package, current)
            del answer.devices[-1]
            return answer

        return response

    patch(device_health.HealthStreams, "_response", shorten)


@defect("registration-after-a-kubelet-restart")
def one_registration() -> None:
    """Answer one GetInfo."""

    def answer_once(run: Any) -> Any:
        def service(node_plugin: Any, *rest: Any) -> Any:
            calls = []

            def count(request: Any, answer: Any) -> Any:
                async def once(message: Any) -> Any:
                    calls.append(message)
                    if len(calls) > 2:
                        raise PrepareError("registered already")
                    return await answer(message)

                return unary(request, once)

            unary = serving._unary
            serving._unary = count
            try:
                return run(node_plugin, *rest)
            finally:
                serving._unary = unary

        return service

    patch(serving, "_registration_service", answer_once)


@defect(
    "cdi-names-are-never-reused",
)
def cdi_names_of_claim_names() -> None:
    """Name CDI devices after the names of claims, which are used again."""
    names: dict[str, str] = {}

    def remember(run: Any) -> Any:
        def plan(claim: Any, *rest: Any) -> Any:
            names[claim.metadata.uid] = claim.metadata.name
            return run(claim, *rest)

        return plan

    def rename(run: Any) -> Any:
        def device_name(uid: str, device: Any) -> str:
            return str(names.get(uid, uid))

        return device_name

    patch(plugin, "plan", remember)
    patch(cdi, "device_name", rename)


def failures(name: str, focus: str) -> set[str]:
    """Return the requirements that the plugin with a defect does not meet."""
    words = [sys.executable, "-m", "dryrack", "driver", "test", "-o", "json", "--focus", focus]
    program = [sys.executable, "-m", "tests.kubelet.defective", name, *_PLUGIN]
    devices = ["--devices", DEFECTS[name].devices] if name in DEFECTS else []
    run = subprocess.run([*words, "--", *program, *devices], capture_output=True, check=False)
    if not run.stdout:
        raise AssertionError(run.stderr.decode())
    results = json.loads(run.stdout)["requirements"]
    return {each["requirement"] for each in results if each["outcome"] == "failed"}


def table(names: list[str]) -> None:
    for name in names or DEFECTS:
        each = DEFECTS[name]
        slow = [each for each in _SLOW if each not in DEFECTS[name].found_by]
        found = failures(name, f"^(?!{'|'.join(slow)})")
        mark = "as expected" if found == each.found_by else f"expected {sorted(each.found_by)}"
        sys.stdout.write(f"{name}: {', '.join(sorted(found)) or 'nothing'} ({mark})\n")
        sys.stdout.flush()


if __name__ == "__main__":
    if sys.argv[1] == "--table":
        table(sys.argv[2:])
    else:
        from dryrack.__main__ import main

        DEFECTS[sys.argv[1]].plant()
        del sys.argv[1]
        main()
