"""An image of an archive as a directory, and programs in it."""

from __future__ import annotations

import json
import os
import subprocess
import tarfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

USER = 65532


@dataclass(frozen=True)
class Unpacked:
    """The root directory of an image, and its configuration."""

    root: Path
    config: dict[str, Any]

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run the entry point of the image as its user; only root can do this."""
        settings = self.config["config"]
        assert settings["User"] == f"{USER}:{USER}"
        chroot = ("/usr/sbin/chroot", f"--userspec={USER}:{USER}", str(self.root))
        return subprocess.run(
            [*chroot, *settings["Entrypoint"], *words],
            env=dict(each.split("=", 1) for each in settings["Env"]),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )


def unpack(archive: Path, directory: Path) -> Unpacked:
    """Unpack the layers of the only image of an archive."""
    if os.geteuid() != 0:
        pytest.skip("only root can run a program in another root directory")
    with tarfile.open(archive) as tar:
        tar.extractall(directory / "archive", filter="fully_trusted")
    [image] = json.loads((directory / "archive" / "manifest.json").read_text())
    for layer in image["Layers"]:
        with tarfile.open(directory / "archive" / layer) as tar:
            tar.extractall(directory / "root", filter="fully_trusted")
    config = json.loads((directory / "archive" / image["Config"]).read_text())
    (directory / "root").chmod(0o755)
    return Unpacked(directory / "root", config)
