"""
Run many short commands of dryrack, each in a process of its own.

Most of the time of a short command is imports. A server imports the modules once and forks for
each command. The child then runs `python -m dryrack` with its own arguments, streams, folder, and
environment, and ends as any process does.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import pkgutil
import runpy
import signal
import socket
import subprocess
import sys
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_ROOT = Path(__file__).parents[2]
_REQUEST_BYTES_MAX = 100_000
# It loads gRPC, which does not survive a fork.
_NOT_BEFOREHAND = {"dryrack.cli.plugin"}
# Modules may look at all other variables when they are loaded.
_NOT_SEEN_BY_MODULES = {"DRYRACK_HOME", "KUBECONFIG", "PYTEST_CURRENT_TEST"}


class ForkServer:
    """The server of this process. It ends with this process."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = _seen_by_modules(environment)
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._free = Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.cli.fork_server", str(theirs.fileno())],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            cwd=_ROOT,
        )
        theirs.close()
        atexit.register(self.close)

    def close(self) -> None:
        self._channel.close()
        self._process.wait()

    def run(
        self,
        words: Sequence[str],
        *,
        cwd: Path,
        stdin: str,
        environment: Mapping[str, str],
        seconds: float,
    ) -> subprocess.CompletedProcess[str] | None:
        """Run a command; return None, and do nothing, if a new Python has to run it."""
        request = {"words": words, "cwd": str(cwd), "environment": dict(environment)}
        message = json.dumps(request).encode()
        if len(message) > _REQUEST_BYTES_MAX or _seen_by_modules(environment) != self._environment:
            return None
        if not self._free.acquire(blocking=False):
            return None
        try:
            return self._run(list(words), message, stdin.encode(), seconds)
        finally:
            self._free.release()

    def _run(
        self, words: list[str], message: bytes, stdin: bytes, seconds: float
    ) -> subprocess.CompletedProcess[str]:
        streams = [os.memfd_create(name) for name in ("stdin", "stdout", "stderr")]
        try:
            os.pwrite(streams[0], stdin, 0)
            self._channel.settimeout(seconds)
            socket.send_fds(self._channel, [message], streams)
            pid = int(self._channel.recv(64))
            try:
                status = int(self._channel.recv(64))
            except TimeoutError:
                os.kill(pid, signal.SIGKILL)
                self._channel.recv(64)
                raise subprocess.TimeoutExpired(words, seconds) from None
            out, err = (_text(stream) for stream in streams[1:])
        finally:
            for stream in streams:
                os.close(stream)
        return subprocess.CompletedProcess(words, status, out, err)


def _seen_by_modules(environment: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in environment.items() if key not in _NOT_SEEN_BY_MODULES}


def _text(stream: int) -> str:
    # As subprocess does it, with line ends as Python has them.
    text = os.pread(stream, os.fstat(stream).st_size, 0).decode()
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _modules() -> Iterator[str]:
    """Return the modules of all commands."""
    cli = importlib.import_module("dryrack.cli")
    for each in pkgutil.walk_packages(cli.__path__, "dryrack.cli."):
        if each.name not in _NOT_BEFOREHAND:
            yield each.name


def serve(channel: socket.socket) -> list[str] | None:
    """Fork for each request; return its words in the child, None in the server at the end."""
    while True:
        message, streams, _, _ = socket.recv_fds(channel, _REQUEST_BYTES_MAX, 3)
        if not message:
            return None
        child = os.fork()
        if child == 0:
            channel.close()
            return _become(json.loads(message), streams)
        for stream in streams:
            os.close(stream)
        channel.send(str(child).encode())
        _, status = os.waitpid(child, 0)
        channel.send(str(os.waitstatus_to_exitcode(status)).encode())


def _become(request: dict[str, object], streams: Sequence[int]) -> list[str]:
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(str(request["cwd"]))
    environment = request["environment"]
    words = request["words"]
    assert isinstance(environment, dict)
    assert isinstance(words, list)
    os.environ.clear()
    os.environ.update(environment)
    return words


def main() -> None:
    channel = socket.socket(fileno=int(sys.argv[1]))
    for module in _modules():
        importlib.import_module(module)
    gc.collect()
    gc.freeze()
    words = serve(channel)
    if words is not None:
        sys.argv[1:] = words
        runpy.run_module("dryrack", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
