"""
Builds Go programs once, into a cache outside the clone.

A module is a directory with its own go.mod and go.sum. What is built from it is kept by the
content of the module, what was asked for and the version of Go, so that neither a second clone
nor a second run compiles again. Two processes may build at the same moment: each works in a
directory of its own, and the one that finishes first is kept.

    python -m tests.golang MODULE_DIRECTORY…
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# The first build fetches and compiles Kubernetes; on a slow machine that is many minutes.
BUILD_SECONDS_MAX = 3600

# The packages of a module that are programs of its own.
OWN = ("./...",)

_GO_ENVIRONMENT = {
    # Programs that need no C library run on every machine of the same kind.
    "CGO_ENABLED": "0",
    # A fifth of a build was the compiler's collection of garbage; few packages need this much.
    "GOGC": "off",
    "GOMEMLIMIT": "2GiB",
}

# The programs carry no data for a debugger: the linker is done sooner.
_LINK = ("-s", "-w")


class GoBuildError(Exception):
    """Programs could not be built; the text says what to do about it."""


@dataclass(frozen=True, slots=True)
class Programs:
    """Where the programs of one build are, by name."""

    directory: Path

    def path(self, name: str) -> Path:
        program = self.directory / name
        assert program.exists(), f"no program {name} in {self.directory}"
        return program


def go_command(environment: Mapping[str, str] = os.environ) -> str | None:
    """Go, if this machine has it."""
    return shutil.which("go", path=environment.get("PATH"))


def build(
    module: Path,
    packages: Sequence[str] = OWN,
    *,
    verb: Sequence[str] = ("build",),
    link: Sequence[str] = (),
) -> Programs:
    """
    Return the programs of some packages; build them if they do not exist yet.

    `verb` is the command of Go: `test -c` builds the tests of the packages. `link` are further
    flags of the linker. All modules are compiled with the same flags and, where they can be, from
    the same versions (tests/tidy/test_go_modules.py), so that Go compiles a package once for all.
    """
    go = go_command()
    if go is None:
        raise GoBuildError("go is not on the PATH; install Go 1.26 or newer")
    flags = ("-trimpath", "-ldflags", " ".join((*_LINK, *link)))
    kept = (
        cache_directory() / f"{module.name}-{_digest(module, (*packages, *flags, *verb[1:]), go)}"
    )
    if not kept.exists():
        _build_into(kept, module, [go, *verb, *flags], packages)
    return Programs(kept)


def sources(module: Path, path: str) -> Path:
    """Return the folder with the files of a module that this module requires."""
    go = go_command()
    if go is None:
        raise GoBuildError("go is not on the PATH; install Go 1.26 or newer")
    folder: str = json.loads(_output([go, "mod", "download", "-json", path], module))["Dir"]
    return Path(folder)


def cache_directory() -> Path:
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(caches) / "dryrack" / "programs"


@cache
def _version(go: str, module: Path) -> str:
    return _output([go, "env", "GOVERSION"], module)


def _digest(module: Path, asked: Sequence[str], go: str) -> str:
    digest = hashlib.sha256(_version(go, module).encode())
    digest.update(repr(asked).encode())
    sources = (path for path in module.rglob("*") if path.suffix in {".go", ".mod", ".sum"})
    for path in sorted(sources):
        digest.update(f"\0{path.relative_to(module).as_posix()}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _build_into(kept: Path, module: Path, command: list[str], packages: Sequence[str]) -> None:
    kept.parent.mkdir(parents=True, exist_ok=True)
    what = _names(module, packages)
    _say(f"building {what} (once; up to some minutes)")
    with tempfile.TemporaryDirectory(dir=kept.parent, prefix=".building-") as scratch:
        made = Path(scratch) / "programs"
        made.mkdir()
        _output([*command, "-o", f"{made}{os.sep}", *packages], module)
        _keep(made, kept)
    _say(f"built {what}")


def _names(module: Path, packages: Sequence[str]) -> str:
    own = sorted(path.parent.name for path in module.rglob("main.go"))
    return ", ".join(own if tuple(packages) == OWN else packages)


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
            env={**os.environ, **_GO_ENVIRONMENT},
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
    by_hand = (
        f"cd {shlex.quote(str(directory))} && CGO_ENABLED=0 {shlex.join(['go', *command[1:]])}"
    )
    return (
        f"{problem.strip()}\n"
        "the Go programs did not build; they need Go 1.26 or newer (go version), some gigabytes "
        'for Go\'s build cache (df -h "$(go env GOCACHE)") and, the first time, a Go module '
        f"proxy (go env GOPROXY); to see it by hand: {by_hand}"
    )


def _say(what: str) -> None:
    sys.stderr.write(f"go: {what}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    try:
        for argument in sys.argv[1:]:
            build(Path(argument))
    except GoBuildError as error:
        sys.exit(str(error))
