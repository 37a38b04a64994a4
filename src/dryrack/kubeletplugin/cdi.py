"""
Container Device Interface (CDI): specs from which a container runtime reads device edits.

There is one spec for each claim. The names of its devices contain the claim's UID, so no name ever
has two meanings.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec

from dryrack.kubeletplugin.device_kind import PrepareError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dryrack.kubeletplugin.device_kind import AllocatedDevice, ContainerEdits
    from dryrack.kubeletplugin.record import ClaimRecord

# A UID becomes a part of file names, so it may have no characters with a meaning there.
UID_PATTERN = r"[0-9A-Za-z][0-9A-Za-z-]{0,62}"
_UID = re.compile(UID_PATTERN)


def check_uid(uid: str) -> str:
    """Return the UID; raise `PrepareError` if it is invalid."""
    if not _UID.fullmatch(uid):
        raise PrepareError(f"claim UID {uid!r}: letters, digits and hyphens, at most 63")
    return uid


def file_name(driver: str, uid: str) -> str:
    """Return the file name of a claim's spec."""
    return f"{driver}-{check_uid(uid)}.json"


def uid_of(driver: str, name: str) -> str | None:
    """Return the claim of a spec of the driver, or None for other files."""
    match = re.fullmatch(rf"{re.escape(driver)}-({UID_PATTERN})\.json", name)
    return match[1] if match else None


def device_name(uid: str, device: AllocatedDevice) -> str:
    parts = (check_uid(uid), device.device, device.share_id or "")
    return "-".join(part for part in parts if part)


def has_content(edits: ContainerEdits) -> bool:
    """Return True if there are edits: CDI allows no device without edits."""
    return bool(edits.env or edits.mounts or edits.device_nodes)


def spec_of(record: ClaimRecord) -> dict[str, Any] | None:
    """Return the spec of a claim in the oldest possible version, or None without devices."""
    devices: dict[str, dict[str, Any]] = {}
    metadata_ids = {each.cdi_id for each in record.metadata}
    for device in record.devices:
        for cdi_id in device.cdi_ids:
            if cdi_id in metadata_ids:
                continue
            kind, _, name = cdi_id.partition("=")
            devices[name] = {"name": name, "containerEdits": _edits(device.edits)}
    if not devices:
        return None
    return {"cdiVersion": least_version(devices), "kind": kind, "devices": list(devices.values())}


def least_version(device_names: Iterable[str]) -> str:
    """Return the oldest version of CDI that allows these names of devices."""
    # Names that begin with a digit came with 0.5.0.
    return "0.5.0" if any(name[0].isdigit() for name in device_names) else "0.3.0"


def text_of(spec: dict[str, Any]) -> bytes:
    return msgspec.json.format(msgspec.json.encode(spec), indent=2) + b"\n"


def _edits(edits: ContainerEdits) -> dict[str, Any]:
    values: dict[str, list[Any]] = {
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
    return {name: each for name, each in values.items() if each}
