"""
Builds Go programs once, into a cache outside the clone.

A program is named by the module directory it is built in (with its own go.mod and go.sum), its
package, and its flags. The cache is keyed by the content of the module and the version of Go,
so neither a second clone nor a second run compiles again. Two processes may build at the same
moment: each works in a file of its own, and the one that finishes first is kept.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

# The first build fetches and compiles Kubernetes; on a slow machine that is many minutes.
BUILD_SECONDS_MAX = 3600


class GoBuildError(Exception):
    """A program could not be built; the text says what to do about it."""


@dataclass(frozen=True, slots=True)
class Program:
    """What to build, and how."""

    name: str
    module: Path
    package: str
    flags: tuple[str, ...] = ()


def go_command(environment: Mapping[str, str] = os.environ) -> str | None:
    """Go, if this machine has it."""
    return shutil.which("go", path=environment.get("PATH"))


def cache_directory() -> Path:
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(caches) / "dryrack" / "programs"


def build(program: Program) -> Path:
    """The program's file, built if it is not there yet."""
    go = go_command()
    if go is None:
        raise GoBuildError("go is not on the PATH; install Go 1.26 or newer")
    kept = cache_directory() / f"{program.name}-{_digest(program, go)}" / program.name
    if not kept.exists():
        _build_into(kept, program, go)
    return kept


def _digest(program: Program, go: str) -> str:
    digest = hashlib.sha256(_go_version(go).encode())
    digest.update(repr((program.package, program.flags)).encode())
    digest.update(_module_content(program.module))
    return digest.hexdigest()[:16]


@cache
def _go_version(go: str) -> str:
    return _output([go, "env", "GOVERSION"], Path.cwd())


def _module_content(module: Path) -> bytes:
    digest = hashlib.sha256()
    sources = (path for path in module.rglob("*") if path.suffix in {".go", ".mod", ".sum"})
    for path in sorted(sources):
        digest.update(f"\0{path.relative_to(module).as_posix()}\0".encode())
        digest.update(path.read_bytes())
    return digest.digest()


def _build_into(kept: Path, program: Program, go: str) -> None:
    kept.parent.parent.mkdir(parents=True, exist_ok=True)
    _say(f"building {program.name} (once; up to some minutes)")
    with tempfile.TemporaryDirectory(dir=kept.parent.parent, prefix=".building-") as scratch:
        made = Path(scratch) / "made"
        made.mkdir()
        target = str(made / program.name)
        _output([go, "build", *program.flags, "-o", target, program.package], program.module)
        _keep(made, kept.parent)
    _say(f"built {program.name}")


def _keep(made: Path, kept: Path) -> None:
    try:
        made.rename(kept)
    except OSError:
        # Another process built the same content in the meantime; its program is as good.
        if not kept.is_dir():
            raise


def _output(command: list[str], directory: Path) -> str:
    environment = {**os.environ, "CGO_ENABLED": "0"}
    try:
        done = subprocess.run(
            command,
            cwd=directory,
            env=environment,
            capture_output=True,
            text=True,
            timeout=BUILD_SECONDS_MAX,
            check=True,
        )
    except subprocess.CalledProcessError as failure:
        raise GoBuildError(_advice(command, directory, failure.stderr)) from None
    except subprocess.TimeoutExpired:
        problem = f"no end after {BUILD_SECONDS_MAX} s"
        raise GoBuildError(_advice(command, directory, problem)) from None
    return done.stdout.strip()


def _advice(command: list[str], directory: Path, problem: str) -> str:
    by_hand = f"cd {directory} && CGO_ENABLED=0 {' '.join(['go', *command[1:]])}"
    return (
        f"{problem.strip()}\n"
        "the program did not build; it needs Go 1.26 or newer (go version), some gigabytes of "
        'room for Go\'s build cache (df -h "$(go env GOCACHE)") and, the first time, a Go module '
        f"proxy (go env GOPROXY); to see it by hand: {by_hand}"
    )


def _say(what: str) -> None:
    sys.stderr.write(f"go: {what}\n")
    sys.stderr.flush()
