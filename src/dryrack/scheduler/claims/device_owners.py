"""
Device owners: which claim had a device first, where several schedulers give devices away.

An API server takes whatever allocation is written, so that two schedulers which decide at the same
time can both give a device to a claim of theirs. Whoever was later has to take it back: each looks,
once its own allocation has come back by the watch, whether another claim had the device before. The
order of the watch is that of the writes, so that all of them come to the same answer.

Promise: of two allocations of one device at most one is kept, if both schedulers look. A scheduler
that does not look, such as kube-scheduler, may still be the later one. Devices that may be shared,
and parts of devices that draw on the same counters, are not looked at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.client.timekeeping import deadline
from dryrack.kinds.paths import get
from dryrack.scheduler.binding import OvertakenError, full_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dryrack.client.informer import Informer
    from dryrack.client.timekeeping import Timekeeper
    from dryrack.kinds.raw import Raw

Device = tuple[str, str, str]
# A watch that lags more than this is broken; the plan is undone and decided anew.
CATCH_UP_SECONDS_MAX = 10.0


class DeviceOwners:
    """The claims that have each device, in the order of their writes."""

    def __init__(self, claims: Informer, clock: Timekeeper) -> None:
        self._claims = claims
        self._clock = clock
        self._owners: dict[Device, dict[str, int]] = {}
        # Claims with a device that another had before: which, and who.
        self._late: dict[str, tuple[Device, str]] = {}
        claims.listen(self._seen)

    async def confirm(self, written: Iterable[Raw]) -> None:
        """Waits until these are seen; raises if another claim had one of their devices before."""
        for claim in written:
            await self._reached(claim)
            late = self._late.get(full_name(claim))
            if late is not None:
                device = "/".join(late[0])
                other = late[1]
                problem = f"device {device} got allocated to {other} in the meantime"
                raise OvertakenError(f"claim {full_name(claim)}: {problem}")

    async def _reached(self, claim: Raw) -> None:
        try:
            async with deadline(self._clock, self._clock.now() + CATCH_UP_SECONDS_MAX):
                await self._claims.reached(claim["metadata"]["resourceVersion"])
        except TimeoutError:
            raise OvertakenError(f"claim {full_name(claim)}: its allocation is not seen") from None

    def _seen(self, old: Raw | None, new: Raw | None) -> None:
        before = _allocation(old)
        after = _allocation(new)
        if before == after:
            return
        name = full_name(new or old or {})
        self._late.pop(name, None)
        for device in _devices(before):
            owners = self._owners.get(device, {})
            owners.pop(name, None)
            if not owners:
                self._owners.pop(device, None)
        for device in _devices(after):
            self._take(device, name, int((new or {})["metadata"]["resourceVersion"]))

    def _take(self, device: Device, name: str, revision: int) -> None:
        owners = self._owners.setdefault(device, {})
        for other, written in owners.items():
            self._late[name] = (device, other)
            if written > revision:
                # They were listed, not watched: nobody knows which came first, so neither stays.
                self._late[other] = (device, name)
        owners[name] = revision


def _allocation(claim: Raw | None) -> Raw | None:
    return None if claim is None else claim.get("status", {}).get("allocation")


def _devices(allocation: Raw | None) -> Iterator[Device]:
    """Those that no other claim may have."""
    for each in get(allocation or {}, "devices.results", ()):
        if not each.get("adminAccess") and not each.get("shareID"):
            yield each["driver"], each["pool"], each["device"]
