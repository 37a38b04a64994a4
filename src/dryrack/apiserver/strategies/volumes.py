"""Claims of storage."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.apiserver.strategies.limits.enforcement import check_volume
from dryrack.apiserver.strategy import Strategy
from dryrack.kinds.rules.kind_rules import KindRules

if TYPE_CHECKING:
    from dryrack.apiserver.strategy import Write
    from dryrack.kinds.raw import Raw


class VolumeClaimStrategy(Strategy):
    """Stored as they come, within the limits of their namespace."""

    def __init__(self) -> None:
        super().__init__(KindRules(namespaced=True, has_status=True))

    def approve(self, obj: Raw, old: Raw | None, write: Write) -> None:
        if not write.subresource:
            check_volume(obj, write)
