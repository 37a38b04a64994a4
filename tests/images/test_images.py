"""Both images run dryrack without the machine that they were made on."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.cli.command import dryrack
from tests.images.unpacked import USER, Unpacked, unpack

from dryrack.base.version import __version__
from dryrack.cluster.rights import DOCTOR

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "deploy" / "image.py"
DOCKERFILE = ROOT / "deploy" / "Dockerfile"
BYTES_MAX = 100_000_000


def check_image(image: Unpacked, components: Sequence[str]) -> None:
    """Assert that the programs of an image run, and that its bill of materials is complete."""
    assert image.run("version").stdout == f"dryrack {__version__}\n"
    assert image.run("doctor", "--print-rbac").stdout == DOCTOR.read_text()
    # This loads the modules of all packages with native code.
    done = image.run("doctor", "-o", "json")
    findings = {each["check"]: each for each in json.loads(done.stdout)}
    assert findings["packages"]["state"] == "ok", findings["packages"]
    bill = json.loads((image.root / "opt/dryrack/sbom.cdx.json").read_text())
    names = {each["name"].lower() for each in bill["components"]}
    assert set(components) <= names
    assert "binutils" not in names
    assert os.stat(image.root / "tmp").st_mode & 0o1777 == 0o1777
    accounts = (image.root / "etc/passwd").read_text()
    assert f"nonroot:x:{USER}:{USER}:" in accounts


@pytest.mark.real
@pytest.mark.timeout(120)
def test_the_image_of_an_installation_runs(tmp_path: Path) -> None:
    """`dryrack image save` writes the same archive twice, with what its programs need."""
    for name in ("a.tar", "b.tar"):
        done = dryrack("image", "save", tmp_path / name)
        assert re.fullmatch(
            rf"localhost/dryrack:{re.escape(__version__)} sha256:[0-9a-f]{{64}}\n", done.stdout
        ), done.stderr
    assert (tmp_path / "a.tar").read_bytes() == (tmp_path / "b.tar").read_bytes()
    check_image(unpack(tmp_path / "a.tar", tmp_path), ("dryrack", "aiohttp", "grpcio", "python"))


@pytest.mark.real
@pytest.mark.timeout(300)
def test_the_dockerfile_builds_a_small_reproducible_image(tmp_path: Path) -> None:
    """Two builds from the package indexes have the same digest."""
    if shutil.which("buildah") is None:
        pytest.skip("buildah is not installed; install it with: apt-get install buildah")
    if os.geteuid() != 0 or 'VERSION_ID="12"' not in Path("/etc/os-release").read_text():
        pytest.skip("the image is built by root on Debian 12")
    outputs = []
    for name in ("a", "b"):
        command = [sys.executable, str(BUILD), "build", str(tmp_path / name)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
        assert done.returncode == 0, done.stderr
        outputs.append(done.stdout.partition(": ")[0])
    archive = tmp_path / "a" / "dryrack.tar"

    assert outputs[0] == outputs[1]
    assert re.fullmatch(r"localhost/dryrack:latest sha256:[0-9a-f]{64}", outputs[0])
    assert archive.stat().st_size < BYTES_MAX
    check_image(unpack(archive, tmp_path), ("dryrack", "aiohttp", "grpcio", "libc6", "libssl3"))


def test_the_dockerfile_needs_no_shell_and_no_registry() -> None:
    """The base is an argument, the user is not root, and each RUN is in the exec form."""
    lines = [line for line in DOCKERFILE.read_text().splitlines() if not line.startswith("#")]
    sources = [line.split()[1] for line in lines if line.startswith("FROM ")]
    stages = {line.split()[3] for line in lines if " AS " in line}

    assert lines[0] == "ARG BASE=scratch"
    assert set(sources) - stages == {"${BASE}"}
    assert [line for line in lines if line.startswith("USER")] == [f"USER {USER}:{USER}"]
    assert all(line.startswith("RUN [") for line in lines if line.startswith("RUN"))
