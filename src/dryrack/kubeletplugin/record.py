"""
A prepared claim, as the plugin remembers it.

It holds all that is needed to answer the kubelet again, to write the CDI spec again, and to take
everything back, without the API server and without the kind that made it.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from dryrack.kubeletplugin.device_kind import ContainerEdits


class State(StrEnum):
    """How far a claim is."""

    PREPARING = "preparing"
    """What is on disk: whoever reads it there makes everything else again."""
    PREPARED = "prepared"
    UNPREPARING = "unpreparing"


class PreparedDevice(msgspec.Struct, frozen=True, omit_defaults=True):
    """One device of a claim, and what containers get with it."""

    requests: tuple[str, ...]
    pool: str
    device: str
    cdi_ids: tuple[str, ...] = ()
    share_id: str | None = None
    has_admin_access: bool = False
    edits: ContainerEdits = ContainerEdits()

    @property
    def is_exclusive(self) -> bool:
        """Whether no other claim may have the device at the same time."""
        return self.share_id is None and not self.has_admin_access


class RequestMetadata(msgspec.Struct, frozen=True):
    """The file that tells containers which devices a request was given."""

    request: str
    cdi_id: str
    container_path: str
    content: str


class ClaimRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """A claim and its devices."""

    uid: str
    namespace: str
    name: str
    state: State
    devices: tuple[PreparedDevice, ...]
    consumers: tuple[str, ...] = ()
    """UIDs of the pods, or of the pod group, that it was reserved for when it was prepared."""
    is_of_one_pod: bool = False
    """Whether it was made for a pod, so that no other pod will ever use it."""
    first_number: int = 0
    sequence: int = 0
    """Claims in the order in which they were prepared."""
    metadata: tuple[RequestMetadata, ...] = ()

    @property
    def end_number(self) -> int:
        """The first number that is none of its own."""
        return self.first_number + sum(device.edits.numbers for device in self.devices)
