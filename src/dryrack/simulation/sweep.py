"""
A sweep: many experiments on the same inputs, wherever they run.

An experiment is plain data, and names itself. `run_one` is a function of the inputs and of one
experiment. So a process pool, Dask, and the Pods of an indexed Job give the same document: the
results are put in the order of the experiments, whatever the order in which they end.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import product
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from dryrack.base.errors import DryrackError
from dryrack.base.text import hint
from dryrack.simulation.engine import Settings, simulate
from dryrack.simulation.fleets import FleetSpec, read_objects
from dryrack.simulation.importers import native, openb
from dryrack.simulation.results import Run, summarize

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dryrack.placement import Plugin
    from dryrack.simulation.workload import Check, Trace

_Value = TypeVar("_Value")

# By the name of the format.
TRACE_FORMATS: Mapping[str, Callable[[Sequence[str], str], Trace]] = {
    "dryrack": native.read_trace,
    "openb": openb.read_pods,
}
NODE_FORMATS: Mapping[str, Callable[[Sequence[str], str], FleetSpec]] = {
    "openb": openb.read_nodes,
}
# The format of fleets that are Kubernetes objects, which is that of `fleets.objects_of`.
OBJECTS = "objects"


class Input(msgspec.Struct, frozen=True):
    """A file: its name, its format, and its content."""

    name: str
    format: str
    content: bytes


class Inputs(msgspec.Struct, frozen=True):
    """The trace of a sweep, and its fleets."""

    trace: Input
    fleets: tuple[Input, ...]


class Experiment(msgspec.Struct, frozen=True):
    """One run: a policy on one of the fleets, with the settings."""

    policy: str
    # The number of the fleet among the inputs.
    fleet: int
    settings: Settings


class FailedRun(msgspec.Struct, rename="camel"):
    """An experiment that ended with an error."""

    policy: str
    seed: int
    fleet: str
    error: str


Result = Run | FailedRun


def experiments(
    policies: Sequence[str], fleets: int, settings: Settings, seeds: int
) -> Sequence[Experiment]:
    """Return the experiments of a sweep, in the order of their results."""
    return [
        Experiment(policy, fleet, msgspec.structs.replace(settings, seed=settings.seed + number))
        for policy, fleet, number in product(policies, range(fleets), range(seeds))
    ]


def read_input_trace(source: Input) -> Trace:
    """Read a trace; raises `DryrackError`."""
    reader = TRACE_FORMATS.get(source.format)
    if reader is None:
        raise DryrackError(
            f"unknown format {source.format!r} of a trace; {hint(source.format, TRACE_FORMATS)}"
        )
    return _read(source, reader)


def read_input_fleet(source: Input) -> FleetSpec:
    """Read a fleet; raises `DryrackError`."""
    if source.format == OBJECTS:
        return read_objects(source.content, source.name)
    reader = NODE_FORMATS.get(source.format)
    if reader is None:
        raise DryrackError(
            f"unknown format {source.format!r} of nodes; {hint(source.format, NODE_FORMATS)}"
        )
    return _read(source, reader)


def _read(source: Input, reader: Callable[[Sequence[str], str], _Value]) -> _Value:
    try:
        text = source.content.decode()
    except UnicodeDecodeError as error:
        raise DryrackError(f"{source.name}: not UTF-8 text: {error.reason}") from error
    return reader(text.splitlines(), source.name)


# A process runs many experiments on the same inputs.
_trace = lru_cache(maxsize=1)(read_input_trace)
_fleet = lru_cache(maxsize=4)(read_input_fleet)


def run_one(
    inputs: Inputs, experiment: Experiment, plugins: Mapping[str, Plugin] | None = None
) -> Result:
    """Return the result of one experiment; an error is a result, too."""
    source = inputs.fleets[experiment.fleet]
    try:
        trace = _trace(inputs.trace)
        spec = _fleet(source)
        return simulate(trace, spec, experiment.policy, experiment.settings, plugins=plugins)
    except DryrackError as error:
        return FailedRun(experiment.policy, experiment.settings.seed, source.name, str(error))


def shard(these: Sequence[Experiment], index: int, of: int) -> Sequence[Experiment]:
    """Return the experiments of one Pod of an indexed Job: every so many, from its index on."""
    return these[index::of]


def document(check: Check, results: Sequence[Result]) -> dict[str, Any]:
    """Return the document of a sweep; the results are in the order of the experiments."""
    runs = [each for each in results if isinstance(each, Run)]
    content = {"runs": results, "summary": summarize(runs), "check": check}
    built: dict[str, Any] = msgspec.to_builtins(content)
    return built
