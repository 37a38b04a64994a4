"""
The bench of the conformance suite: a driver program, the kubelet that calls it, and its claims.

The suite allocates devices itself, as a scheduler would, so that each requirement decides which
claims exist and what they contain.
"""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dryrack.base.errors import DryrackError
from dryrack.client.client import Selection
from dryrack.client.endpoints import CLAIMS, CLASSES, NAMESPACES, SLICES
from dryrack.client.errors import ApiError, ConflictError, NotFoundError
from dryrack.kinds.paths import get
from dryrack.kubelet.cdi import resolve
from dryrack.kubelet.conformance.report import NotMetError, SkippedError
from dryrack.kubelet.instance import CallError, ClaimReference
from dryrack.kubelet.registration import REGISTRY, Registrations

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence

    from dryrack.client.client import Client
    from dryrack.client.timekeeping import Timekeeper
    from dryrack.kinds.raw import Raw
    from dryrack.kubelet.cdi import ContainerEdits
    from dryrack.kubelet.instance import Instance, PreparedDevice

NAMESPACE = "driver-test"
CLASS = "driver-test"
_LOOK_SECONDS = 0.05
_TAIL_LINES = 15

Prepared = tuple["PreparedDevice", ...]


class BenchError(DryrackError):
    """The suite cannot run: the driver does not start, register, or publish devices."""


@dataclass(slots=True)
class Program:
    """A driver program, with the words to start it; none attaches to a driver that runs."""

    words: Sequence[str]
    environment: Mapping[str, str]
    log: Path
    process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Start the program; its output goes to the log."""
        with self.log.open("ab") as log:
            try:
                self.process = await asyncio.create_subprocess_exec(
                    *self.words, env={**os.environ, **self.environment}, stdout=log, stderr=log
                )
            except OSError as error:
                raise BenchError(
                    f"{self.words[0]}: {error.strerror}; name the program after --"
                ) from None

    async def stop(self, number: int = signal.SIGTERM, seconds: float = 15.0) -> int | None:
        """Send a signal and return the exit status; None if the program did not end in time."""
        if self.process is None:
            return None
        process, self.process = self.process, None
        with suppress(ProcessLookupError):
            process.send_signal(number)
        try:
            async with asyncio.timeout(seconds):
                return await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()
            return None

    @property
    def has_ended(self) -> bool:
        return self.process is not None and self.process.returncode is not None

    def tail(self) -> str:
        """Return the last lines of the log."""
        with suppress(OSError):
            lines = self.log.read_text(errors="replace").splitlines()
            return "\n".join(lines[-_TAIL_LINES:])
        return ""


@dataclass(slots=True)
class Bench:
    """The cluster, the kubelet, and the driver that a requirement uses."""

    client: Client
    clock: Timekeeper
    node: str
    # The directory that the driver uses as the kubelet's.
    directory: Path
    cdi: Path
    program: Program | None = None
    # How long the driver may take to register and to publish its devices.
    patience: float = 30.0
    driver: str = ""
    registrations: Registrations = field(init=False)
    _claims: list[ClaimReference] = field(default_factory=list)
    _number: int = 0

    def __post_init__(self) -> None:
        self.registrations = Registrations(
            self.node, self.directory, clock=self.clock, on_change=lambda _: None
        )

    @asynccontextmanager
    async def run_driver(self) -> AsyncIterator[None]:
        """Watch for the driver, start it, and stop it at the end."""
        for path in (self.directory / REGISTRY, self.directory / "plugins", self.cdi):
            path.mkdir(parents=True, exist_ok=True)
        async with asyncio.TaskGroup() as group:
            watch = group.create_task(self.registrations.run(), name="registrations")
            try:
                if self.program is not None:
                    await self.program.start()
                await self._find_driver()
                with suppress(ConflictError):
                    await self.client.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
                with suppress(NotFoundError):
                    await self.client.delete(CLASSES, CLASS)
                expression = f"device.driver == {self.driver!r}"
                selectors = [{"cel": {"expression": expression}}]
                await self.client.create(
                    CLASSES, {"metadata": {"name": CLASS}, "spec": {"selectors": selectors}}
                )
                yield
            finally:
                if self.program is not None:
                    await self.program.stop()
                watch.cancel()

    async def _find_driver(self) -> None:
        await self.until(
            lambda: bool(self.registrations.drivers) or self._has_ended(),
            f"no driver registered below {self.directory / REGISTRY}",
        )
        if self._has_ended():
            raise BenchError(f"the driver ended before it registered:\n{self._tail()}")
        names = self.registrations.drivers
        if len(names) > 1:
            raise BenchError(f"several drivers are registered: {', '.join(names)}; stop the others")
        self.driver = names[0]
        try:
            await self.devices()
        except NotMetError as error:
            raise BenchError(f"driver {self.driver}: {error.got}\n{self._tail()}") from None

    def _has_ended(self) -> bool:
        return self.program is not None and self.program.has_ended

    def _tail(self) -> str:
        return self.program.tail() if self.program is not None else ""

    async def until(self, condition: Callable[[], bool], problem: str) -> None:
        """Wait until a condition holds; raise `BenchError` with the problem if it never does."""
        try:
            async with asyncio.timeout(self.patience):
                while not condition():  # noqa: ASYNC110 (a program of others reports nothing)
                    await asyncio.sleep(_LOOK_SECONDS)
        except TimeoutError:
            raise BenchError(f"{problem} within {self.patience:g} s\n{self._tail()}") from None

    async def instance(self) -> Instance:
        """Return the connected instance of the driver; wait for it."""

        def find() -> Instance | None:
            instance = self.registrations.instance(self.driver)
            return instance if instance is not None and instance.is_connected else None

        await self.until(lambda: find() is not None, f"driver {self.driver} is not connected")
        instance = find()
        assert instance is not None, "the condition holds"
        return instance

    async def slices(self) -> tuple[Raw, ...]:
        """Return the ResourceSlices of the driver for the node."""
        listing = await self.client.list(SLICES)
        return tuple(
            each
            for each in listing.items
            if each["spec"]["driver"] == self.driver
            and each["spec"].get("nodeName") in (self.node, None)
        )

    async def devices(self, seconds: float = 0.0) -> list[tuple[str, str]]:
        """Return pool and name of the devices of complete pools; wait until there are some."""
        found: list[tuple[str, str]] = []
        patience = max(self.patience, seconds)
        try:
            async with asyncio.timeout(patience):
                while not found:
                    found = _devices_of(await self.slices())
                    await asyncio.sleep(0 if found else _LOOK_SECONDS)
        except TimeoutError:
            raise NotMetError(
                f"waited {patience:g} s for ResourceSlices of node {self.node}",
                "the driver published no complete pool with devices",
            ) from None
        return found

    async def claim(
        self,
        *devices: tuple[str, str],
        name: str = "",
        config: Any = None,
        allocated: bool = True,
    ) -> ClaimReference:
        """Create a claim that has these devices of the driver; by default the first free one."""
        if not devices and allocated:
            free = await self.devices()
            devices = (free[len(self._claims) % len(free)],)
        self._number += 1
        name = name or f"claim-{self._number}"
        requests = [
            {"name": f"r{number}", "exactly": {"deviceClassName": CLASS}}
            for number in range(max(1, len(devices)))
        ]
        spec = {"devices": {"requests": requests}}
        metadata = {"name": name, "namespace": NAMESPACE}
        made = await self.client.create(CLAIMS, {"metadata": metadata, "spec": spec})
        reference = ClaimReference(NAMESPACE, name, made["metadata"]["uid"])
        self._claims.append(reference)
        if allocated:
            results = [
                {"request": f"r{number}", "driver": self.driver, "pool": pool, "device": device}
                for number, (pool, device) in enumerate(devices)
            ]
            allocation: Raw = {"devices": {"results": results}}
            if config is not None:
                opaque = {"driver": self.driver, "parameters": config}
                allocation["devices"]["config"] = [{"source": "FromClaim", "opaque": opaque}]
            await self.client.update(
                CLAIMS, made | {"status": {"allocation": allocation}}, subresource="status"
            )
        return reference

    async def delete(self, claim: ClaimReference) -> None:
        """Delete a claim, allocated or not."""
        with suppress(NotFoundError):
            current = await self.client.get(CLAIMS, claim.name, claim.namespace)
            if current["metadata"]["uid"] != claim.uid:
                return
            await self.client.delete(CLAIMS, claim.name, namespace=claim.namespace)
            with suppress(ApiError):
                current = await self.client.get(CLAIMS, claim.name, claim.namespace)
                status = {"status": {}, "metadata": {**current["metadata"]}}
                current = await self.client.update(CLAIMS, current | status, subresource="status")
                current["metadata"].pop("finalizers", None)
                await self.client.update(CLAIMS, current)

    async def prepare(self, *claims: ClaimReference) -> Mapping[str, Prepared]:
        """Call NodePrepareResources; raise `NotMetError` if it fails."""
        instance = await self.instance()
        try:
            return await instance.prepare(claims)
        except CallError as error:
            raise NotMetError(f"NodePrepareResources({_names(claims)})", str(error)) from None

    async def prepare_error(self, *claims: ClaimReference) -> str:
        """Call NodePrepareResources and return the error; "" if it succeeds."""
        instance = await self.instance()
        try:
            await instance.prepare(claims)
        except CallError as error:
            return str(error)
        return ""

    async def unprepare(self, *claims: ClaimReference) -> None:
        """Call NodeUnprepareResources; raise `NotMetError` if it fails."""
        instance = await self.instance()
        try:
            await instance.unprepare(claims)
        except CallError as error:
            raise NotMetError(f"NodeUnprepareResources({_names(claims)})", str(error)) from None

    def edits(self, devices: Prepared) -> ContainerEdits:
        """Return what the devices add to a container."""
        names = dict.fromkeys(name for each in devices for name in each.cdi_ids)
        return resolve(list(names), (Path("/etc/cdi"), Path("/var/run/cdi"), self.cdi))

    async def restart(self, number: int = signal.SIGKILL) -> None:
        """End the program with a signal, and start it again."""
        if self.program is None:
            raise SkippedError("the suite did not start the driver, so it cannot restart it")
        before = self.registrations.instance(self.driver)
        await self.program.stop(number)
        await self.program.start()

        def is_new() -> bool:
            instance = self.registrations.instance(self.driver)
            return instance not in (None, before) and instance.is_connected

        await self.until(
            lambda: is_new() or self._has_ended(),
            f"driver {self.driver} did not register again after its restart",
        )
        if self._has_ended():
            raise NotMetError("restarted the driver", f"it ended at once:\n{self._tail()}")

    async def clean(self) -> None:
        """Unprepare and delete the claims of a requirement, whatever its outcome is."""
        if self._has_ended() and self.program is not None:
            await self.program.start()
        claims, self._claims = self._claims, []
        for each in claims:
            with suppress(NotMetError, BenchError):
                await self.unprepare(each)
            await self.delete(each)
        listing = await self.client.list(CLAIMS, Selection(namespace=NAMESPACE))
        for left in listing.items:
            metadata = left["metadata"]
            await self.delete(ClaimReference(NAMESPACE, metadata["name"], metadata["uid"]))


def _devices_of(slices: Sequence[Raw]) -> list[tuple[str, str]]:
    """Return pool and name of the devices of complete pools, without partitions that overlap."""
    pools: dict[str, list[Raw]] = {}
    for each in slices:
        pools.setdefault(each["spec"]["pool"]["name"], []).append(each)
    found = []
    for name, members in sorted(pools.items()):
        newest = max(each["spec"]["pool"].get("generation", 0) for each in members)
        current = [e for e in members if e["spec"]["pool"].get("generation", 0) == newest]
        if all(e["spec"]["pool"]["resourceSliceCount"] == len(current) for e in current):
            devices = [d for e in current for d in get(e, "spec.devices", ())]
            plain = [d for d in devices if not d.get("consumesCounters")]
            found += [(name, each["name"]) for each in plain or devices[:1]]
    return found


def _names(claims: Sequence[ClaimReference]) -> str:
    return ", ".join(f"{each.namespace}/{each.name} uid {each.uid}" for each in claims)
