"""
What people are told about slices: a change, a refusal, a loss; each once.

The slices of a node are told of on the node; those of the whole cluster on whoever asked for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dryrack.controllers.objects import labels_of, spec_of
from dryrack.controllers.slices.glossary import Reason
from dryrack.controllers.slices.pools import pool_of
from dryrack.controllers.slices.wording import counted, fitted
from dryrack.controllers.writes import Report
from dryrack.hardware.slicing import SOURCE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from dryrack.controllers.slices.pools import PoolId

Raw = dict[str, Any]

# An event is for people; the rest of a long list is in the slices themselves.
_SHOWN = 4

_DROPPED = (
    "the API server has dropped fields of these slices: "
    "switch on the feature gates of what the devices use"
)

# Who hears of the slices of a node; of all others, it is the label that says whose they are.
THE_NODE = ""


def hearer(slice_: Raw) -> str:
    """Who hears of a slice: the node, or the label of whoever asked for it."""
    return THE_NODE if spec_of(slice_).get("nodeName") else labels_of(slice_).get(SOURCE, "")


def change_texts(
    changed: Iterable[PoolId], wanted: Mapping[PoolId, Sequence[Raw]], observed: Iterable[Raw]
) -> dict[str, str]:
    """What has become of the pools that were written, for each who hears of it."""
    slices = {pool: list(wanted.get(pool, ())) for pool in changed}
    told: dict[str, dict[PoolId, None]] = {}
    for each in (*(one for many in slices.values() for one in many), *observed):
        if pool_of(each) in slices:
            told.setdefault(hearer(each), {})[pool_of(each)] = None
    return {
        who: _enough([_pool_text(pool, slices[pool]) for pool in slices if pool in pools])
        for who, pools in sorted(told.items())
    }


def _pool_text(pool: PoolId, slices: Sequence[Raw]) -> str:
    name = f"{pool.driver}/{pool.name}"
    if not slices:
        return f"{name}: removed"
    devices = sum(len(each["spec"].get("devices", ())) for each in slices)
    return f"{name}: {counted(devices, 'device')} in {counted(len(slices), 'slice')}"


def change_report(who: Raw, text: str) -> Report:
    return Report(who, "Normal", Reason.DEVICES_PUBLISHED, text)


def refusal_report(who: Raw, text: str) -> Report:
    """The server will not have it; it is tried again, but somebody has to do something."""
    return Report(who, "Warning", Reason.DEVICES_REFUSED, fitted([text]))


def drop_texts(slices: Sequence[Raw]) -> dict[str, str]:
    """Of which slices the server has not kept all, for each who hears of it."""
    names: dict[str, list[str]] = {}
    for each in slices:
        names.setdefault(hearer(each), []).append(each["metadata"]["name"])
    return {who: _enough(names[who], _DROPPED) for who in sorted(names)}


def drop_report(who: Raw, text: str) -> Report:
    return Report(who, "Warning", Reason.DEVICES_INCOMPLETE, text)


def _enough(parts: Sequence[str], *more: str) -> str:
    return fitted(parts[:_SHOWN], *more, untold=max(len(parts) - _SHOWN, 0), between="; ")
