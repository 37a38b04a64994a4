"""
A DRA driver program on a virtual node, for tests: start it, call it as a kubelet, and kill it.

    def test_a_crash_keeps_the_devices(driver):
        gpus = driver("my-driver --kubelet-root {kubelet} --cdi-root {cdi}")
        claim = gpus.claim()
        before = gpus.prepare(claim)
        gpus.kill()
        assert gpus.prepare(claim) == before

The program runs in real time. Requirements of the conformance suite can be checked one by one.
"""

from __future__ import annotations

import shlex
import shutil
import signal
import tempfile
from contextlib import AsyncExitStack, ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dryrack.base.errors import ContentError
from dryrack.client.endpoints import NODES
from dryrack.client.errors import ConflictError
from dryrack.cluster import SystemClock
from dryrack.kubelet import (
    REQUIREMENTS,
    Bench,
    BenchError,
    CallError,
    Site,
    check_requirement,
    start_guard,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import TracebackType
    from typing import NoReturn, Self

    from dryrack.kubelet import ClaimReference, PreparedDevice
    from dryrack.testing.sync_cluster import Cluster

DRIVER_REQUIREMENTS: tuple[str, ...] = tuple(each.name for each in REQUIREMENTS)
"""The names of the requirements, for `@pytest.mark.parametrize`."""


class RequirementError(AssertionError):
    """A driver does not meet a requirement."""


class Driver:
    """A driver program that runs on a virtual node."""

    def __init__(self, cluster: Cluster, bench: Bench, skip: Callable[[str], NoReturn]) -> None:
        self._cluster = cluster
        self._bench = bench
        self._skip = skip

    @property
    def name(self) -> str:
        """The name of the driver."""
        return self._bench.driver

    @property
    def node(self) -> str:
        """The name of its node."""
        return self._bench.node

    @property
    def log(self) -> str:
        """The output of the program since its last start."""
        return self._bench.own_program().output()

    def devices(self) -> tuple[str, ...]:
        """Return the published devices of the node, as POOL/DEVICE."""
        return tuple("/".join(key) for key in self._cluster.run(self._bench.read_published()))

    def claim(self, *devices: str, name: str = "", parameters: Any = None) -> ClaimReference:
        """
        Create a claim that has these devices, POOL/DEVICE; by default one that no claim has yet.

        `parameters` is opaque configuration of the claim.
        """
        known = self.devices()
        for each in devices:
            if each not in known:
                raise ContentError(f"device {each}: not published; there are {', '.join(known)}")
        keys = [(pool, device) for pool, _, device in (each.partition("/") for each in devices)]
        return self._cluster.run(self._bench.claim(*keys, name=name, config=parameters))

    def delete(self, claim: ClaimReference) -> None:
        """Delete a claim, without a call to the driver."""
        self._cluster.run(self._bench.delete(claim))

    def prepare(self, *claims: ClaimReference) -> Mapping[str, tuple[PreparedDevice, ...]]:
        """Call NodePrepareResources; return devices by UID, or raise `DriverCallError`."""

        async def call() -> Mapping[str, tuple[PreparedDevice, ...]]:
            return await (await self._bench.instance()).prepare(claims)

        return self._cluster.run(call())

    def unprepare(self, *claims: ClaimReference) -> None:
        """Call NodeUnprepareResources, or raise `DriverCallError`."""

        async def call() -> None:
            await (await self._bench.instance()).unprepare(claims)

        self._cluster.run(call())

    def env(self, claim: ClaimReference) -> Mapping[str, str]:
        """Return the environment that a prepared claim gives to a container, from CDI specs."""
        edits = self._bench.edits(self.prepare(claim)[claim.uid])
        if edits.error:
            raise RequirementError(edits.error)
        return dict(edits.env)

    def kill(self) -> None:
        """End the program with SIGKILL, start it again, and wait until it is registered."""
        self._cluster.run(self._bench.restart(signal.SIGKILL))

    def restart(self) -> None:
        """End the program with SIGTERM, start it again, and wait until it is registered."""
        self._cluster.run(self._bench.restart(signal.SIGTERM))

    def reboot(self) -> None:
        """Reboot the node: end the program with SIGKILL, clear the CDI specs, and start it."""

        async def reboot() -> None:
            await self._bench.own_program().stop(signal.SIGKILL)
            self._bench.clear_cdi()
            await self._bench.restart(signal.SIGKILL)

        self._cluster.run(reboot())

    def restart_kubelet(self) -> None:
        """Register the driver again, as a kubelet that starts does."""

        async def restart() -> None:
            await self._bench.restart_kubelet()
            await self._bench.instance()

        self._cluster.run(restart())

    def check(self, requirement: str) -> None:
        """
        Check a requirement of the conformance suite; raise `RequirementError` if it is not met.

        A requirement that does not apply to the driver skips the test.
        """
        __tracebackhide__ = True
        chosen = [each for each in REQUIREMENTS if each.name == requirement]
        if not chosen:
            raise ContentError(
                f"requirement {requirement!r}: unknown; see: dryrack driver test --list"
            )
        result = self._cluster.run(check_requirement(self._bench, chosen[0]))
        if result.outcome == "skipped":
            self._skip(result.reason)
        if result.outcome == "failed":
            steps = "".join(f"\n  {each}" for each in result.steps)
            raise RequirementError(
                f"{result.name}: {result.contract}\nsent: {result.sent}\ngot: {result.got}{steps}"
            )


class Drivers:
    """Starts drivers for a test, and ends them at the end of `with`."""

    def __init__(self, cluster: Cluster, skip: Callable[[str], NoReturn]) -> None:
        self._cluster = cluster
        self._skip = skip
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stack.__exit__(kind, error, traceback)

    def __call__(
        self,
        program: str | Sequence[str],
        *,
        node: str = "node-1",
        device_class: str = "",
        parameters: Any = None,
        timeout: float = 30.0,
        seed: int = 0,
    ) -> Driver:
        """
        Start a driver, and wait until it is registered and has published its devices.

        The placeholders in `program` are those of `dryrack driver test`. The other arguments are
        its options `--class`, `--config`, `--timeout`, and `--seed`.
        """
        __tracebackhide__ = True
        words = shlex.split(program) if isinstance(program, str) else [*program]
        if not words or shutil.which(words[0]) is None:
            raise ContentError(f"driver {words[:1]}: no such program, or not executable")
        assert self._cluster.kubeconfig is not None, "the cluster of the fixture is served"
        # The paths of sockets are limited, so the directory has a short one.
        directory = Path(tempfile.mkdtemp(prefix="dryrack-"))
        environment = self._stack.enter_context(start_guard(directory))
        site = Site(directory, node, self._cluster.kubeconfig, environment)
        site.make_directories()
        has_uid = any("{uid}" in each for each in words)
        bench = Bench(
            self._cluster.client,
            SystemClock(),
            node,
            site.kubelet,
            site.cdi,
            site.program(words, "driver.log"),
            site.program(words, "driver-2.log") if has_uid else None,
            patience=timeout,
            device_class=device_class,
            parameters=parameters,
            seed=seed,
        )
        stack = AsyncExitStack()

        async def start() -> None:
            with suppress(ConflictError):
                await self._cluster.client.create(NODES, {"metadata": {"name": node}})
            await stack.enter_async_context(bench.run_driver())

        self._stack.callback(lambda: self._cluster.run(stack.aclose()))
        try:
            self._cluster.run(start())
        except BenchError as error:
            raise ContentError(str(error)) from None
        return Driver(self._cluster, bench, self._skip)


DriverCallError = CallError
