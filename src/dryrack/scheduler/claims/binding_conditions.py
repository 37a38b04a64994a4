"""
Binding conditions: a pod is bound only when the devices of its claims are ready.

A device may name conditions that its driver sets in the claim's `status.devices` once the device is
attached or prepared, and others that report that this has failed. Between the allocation and the
binding the scheduler watches the claim for them. The whole state of the wait is in the claim, also
its start (`allocationTimestamp`): after a crash the next scheduler finds the claim allocated and
reserved for the pod, and waits for the rest of the time.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

from dryrack.client.informer import name_of
from dryrack.client.timekeeping import seconds_of
from dryrack.kinds.paths import get
from dryrack.scheduler.claims import UnusableClaimError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.client.informer import Informer
    from dryrack.client.timekeeping import Timekeeper
    from dryrack.kinds.raw import Raw

# kube-scheduler's bindingTimeout.
TIMEOUT_SECONDS = 600.0


class BindingConditionsError(UnusableClaimError):
    """The devices of a claim did not become ready: its allocation is of no use."""


class UnreadyDevice(NamedTuple):
    """A device whose conditions are not all met."""

    device: str
    pending: tuple[str, ...]


def find_unready_devices(claim: Raw) -> tuple[UnreadyDevice, ...]:
    """Return the devices of an allocated claim that are not ready; raise if one has failed."""
    devices = get(claim, "status.devices", ())
    reported = {_device(each): each.get("conditions", ()) for each in devices}
    unready = []
    for result in get(claim, "status.allocation.devices.results", ()):
        required = result.get("bindingConditions")
        if not required:
            continue
        device = _device(result)
        conditions = {each["type"]: each for each in reported.get(device, ())}
        for name in result.get("bindingFailureConditions", ()):
            condition = conditions.get(name, {})
            if condition.get("status") == "True":
                raise BindingConditionsError(
                    "/".join(name_of(claim)),
                    f"device binding failed: claim={name_of(claim).name}, "
                    f"reason={condition.get('reason', '')}, "
                    f'message="{condition.get("message", "")}"; '
                    f"device {device} has the condition {name}, "
                    f"so the claim is deallocated and the pod is retried",
                )
        pending = [name for name in required if conditions.get(name, {}).get("status") != "True"]
        if pending:
            unready.append(UnreadyDevice(device, tuple(pending)))
    return tuple(unready)


def _device(entry: Raw) -> str:
    return f"{entry['driver']}/{entry['pool']}/{entry['device']}"


class BindingConditions:
    """Waits for the devices of claims; other pods are decided meanwhile."""

    def __init__(self, claims: Informer, clock: Timekeeper) -> None:
        self._claims = claims
        self._clock = clock
        self._waiting: dict[str, list[asyncio.Event]] = {}
        # Deleted claims, as opposed to claims that are too new for the informer.
        self._deleted: set[str] = set()
        claims.listen(self._on_claim)

    async def wait_until_met(self, claims: Sequence[Raw], timeout_seconds: float) -> None:
        """
        Wait until all devices of the claims, as they were written, are ready.

        Raise `BindingConditionsError` if a device fails, or if it takes longer than the timeout.
        """
        names = ["/".join(name_of(each)) for each in claims]
        changed = asyncio.Event()
        for name in names:
            self._waiting.setdefault(name, []).append(changed)
        try:
            while deadlines := [
                when for each in claims if (when := self._deadline(each, timeout_seconds))
            ]:
                changed.clear()
                timer = self._clock.call_at(min(deadlines), changed.set)
                try:
                    await changed.wait()
                finally:
                    timer.cancel()
        finally:
            for name in names:
                self._waiting[name].remove(changed)
                if not self._waiting[name]:
                    del self._waiting[name]
                    self._deleted.discard(name)

    def _deadline(self, written: Raw, timeout_seconds: float) -> float:
        """Return the time until which the claim may take to be ready; 0 if it is ready."""
        claim = self._newest(written)
        unready = find_unready_devices(claim)
        if not unready:
            return 0.0
        began = seconds_of(claim["status"]["allocation"]["allocationTimestamp"])
        deadline = began + timeout_seconds
        if self._clock.now() < deadline:
            return deadline
        devices = "; ".join(f"{each.device} lacks {', '.join(each.pending)}" for each in unready)
        raise BindingConditionsError(
            "/".join(name_of(claim)),
            f"device binding timeout: claim={name_of(claim).name}, {devices} after "
            f"{timeout_seconds:.0f} s; the driver of the device has to set these conditions "
            f"in the claim's status.devices",
        )

    def _newest(self, written: Raw) -> Raw:
        """Return the claim from the informer, or as it was written if the informer lags."""
        full = "/".join(name_of(written))
        claim = self._claims.get(*name_of(written))
        if full not in self._deleted and (claim is None or _revision(claim) < _revision(written)):
            return written
        is_same = claim is not None and claim["metadata"]["uid"] == written["metadata"]["uid"]
        if claim is None or not is_same or not claim.get("status", {}).get("allocation"):
            problem = "was deallocated" if is_same else "was deleted"
            raise BindingConditionsError(
                full, f"claim {full}: {problem} while its devices were made ready"
            )
        return claim

    def _on_claim(self, old: Raw | None, new: Raw | None) -> None:
        name = "/".join(name_of(new or old or {}))
        waiting = self._waiting.get(name, ())
        if new is None and waiting:
            self._deleted.add(name)
        for each in waiting:
            each.set()


def _revision(obj: Raw) -> int:
    return int(obj["metadata"]["resourceVersion"])
