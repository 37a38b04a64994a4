"""
The node side of a DRA driver: prepare and unprepare, idempotent and safe against kill -9.

A claim is first written to the checkpoint, and only that waits for the disk; then lines in files of
the host and the CDI spec are written. To unprepare a claim, the spec and the lines are removed
first and the checkpoint last. If the process ends in between, or the power fails, `recover` makes
the rest again from the checkpoint, and removes files of claims without a checkpoint: a claim is
prepared completely or not at all.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from contextlib import asynccontextmanager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

from dryrack.base.errors import DryrackError
from dryrack.base.metrics import Registry
from dryrack.client.endpoints import CLAIMS
from dryrack.client.errors import NotFoundError
from dryrack.hardware import NO_FAULTS
from dryrack.kinds.decode import decode
from dryrack.kinds.resource import ResourceClaim
from dryrack.kubeletplugin import cdi, device_metadata
from dryrack.kubeletplugin.checkpoint import Checkpoint, CheckpointLock
from dryrack.kubeletplugin.device_kind import PrepareError
from dryrack.kubeletplugin.device_metadata import with_metadata
from dryrack.kubeletplugin.files import (
    HostFileSystem,
    is_temporary,
    replace_cached_file,
)
from dryrack.kubeletplugin.plugin_metrics import PluginMetrics
from dryrack.kubeletplugin.prepare import NodeDevices, plan
from dryrack.kubeletplugin.record import RecordIndex, State

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence

    from dryrack.client.client import Client
    from dryrack.hardware import NodeFaults
    from dryrack.kinds.raw import Raw
    from dryrack.kubeletplugin.checkpoint import Damage
    from dryrack.kubeletplugin.device_kind import DeviceKind
    from dryrack.kubeletplugin.files import FileSystem
    from dryrack.kubeletplugin.record import ClaimRecord, PreparedDevice

_logger = logging.getLogger(__name__)
Result = TypeVar("Result")

# Container runtimes read specs, and containers read mounted files, as any user.
_READABLE = 0o644


@dataclass(frozen=True, slots=True)
class ClaimReference:
    """A claim as the kubelet names it."""

    namespace: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class Directories:
    """The directories of a plugin."""

    plugin: Path
    """The plugin's own directory: `<kubelet>/plugins/<driver>`."""
    cdi: Path


class NodePlugin:
    """The devices of one driver on one node; `recover` comes before everything else."""

    def __init__(
        self,
        kind: DeviceKind,
        client: Client,
        node: str,
        directories: Directories,
        *,
        files: FileSystem | None = None,
        metrics: Registry | None = None,
        writes_metadata: bool = False,
        is_shared: bool = False,
        faults: Callable[[], NodeFaults] = lambda: NO_FAULTS,
    ) -> None:
        """
        Prepare no claim yet. Other processes may use the same directories if `is_shared` is true.
        `faults` returns the present faults of the node.
        """
        self.kind = kind
        self._faults = faults
        self.node = node
        self.has_met_kubelet = False
        """True after a kubelet has registered or refused the plugin."""
        self._devices = NodeDevices.of(kind, node)
        self._client = client
        self._writes_metadata = writes_metadata
        self._directories = directories
        self._files: FileSystem = files or HostFileSystem()
        self._checkpoint = Checkpoint(directories.plugin / "checkpoints", self._files)
        self._shared = CheckpointLock(directories.plugin) if is_shared else None
        self._turn_lock = asyncio.Lock()
        self._index = RecordIndex()
        self._damages: tuple[Damage, ...] = ()
        self._locks: dict[str, _CountedLock] = {}
        # Several claims may have lines in one file.
        self._host_files = threading.Lock()
        self._metrics = PluginMetrics(metrics or Registry(), kind.driver)
        self._listeners: list[Callable[[], None]] = []

    @property
    def records(self) -> tuple[ClaimRecord, ...]:
        """The claims that are prepared or being prepared, in the order in which they came."""
        # `sorted` copies first: threads that write files read the records while others change.
        return tuple(sorted(self._records.values(), key=lambda each: each.sequence))

    @property
    def _records(self) -> Mapping[str, ClaimRecord]:
        return self._index.by_uid

    def listen(self, listener: Callable[[], None]) -> None:
        """Call the listener whenever the state of a claim changes."""
        self._listeners.append(listener)

    async def prepare(
        self, claims: Sequence[ClaimReference]
    ) -> Mapping[str, tuple[PreparedDevice, ...] | DryrackError]:
        """Prepare claims; return the devices or the error of each, by UID."""
        answers: dict[str, tuple[PreparedDevice, ...] | DryrackError] = {}
        # One after the other, so that the devices of a pod are numbered in the order of its claims.
        for claim in claims:
            try:
                with self._measure("prepare"):
                    answers[claim.uid] = await self._prepare(claim)
            except (DryrackError, OSError) as error:
                answers[claim.uid] = _as_error(error)
                _logger.warning("claim not prepared: %s", error, extra=_fields(claim))
        return answers

    async def unprepare(
        self, claims: Sequence[ClaimReference]
    ) -> Mapping[str, DryrackError | None]:
        """Unprepare claims; return None or the error of each, by UID."""
        answers: dict[str, DryrackError | None] = {}
        for claim in claims:
            try:
                with self._measure("unprepare"):
                    await self._unprepare(claim.uid)
                answers[claim.uid] = None
            except (DryrackError, OSError) as error:
                answers[claim.uid] = _as_error(error)
                _logger.warning("claim not unprepared: %s", error, extra=_fields(claim))
        return answers

    def recover(self) -> tuple[Damage, ...]:
        """
        Restore all files from the checkpoints, after any end of the last process.

        Preparations are finished, missing specs are written again, and specs without a claim are
        removed. Checkpoints that cannot be read are renamed, and returned.
        """
        with nullcontext() if self._shared is None else self._shared.held():
            return self._recover()

    def _recover(self) -> tuple[Damage, ...]:
        self._files.make_directory(self._directories.cdi, 0o755)
        loaded, self._damages = self._checkpoint.load(is_begun=self._is_begun)
        self._index = RecordIndex(loaded)
        for damage in self._damages:
            _logger.error(
                "checkpoint set aside",
                extra={"uid": damage.uid, "reason": damage.why, "file": str(damage.set_aside)},
            )
        driver = self.kind.driver
        for name in self._files.names(self._directories.cdi):
            uid = device_metadata.claim_uid(driver, name)
            is_unknown = uid is not None and uid not in self._records
            own = (f"{driver}-", f"{driver}_metadata_")
            if is_unknown or any(is_temporary(name, each) for each in own):
                self._files.remove(self._directories.cdi / name)
        self._remove_unknown_metadata()
        for path in self.kind.host_files():
            self._write_host_file(path)
        for record in self.records:
            self._write_specs(record)
            self._set(record, State.PREPARED)
        return self._damages

    async def reconcile(self) -> None:
        """
        Unprepare claims that no longer have devices on this node in the API.

        Claims with a damaged checkpoint are prepared again, if they still have devices.
        """
        if self._damages:
            lost = {damage.uid for damage in self._damages} - set(self._records)
            for raw in (await self._client.list(CLAIMS)).items:
                claim = decode(raw, ResourceClaim)
                if claim.metadata.uid in lost and self._has_devices_here(claim):
                    meta = claim.metadata
                    reference = ClaimReference(meta.namespace, meta.name, meta.uid)
                    await self.prepare([reference])
            self._damages = ()
        for record in self.records:
            async with self._turn(), self._lock(record.uid):
                if record.uid in self._records and not await self._is_in_use(record):
                    _logger.info("claim has no devices here any more", extra=_fields(record))
                    await self._undo(record)

    @contextmanager
    def _measure(self, verb: str) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        started = loop.time()
        has_failed = True
        try:
            yield
            has_failed = False
        finally:
            self._metrics.observe(verb, loop.time() - started, has_failed=has_failed)

    async def _is_in_use(self, record: ClaimRecord) -> bool:
        try:
            raw = await self._client.get(CLAIMS, record.name, record.namespace)
        except NotFoundError:
            return False
        claim = decode(raw, ResourceClaim)
        return claim.metadata.uid == record.uid and self._has_devices_here(claim)

    def _has_devices_here(self, claim: ResourceClaim) -> bool:
        allocation = claim.status.allocation
        return allocation is not None and any(
            result.driver == self.kind.driver and result.pool == self.node
            for result in allocation.devices.results
        )

    async def _prepare(self, claim: ClaimReference) -> tuple[PreparedDevice, ...]:
        cdi.check_uid(claim.uid)
        async with self._turn(), self._lock(claim.uid):
            record = self._records.get(claim.uid)
            if record is None:
                if not claim.namespace or not claim.name:
                    raise PrepareError(
                        f"claim {claim.uid}: the request has no namespace or no name"
                    )
                raw = await self._client.get(CLAIMS, claim.name, claim.namespace)
                fetched = decode(raw, ResourceClaim)
                if fetched.metadata.uid != claim.uid:
                    raise PrepareError(
                        f"claim {_name(claim)}: the claim was replaced; "
                        f"its UID is {fetched.metadata.uid}, not {claim.uid}"
                    )
                # No other claim can get a device or a number between here and the next await.
                record = plan(fetched, self._devices.present(self._faults()), self._index)
                if self._writes_metadata:
                    record = with_metadata(record, fetched, self._devices)
                self._index.put(record)
            if record.state is not State.PREPARED:
                record = self._set(record, State.PREPARING)
                await in_thread(self._carry_out, record)
                record = self._set(record, State.PREPARED)
                _logger.info("claim prepared", extra=_fields(claim))
            else:
                await in_thread(self._write_effects, record)
            return record.devices

    async def _unprepare(self, uid: str) -> None:
        cdi.check_uid(uid)
        async with self._turn(), self._lock(uid):
            record = self._records.get(uid)
            if record is not None:
                await self._undo(record)

    def _set(self, record: ClaimRecord, state: State) -> ClaimRecord:
        changed = msgspec.structs.replace(record, state=state)
        self._index.put(changed)
        self._tell()
        return changed

    def _tell(self) -> None:
        for listener in self._listeners:
            listener()

    def _carry_out(self, record: ClaimRecord) -> None:
        self._checkpoint.save(record)
        self._write_effects(record)

    def _write_effects(self, record: ClaimRecord) -> None:
        """Write all files that follow from a checkpoint and differ."""
        for path in _host_files(record):
            self._write_host_file(path)
        self._write_specs(record)

    async def _undo(self, record: ClaimRecord) -> None:
        # If this fails in between, prepare does all of it again.
        self._set(record, State.UNPREPARING)
        await in_thread(self._remove, record)
        self._index.drop(record.uid)
        self._tell()
        _logger.info("claim unprepared", extra=_fields(record))

    def _remove(self, record: ClaimRecord) -> None:
        self._files.remove(self._spec_path(record.uid))
        for file in record.metadata:
            name = device_metadata.spec_name(self.kind.driver, record.uid, file.request)
            self._files.remove(self._directories.cdi / name)
        # A later claim with the same name has its files in the same directory.
        if record.metadata and not self._has_namesake(record):
            self._files.remove_tree(self._metadata_directory(record))
        for path in _host_files(record):
            self._write_host_file(path)
        self._checkpoint.remove(record.uid)

    def _write_specs(self, record: ClaimRecord) -> None:
        for file in record.metadata:
            directory = self._metadata_directory(record) / file.request
            path = directory / device_metadata.FILE
            content = file.content.encode()
            if self._files.read(path) != content:
                # A container that has the file mounted never reads an incomplete one.
                self._files.make_directory(directory, 0o755)
                replace_cached_file(self._files, path, content, _READABLE)
            name = device_metadata.spec_name(self.kind.driver, record.uid, file.request)
            self._write_spec(self._directories.cdi / name, device_metadata.spec_of(file, str(path)))
        spec = cdi.spec_of(record)
        if spec is not None:
            self._write_spec(self._spec_path(record.uid), spec)

    def _write_spec(self, path: Path, spec: Raw) -> None:
        text = cdi.text_of(spec)
        if self._files.read(path) != text:
            replace_cached_file(self._files, path, text, _READABLE)

    def _metadata_directory(self, record: ClaimRecord) -> Path:
        below = self._directories.plugin / device_metadata.DIRECTORY
        return below / device_metadata.directory_name(record)

    def _has_namesake(self, record: ClaimRecord) -> bool:
        return any(_name(each) == _name(record) and each.uid != record.uid for each in self.records)

    def _write_host_file(self, path: str) -> None:
        with self._host_files:
            lines = [
                line.text
                for record in self.records
                for device in record.devices
                for line in device.edits.lines
                if line.path == path and record.state is not State.UNPREPARING
            ]
            text = "".join(f"{line}\n" for line in lines).encode()
            target = Path(path)
            if self._files.read(target) != text:
                self._files.make_directory(target.parent, 0o755)
                self._files.write_cached(target, text, _READABLE)

    def _is_begun(self, uid: str) -> bool:
        """Return True if a claim has files besides its checkpoint."""
        return self._files.read(self._spec_path(uid)) is not None

    def _spec_path(self, uid: str) -> Path:
        return self._directories.cdi / cdi.file_name(self.kind.driver, uid)

    def _remove_unknown_metadata(self) -> None:
        below = self._directories.plugin / device_metadata.DIRECTORY
        known = {device_metadata.directory_name(each) for each in self.records if each.metadata}
        for name in self._files.names(below):
            if name not in known:
                self._files.remove_tree(below / name)

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        """Lock the shared checkpoint, and read what other processes have written."""
        if self._shared is None:
            yield
            return
        async with self._turn_lock:
            try:
                await in_thread(self._shared.acquire)
                if await in_thread(self._refresh):
                    self._tell()
                yield
            finally:
                self._shared.release()

    def _refresh(self) -> bool:
        """Read the changes of other processes; return True if there are any."""
        present = self._checkpoint.uids()
        loaded, damages = self._checkpoint.load(self._records, is_begun=self._is_begun)
        self._damages += damages
        removed = set(self._records) - present
        for uid in removed:
            self._index.drop(uid)
        for record in loaded:
            self._index.put(msgspec.structs.replace(record, state=State.PREPARED))
        return bool(removed or loaded)

    @asynccontextmanager
    async def _lock(self, uid: str) -> AsyncIterator[None]:
        lock = self._locks.setdefault(uid, _CountedLock())
        lock.users += 1
        try:
            async with lock.lock:
                yield
        finally:
            lock.users -= 1
            if lock.users == 0:
                del self._locks[uid]


class _CountedLock:
    """A lock with the number of its users."""

    __slots__ = ("lock", "users")

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.users = 0


async def in_thread(work: Callable[..., Result], *arguments: object) -> Result:
    """Run work in a thread to its end, even if the caller is cancelled."""
    running = asyncio.get_running_loop().run_in_executor(None, work, *arguments)
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait({running})
        raise


def _host_files(record: ClaimRecord) -> Iterable[str]:
    return sorted({line.path for device in record.devices for line in device.edits.lines})


def _name(claim: ClaimReference | ClaimRecord) -> str:
    return f"{claim.namespace}/{claim.name}"


def _fields(claim: ClaimReference | ClaimRecord) -> dict[str, str]:
    return {"claim": _name(claim), "uid": claim.uid}


def _as_error(error: DryrackError | OSError) -> DryrackError:
    return error if isinstance(error, DryrackError) else PrepareError(str(error))
