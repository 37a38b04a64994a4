"""
What the page is tested with: Debian's chromium, axe-core, which looks for barriers, and TypeScript,
which checks the types that are written in comments.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.golang import cache_directory

AXE = "axe-core@4.14.0"
TYPESCRIPT = "typescript@5.9.3"
# A program of each package, by which its presence is told.
_PACKAGES = {"chromium": "chromium", "npm": "npm", "fonts-dejavu-core": ""}
_FONTS = Path("/usr/share/fonts")


class BrowserRequirementError(Exception):
    """This machine cannot show the page; the text says what it lacks."""


def ensure() -> None:
    """Installs what is missing, as root; anybody else is told what to do."""
    missing = [name for name, program in _PACKAGES.items() if not _is_there(program)]
    if not missing:
        return
    by_hand = f"apt-get install {' '.join(missing)}"
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise BrowserRequirementError(
            f"the page is tested in a browser, and this machine has no {' '.join(missing)}; "
            f"as root: {by_hand}"
        )
    sys.stderr.write(f"browser: installing {' '.join(missing)}\n")
    install = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *missing]
    for command in (["apt-get", "update", "-qq"], install):
        _run(command, f"install by hand: {by_hand}")


def axe_core() -> str:
    """The source of axe-core."""
    return (package(AXE) / "axe.min.js").read_text()


def package(wanted: str) -> Path:
    """Where a package of npm's is, fetched once; `wanted` is name@version."""
    kept = cache_directory() / wanted.replace("@", "-")
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=kept.parent, prefix=".fetching-") as scratch:
            options = ["--no-save", "--ignore-scripts", "--no-audit", "--no-fund"]
            _run(["npm", "install", *options, "--prefix", scratch, wanted], "is there a network?")
            made = Path(scratch) / "node_modules" / wanted.partition("@")[0]
            if not kept.exists():
                made.rename(kept)
    return kept


def _is_there(program: str) -> bool:
    return shutil.which(program) is not None if program else any(_FONTS.rglob("*.ttf"))


def _run(command: list[str], remedy: str) -> None:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BrowserRequirementError(f"{' '.join(command)}\n{done.stderr.strip()}\n{remedy}")
