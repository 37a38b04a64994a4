"""
The cluster of a test, for tests that are ordinary functions.

Its event loop runs only while one of its methods does, so that between two lines of a test nothing
changes. A cluster that is served has a thread of its own, because other programs do not wait.
"""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from dryrack.base.errors import ContentError, DryrackError
from dryrack.client.timekeeping import VirtualTimeLoop
from dryrack.testing.async_cluster import AsyncCluster
from dryrack.testing.expectation import ExpectationError

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping, Sequence
    from pathlib import Path
    from types import TracebackType
    from typing import Self

    from dryrack.client.client import Client
    from dryrack.kinds.raw import Raw
    from dryrack.testing.expectation import Because, Scheduled
    from dryrack.testing.manifests import Manifest
    from dryrack.testing.plane_engines import Setup

_Answer = TypeVar("_Answer")


class _Loop(Protocol):
    def run(self, work: Coroutine[Any, Any, _Answer]) -> _Answer: ...

    def close(self) -> None: ...


class _ThreadLoop:
    """An event loop that goes on in a thread."""

    def __init__(self) -> None:
        self._running: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()
        self._thread = threading.Thread(target=self._go, name="dryrack", daemon=True)
        self._thread.start()
        self._loop, self._stopping = self._running.result()

    def _go(self) -> None:
        asyncio.run(self._stay())

    async def _stay(self) -> None:
        stopping = asyncio.Event()
        self._running.set_result((asyncio.get_running_loop(), stopping))
        await stopping.wait()

    def run(self, work: Coroutine[Any, Any, _Answer]) -> _Answer:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join()


class ClusterClock:
    """The time of a cluster, which stands still until it is told to pass."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def now(self) -> float:
        """Seconds since 1970."""
        return self._cluster.now()

    def advance(self, time: float | str) -> None:
        """Lets time pass: seconds, or a text such as `5m`."""
        __tracebackhide__ = True
        self._cluster.advance(time)


class Cluster:
    """A cluster of this process for the length of `with`; its methods are `AsyncCluster`'s."""

    def __init__(
        self,
        setup: Setup | None = None,
        *,
        folders: Sequence[Path] = (),
        kubeconfig_in: Path | None = None,
    ) -> None:
        self._inner = AsyncCluster(setup, folders=folders, kubeconfig_in=kubeconfig_in)
        self._is_served = kubeconfig_in is not None

    def __enter__(self) -> Self:
        self._loop: _Loop = (
            _ThreadLoop() if self._is_served else asyncio.Runner(loop_factory=VirtualTimeLoop)
        )
        try:
            self.run(self._inner.__aenter__())
        except BaseException:
            self._loop.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            self.run(self._inner.__aexit__(kind, error, traceback))
        finally:
            self._loop.close()

    def run(self, work: Coroutine[Any, Any, _Answer]) -> _Answer:
        """Runs asynchronous code in the loop of the cluster, as with its `client`."""
        __tracebackhide__ = True
        if not self._is_served and asyncio._get_running_loop() is not None:
            work.close()
            raise ContentError(
                "dryrack_cluster in an asynchronous test: use dryrack_async_cluster, which awaits"
            )
        try:
            return self._loop.run(work)
        except (ExpectationError, DryrackError) as error:
            # How it was found out is of no interest to whoever reads about the test.
            raise error.with_traceback(None) from None

    @property
    def client(self) -> Client:
        """For all that the methods do not do; see `run`."""
        return self._inner.client

    @property
    def kubeconfig(self) -> Path | None:
        """The file for other programs, if the cluster is served."""
        return self._inner.kubeconfig

    @property
    def clock(self) -> ClusterClock:
        """Its time."""
        return ClusterClock(self)

    def now(self) -> float:
        """Seconds since 1970, in the time of the cluster."""
        return self._inner.now()

    def apply(self, manifest: Manifest) -> list[Raw]:
        """Creates or changes objects, as `kubectl apply` does; answers with what is stored."""
        __tracebackhide__ = True
        return self.run(self._inner.apply(manifest))

    def add_nodes(
        self,
        profile: str = "",
        *,
        count: int | None = None,
        name: str = "",
        devices: str | Sequence[str] = (),
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
        taints: Sequence[str | Mapping[str, str]] = (),
        capacity: Mapping[str, str | int] | None = None,
    ) -> tuple[str, ...]:
        """Virtual nodes, ready and with their devices published; answers with their names."""
        __tracebackhide__ = True
        return self.run(
            self._inner.add_nodes(
                profile,
                count=count,
                name=name,
                devices=devices,
                labels=labels,
                annotations=annotations,
                taints=taints,
                capacity=capacity,
            )
        )

    def advance(self, time: float | str) -> None:
        """Lets time pass: seconds, or a text such as `5m`."""
        __tracebackhide__ = True
        self.run(self._inner.advance(time))

    def get(self, kind: str, name: str, namespace: str = "default") -> Raw:
        """One object, by its kind or plural as kubectl takes it."""
        __tracebackhide__ = True
        return self.run(self._inner.get(kind, name, namespace))

    def list(self, kind: str, namespace: str = "") -> list[Raw]:
        """All objects of a kind, of all namespaces if none is named."""
        __tracebackhide__ = True
        return self.run(self._inner.list(kind, namespace))

    def delete(self, kind: str, name: str, namespace: str = "default") -> None:
        """Begins to delete an object; time has to pass until it is gone."""
        __tracebackhide__ = True
        self.run(self._inner.delete(kind, name, namespace))

    def logs(self, pod: str, namespace: str = "default") -> str:
        """What `kubectl logs` shows: the variables and mounts that came with devices."""
        __tracebackhide__ = True
        return self.run(self._inner.logs(pod, namespace))

    def explain(self, target: str | Mapping[str, Any]) -> str:
        """What `dryrack explain` says of a pod or a gang."""
        __tracebackhide__ = True
        return self.run(self._inner.explain(target))

    def fail(self, *faults: str) -> None:
        """Brings faults about, as a step of a scenario says them: `node n1 ready=false for 1m`."""
        __tracebackhide__ = True
        self.run(self._inner.fail(*faults))

    def heal(self, what: str = "all") -> None:
        """Ends faults: all of them, or those of `node node-1`, `device`, `api` or `engine`."""
        __tracebackhide__ = True
        self.run(self._inner.heal(what))

    def pending(self) -> Sequence[str]:
        """The pods that have no node, by namespace and name."""
        return self.run(self._inner.pending())

    def expect_scheduled(
        self,
        target: str | Mapping[str, Any],
        *,
        on: str | Sequence[str] = "",
        devices: int | str | Sequence[str] | None = None,
        within: float | str | None = None,
    ) -> Scheduled:
        """Waits until a pod, all pods of a pattern, or a gang have nodes."""
        __tracebackhide__ = True
        return self.run(self._inner.expect_scheduled(target, on=on, devices=devices, within=within))

    def expect_pending(
        self,
        target: str | Mapping[str, Any],
        *,
        because: Because | Sequence[Because] = (),
        lasting: float | str | None = None,
        within: float | str | None = None,
    ) -> str:
        """Waits until a scheduler has refused pods, and they went on waiting."""
        __tracebackhide__ = True
        return self.run(
            self._inner.expect_pending(target, because=because, lasting=lasting, within=within)
        )
