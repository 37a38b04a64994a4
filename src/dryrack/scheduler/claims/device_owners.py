"""
Device owners: the claim that got a device first, if several schedulers allocate devices.

An API server accepts every allocation, so that two schedulers which decide at the same time can
both allocate a device to one of their claims. The later one has to undo its allocation: each
scheduler checks, once the watch shows its own allocation, whether another claim had the device
before. The order of the watch is that of the writes, so that all schedulers come to the same
result.

Promise: of two allocations of one device at most one is kept, if both schedulers check. A scheduler
that does not check, such as kube-scheduler, may still keep the later one. Shared devices, and
partitions that draw on the same counters, are not checked.
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
# A watch that lags more than this is broken; the plan is undone and decided again.
CATCH_UP_SECONDS_MAX = 10.0


class DeviceOwners:
    """The claims of each device, in the order of their writes."""

    def __init__(self, claims: Informer, clock: Timekeeper) -> None:
        self._claims = claims
        self._clock = clock
        self._owners: dict[Device, dict[str, int]] = {}
        # Claims with a device that another claim had before, with both.
        self._late: dict[str, tuple[Device, str]] = {}
        claims.listen(self._on_claim)

    async def confirm(self, written: Iterable[Raw]) -> None:
        """Wait until the watch shows the claims; raise if another had one of the devices before."""
        for claim in written:
            try:
                async with deadline(self._clock, self._clock.now() + CATCH_UP_SECONDS_MAX):
                    await self._claims.wait_for_revision(claim["metadata"]["resourceVersion"])
            except TimeoutError:
                problem = "its allocation is not seen"
                raise OvertakenError(f"claim {full_name(claim)}: {problem}") from None
            late = self._late.get(full_name(claim))
            if late is not None:
                device = "/".join(late[0])
                other = late[1]
                problem = f"device {device} got allocated to {other} in the meantime"
                raise OvertakenError(f"claim {full_name(claim)}: {problem}")

    def _on_claim(self, old: Raw | None, new: Raw | None) -> None:
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
            revision = int((new or {})["metadata"]["resourceVersion"])
            owners = self._owners.setdefault(device, {})
            for other, other_revision in owners.items():
                self._late[name] = (device, other)
                if other_revision > revision:
                    # They were listed, not watched: it is unknown which came first, so both are
                    # undone.
                    self._late[other] = (device, name)
            owners[name] = revision


def _allocation(claim: Raw | None) -> Raw | None:
    return None if claim is None else claim.get("status", {}).get("allocation")


def _devices(allocation: Raw | None) -> Iterator[Device]:
    """Return the devices that no other claim may have."""
    for each in get(allocation or {}, "devices.results", ()):
        if not each.get("adminAccess") and not each.get("shareID"):
            yield each["driver"], each["pool"], each["device"]
