"""
Start work as a background process.

The process is a fork of the calling one, so that it starts fast. It reports through a pipe when it
is ready, or why it cannot be; the parent prints that and goes on.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import signal
import sys
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING

from dryrack.base.errors import DryrackError
from dryrack.cluster.private_files import open_private

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

log = logging.getLogger(__name__)

Report = Callable[[str], None]
"""Takes a line for every stage, then "" when the work is ready."""


class BackgroundError(DryrackError):
    """A background process ended before it was ready."""


def in_background(work: Callable[[Report], object], log_file: Path, tell: Report) -> int:
    """
    Start the work, pass on its stages, and return the process number when it is ready.

    The output of the process goes to the log file. Ctrl-C before it is ready stops it.
    """
    output = open_private(log_file, os.O_WRONLY | os.O_APPEND)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _child(work, output, writing)
    os.close(writing)
    os.close(output)
    try:
        with os.fdopen(reading) as messages:
            _relay(messages, tell)
    except KeyboardInterrupt:
        # The process, and the processes that it started: they are a session of their own by now.
        for send in (os.killpg, os.kill):
            with contextlib.suppress(ProcessLookupError):
                send(child, signal.SIGTERM)
        os.waitpid(child, 0)
        raise
    return child


def _relay(messages: Iterable[str], tell: Report) -> None:
    """Pass on the lines of the child until it is ready."""
    for line in messages:
        message = json.loads(line)
        if message["error"]:
            raise BackgroundError(message["error"])
        if not message["stage"]:
            return
        tell(message["stage"])
    raise BackgroundError("the background process ended before it was ready, without an error")


def _child(work: Callable[[Report], object], output: int, writing: int) -> None:
    """Run as the background process, in a new session, without a terminal, with a log."""
    code = 1
    try:
        os.setsid()
        # Output goes to the log; there is no input.
        sys.stdout.flush()
        sys.stderr.flush()
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(output, 1)
        os.dup2(output, 2)
        with os.fdopen(writing, "w", buffering=1) as messages:

            def tell(stage: str, error: str = "") -> None:
                # The parent goes on when the work is ready.
                with contextlib.suppress(OSError, ValueError):
                    messages.write(json.dumps({"stage": stage, "error": error}) + "\n")
                    if not stage:
                        messages.close()

            error = _attempt(work, tell)
            if error:
                log.error("%s", error)
                tell("", error)
            code = 1 if error else 0
    finally:
        logging.shutdown()
        # Nothing of the parent may run a second time here.
        os._exit(code)


def _attempt(work: Callable[[Report], object], tell: Report) -> str:
    """Do the work; return the error, or ""."""
    try:
        work(tell)
    except DryrackError as error:
        return str(error)
    except OSError as error:
        if error.filename is None:
            return traceback.format_exc()
        return f"{error.filename}: {(error.strerror or str(error)).lower()}"
    except Exception:  # noqa: BLE001 - the process ends, and only the log can report it
        return traceback.format_exc()
    return ""
