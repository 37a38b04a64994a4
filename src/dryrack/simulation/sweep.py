"""
A sweep: many experiments on the same inputs, wherever they run.

An experiment is plain data, and names itself. `run_one` is a function of the inputs and of one
experiment. So a process pool, Dask, and the Pods of an indexed Job give the same document: the
results are put in the order of the experiments, whatever the order in which they end.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import product
from typing import TYPE_CHECKING, Any

import msgspec

from dryrack.allocation import WHOLE
from dryrack.base.errors import DryrackError
from dryrack.base.text import hint
from dryrack.simulation.engine import Settings, count_shapes, simulate
from dryrack.simulation.fleets import FleetSpec, read_objects
from dryrack.simulation.importers import manifests, native, openb, philly, sacct, spot2026
from dryrack.simulation.importers.manifests import Arrivals
from dryrack.simulation.results import Run, summarize
from dryrack.simulation.tables import TraceError
from dryrack.simulation.world import World

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dryrack.kinds.releases import Release
    from dryrack.placement import Plugin
    from dryrack.simulation.workload import Check, Trace

# By the name of the format. The last is read with a rate.
TRACE_FORMATS: Mapping[str, Callable[[Sequence[str], str], Trace]] = {
    "dryrack": native.read_trace,
    "openb": openb.read_pods,
    "spot2026": spot2026.read_jobs,
    "sacct": sacct.read_jobs,
    "philly": philly.read_jobs,
    "recording": manifests.read_recording,
}
MANIFESTS = "manifests"
RECORDING = "recording"
# By the column that lists of nodes in the format have, and others have not.
NODE_FORMATS: Mapping[str, Callable[[Sequence[str], str], FleetSpec]] = {
    "sn": openb.read_nodes,
    "gpu_capacity_num": spot2026.read_nodes,
    "machineId": philly.read_machines,
}
# The format of fleets that are Kubernetes objects, which is that of `fleets.objects_of`.
OBJECTS = "objects"
NODE_LIST = "list"


_GZIP = b"\x1f\x8b"


class Input(msgspec.Struct, frozen=True):
    """A file: its name, its format, and its content."""

    name: str
    format: str
    content: bytes
    # How manifests arrive.
    arrivals: Arrivals | None = None


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
    if source.format == MANIFESTS:
        arrivals = source.arrivals or Arrivals()
        trace = manifests.read_manifests(_lines(source), source.name, arrivals)
    elif reader is not None:
        trace = reader(_lines(source), source.name)
    else:
        known = (*TRACE_FORMATS, MANIFESTS)
        raise DryrackError(
            f"unknown format {source.format!r} of a trace; {hint(source.format, known)}"
        )
    if not trace.jobs:
        dropped = (f"{number} left out: {why}" for why, number in trace.check.dropped.items())
        raise TraceError(f"{source.name}: {'; '.join(('the trace has no jobs', *dropped))}")
    trace.check.endless = sum(job.duration is None for job in trace.jobs)
    return trace


def read_input_fleet(source: Input) -> FleetSpec:
    """Read a fleet; raises `DryrackError`."""
    fleet = _read_fleet(source)
    if not fleet.nodes:
        raise TraceError(f"{source.name}: the fleet has no nodes")
    return fleet


def _read_fleet(source: Input) -> FleetSpec:
    if source.format == OBJECTS:
        return read_objects(source.content, source.name)
    lines = _lines(source)
    if source.format == RECORDING:
        return manifests.read_recorded_fleet(lines, source.name)
    columns = [each.strip() for each in lines[0].split(",")] if lines else []
    for column, reader in NODE_FORMATS.items():
        if column in columns:
            return reader(lines, source.name)
    near = hint(columns[0] if columns else "", NODE_FORMATS)
    raise TraceError(
        f"{source.name}:1: no column of a known list of nodes ({', '.join(NODE_FORMATS)}); {near}"
    )


def _lines(source: Input) -> Sequence[str]:
    if source.content.startswith(_GZIP):
        raise TraceError(f"{source.name}: the file is compressed; decompress it: gunzip -k FILE")
    try:
        # Spreadsheets begin a file with a byte order mark.
        return source.content.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise TraceError(f"{source.name}: not UTF-8 text: {error.reason}") from error


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


def shard_document(place: tuple[int, int], results: Sequence[Result]) -> dict[str, Any]:
    """Return the results of one shard, of so many, for `merge_shards`."""
    runs = [{"failed": isinstance(each, FailedRun), "run": each} for each in results]
    built: dict[str, Any] = msgspec.to_builtins(
        {"shard": place[0], "of": place[1], "results": runs}
    )
    return built


def merge_shards(files: Mapping[str, bytes], number: int) -> Sequence[Result]:
    """Return the results of all shards in the order of the experiments; raises `DryrackError`."""
    results: dict[int, Result] = {}
    for name, content in files.items():
        try:
            part = msgspec.json.decode(content, type=_Shard)
        except msgspec.DecodeError as error:
            raise DryrackError(f"{name}: not the output of a shard: {error}") from error
        for place, each in enumerate(part.results):
            kind: type[Run | FailedRun] = FailedRun if each["failed"] else Run
            results[part.shard + place * part.of] = msgspec.convert(each["run"], kind)
    missing = [str(place) for place in range(number) if place not in results]
    if missing or len(results) != number:
        raise DryrackError(
            f"the shards have {len(results)} of {number} runs; merge the shards of the same sweep, "
            "with the same options"
        )
    return [results[place] for place in range(number)]


class _Shard(msgspec.Struct):
    """The output of one shard."""

    shard: int
    of: int
    results: list[dict[str, Any]]


def measure_peak(trace: Trace, fleets: Sequence[FleetSpec], release: Release) -> None:
    """Write the greatest demand at one time into the check, as if no job waited."""
    changes: list[tuple[float, int]] = []
    for job in trace.jobs:
        devices = job.workers * job.shape.demand
        changes.append((job.arrival, devices))
        if job.duration is not None:
            changes.append((job.arrival + job.duration, -devices))
    peak = demand = 0
    # At one time, devices become free before others are requested.
    for _, devices in sorted(changes):
        demand += devices
        peak = max(peak, demand)
    trace.check.peak_devices = peak / WHOLE
    for spec in fleets:
        devices = World(spec, count_shapes(trace.jobs), release).devices
        trace.check.peak_demand[spec.name] = round(peak / devices, 4) if devices else 0.0


def document(check: Check, results: Sequence[Result]) -> dict[str, Any]:
    """Return the document of a sweep; the results are in the order of the experiments."""
    runs = [each for each in results if isinstance(each, Run)]
    content = {"runs": results, "summary": summarize(runs), "check": check}
    built: dict[str, Any] = msgspec.to_builtins(content)
    return built
