"""
Decoding ResourceSlices so that equal parts of devices are one value.

The slices of a fleet differ in names and serial numbers, and a typed slice takes more memory than
its JSON. Documents of one informer share equal parts by identity; here what such a part is read
as is shared likewise, by all slices that one decoder has read.
"""

from typing import Any

from msgspec.structs import force_setattr

from dryrack.kinds.decode import decode
from dryrack.kinds.paths import get
from dryrack.kinds.raw import Raw
from dryrack.kinds.resource import ResourceSlice

# What most of a device is, by its name in documents and in the typed object.
_PARTS = (
    ("attributes", "attributes"),
    ("capacity", "capacity"),
    ("consumesCounters", "consumes_counters"),
)
# Parts that are remembered are kept; enough for a few dozen types of machines.
_PARTS_MAX = 8192

_Key = tuple[str, int]
_Entry = tuple[object, Any]


class SliceDecoder:
    """Reads slices, and remembers the parts that it has read last."""

    def __init__(self) -> None:
        # By field and identity. An entry holds on to the document's part, so the identity stays.
        self._known: dict[_Key, _Entry] = {}
        self._before: dict[_Key, _Entry] = {}

    def decode(self, raw: Raw) -> ResourceSlice:
        """Decode a slice; the document must not change afterwards."""
        typed = decode(raw, ResourceSlice)
        # The typed devices are not shared yet, so they can be changed.
        for document, device in zip(
            get(raw.get("spec", {}), "devices", ()), typed.spec.devices, strict=True
        ):
            for name, field in _PARTS:
                if part := document.get(name):
                    force_setattr(device, field, self._once(field, part, getattr(device, field)))
        return typed

    def _once(self, field: str, part: Any, typed: Any) -> Any:
        key = (field, id(part))
        entry = self._known.get(key) or self._before.get(key)
        if entry is None:
            if isinstance(typed, dict):
                typed = {name: self._once(field, part[name], typed[name]) for name in typed}
            entry = (part, typed)
        self._keep(key, entry)
        return entry[1]

    def _keep(self, key: _Key, entry: _Entry) -> None:
        if len(self._known) >= _PARTS_MAX:
            self._before = self._known
            self._known = {}
        self._known[key] = entry
