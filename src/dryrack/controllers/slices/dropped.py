"""
What the server does not keep.

A server whose gates are off drops fields without a word. Slices would then differ from what is
wanted for ever, and be written for ever. What has become of a slice once is what it will become
again, so that is what is wanted from then on, until something else is.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dryrack.controllers.slices.pools import is_same_spec, with_known_times

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dryrack.controllers.slices.wanting import Wanted

Raw = dict[str, Any]

_CONTENTS = ("devices", "sharedCounters")


class Dropped:
    """Remembers slices that were not stored as they were sent; there are few, or all are."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[Raw, Raw]] = {}

    def learn(self, sent: Raw, stored: Raw) -> bool:
        """Whether something of it was dropped."""
        name = stored["metadata"]["name"]
        [timed] = with_known_times([sent], [stored])
        if is_same_spec(timed["spec"], stored["spec"]):
            self._kept.pop(name, None)
            return False
        self._kept[name] = _untimed(sent["spec"]), _contents(stored["spec"])
        return True

    def adapted(self, wanted: Wanted) -> Wanted:
        """What will become of slices that are wanted."""
        if not self._kept:
            return wanted
        pools = {pool: [self._slice(each) for each in got] for pool, got in wanted.pools.items()}
        return replace(wanted, pools=pools)

    def _slice(self, wanted: Raw) -> Raw:
        known = self._kept.get(wanted["metadata"]["name"])
        if known is None or known[0] != _untimed(wanted["spec"]):
            return wanted
        spec = {key: value for key, value in wanted["spec"].items() if key not in _CONTENTS}
        return wanted | {"spec": spec | known[1]}

    def forget(self, name: str) -> None:
        """A slice that is gone need not be remembered."""
        self._kept.pop(name, None)


def _contents(spec: Mapping[str, Any]) -> Raw:
    return {key: spec[key] for key in _CONTENTS if key in spec}


def _untimed(spec: Mapping[str, Any]) -> Raw:
    contents = _contents(spec)
    devices = [_untimed_device(device) for device in contents.get("devices", ())]
    return contents | {"devices": devices}


def _untimed_device(device: Raw) -> Raw:
    taints = [
        {key: value for key, value in taint.items() if key != "timeAdded"}
        for taint in device.get("taints", ())
    ]
    return device | {"taints": taints} if taints else device
