"""The places where the experiments of a sweep run: this process, a pool of processes, and Dask."""

from __future__ import annotations

import os
from concurrent.futures import ProcessPoolExecutor, as_completed
from importlib import import_module
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any

from dryrack.base.errors import DryrackError
from dryrack.cli.files import UsageError
from dryrack.cli.output import many, show_progress
from dryrack.simulation import run_one

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.simulation import Experiment, FailedRun, Inputs, Run

_inputs: list[Inputs] = []
# A scheduler that is reachable answers at once.
_DASK_SECONDS = 20


def run_experiment(inputs: Inputs, experiment: Experiment) -> Run | FailedRun:
    """Run one experiment with the plugins that are installed here."""
    from dryrack.cluster import installed_plugins

    return run_one(inputs, experiment, installed_plugins())


def _keep_inputs(inputs: Inputs) -> None:
    """Keep the inputs in a process of the pool, so that they are sent once."""
    _inputs[:] = [inputs]


def _run_with_kept(experiment: Experiment) -> Run | FailedRun:
    return run_experiment(_inputs[0], experiment)


def run_in_processes(
    inputs: Inputs, these: Sequence[Experiment], processes: int | None
) -> Sequence[Run | FailedRun]:
    """Run the experiments in a pool of processes, or here if one process is enough."""
    number = min(processes or os.cpu_count() or 1, len(these))
    if number == 1:
        results = []
        for done, each in enumerate(these):
            _show(done, len(these))
            results.append(run_experiment(inputs, each))
        _show(len(these), len(these))
        return results
    by_place: dict[int, Run | FailedRun] = {}
    _show(0, len(these))
    with ProcessPoolExecutor(
        number, get_context("spawn"), initializer=_keep_inputs, initargs=(inputs,)
    ) as pool:
        futures = {pool.submit(_run_with_kept, each): place for place, each in enumerate(these)}
        for future in as_completed(futures):
            by_place[futures[future]] = future.result()
            _show(len(by_place), len(these))
    return [by_place[place] for place in range(len(these))]


_WIDTH = 30


def _show(done: int, total: int) -> None:
    """Show the progress on a terminal."""
    if done == total:
        show_progress("")
        return
    filled = _WIDTH * done // total
    bar = "━" * filled + "╌" * (_WIDTH - filled)
    show_progress(f"{bar} {done} of {many(total, 'run')}")


def run_on_dask(
    inputs: Inputs, these: Sequence[Experiment], address: str
) -> Sequence[Run | FailedRun]:
    """Run the experiments on the workers of a Dask scheduler."""
    try:
        distributed: Any = import_module("distributed")
    except ImportError:
        raise UsageError(
            f"--dask {address}: Dask is not installed; run: pip install 'dryrack[dask]'"
        ) from None
    try:
        client = distributed.Client(address, timeout=_DASK_SECONDS)
    except (OSError, ValueError) as error:
        raise DryrackError(f"--dask {address}: no scheduler answers: {error}") from error
    by_place: dict[int, Run | FailedRun] = {}
    with client:
        sent = client.scatter(inputs, broadcast=True)
        futures = {
            client.submit(run_experiment, sent, each, pure=False): place
            for place, each in enumerate(these)
        }
        _show(0, len(these))
        for future in distributed.as_completed(futures):
            by_place[futures[future]] = future.result()
            _show(len(by_place), len(these))
    return [by_place[place] for place in range(len(these))]
