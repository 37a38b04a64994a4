"""
A file as a device: its users are written into it, and it is mounted into their containers.

Every claim has a line with the name of its pod, from prepare to unprepare. The file is written in
place and not replaced: a container keeps the file that it was started with.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dryrack.kinds.resource import Device, DeviceAttribute
from dryrack.kubeletplugin.device_kind import ContainerEdits, DevicesError, HostLine, Mount

if TYPE_CHECKING:
    from dryrack.kubeletplugin.device_kind import AllocatedDevice, KindOptions, PreparingClaim

DRIVER = "file.dra.example.com"
DIRECTORY = "/etc/dra"
COUNT_MAX = 1_000


@dataclass(frozen=True, slots=True)
class FileKind:
    """`file1`, `file2` and so on, in one directory of the host."""

    count: int = 1
    directory: str = DIRECTORY
    is_shared: bool = False
    driver: str = DRIVER
    device_class: str = "file-resource"
    cdi_kind: str = f"{DRIVER}/file"

    def devices(self, node: str) -> tuple[Device, ...]:
        return tuple(
            Device(
                name=name,
                attributes={
                    "filename": DeviceAttribute(string_value=name),
                    "path": DeviceAttribute(string_value=f"{DIRECTORY}/{name}"),
                    "type": DeviceAttribute(string_value="file"),
                },
                allow_multiple_allocations=True if self.is_shared else None,
            )
            for name in self._names()
        )

    def host_files(self) -> tuple[str, ...]:
        return tuple(f"{self.directory}/{name}" for name in self._names())

    def edits(self, device: AllocatedDevice, claim: PreparingClaim, number: int) -> ContainerEdits:
        path = f"{self.directory}/{device.device}"
        users = claim.pods or (f"claim {claim.name}",)
        return ContainerEdits(
            mounts=(Mount(path, f"{DIRECTORY}/{device.device}"),),
            lines=tuple(HostLine(path, user) for user in users),
        )

    def _names(self) -> tuple[str, ...]:
        return tuple(f"file{index}" for index in range(1, self.count + 1))


def file_kind(options: KindOptions) -> FileKind:
    """`file`, `file:2,directory=/srv/files,shared=true`."""
    taken = options.take({"directory": DIRECTORY, "shared": "false"})
    count = 1 if options.count is None else options.count
    if count > COUNT_MAX:
        raise DevicesError(f"--devices file:{count}: a node has at most {COUNT_MAX}")
    if taken["shared"] not in ("true", "false"):
        raise DevicesError(f"--devices file: shared={taken['shared']!r}: use true or false")
    if not taken["directory"].startswith("/"):
        raise DevicesError(
            f"--devices file: directory={taken['directory']!r}: use an absolute path"
        )
    return FileKind(count, taken["directory"].rstrip("/") or "/", taken["shared"] == "true")
