"""
Builds the Go programs that speak for Kubernetes.

A module is a directory with its own go.mod and go.sum; each of its sub-directories with a
main.go is one program. The programs are built once per content of the module and version of
Go, into a cache outside the clone, so that neither a second clone nor a second run compiles
again. Two processes may build at the same moment: each works in a directory of its own, and
the one that finishes first is kept.

    python -m tests.oracle.build [MODULE_DIRECTORY…]
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

MODULE = Path(__file__).parent / "go"

# The first build fetches and compiles Kubernetes' modules; on a slow machine that is minutes.
BUILD_SECONDS_MAX = 1800


class OracleBuildError(Exception):
    """A program could not be built; the text says what to do about it."""


@dataclass(frozen=True, slots=True)
class Programs:
    """Where the programs of one module are, by name."""

    directory: Path

    def path(self, name: str) -> Path:
        program = self.directory / name
        assert program.exists(), f"no program {name} in {self.directory}"
        return program


def go_command(environment: Mapping[str, str] = os.environ) -> str | None:
    """Go, if this machine has it."""
    return shutil.which("go", path=environment.get("PATH"))


def build(module: Path = MODULE) -> Programs:
    """The programs of a module, built if they are not there yet."""
    go = go_command()
    if go is None:
        raise OracleBuildError("go is not on the PATH; install Go 1.26 or newer")
    kept = _cache_directory() / _digest(module, go)
    if not kept.exists():
        _build_into(kept, module, go)
    return Programs(kept)


def _cache_directory() -> Path:
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(caches) / "dryrack" / "oracles"


def _digest(module: Path, go: str) -> str:
    digest = hashlib.sha256(_output([go, "env", "GOVERSION"], module).encode())
    sources = (path for path in module.rglob("*") if path.suffix in {".go", ".mod", ".sum"})
    for path in sorted(sources):
        digest.update(f"\0{path.relative_to(module).as_posix()}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _build_into(kept: Path, module: Path, go: str) -> None:
    kept.parent.mkdir(parents=True, exist_ok=True)
    programs = sorted(path.parent.name for path in module.glob("*/main.go"))
    _say(f"building {', '.join(programs)} on Kubernetes' own modules (once; some minutes)")
    with tempfile.TemporaryDirectory(dir=kept.parent, prefix=".building-") as scratch:
        made = Path(scratch) / "programs"
        made.mkdir()
        # One package at a time: the tests that wait for this share the machine with others.
        command = [go, "build", "-p", "1", "-trimpath", "-o", f"{made}{os.sep}", "./..."]
        _output(command, module)
        _keep(made, kept)
    _say(f"built into {kept}")


def _keep(made: Path, kept: Path) -> None:
    try:
        made.rename(kept)
    except OSError:
        # Another process built the same content in the meantime; its programs are as good.
        if not kept.is_dir():
            raise


def _output(command: list[str], directory: Path) -> str:
    try:
        done = subprocess.run(
            command,
            cwd=directory,
            capture_output=True,
            text=True,
            timeout=BUILD_SECONDS_MAX,
            check=True,
        )
    except subprocess.CalledProcessError as failure:
        raise OracleBuildError(_advice(command, directory, failure.stderr)) from None
    except subprocess.TimeoutExpired:
        problem = f"no end after {BUILD_SECONDS_MAX} s"
        raise OracleBuildError(_advice(command, directory, problem)) from None
    return done.stdout.strip()


def _advice(command: list[str], directory: Path, problem: str) -> str:
    by_hand = f"cd {directory} && {' '.join(['go', *command[1:]])}"
    return (
        f"{problem.strip()}\n"
        f"the Go programs did not build; they need Go 1.26 or newer (go version) and, the "
        f"first time, a Go module proxy (go env GOPROXY); to see it by hand: {by_hand}"
    )


def _say(what: str) -> None:
    sys.stderr.write(f"oracles: {what}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    try:
        for directory in [Path(argument) for argument in sys.argv[1:]] or [MODULE]:
            build(directory)
    except OracleBuildError as error:
        sys.exit(str(error))
