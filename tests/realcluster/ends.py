"""
Waiting for the end of processes, also of those that are not children of this process.

The kernel tells it to whoever holds a process by a descriptor, and a descriptor never comes to
mean another process. So nobody looks again and again, and nobody is killed for having inherited a
number.
"""

from __future__ import annotations

import os
import select
import signal
import time
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


@contextmanager
def held(pids: Iterable[int]) -> Iterator[list[int]]:
    """A descriptor for each process that is there, for the time of the block."""
    with ExitStack() as stack:
        descriptors = []
        for pid in pids:
            with suppress(ProcessLookupError):
                descriptors.append(os.pidfd_open(pid))
                stack.callback(os.close, descriptors[-1])
        yield descriptors


def await_end(descriptors: Iterable[int], seconds: float) -> bool:
    """Returns when all of them have ended, or after so long; whether they have."""
    deadline = time.monotonic() + seconds
    waited_for = set(descriptors)
    while waited_for and (left := deadline - time.monotonic()) >= 0:
        ended, _, _ = select.select(waited_for, (), (), left)
        waited_for.difference_update(ended)
    return not waited_for


def kill(pids: Iterable[int], seconds: float) -> bool:
    """Kill the processes; return when all have ended, or after the timeout."""
    with held(pids) as descriptors:
        for each in descriptors:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(each, signal.SIGKILL)
        return await_end(descriptors, seconds)
