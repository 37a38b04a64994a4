"""Leases."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.apiserver.strategy import Strategy
from dryrack.kinds.rules.json_edit import update_at, without
from dryrack.kinds.rules.leases import LeaseRules

if TYPE_CHECKING:
    from dryrack.apiserver.strategy import Write
    from dryrack.kinds.raw import Raw

# Fields of a feature gate that is off in the reference release.
_NOT_YET = ("strategy", "preferredHolder")


class LeaseStrategy(Strategy):
    """Leases. A PUT can create a lease, and an update must have a resourceVersion."""

    creates_on_update = True
    updates_unconditionally = False

    def __init__(self) -> None:
        super().__init__(LeaseRules())

    def prepare_create(self, obj: Raw, write: Write) -> Raw:
        return update_at(obj, "spec", lambda spec: without(spec, *_NOT_YET))

    def prepare_update(self, obj: Raw, old: Raw, write: Write) -> Raw:
        return update_at(obj, "spec", lambda spec: without(spec, *_NOT_YET))
