"""
One container image, made from Debian's static busybox, so that no registry is needed.

The same image has several tags: what pods of tests run, what people name in manifests, and the
sandbox that holds a pod's namespaces, which therefore must end at once when it is told to.
"""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

BUSYBOX = "docker.io/local/busybox:1"
# `busybox:1`, as manifests have it that are run as they stand.
PUBLIC_BUSYBOX = "docker.io/library/busybox:1"
PAUSE = "docker.io/local/pause:1"

_APPLETS = ("cat", "date", "echo", "env", "false", "ls", "sh", "sleep", "sort", "test", "true")
_WAIT_FOR_TERM = "trap 'exit 0' TERM INT; while :; do sleep 3600 & wait $!; done"


def archive(busybox: Path) -> bytes:
    """All images as one archive that `ctr images import` understands."""
    layer = _layer(busybox.read_bytes())
    configs = {
        (BUSYBOX, PUBLIC_BUSYBOX): _config(layer, ["/bin/sh"]),
        (PAUSE,): _config(layer, _pause_command()),
    }
    manifest = [
        {"Config": _digest(config) + ".json", "RepoTags": list(tags), "Layers": ["layer.tar"]}
        for tags, config in configs.items()
    ]
    files = {_digest(config) + ".json": config for config in configs.values()}
    return _tar({"layer.tar": layer, "manifest.json": json.dumps(manifest).encode(), **files})


def _pause_command() -> list[str]:
    return ["/bin/sh", "-c", _WAIT_FOR_TERM]


def _config(layer: bytes, command: list[str]) -> bytes:
    config: dict[str, Any] = {
        "architecture": "amd64",
        "os": "linux",
        "config": {"Cmd": command, "Env": ["PATH=/bin"]},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{_digest(layer)}"]},
    }
    return json.dumps(config, sort_keys=True).encode()


def _layer(busybox: bytes) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        _add(tar, "bin/busybox", busybox, mode=0o755)
        for applet in _APPLETS:
            link = tarfile.TarInfo(f"bin/{applet}")
            link.type = tarfile.SYMTYPE
            link.linkname = "busybox"
            tar.addfile(link)
        _add(tar, "etc/passwd", b"root:x:0:0:root:/:/bin/sh\n", mode=0o644)
    return buffer.getvalue()


def _tar(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, content in files.items():
            _add(tar, name, content, mode=0o644)
    return buffer.getvalue()


def _add(tar: tarfile.TarFile, name: str, content: bytes, *, mode: int) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(content)
    info.mode = mode
    tar.addfile(info, io.BytesIO(content))


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
