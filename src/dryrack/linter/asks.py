"""
What claims ask for, one device class at a time.

A request asks exactly, or offers alternatives of which the first that can be served is
taken. Both say the same things, so to a rule each exact request and each alternative is one
`Ask`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dryrack.kinds.resource import DeviceRequest, DeviceSubRequest, ExactDeviceRequest
    from dryrack.linter.finding import Path
    from dryrack.linter.world import ClaimEntry


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
        """How many devices at least; the API makes a missing count 1."""
        return 1 if self.is_all else max(self.details.count, 1)

    @property
    def is_admin(self) -> bool:
        return bool(getattr(self.details, "admin_access", None))


def asks_of(claim: ClaimEntry) -> Iterator[Ask]:
    for index, request in enumerate(claim.spec.devices.requests):
        yield from _asks_of_request(claim, index, request)


def _asks_of_request(claim: ClaimEntry, index: int, request: DeviceRequest) -> Iterator[Ask]:
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
