"""
The requests of claims, one for each device class.

A request is exact, or it lists alternatives, of which the allocator takes the first that fits.
Both have the same fields, so each exact request and each alternative is one `Ask`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dryrack.kinds.resource import DeviceSubRequest, ExactDeviceRequest
    from dryrack.linter.finding import Path
    from dryrack.linter.world import ClaimEntry

# The API's own bound on the devices of one claim.
RESULTS_MAX = 32


@dataclass(frozen=True, slots=True)
class Ask:
    """One exact request, or one alternative of a request."""

    claim: ClaimEntry
    name: str
    path: Path
    details: ExactDeviceRequest | DeviceSubRequest

    @property
    def request(self) -> str:
        """The name of the request; `name` has that of the alternative after a slash."""
        return self.name.partition("/")[0]

    @property
    def is_alternative(self) -> bool:
        return "/" in self.name

    @property
    def is_all(self) -> bool:
        return self.details.allocation_mode == "All"

    @property
    def count(self) -> int:
        """Return the least number of devices; a missing count is 1 in the API."""
        return 1 if self.is_all else max(self.details.count, 1)

    @property
    def is_admin(self) -> bool:
        return bool(getattr(self.details, "admin_access", None))


def asks_of(claim: ClaimEntry) -> Iterator[Ask]:
    for index, request in enumerate(claim.spec.devices.requests):
        path = (*claim.path, "devices", "requests", index)
        if request.exactly is not None:
            yield Ask(claim, request.name, (*path, "exactly"), request.exactly)
        for nth, alternative in enumerate(request.first_available):
            yield Ask(
                claim,
                f"{request.name}/{alternative.name}",
                (*path, "firstAvailable", nth),
                alternative,
            )


def least_devices(claim: ClaimEntry) -> int:
    """Return how many devices the claim needs at least: of alternatives, the smallest counts."""
    least: dict[str, int] = {}
    for ask in asks_of(claim):
        least[ask.request] = min(least.get(ask.request, ask.count), ask.count)
    return sum(least.values())
