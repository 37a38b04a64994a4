"""
Binding conditions: a pod is bound only when the devices of its claims are ready.

A device may name conditions that its driver sets in the claim's `status.devices` once the device is
attached or prepared, and others that say that this has failed. Between the writing of the
allocation and the binding the scheduler waits for them, told by the watch of claims. All that the
wait depends on is in the claim, its beginning too (`allocationTimestamp`): whoever dies in it finds
the claim allocated and reserved for the pod, and waits for the rest of the time.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

from dryrack.client.informer import name_of
from dryrack.client.timekeeping import seconds_of
from dryrack.scheduler.claims import UnusableClaimError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dryrack.client.informer import Informer
    from dryrack.client.timekeeping import Timekeeper
    from dryrack.kinds.raw import Raw

# kube-scheduler's bindingTimeout.
TIMEOUT_SECONDS = 600.0


class BindingConditionsError(UnusableClaimError):
    """The devices of a claim did not become ready: its allocation is of no use."""


class Unready(NamedTuple):
    """A device whose conditions are not all met."""

    device: str
    pending: tuple[str, ...]


def unready(claim: Raw) -> tuple[Unready, ...]:
    """The devices of an allocated claim that are not ready; raises if one has failed."""
    found = []
    for result, conditions in _devices(claim):
        for name in result.get("bindingFailureConditions", ()):
            if conditions.get(name, {}).get("status") == "True":
                raise _failed(claim, result, conditions[name])
        named = result["bindingConditions"]
        pending = [name for name in named if conditions.get(name, {}).get("status") != "True"]
        if pending:
            found.append(Unready(_device(result), tuple(pending)))
    return tuple(found)


def _devices(claim: Raw) -> Iterator[tuple[Raw, dict[str, Raw]]]:
    """Each device that has binding conditions, with the conditions that its driver has set."""
    status = claim.get("status", {})
    told = {_device(each): each.get("conditions", ()) for each in status.get("devices", ())}
    for result in status.get("allocation", {}).get("devices", {}).get("results", ()):
        if result.get("bindingConditions"):
            yield result, {each["type"]: each for each in told.get(_device(result), ())}


def _device(entry: Raw) -> str:
    return f"{entry['driver']}/{entry['pool']}/{entry['device']}"


def _failed(claim: Raw, result: Raw, condition: Raw) -> BindingConditionsError:
    full = "/".join(name_of(claim))
    reason = condition.get("reason", "")
    message = condition.get("message", "")
    return BindingConditionsError(
        full,
        f"device binding failed: claim={name_of(claim).name}, reason={reason}, "
        f'message="{message}"; device {_device(result)} has the condition {condition["type"]}, '
        f"so the claim is deallocated and the pod is retried",
    )


class BindingConditions:
    """Waits for the devices of claims; other pods are decided meanwhile."""

    def __init__(self, claims: Informer, clock: Timekeeper) -> None:
        self._claims = claims
        self._clock = clock
        self._waiting: dict[str, list[asyncio.Event]] = {}
        # Of those that are waited for: they may also be too new to be known.
        self._gone: set[str] = set()
        claims.listen(self._on_claim)

    async def ready(self, claims: Sequence[Raw], timeout_seconds: float) -> None:
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
                    self._gone.discard(name)

    def _deadline(self, written: Raw, timeout_seconds: float) -> float:
        """Return until when the claim may take to be ready; 0 if it is."""
        claim = self._current(written)
        lacking = unready(claim)
        if not lacking:
            return 0.0
        began = seconds_of(claim["status"]["allocation"]["allocationTimestamp"])
        deadline = began + timeout_seconds
        if self._clock.now() >= deadline:
            raise self._late(claim, lacking, timeout_seconds)
        return deadline

    def _late(
        self, claim: Raw, lacking: Sequence[Unready], timeout_seconds: float
    ) -> BindingConditionsError:
        devices = "; ".join(f"{each.device} lacks {', '.join(each.pending)}" for each in lacking)
        return BindingConditionsError(
            "/".join(name_of(claim)),
            f"device binding timeout: claim={name_of(claim).name}, {devices} after "
            f"{timeout_seconds:.0f} s; the driver of the device has to set these conditions "
            f"in the claim's status.devices",
        )

    def _current(self, written: Raw) -> Raw:
        """The claim as far as it is known."""
        full = "/".join(name_of(written))
        seen = self._claims.get(*name_of(written))
        if full not in self._gone and (seen is None or _revision(seen) < _revision(written)):
            return written
        is_same = seen is not None and seen["metadata"]["uid"] == written["metadata"]["uid"]
        if seen is None or not is_same or not seen.get("status", {}).get("allocation"):
            problem = "was deallocated" if is_same else "was deleted"
            raise BindingConditionsError(
                full, f"claim {full}: {problem} while its devices were made ready"
            )
        return seen

    def _on_claim(self, old: Raw | None, new: Raw | None) -> None:
        name = "/".join(name_of(new or old or {}))
        waiting = self._waiting.get(name, ())
        if new is None and waiting:
            self._gone.add(name)
        for each in waiting:
            each.set()


def _revision(obj: Raw) -> int:
    return int(obj["metadata"]["resourceVersion"])
