"""The embedded plane as a process of its own, the way a person starts it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.realcluster import programs
from tests.realcluster.releases import RELEASE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

_SECONDS_MAX = 120


@dataclass(slots=True)
class ServedPlane:
    """`dryrack up --detach` for the length of a block."""

    directory: Path
    options: Sequence[str] = ()
    name: str = "served"

    @property
    def kubeconfig(self) -> Path:
        return self.directory / "kubeconfig"

    def __enter__(self) -> ServedPlane:
        done = self._dryrack("up", "--detach", *self.options, "--kubeconfig", str(self.kubeconfig))
        assert done.returncode == 0, done.stderr
        return self

    def __exit__(self, *_: object) -> None:
        done = self._dryrack("down")
        assert done.returncode == 0, done.stderr

    @contextmanager
    def in_foreground(self) -> Iterator[None]:
        """`dryrack up` as it is, from the word that it serves to Ctrl-C."""
        command = self._command("up", *self.options, "--kubeconfig", str(self.kubeconfig))
        environment = {**os.environ, **self._environment}
        with subprocess.Popen(
            command, env=environment, stderr=subprocess.PIPE, text=True
        ) as process:
            assert process.stderr is not None
            assert any("press Ctrl-C to stop" in line for line in process.stderr)
            try:
                yield
            finally:
                process.send_signal(signal.SIGINT)
                process.stderr.read()
        assert process.returncode == 0

    def process(self) -> int:
        """The number of the process that serves."""
        (listed,) = json.loads(self._dryrack("status", "-o", "json").stdout)
        return int(listed["pid"])

    @property
    def kubectl_path(self) -> Path:
        return programs.kubernetes("kubectl", RELEASE)

    def kubectl(self, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """kubectl of the reference release."""
        command = [str(self.kubectl_path), "--kubeconfig", str(self.kubeconfig), *arguments]
        return self._run(command, stdin=stdin, environment={"HOME": str(self.directory)})

    def must(self, *arguments: str, stdin: str = "") -> str:
        """Return the output of kubectl; it must succeed."""
        done = self.kubectl(*arguments, stdin=stdin)
        assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stderr}{done.stdout}"
        return done.stdout

    def _dryrack(self, verb: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self._run(self._command(verb, *arguments), environment=self._environment)

    def _command(self, verb: str, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "dryrack", verb, "--name", self.name, *arguments]

    @property
    def _environment(self) -> Mapping[str, str]:
        return {"XDG_STATE_HOME": str(self.directory / "state")}

    def _run(
        self, command: Sequence[str], *, environment: Mapping[str, str], stdin: str = ""
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=_SECONDS_MAX,
            check=False,
            env={**os.environ, **environment},
        )
