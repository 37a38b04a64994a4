"""The words of a publisher that people meet in events and conditions, and what they mean."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


class Reason(StrEnum):
    """Why there is an event."""

    CONFIG_ACCEPTED = "ConfigAccepted"
    CONFIG_WARNING = "ConfigWarning"
    INVALID_CONFIG = "InvalidConfig"
    CAPACITY_MISMATCH = "CapacityMismatch"
    DEVICES_LEFT_OUT = "DevicesLeftOut"
    DEVICES_PUBLISHED = "DevicesPublished"
    DEVICES_REFUSED = "DevicesRefused"
    DEVICES_INCOMPLETE = "DevicesIncomplete"


EVENTS: Mapping[Reason, str] = {
    Reason.CONFIG_ACCEPTED: "on a source: this version is in force",
    Reason.CONFIG_WARNING: (
        "on a source: it is in force, but not all of it is what the API takes as it is written; "
        "each with line and fix"
    ),
    Reason.CAPACITY_MISMATCH: (
        "on a NodeOverlay: its capacity says another number of devices than its slices have"
    ),
    Reason.INVALID_CONFIG: (
        "on a source: this version cannot be read, and the last valid one stays in force; what is "
        "wrong with line, field and fix"
    ),
    Reason.DEVICES_LEFT_OUT: (
        "on a source: devices are not published because others of their name are, or because "
        "their pool lacks what they need"
    ),
    Reason.DEVICES_PUBLISHED: (
        "on a node: its slices have changed; on a source: those of the whole cluster that it asks "
        "for have"
    ),
    Reason.DEVICES_REFUSED: (
        "on a node or a source: the API server refuses a slice; what was there stays"
    ),
    Reason.DEVICES_INCOMPLETE: (
        "on a node or a source: the API server has dropped fields of a slice, because feature "
        "gates are off"
    ),
}


class Condition(StrEnum):
    """What a DRAConfig tells of itself."""

    VALIDATED = "ValidationSucceeded"
    READY = "Ready"


CONDITIONS: Mapping[Condition, str] = {
    Condition.VALIDATED: (
        "`True` (`Valid`) if the DRAConfig can be read, else `False` (`InvalidConfig`); the "
        "message has every problem or warning with field and fix"
    ),
    Condition.READY: (
        "`True` (`Published`) when all nodes have been looked at since this generation; `False` "
        "before (`Publishing`), or if it is not valid (`ValidationFailed`); the message tells "
        "which devices were left out"
    ),
}
