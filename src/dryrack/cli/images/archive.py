"""
The archive of an image: one file that is an OCI layout and an archive of `docker save`.

Tools that find `oci-layout` read `index.json`; others read `manifest.json`. Both name the same
config and the same uncompressed layers. There is exactly one manifest, because an import of all
platforms fails if the index names a manifest that the file lacks.
"""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from dryrack.kinds.paths import get

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

_LAYER = "application/vnd.oci.image.layer.v1.tar"
_CONFIG = "application/vnd.oci.image.config.v1+json"
_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_INDEX = "application/vnd.oci.image.index.v1+json"
# The time of everything in the image: the beginning of the time of Unix.
_CREATED = "1970-01-01T00:00:00Z"
_CHUNK = 1 << 20
_NAME_OF_IMAGE = "io.containerd.image.name"
# `platform.machine()`, as images name it.
ARCHITECTURES: Mapping[str, str] = {"x86_64": "amd64", "aarch64": "arm64"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageConfig:
    """The settings of the containers of an image."""

    architecture: str
    entrypoint: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    user: str = "65532:65532"
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Layer:
    """A layer in a file, and its digest."""

    path: Path
    digest: str


class LayerWriter:
    """Writes the files of a layer in the order of the calls; call `close` at the end."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._tar = tarfile.open(path, "w", format=tarfile.GNU_FORMAT)  # noqa: SIM115 - see close
        self._directories: set[str] = set()
        self._names: set[str] = set()

    def add_directory(self, name: str, mode: int = 0o755) -> None:
        """Add a directory and its parents, each once; "" is the root directory."""
        if name and name not in self._directories:
            self.add_directory(name.rpartition("/")[0])
            self._directories.add(name)
            info = _info(name, mode)
            info.type = tarfile.DIRTYPE
            self._tar.addfile(info)

    def add_bytes(self, name: str, content: bytes, mode: int = 0o644) -> None:
        """Add a file; a second file with the same name is left out."""
        if name in self._names:
            return
        self._names.add(name)
        self.add_directory(name.rpartition("/")[0])
        info = _info(name, mode)
        info.size = len(content)
        self._tar.addfile(info, io.BytesIO(content))

    def add_file(self, name: str, source: Path) -> None:
        """Add a file of this machine; it is executable if its owner can execute it."""
        mode = 0o755 if source.stat().st_mode & 0o100 else 0o644
        self.add_bytes(name, source.read_bytes(), mode)

    def close(self) -> Layer:
        """Finish the layer, and return it."""
        self._tar.close()
        digest = hashlib.sha256()
        with self._path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
        return Layer(self._path, digest.hexdigest())


def _info(name: str, mode: int) -> tarfile.TarInfo:
    """Return an entry that belongs to root, with the time 0."""
    info = tarfile.TarInfo(name)
    info.mode = mode
    return info


def write_archive(path: Path, name: str, config: ImageConfig, layers: Sequence[Layer]) -> str:
    """Write an image with a full name, such as localhost/dryrack:1, and return its digest."""
    config_blob = _json(
        {
            "created": _CREATED,
            "architecture": config.architecture,
            "os": "linux",
            "config": {
                "User": config.user,
                "Env": [f"{key}={value}" for key, value in config.environment.items()],
                "Entrypoint": list(config.entrypoint),
                "WorkingDir": "/",
                "Labels": dict(config.labels),
            },
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{each.digest}" for each in layers]},
            "history": [{"created": _CREATED, "created_by": "dryrack image save"} for _ in layers],
        }
    )
    manifest = _json(
        {
            "schemaVersion": 2,
            "mediaType": _MANIFEST,
            "config": _descriptor(_CONFIG, config_blob),
            "layers": [
                {
                    "mediaType": _LAYER,
                    "digest": f"sha256:{each.digest}",
                    "size": each.path.stat().st_size,
                }
                for each in layers
            ],
        }
    )
    entry = _descriptor(_MANIFEST, manifest)
    entry["platform"] = {"architecture": config.architecture, "os": "linux"}
    # containerd reads the first name, other tools the second.
    entry["annotations"] = {
        _NAME_OF_IMAGE: name,
        "org.opencontainers.image.ref.name": name.rpartition(":")[2],
    }
    docker = {
        "Config": _blob(_sha256(config_blob)),
        "RepoTags": [name],
        "Layers": [_blob(each.digest) for each in layers],
    }
    with tarfile.open(path, "w", format=tarfile.GNU_FORMAT) as tar:
        documents = {
            "oci-layout": _json({"imageLayoutVersion": "1.0.0"}),
            "index.json": _json({"schemaVersion": 2, "mediaType": _INDEX, "manifests": [entry]}),
            "manifest.json": _json([docker]),
            _blob(_sha256(config_blob)): config_blob,
            _blob(_sha256(manifest)): manifest,
        }
        for document, content in documents.items():
            info = _info(document, 0o644)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
        for each in layers:
            info = _info(_blob(each.digest), 0o644)
            info.size = each.path.stat().st_size
            with each.path.open("rb") as file:
                tar.addfile(info, file)
    return f"sha256:{_sha256(manifest)}"


def _descriptor(media_type: str, blob: bytes) -> dict[str, Any]:
    return {"mediaType": media_type, "digest": f"sha256:{_sha256(blob)}", "size": len(blob)}


def _blob(digest: str) -> str:
    return f"blobs/sha256/{digest}"


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _json(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def image_names(path: Path) -> tuple[str, ...] | Literal[False]:
    """Return the names of the images in an archive; False if the file is no archive of an image."""
    try:
        with tarfile.open(path) as tar:
            is_docker = "manifest.json" in tar.getnames()
            entry = tar.extractfile("manifest.json" if is_docker else "index.json")
            document: Any = json.load(entry) if entry is not None else {}
        if is_docker:
            return tuple(name for image in document for name in image["RepoTags"] or ())
        annotations = [get(each, "annotations", {}) for each in document["manifests"]]
        return tuple(each[_NAME_OF_IMAGE] for each in annotations if _NAME_OF_IMAGE in each)
    except (tarfile.TarError, KeyError, TypeError, ValueError):
        return False
