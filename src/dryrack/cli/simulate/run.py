"""Run `dryrack simulate`: read the inputs, run the experiments, and print the results."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.base.text import hint
from dryrack.cli.command import join_lists
from dryrack.cli.files import UsageError, parse_release, read_source, without_pauses
from dryrack.cli.simulate.printing import print_results
from dryrack.cli.simulate.runners import run_in_processes
from dryrack.placement import TieRule
from dryrack.simulation import (
    KUBERNETES,
    NODE_FORMATS,
    OBJECTS,
    TRACE_FORMATS,
    FailedRun,
    Input,
    Inputs,
    Settings,
    catalogue_fleet,
    check_policy,
    experiments,
    objects_of,
    read_input_fleet,
    read_input_trace,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dryrack.cli.simulate.options import SimulateOptions

# More runs are possible, but more likely a mistake.
_SEEDS_MAX = 10_000


def run(options: SimulateOptions) -> bool:
    """Run the sweep; return False if a run failed."""
    if options.inflate is None:
        raise UsageError("--inflate is missing; name the demand, such as --inflate 1.3")
    policies, settings = _settings(options)
    with without_pauses():
        inputs = read_inputs(options)
        trace = read_input_trace(inputs.trace)
        for each in inputs.fleets:
            read_input_fleet(each)
    these = experiments(policies, len(inputs.fleets), settings, options.seeds)
    results = run_in_processes(inputs, these, options.jobs)
    print_results(trace.check, results, options.output)
    return not any(isinstance(each, FailedRun) for each in results)


def _settings(options: SimulateOptions) -> tuple[list[str], Settings]:
    from dryrack.cluster import installed_plugins

    policies = [each.strip() for each in join_lists(options.policy).split(",") if each.strip()]
    policies = list(dict.fromkeys(policies)) or [KUBERNETES]
    plugins = installed_plugins()
    for each in policies:
        try:
            check_policy(each, plugins)
        except Exception as error:
            raise UsageError(f"--policy: {error}") from error
    rules = [each.value for each in TieRule]
    if options.ties and options.ties not in rules:
        raise UsageError(f"--ties {options.ties!r}: unknown rule; {hint(options.ties, rules)}")
    if not 1 <= options.seeds <= _SEEDS_MAX:
        raise UsageError(f"--seeds {options.seeds}: must be from 1 to {_SEEDS_MAX}")
    if options.inflate is not None and not 0 < options.inflate <= 100:
        raise UsageError(f"--inflate {options.inflate}: must be above 0, and at most 100")
    if options.jobs is not None and options.jobs < 1:
        raise UsageError(f"--jobs {options.jobs}: must be at least 1")
    settings = Settings(
        seed=options.seed,
        inflate=options.inflate,
        ties=TieRule(options.ties) if options.ties else None,
        release=parse_release(options.release),
    )
    return policies, settings


def read_inputs(options: SimulateOptions) -> Inputs:
    """Read the files that the options name."""
    if options.format not in TRACE_FORMATS:
        problem = hint(options.format, TRACE_FORMATS)
        raise UsageError(f"--format {options.format!r}: unknown format; {problem}")
    fleets = tuple(_fleets(options))
    if not fleets:
        raise UsageError("name the nodes: --nodes FILE, or --fleet TYPE:NUMBER")
    source = read_source(options.trace)
    return Inputs(Input(source.name, options.format, source.content), fleets)


def _fleets(options: SimulateOptions) -> Iterator[Input]:
    for name in options.nodes:
        if options.format not in NODE_FORMATS:
            formats = ", ".join(NODE_FORMATS)
            raise UsageError(f"--nodes {name}: only with --format {formats}; use --fleet")
        source = read_source(name)
        yield Input(source.name, options.format, source.content)
    if options.fleet:
        from dryrack.cli.hardware import load

        catalogue = load(options.catalogue_file)
        for text in options.fleet:
            spec = catalogue_fleet(text, catalogue, prices={}, currency="")
            yield Input(text, OBJECTS, objects_of(spec))
