"""What people are told about the devices of a node: a change, a refusal, a loss; each once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dryrack.controllers.slices.glossary import Reason
from dryrack.controllers.writes import Report

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from dryrack.controllers.slices.pools import PoolId

Raw = dict[str, Any]

# An event is for people; the rest of a long list is in the slices themselves.
_POOLS_SHOWN = 4


def change_text(changed: Iterable[PoolId], wanted: Mapping[PoolId, Sequence[Raw]]) -> str:
    """What has become of the pools that were written."""
    pools = list(changed)
    shown = [_pool_text(pool, wanted.get(pool, ())) for pool in pools[:_POOLS_SHOWN]]
    more = len(pools) - len(shown)
    return "; ".join([*shown, *([f"and {more} more pools"] if more else ())])


def _pool_text(pool: PoolId, slices: Sequence[Raw]) -> str:
    name = f"{pool.driver}/{pool.name}"
    if not slices:
        return f"{name}: removed"
    devices = sum(len(each["spec"].get("devices", ())) for each in slices)
    return f"{name}: {_counted(devices, 'device')} in {_counted(len(slices), 'slice')}"


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def change_report(node: Raw, text: str) -> Report:
    return Report(_node(node), "Normal", Reason.DEVICES_PUBLISHED, text)


def refusal_report(node: Raw, text: str) -> Report:
    """The server will not have it; it is tried again, but somebody has to do something."""
    return Report(_node(node), "Warning", Reason.DEVICES_REFUSED, text)


def drop_report(node: Raw, names: str) -> Report:
    message = (
        f"the API server has dropped fields of {names}; "
        "switch on the feature gates of what the devices use"
    )
    return Report(_node(node), "Warning", Reason.DEVICES_INCOMPLETE, message)


def _node(node: Raw) -> Raw:
    # Objects of a watch say their kind; those of a list may not.
    return {"kind": "Node", "apiVersion": "v1"} | node
