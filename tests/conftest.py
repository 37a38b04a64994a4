"""
Configuration and fixtures of all tests.

A test that is an asynchronous function runs in an event loop of its own. Before it starts, each of
its arguments that is an asynchronous context manager is entered, and the test gets what that
yields: a fixture makes the context, the loop of the test runs it. Time is virtual (`run_virtual`)
for a test with the marker `virtual_time` or an argument that is a `Stage`.
"""

from __future__ import annotations

import asyncio
import gc
import inspect
import os
import sys
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import TYPE_CHECKING, TypeVar

import pytest
from hypothesis import settings
from tests.oracle.oracles import AllocatorAnswer, CelAnswer, Oracle, allocator_oracle, cel_oracle
from tests.oracle.selection import left_out_line, selection
from tests.store.handed_out import watched_for_changes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.stage import Stage

AnyAnswer = TypeVar("AnyAnswer")

# Chance has no place in a gate, and a slow machine is no failure. To look for new examples:
# pytest --hypothesis-profile=explore.
settings.register_profile("gate", derandomize=True, deadline=None, database=None)
settings.register_profile("explore", deadline=None, max_examples=2000)
settings.load_profile("gate")

LEFT_OUT = pytest.StashKey[int]()
WORKER_OUTPUT = "dryrack_left_out"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """`-m real` reads the files with such tests only: they are few, and there are many others."""
    if config.option.markexpr != "real" or collection_path.suffix != ".py":
        return None
    return None if b"mark.real" in collection_path.read_bytes() else True


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    real = {item for item in items if item.get_closest_marker("real")}
    if selection(config.option.markexpr, os.environ).runs:
        return
    items[:] = [item for item in items if item not in real]
    if real:
        config.hook.pytest_deselected(items=sorted(real, key=lambda item: item.nodeid))
    config.stash[LEFT_OUT] = len(real)
    # Under xdist only the workers collect; every one of them collects the same tests.
    getattr(config, "workeroutput", {})[WORKER_OUTPUT] = len(real)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run tests that are asynchronous functions; see above."""
    test = pyfuncitem.obj
    if not inspect.iscoroutinefunction(test):
        return None
    names = pyfuncitem._fixtureinfo.argnames
    arguments = {name: pyfuncitem.funcargs[name] for name in names}

    async def run() -> None:
        async with AsyncExitStack() as stack:
            for name, value in arguments.items():
                if isinstance(value, AbstractAsyncContextManager):
                    arguments[name] = await stack.enter_async_context(value)
            await test(**arguments)

    # Most tests do without the modules of a cluster.
    stages = sys.modules.get("tests.stage")
    if pyfuncitem.get_closest_marker("virtual_time") or (
        stages and any(isinstance(value, stages.Stage) for value in arguments.values())
    ):
        from dryrack.client.timekeeping import run_virtual

        run_virtual(run())
    else:
        asyncio.run(run())
    return True


@pytest.fixture
def stage(request: pytest.FixtureRequest) -> Stage:
    """
    A cluster in virtual time; the arguments of the marker `stage` are those of `Stage`.

    Those of a test come on top of those of its module. `kind` is a class that derives from Stage.
    """
    from tests.stage import Stage

    markers = reversed([*request.node.iter_markers("stage")])
    arguments = {name: value for each in markers for name, value in each.kwargs.items()}
    kind: type[Stage] = arguments.pop("kind", Stage)
    return kind(**arguments)


def pytest_collection_finish() -> None:
    _collect()


@pytest.fixture(scope="module", autouse=True)
def collected() -> Iterator[None]:
    """What a module leaves open is told in that module, and not in the test of somebody else."""
    yield
    _collect()


@pytest.fixture(autouse=True)
def nothing_is_changed_in_place() -> Iterator[None]:
    """What a store hands out is everybody's."""
    with watched_for_changes() as handed_out:
        yield
    assert not handed_out.changed()


def _collect() -> None:
    gc.collect()
    # What is still there mostly stays until the end; it need not be gone through again and again.
    gc.freeze()


class FromWorkers:
    """Hears from xdist's workers how many tests they left out."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: object, error: object) -> None:
        output = getattr(node, "workeroutput", {})
        self._config.stash[LEFT_OUT] = output.get(WORKER_OUTPUT, 0)


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(FromWorkers(config))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    line = left_out_line(terminalreporter.config.stash.get(LEFT_OUT, 0))
    if line:
        terminalreporter.write_line(line)


@pytest.fixture(scope="session")
def real_allocator(request: pytest.FixtureRequest) -> Iterator[Oracle[AllocatorAnswer]]:
    """Kubernetes' own allocator."""
    with _built(request, allocator_oracle) as oracle:
        yield oracle


@pytest.fixture(scope="session")
def real_cel(request: pytest.FixtureRequest) -> Iterator[Oracle[CelAnswer]]:
    """Kubernetes' own CEL environment for devices."""
    with _built(request, cel_oracle) as oracle:
        yield oracle


def _built(
    request: pytest.FixtureRequest, oracle: Callable[[], Oracle[AnyAnswer]]
) -> Oracle[AnyAnswer]:
    # The first build takes minutes and says so; captured, it would look like a hanging test.
    capture = request.config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        return oracle()
