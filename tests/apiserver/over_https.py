"""
The recordings against a cluster of `dryrack up`: by HTTPS, with kubectl, and with its engines.

    python -m tests.apiserver.over_https [SCRIPT…]
"""

from __future__ import annotations

import base64
import os
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from tests.apiserver.replay import compared
from tests.parity.__main__ import OPTIONS
from tests.parity.recording import TESTED, diff
from tests.parity.run import Run
from tests.parity.script import load_all
from tests.parity.server import Server
from tests.realcluster import programs
from tests.realcluster.releases import RELEASE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.parity.script import Script

_UP_SECONDS_MAX = 60
# The recordings were made without these, and with more versions than the stable ones.
_WITHOUT = "scheduler,volumes"
_SERVED = ",".join(f"{version}=true" for version in OPTIONS.runtime_config)
_AS_RECORDED = (
    *("--without", _WITHOUT, "--runtime-config", _SERVED),
    *("--release", TESTED.value),
)


@contextmanager
def cluster(name: str, options: Sequence[str] = _AS_RECORDED) -> Iterator[Server]:
    """A cluster of its own, for the length of a block."""
    with tempfile.TemporaryDirectory(prefix="dryrack-") as scratch:
        home = Path(scratch) / "home"
        kubeconfig = Path(scratch) / "kubeconfig"
        up = ("up", "--detach", "--kubeconfig", str(kubeconfig), "--name", name)
        _dryrack(home, *up, *options)
        try:
            yield Server.of(_with_files(kubeconfig))
        finally:
            _dryrack(home, "down", "--name", name)


def _dryrack(home: Path, *words: str) -> None:
    """Start a cluster with a home of its own, because another one may have its name."""
    subprocess.run(
        [sys.executable, "-m", "dryrack", *words],
        check=True,
        capture_output=True,
        timeout=_UP_SECONDS_MAX,
        env={**os.environ, "DRYRACK_HOME": str(home)},
    )


def _with_files(kubeconfig: Path) -> Path:
    """Return the kubeconfig with its certificates in files beside it."""
    config = yaml.safe_load(kubeconfig.read_text())
    _to_file(config["clusters"][0]["cluster"], "certificate-authority", kubeconfig.parent)
    for name in ("client-certificate", "client-key"):
        _to_file(config["users"][0]["user"], name, kubeconfig.parent)
    kubeconfig.write_text(yaml.safe_dump(config))
    return kubeconfig


def _to_file(entry: dict[str, Any], name: str, directory: Path) -> None:
    path = directory / name
    path.touch(mode=0o600)
    path.write_bytes(base64.b64decode(entry.pop(f"{name}-data")))
    entry[name] = str(path)


def answers(script: Script, server: Server) -> list[dict[str, Any]]:
    run = Run(script, server, programs.kubernetes("kubectl", RELEASE))
    return list(run.answers())


def main(names: list[str]) -> None:
    with cluster("parity") as server:
        for script in load_all(names):
            found = answers(script, server)
            count = 0
            for step, recorded, answered in compared(script, found, TESTED):
                if recorded != answered:
                    count += 1
                    sys.stdout.write(f"{script.name}: {step}:\n{diff(recorded, answered)}\n\n")
            sys.stdout.write(f"{script.name}: {count} of {len(found)} differ\n")


if __name__ == "__main__":
    main(sys.argv[1:])
