"""
The cluster of a test, for tests that are ordinary functions.

Its event loop runs only while one of its methods runs, so nothing changes between two lines of a
test. A cluster that is served has a thread of its own, because other programs do not wait.
"""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar

from dryrack.base.errors import ContentError, DryrackError
from dryrack.client.timekeeping import VirtualTimeLoop
from dryrack.testing.async_cluster import AsyncCluster
from dryrack.testing.expectation import ExpectationError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence
    from pathlib import Path
    from types import TracebackType
    from typing import Self

    from dryrack.client.client import Client
    from dryrack.testing.engines import Setup

_Answer = TypeVar("_Answer")
_Given = ParamSpec("_Given")


class _Loop(Protocol):
    def run(self, work: Coroutine[Any, Any, _Answer]) -> _Answer: ...

    def close(self) -> None: ...


class _ThreadLoop:
    """An event loop that runs in a thread."""

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


def _awaited(
    method: Callable[Concatenate[AsyncCluster, _Given], Coroutine[Any, Any, _Answer]],
) -> Callable[Concatenate[Cluster, _Given], _Answer]:
    """Return the method as one that need not be awaited."""

    @wraps(method)
    def run(cluster: Cluster, /, *args: _Given.args, **kwargs: _Given.kwargs) -> _Answer:
        __tracebackhide__ = True
        return cluster.run(method(cluster._inner, *args, **kwargs))

    return run


class ClusterClock:
    """The clock of a cluster, which stands still until a test advances it."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def now(self) -> float:
        """Return the time, in seconds since 1970."""
        return self._cluster.now()

    def advance(self, time: float | str) -> None:
        """Let time pass: seconds, or a text such as `5m`."""
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
        """Run asynchronous code in the loop of the cluster, for example with its `client`."""
        __tracebackhide__ = True
        if not self._is_served and asyncio._get_running_loop() is not None:
            work.close()
            raise ContentError(
                "dryrack_cluster in an asynchronous test: use dryrack_async_cluster, which awaits"
            )
        try:
            return self._loop.run(work)
        except (ExpectationError, DryrackError) as error:
            # The traceback inside dryrack does not help the author of the test.
            raise error.with_traceback(None) from None

    @property
    def client(self) -> Client:
        """The client, for requests that have no method; see `run`."""
        return self._inner.client

    @property
    def kubeconfig(self) -> Path | None:
        """The kubeconfig for other programs, if the cluster is served."""
        return self._inner.kubeconfig

    @property
    def clock(self) -> ClusterClock:
        """The clock of the cluster."""
        return ClusterClock(self)

    def now(self) -> float:
        """Return the time of the cluster, in seconds since 1970."""
        return self._inner.now()

    apply = _awaited(AsyncCluster.apply)
    add_nodes = _awaited(AsyncCluster.add_nodes)
    advance = _awaited(AsyncCluster.advance)
    get = _awaited(AsyncCluster.get)
    list = _awaited(AsyncCluster.list)
    delete = _awaited(AsyncCluster.delete)
    logs = _awaited(AsyncCluster.logs)
    explain = _awaited(AsyncCluster.explain)
    check_invariants = _awaited(AsyncCluster.check_invariants)
    fail = _awaited(AsyncCluster.fail)
    heal = _awaited(AsyncCluster.heal)
    pending = _awaited(AsyncCluster.pending)
    expect_scheduled = _awaited(AsyncCluster.expect_scheduled)
    expect_pending = _awaited(AsyncCluster.expect_pending)
