"""Run `dryrack simulate`: read the inputs, run the experiments, and print the results."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.base.text import hint
from dryrack.cli.command import join_lists
from dryrack.cli.files import UsageError, parse_release, read_source, without_pauses
from dryrack.cli.simulate.inputs import changes_of, read_duration, read_inputs
from dryrack.cli.simulate.options import SimulateFormat
from dryrack.cli.simulate.printing import print_results, print_shard
from dryrack.cli.simulate.runners import run_in_processes, run_on_dask
from dryrack.placement import TieRule
from dryrack.simulation import (
    KUBERNETES,
    FailedRun,
    PolicyError,
    Settings,
    check_policy,
    experiments,
    measure_peak,
    merge_shards,
    read_input_fleet,
    read_input_trace,
    shard,
)

if TYPE_CHECKING:
    from dryrack.cli.simulate.options import SimulateOptions

# More are possible, but more likely a mistake.
_SEEDS_MAX = 10_000
_INFLATE_MAX = 100


def run(options: SimulateOptions) -> bool:
    """Run the sweep; return False if a run failed."""
    policies, settings = _settings(options)
    place = _read_shard(options)
    with without_pauses():
        inputs = read_inputs(options)
        trace = read_input_trace(inputs.trace)
        fleets = [read_input_fleet(each) for each in inputs.fleets]
        if options.inflate is None:
            measure_peak(trace, fleets, settings.release)
    these = experiments(policies, len(inputs.fleets), settings, options.seeds)
    if options.merge:
        files = {name: read_source(name).content for name in options.merge}
        results = merge_shards(files, len(these))
        print_results(trace.check, results, options.output)
        return not any(isinstance(each, FailedRun) for each in results)
    chosen = these if place is None else shard(these, *place)
    if options.dask:
        results = run_on_dask(inputs, chosen, options.dask)
    else:
        results = run_in_processes(inputs, chosen, options.jobs)
    if place is not None:
        print_shard(place, results)
    else:
        print_results(trace.check, results, options.output)
    return not any(isinstance(each, FailedRun) for each in results)


def _read_shard(options: SimulateOptions) -> tuple[int, int] | None:
    if not options.shard:
        return None
    index, slash, number = options.shard.partition("/")
    if not (slash and index.isdigit() and number.isdigit() and int(index) < int(number)):
        raise UsageError(f"--shard {options.shard!r}: not I/N with I from 0 to N-1, such as 0/4")
    if options.output is not SimulateFormat.JSON:
        raise UsageError("--shard needs -o json; --merge reads its output")
    return int(index), int(number)


def _settings(options: SimulateOptions) -> tuple[list[str], Settings]:
    from dryrack.cluster import installed_plugins

    policies = [each.strip() for each in join_lists(options.policy).split(",") if each.strip()]
    policies = list(dict.fromkeys(policies)) or [KUBERNETES]
    plugins = installed_plugins()
    for each in policies:
        try:
            check_policy(each, plugins)
        except PolicyError as error:
            raise UsageError(f"--policy: {error}") from error
    rules = [each.value for each in TieRule]
    if options.ties and options.ties not in rules:
        raise UsageError(f"--ties {options.ties!r}: unknown rule; {hint(options.ties, rules)}")
    if not 1 <= options.seeds <= _SEEDS_MAX:
        raise UsageError(f"--seeds {options.seeds}: must be from 1 to {_SEEDS_MAX}")
    if options.inflate is not None and not 0 < options.inflate <= _INFLATE_MAX:
        raise UsageError(f"--inflate {options.inflate}: must be above 0, up to {_INFLATE_MAX}")
    if options.jobs is not None and options.jobs < 1:
        raise UsageError(f"--jobs {options.jobs}: must be at least 1")
    settings = Settings(
        seed=options.seed,
        inflate=options.inflate,
        ties=TieRule(options.ties) if options.ties else None,
        release=parse_release(options.release),
        retry=options.retry,
        preempt=options.preemption,
        until=read_duration("--until", options.until),
        device_mtbf=read_duration("--device-mtbf", options.device_mtbf),
        device_repair=read_duration("--device-repair", options.device_repair),
        node_mtbf=read_duration("--node-mtbf", options.node_mtbf),
        node_repair=read_duration("--node-repair", options.node_repair),
        changes=changes_of(options),
    )
    return policies, settings
