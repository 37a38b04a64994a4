"""
The faults of this node, from the annotations of its Node and from a file.

`NodeFaultWatch` reads them whenever they change and whenever one ends. A user reads the `current`
faults, acts, and waits with `changed` until they differ from the faults that it has seen.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Protocol

from dryrack.client.client import Selection
from dryrack.client.endpoints import NODES
from dryrack.client.events import EventRecorder
from dryrack.client.informer import Informer
from dryrack.client.timekeeping import sleep
from dryrack.hardware import NO_FAULTS, PrepareMode, fault_lines, faults_of
from dryrack.kinds.paths import get

if TYPE_CHECKING:
    from pathlib import Path

    from dryrack.base.ports import Chance
    from dryrack.client.client import Client
    from dryrack.client.timekeeping import Timekeeper
    from dryrack.hardware import NodeFaults, PrepareFault

_logger = logging.getLogger(__name__)

# A file has no change events; to read its modification time costs nothing.
_LOOK_SECONDS = 1.0
_COMPONENT = "dryrack-plugin"


class FaultSource(Protocol):
    """The faults of a node, and its clock."""

    @property
    def clock(self) -> Timekeeper: ...

    @property
    def known(self) -> asyncio.Event:
        """Set when the faults are known."""
        ...

    def current(self) -> NodeFaults: ...

    async def changed(self, seen: NodeFaults) -> None:
        """Wait until the faults differ from those that were seen."""
        ...


def failure(fault: PrepareFault | None, node: str) -> str:
    """Return the error with which a fault fails the preparation of a claim, or ""."""
    if fault is None or fault.mode is not PrepareMode.FAIL:
        return ""
    return fault.message or f"node {node}: the fault annotation prepare=fail is set"


async def until_answered(faults: FaultSource) -> None:
    """Wait as long as faults delay a call that prepares claims."""
    current = faults.current()
    while (fault := current.prepare) is not None and fault.mode is PrepareMode.HANG:
        await faults.changed(current)
        current = faults.current()
    if fault is not None and fault.mode is PrepareMode.SLOW:
        await sleep(faults.clock, fault.seconds)


class NodeFaultWatch:
    """Reads the faults of one node while `run` runs."""

    def __init__(
        self,
        client: Client,
        node: str,
        *,
        clock: Timekeeper,
        chance: Chance,
        file: Path | None,
    ) -> None:
        self.clock = clock
        self._node = node
        self._file = file
        self._recorder = EventRecorder(client, clock, chance, _COMPONENT)
        selection = Selection(fields=f"metadata.name={node}")
        self._informer = Informer(client, NODES, clock=clock, chance=chance, selection=selection)
        self._in_file: dict[str, str] = {}
        """The faults of the file, as annotations."""
        self._faults = NO_FAULTS
        self.known = asyncio.Event()
        self._changed = asyncio.Event()
        self._due = asyncio.Event()
        self._reported: tuple[str, ...] = ()

    def current(self) -> NodeFaults:
        return self._faults

    async def changed(self, seen: NodeFaults) -> None:
        while self._faults == seen:
            await self._changed.wait()

    async def run(self) -> None:
        """Run until it is cancelled."""
        self._informer.listen(lambda _old, _new: self._due.set())
        async with asyncio.TaskGroup() as group:
            group.create_task(self._informer.run(), name="this node")
            if self._file is not None:
                group.create_task(self._follow(self._file), name="fault file")
            await self._informer.synced.wait()
            while True:
                self._due.clear()
                await self._read()
                self.known.set()
                await self._wait()

    async def _read(self) -> None:
        node = self._informer.get("", self._node)
        annotations = get(node["metadata"], "annotations", {}) if node is not None else {}
        faults = faults_of(_merge(annotations, self._in_file), self.clock.now())
        if faults != self._faults:
            self._faults = faults
            devices = sorted(faults.devices)
            _logger.info("faults changed", extra={"node": self._node, "devices": devices})
            changed = self._changed
            self._changed = asyncio.Event()
            changed.set()
        new = [each for each in faults.problems if each not in self._reported]
        self._reported = faults.problems
        for each in new:
            _logger.warning("node %s: %s", self._node, each)
            if node is not None:
                about = {"kind": "Node", "apiVersion": "v1"} | node
                await self._recorder.record(about, "InvalidFault", each, type="Warning", once=each)

    async def _wait(self) -> None:
        """Wait until the annotations or the file change, or a fault ends."""
        expiry = self._faults.next_expiry
        timer = None if expiry is None else self.clock.call_at(expiry, self._due.set)
        try:
            await self._due.wait()
        finally:
            if timer is not None:
                timer.cancel()

    async def _follow(self, file: Path) -> None:
        seen: tuple[int, int] | None = None
        while True:
            now = _version(file)
            if now != seen:
                seen = now
                self._in_file = self._lines(file)
                self._due.set()
            await sleep(self.clock, _LOOK_SECONDS)

    def _lines(self, file: Path) -> dict[str, str]:
        try:
            text = file.read_text(errors="replace")
        except FileNotFoundError:
            return {}
        except OSError as error:
            _logger.warning("%s: %s", file, error.strerror)
            return {}
        faults, problems = fault_lines(text)
        for each in problems:
            _logger.warning("%s, %s", file, each)
        return faults


def _version(file: Path) -> tuple[int, int] | None:
    """Return a value that changes with the file; None if the file does not exist."""
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


def _merge(annotations: dict[str, str], file: dict[str, str]) -> dict[str, str]:
    """Return the faults of both sources; a device can have faults of both."""
    both = {key: f"{annotations[key]}; {file[key]}" for key in file if key in annotations}
    return {**annotations, **file, **both}
