"""
The bench of the conformance suite: a driver program, the kubelet that calls it, and its claims.

The suite allocates devices itself, as a scheduler would, so that each requirement decides which
claims exist and what they contain.
"""

from __future__ import annotations

import asyncio
import shutil
import signal
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dryrack.client.client import Selection
from dryrack.client.endpoints import CLAIMS, CLASSES, NAMESPACES, PODS, SLICES
from dryrack.client.errors import ApiError, ConflictError, NotFoundError
from dryrack.kinds.paths import get
from dryrack.kubelet.cdi import resolve
from dryrack.kubelet.conformance.program import BenchError
from dryrack.kubelet.conformance.published import independent, published_devices
from dryrack.kubelet.conformance.report import NotMetError, SkippedError
from dryrack.kubelet.instance import CallError, ClaimReference
from dryrack.kubelet.registration import REGISTRY, Registrations

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager

    from dryrack.client.client import Client
    from dryrack.client.timekeeping import Timekeeper
    from dryrack.kinds.raw import Raw
    from dryrack.kubelet.cdi import ContainerEdits
    from dryrack.kubelet.conformance.program import Program
    from dryrack.kubelet.instance import Instance, PreparedDevice

NAMESPACE = "driver-test"
CLASS = "driver-test"
_POD = "driver-test"
NOT_STARTED = "the suite did not start the driver, so it cannot stop it"
LOOK_SECONDS = 0.05
# A program that panics prints its stack before it ends.
_END_SECONDS_MAX = 2.0

Prepared = tuple["PreparedDevice", ...]
Key = tuple[str, str]
"""The pool and the name of a device."""


@dataclass(slots=True)
class Bench:
    """The cluster, the kubelet, and the driver that a requirement uses."""

    client: Client
    clock: Timekeeper
    node: str
    # The directory that the driver uses as the kubelet's.
    directory: Path
    cdi: Path
    # None: another program starts and stops the driver.
    program: Program | None = None
    # The instance that replaces the first one in a rolling update.
    successor: Program | None = None
    # How long the driver may take to register and to publish its devices.
    patience: float = 30.0
    # How long a person may take to start the driver.
    start_patience: float = 0.0
    # The DeviceClass of the claims; "" creates one for all devices of the driver.
    device_class: str = ""
    # Opaque parameters of each claim.
    parameters: Any = None
    # A command that changes the devices of the driver.
    change: Program | None = None
    # Yields a bench of another cluster, whose API server drops the fields of optional features.
    limited: Callable[[], AbstractAsyncContextManager[Bench]] | None = None
    seed: int = 0
    sequences: int = 3
    # A sequence to run again, in place of random ones.
    replay: Sequence[str] = ()
    driver: str = ""
    registrations: Registrations = field(init=False)
    _watch: asyncio.Task[None] | None = None
    _class: Raw = field(default_factory=dict)
    _consumer: Raw = field(default_factory=dict)
    _claims: list[ClaimReference] = field(default_factory=list)
    _number: int = 0

    def __post_init__(self) -> None:
        self.registrations = self._new_registrations()

    def _new_registrations(self) -> Registrations:
        return Registrations(self.node, self.directory, clock=self.clock, on_change=lambda _: None)

    @asynccontextmanager
    async def run_driver(self) -> AsyncIterator[None]:
        """Watch for the driver, start it, and stop it at the end."""
        self._make_directories()
        try:
            self._start_kubelet()
            if self.program is not None:
                await self.program.start()
            await self._find_driver()
            yield
        finally:
            for each in (self.program, self.successor):
                if each is not None:
                    await each.stop()
            await self._stop_kubelet()

    def _make_directories(self) -> None:
        for path in (self.directory / REGISTRY, self.directory / "plugins", self.cdi):
            path.mkdir(parents=True, exist_ok=True)

    def _start_kubelet(self) -> None:
        self._watch = asyncio.create_task(self.registrations.run(), name="registrations")

    async def _stop_kubelet(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
            await asyncio.wait([self._watch])

    async def restart_kubelet(self) -> None:
        """Forget all drivers, and register them again."""
        await self._stop_kubelet()
        self.registrations = self._new_registrations()
        self._start_kubelet()

    async def _find_driver(self) -> None:
        await self.until(
            lambda: bool(self.registrations.drivers) or self.has_ended,
            f"no driver registered below {self.directory / REGISTRY}",
            self.start_patience or self.patience,
        )
        if self.has_ended:
            raise BenchError(f"the driver ended before it registered:\n{self._tail()}")
        names = self.registrations.drivers
        if len(names) > 1:
            raise BenchError(f"several drivers are registered: {', '.join(names)}; stop the others")
        self.driver = names[0]
        await self._prepare_cluster()
        try:
            await self.devices()
        except NotMetError as error:
            raise BenchError(
                f"driver {self.driver}: {error.got} within {self.patience:g} s; give it more time "
                f"with --timeout, or its setup with -f\n{self._tail()}".rstrip()
            ) from None

    async def _prepare_cluster(self) -> None:
        labels = {"resource.kubernetes.io/admin-access": "true"}
        with suppress(ConflictError):
            await self.client.create(
                NAMESPACES, {"metadata": {"name": NAMESPACE, "labels": labels}}
            )
        container = {"name": "main", "image": "driver-test"}
        pod: Raw = {
            "metadata": {"name": _POD, "namespace": NAMESPACE},
            "spec": {"nodeName": self.node, "containers": [container]},
        }
        with suppress(ConflictError):
            await self.client.create(PODS, pod)
        pod = await self.client.get(PODS, _POD, NAMESPACE)
        self._consumer = {"resource": "pods", "name": _POD, "uid": pod["metadata"]["uid"]}
        if self.device_class:
            try:
                self._class = await self.client.get(CLASSES, self.device_class)
            except NotFoundError:
                raise BenchError(
                    f"DeviceClass {self.device_class} does not exist; create it with -f FILE"
                ) from None
            return
        with suppress(NotFoundError):
            await self.client.delete(CLASSES, CLASS)
        selectors = [{"cel": {"expression": f"device.driver == {self.driver!r}"}}]
        document = {"metadata": {"name": CLASS}, "spec": {"selectors": selectors}}
        self._class = await self.client.create(CLASSES, document)

    @property
    def has_ended(self) -> bool:
        """True if the suite started the driver, and it ended by itself."""
        return self.program is not None and self.program.has_ended

    def _tail(self) -> str:
        return self.program.tail() if self.program is not None else ""

    async def until(
        self, condition: Callable[[], bool], problem: str, seconds: float = 0.0
    ) -> None:
        """Wait until a condition holds; raise `BenchError` with the problem if it never does."""
        seconds = seconds or self.patience
        try:
            async with asyncio.timeout(seconds):
                while not condition():  # noqa: ASYNC110 (a program of others reports nothing)
                    await asyncio.sleep(LOOK_SECONDS)
        except TimeoutError:
            tail = f"\n{self._tail()}".rstrip()
            raise BenchError(f"{problem} within {seconds:g} s{tail}") from None

    async def instance(self) -> Instance:
        """Return the connected instance of the driver; wait for it."""

        def find() -> Instance | None:
            instance = self.registrations.instance(self.driver)
            return instance if instance is not None and instance.is_connected else None

        await self.until(
            lambda: find() is not None or self.has_ended, f"driver {self.driver} is not connected"
        )
        instance = find()
        if instance is None:
            raise BenchError(f"the driver ended by itself:\n{self._tail()}")
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

    async def read_published(self, seconds: float = 0.0) -> Mapping[Key, Raw]:
        """Return the devices of complete pools that the class selects; wait for the first one."""
        selectors = [
            each["cel"]["expression"]
            for each in get(self._class, "spec.selectors", ())
            if "cel" in each
        ]
        devices: Mapping[Key, Raw] = {}
        patience = max(self.patience, seconds)
        try:
            async with asyncio.timeout(patience):
                while not devices:
                    if self.has_ended:
                        raise BenchError(f"the driver ended by itself:\n{self._tail()}")
                    devices = published_devices(await self.slices(), selectors)
                    await asyncio.sleep(0 if devices else LOOK_SECONDS)
        except TimeoutError:
            of_class = f" that DeviceClass {self.device_class} selects" if self.device_class else ""
            raise NotMetError(
                f"waited {patience:g} s for ResourceSlices of node {self.node}",
                f"the driver published no complete pool with devices{of_class}",
            ) from None
        return devices

    async def devices(self, seconds: float = 0.0) -> list[Key]:
        """Return the devices of complete pools that can be allocated together."""
        return independent(await self.read_published(seconds))

    async def claim(
        self,
        *devices: Key,
        name: str = "",
        config: Any = None,
        allocated: bool = True,
        alternative: str = "",
        fields: Sequence[Mapping[str, Any]] = (),
        more: Sequence[Mapping[str, Any]] = (),
    ) -> ClaimReference:
        """
        Create a claim that has these devices of the driver; by default the first free one.

        `alternative` makes each request one of `firstAvailable`, `fields` are more fields of each
        result, and `more` are whole results and configurations of another driver.
        """
        if not devices and allocated:
            free = await self.devices()
            devices = (free[len(self._claims) % len(free)],)
        self._number += 1
        name = name or f"claim-{self._number}"
        count = max(1, len(devices)) + len([each for each in more if "device" in each])
        own = {"deviceClassName": self.device_class or CLASS}
        if any("adminAccess" in each for each in fields):
            own["adminAccess"] = True  # type: ignore[assignment]
        requests = [
            {"name": f"r{number}", "firstAvailable": [{"name": alternative, **own}]}
            if alternative
            else {"name": f"r{number}", "exactly": own}
            for number in range(count)
        ]
        metadata = {"name": name, "namespace": NAMESPACE}
        spec = {"devices": {"requests": requests}}
        created = await self.client.create(CLAIMS, {"metadata": metadata, "spec": spec})
        reference = ClaimReference(NAMESPACE, name, created["metadata"]["uid"])
        self._claims.append(reference)
        if allocated:
            await self.allocate(
                reference,
                *devices,
                config=config,
                alternative=alternative,
                fields=fields,
                more=more,
            )
        return reference

    async def allocate(
        self,
        claim: ClaimReference,
        *devices: Key,
        config: Any = None,
        alternative: str = "",
        fields: Sequence[Mapping[str, Any]] = (),
        more: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        """Write the allocation of a claim; see `claim`."""
        suffix = f"/{alternative}" if alternative else ""
        results = [
            {
                "request": f"r{number}{suffix}",
                "driver": self.driver,
                "pool": pool,
                "device": device,
                **(fields[number] if number < len(fields) else {}),
            }
            for number, (pool, device) in enumerate(devices)
        ]
        results += [dict(each) for each in more if "device" in each]
        configs = [{"source": "FromClass", **each} for each in get(self._class, "spec.config", ())]
        config = self.parameters if config is None else config
        if config is not None:
            opaque = {"driver": self.driver, "parameters": config}
            configs.append({"source": "FromClaim", "opaque": opaque})
        configs += [dict(each) for each in more if "device" not in each]
        allocation: Raw = {"devices": {"results": results, "config": configs}}
        # Drivers may look for the pod, and controllers clear claims whose pods do not exist.
        status = {"allocation": allocation, "reservedFor": [self._consumer]}
        current = await self.client.get(CLAIMS, claim.name, claim.namespace)
        await self.client.update(CLAIMS, current | {"status": status}, subresource="status")

    async def deallocate(self, claim: ClaimReference) -> None:
        """Remove the allocation of a claim, as a controller does after the last pod has ended."""
        current = await self.client.get(CLAIMS, claim.name, claim.namespace)
        await self.client.update(CLAIMS, current | {"status": {}}, subresource="status")

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
            return _in_order(await instance.prepare(claims))
        except CallError as error:
            raise await self.failure(f"NodePrepareResources({names_of(claims)})", error) from None

    async def prepare_error(self, *claims: ClaimReference) -> str:
        """Call NodePrepareResources and return the error; "" if it succeeds."""
        instance = await self.instance()
        try:
            await instance.prepare(claims)
        except CallError as error:
            if "code = Unavailable" in str(error):
                raise await self.failure(
                    f"NodePrepareResources({names_of(claims)})", error
                ) from None
            return str(error)
        return ""

    async def unprepare(self, *claims: ClaimReference) -> None:
        """Call NodeUnprepareResources; raise `NotMetError` if it fails."""
        instance = await self.instance()
        try:
            await instance.unprepare(claims)
        except CallError as error:
            raise await self.failure(f"NodeUnprepareResources({names_of(claims)})", error) from None

    async def failure(self, sent: str, error: CallError) -> NotMetError:
        """Return the failure of a call, with the end of the log if the call ended the driver."""
        if "code = Unavailable" in str(error):
            with suppress(BenchError):
                await self.until(lambda: self.has_ended, "", _END_SECONDS_MAX)
        tail = f"\nthe driver ended:\n{self._tail()}" if self.has_ended else ""
        return NotMetError(sent, f"{error}{tail}")

    def edits(self, devices: Prepared) -> ContainerEdits:
        """Return what the devices add to a container."""
        return self.edits_of(dict.fromkeys(name for each in devices for name in each.cdi_ids))

    def edits_of(self, names: Mapping[str, None]) -> ContainerEdits:
        return resolve(list(names), (Path("/etc/cdi"), Path("/var/run/cdi"), self.cdi))

    def own_program(self) -> Program:
        """Return the program; raise `SkippedError` if the suite did not start it."""
        if self.program is None:
            raise SkippedError(NOT_STARTED)
        return self.program

    async def restart(self, number: int = signal.SIGKILL) -> None:
        """End the program with a signal, and start it again."""
        program = self.own_program()
        before = self.registrations.instance(self.driver)
        await program.stop(number)
        await program.start()

        def is_new() -> bool:
            instance = self.registrations.instance(self.driver)
            return instance not in (None, before) and instance.is_connected

        await self.until(
            lambda: is_new() or self.has_ended,
            f"driver {self.driver} did not register again after its restart",
        )
        if self.has_ended:
            raise NotMetError("restarted the driver", f"it ended at once:\n{self._tail()}")

    def clear_cdi(self) -> None:
        """Remove the CDI specs, as a reboot does."""
        # The directory itself can be mounted in the file system of the driver.
        for each in self.cdi.iterdir():
            if each.is_dir() and not each.is_symlink():
                shutil.rmtree(each)
            else:
                each.unlink()

    async def reset(self) -> None:
        """Start the driver again without its files, so that no failure has consequences."""
        if self.program is None:
            return
        await self.program.stop(signal.SIGKILL)
        shutil.rmtree(self.directory / "plugins", ignore_errors=True)
        self.clear_cdi()
        self._make_directories()
        try:
            await self.restart()
            await self.devices()
        except NotMetError as error:
            raise BenchError(f"{error.sent}: {error.got}") from None

    async def clean(self) -> None:
        """Unprepare and delete the claims of a requirement."""
        claims, self._claims = self._claims, []
        for each in claims:
            with suppress(NotMetError):
                await self.unprepare(each)
            await self.delete(each)
        listing = await self.client.list(CLAIMS, Selection(namespace=NAMESPACE))
        for left in listing.items:
            metadata = left["metadata"]
            await self.delete(ClaimReference(NAMESPACE, metadata["name"], metadata["uid"]))


def names_of(claims: Sequence[ClaimReference]) -> str:
    """Return the claims as the suite shows them."""
    return ", ".join(f"{each.namespace}/{each.name} uid {each.uid}" for each in claims)


def _in_order(prepared: Mapping[str, Prepared]) -> Mapping[str, Prepared]:
    """Return the devices in one order: the order has no meaning."""
    key = lambda each: (each.pool, each.device, each.share_id, each.requests)  # noqa: E731
    return {uid: tuple(sorted(devices, key=key)) for uid, devices in prepared.items()}
