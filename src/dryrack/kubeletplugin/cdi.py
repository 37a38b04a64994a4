"""
Container Device Interface: how a container runtime learns what containers get with a device.

There is one spec for each claim. Its devices are called after the claim's UID, so that no name is
ever used for two things.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec

from dryrack.kubeletplugin.device_kind import PrepareError

if TYPE_CHECKING:
    from dryrack.kubeletplugin.device_kind import AllocatedDevice, ContainerEdits
    from dryrack.kubeletplugin.record import ClaimRecord

# A UID becomes a part of file names: nothing in it may mean anything to a file system.
UID_PATTERN = r"[0-9A-Za-z][0-9A-Za-z-]{0,62}"
_UID = re.compile(UID_PATTERN)


def checked_uid(uid: str) -> str:
    """The UID, if it is one."""
    if not _UID.fullmatch(uid):
        raise PrepareError(f"claim UID {uid!r}: letters, digits and hyphens, at most 63")
    return uid


def file_name(driver: str, uid: str) -> str:
    """Where the spec of a claim is; whatever the claim is called."""
    return f"{driver}-{checked_uid(uid)}.json"


def uid_of(driver: str, name: str) -> str | None:
    """The claim that a spec of the driver is for; None for a file that is none of these."""
    found = re.fullmatch(rf"{re.escape(driver)}-({UID_PATTERN})\.json", name)
    return found[1] if found else None


def device_name(uid: str, device: AllocatedDevice) -> str:
    parts = (checked_uid(uid), device.device, device.share_id or "")
    return "-".join(part for part in parts if part)


def has_content(edits: ContainerEdits) -> bool:
    """Whether a runtime has anything to do: CDI takes no device without edits."""
    return bool(edits.env or edits.mounts or edits.device_nodes)


def spec_of(record: ClaimRecord) -> dict[str, Any] | None:
    """The spec of a claim, in the oldest version that has what it needs; None if it needs none."""
    devices: dict[str, dict[str, Any]] = {}
    apart = {each.cdi_id for each in record.metadata}
    for device in record.devices:
        for cdi_id in device.cdi_ids:
            if cdi_id in apart:
                continue
            kind, _, name = cdi_id.partition("=")
            devices[name] = {"name": name, "containerEdits": _edits(device.edits)}
    if not devices:
        return None
    # Names that begin with a digit came with 0.5.0.
    version = "0.5.0" if any(name[0].isdigit() for name in devices) else "0.3.0"
    return {"cdiVersion": version, "kind": kind, "devices": list(devices.values())}


def text_of(spec: dict[str, Any]) -> bytes:
    return msgspec.json.format(msgspec.json.encode(spec), indent=2) + b"\n"


def _edits(edits: ContainerEdits) -> dict[str, Any]:
    found: dict[str, list[Any]] = {
        "env": [f"{name}={value}" for name, value in edits.env],
        "deviceNodes": [{"path": path} for path in edits.device_nodes],
        "mounts": [
            {
                "hostPath": mount.host_path,
                "containerPath": mount.container_path,
                "options": list(mount.options),
            }
            for mount in edits.mounts
        ],
    }
    return {name: values for name, values in found.items() if values}
