"""
Builds Java programs with Maven once, into a cache outside the clone.

A project is a directory with a pom.xml whose build directory is the property `buildDirectory`,
and which copies its dependencies to `libraries` there. The result is kept by the content of the
project and the version of Java, beside the Go programs (see `tests.golang`).

    python -m tests.maven PROJECT_DIRECTORY…
"""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.golang import cache_directory

# The first build downloads the dependencies; on a slow line that takes minutes.
BUILD_SECONDS_MAX = 1800


class MavenBuildError(Exception):
    """A program cannot be built; the text says what to do about it."""


@dataclass(frozen=True, slots=True)
class JavaProgram:
    """The classes and the libraries of one build."""

    directory: Path

    def command(self, main_class: str) -> list[str]:
        """Return the command line that runs a class."""
        class_path = f"{self.directory / 'classes'}{os.pathsep}{self.directory / 'libraries'}/*"
        return ["java", "-cp", class_path, main_class]


def missing_tools() -> list[str]:
    """Return the programs that a build needs and that are not on the PATH."""
    return [tool for tool in ("java", "javac", "mvn") if shutil.which(tool) is None]


def build(project: Path) -> JavaProgram:
    """Return a program, built unless the cache has it."""
    if missing := missing_tools():
        raise MavenBuildError(
            f"{', '.join(missing)}: not on the PATH; install a JDK (17 or newer) and Maven"
        )
    kept = cache_directory() / f"{project.name}-{_digest(project)}"
    if not kept.exists():
        _build_into(kept, project)
    return JavaProgram(kept)


def _digest(project: Path) -> str:
    digest = hashlib.sha256(_output(["java", "--version"], project).encode())
    sources = [project / "pom.xml", *(project / "src").rglob("*.java")]
    for path in sorted(sources):
        digest.update(f"\0{path.relative_to(project).as_posix()}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _build_into(kept: Path, project: Path) -> None:
    kept.parent.mkdir(parents=True, exist_ok=True)
    sys.stderr.write(f"maven: building {project.name} (once; downloads some 20 MB)\n")
    with tempfile.TemporaryDirectory(dir=kept.parent, prefix=".building-") as scratch:
        made = Path(scratch) / "program"
        _output(["mvn", "--batch-mode", "--quiet", "compile", f"-DbuildDirectory={made}"], project)
        try:
            made.rename(kept)
        except OSError:
            # Another process built the same content in the meantime; its program is as good.
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
        problem = f"{failure.stdout}{failure.stderr}".strip()
    except subprocess.TimeoutExpired:
        problem = f"no end after {BUILD_SECONDS_MAX} s"
    else:
        return done.stdout
    by_hand = f"cd {shlex.quote(str(directory))} && {shlex.join(command)}"
    raise MavenBuildError(
        f"{problem}\nthe Java program did not build; it needs a JDK (17 or newer), Maven and, the "
        f"first time, a repository of Maven artifacts; to see it by hand: {by_hand}"
    )


if __name__ == "__main__":
    try:
        for argument in sys.argv[1:]:
            build(Path(argument))
    except MavenBuildError as error:
        sys.exit(str(error))
