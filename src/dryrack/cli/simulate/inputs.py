"""Read the inputs of `dryrack simulate`: the trace, the fleets, and changes of the fleet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.base.durations import seconds_in
from dryrack.base.text import hint
from dryrack.cli.files import UsageError, read_source
from dryrack.simulation import (
    MANIFESTS,
    NODE_LIST,
    OBJECTS,
    RECORDING,
    TRACE_FORMATS,
    Arrivals,
    Change,
    FleetSpec,
    Input,
    Inputs,
    catalogue_fleet,
    objects_fleet,
    objects_of,
    read_changes,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from dryrack.cli.simulate.options import SimulateOptions
    from dryrack.kinds.raw import Raw

_CLUSTER = "cluster"
_ARRIVALS_MAX = 1_000_000
# Price lists are in US dollars.
CURRENCY = "USD"
_OBJECT_FILES = (".yaml", ".yml", ".json")


def read_inputs(options: SimulateOptions) -> Inputs:
    """Read the files that the options name."""
    formats = (*TRACE_FORMATS, MANIFESTS)
    if options.format not in formats:
        problem = hint(options.format, formats)
        raise UsageError(f"--format {options.format!r}: unknown format; {problem}")
    if not 0 < options.rate < float("inf") or not 1 <= options.arrivals <= _ARRIVALS_MAX:
        raise UsageError(f"--rate must be above 0, and --arrivals from 1 to {_ARRIVALS_MAX}")
    arrivals = Arrivals(
        options.rate, options.arrivals, read_duration("--mean-duration", options.mean_duration)
    )
    source = read_source(options.trace)
    trace = Input(
        source.name,
        options.format,
        source.content,
        arrivals if options.format == MANIFESTS else None,
    )
    fleets = tuple(_fleets(options))
    if not fleets and options.format == RECORDING:
        fleets = (trace,)
    if not fleets:
        raise UsageError("name the nodes: --nodes FILE, or --fleet TYPE:NUMBER")
    return Inputs(trace, fleets)


def read_duration(option: str, text: str) -> float | None:
    """Return the seconds of an option, None if it is not given."""
    if not text:
        return None
    seconds = seconds_in(text)
    if not seconds:
        raise UsageError(f"{option} {text!r}: not a duration above 0, such as 36h or 1h30m")
    return seconds


def changes_of(options: SimulateOptions) -> tuple[Change, ...]:
    """Return the changes of the fleet at given times."""
    if not options.changes:
        return ()
    source = read_source(options.changes)
    return read_changes(source.content.decode(errors="replace").splitlines(), source.name)


def _fleets(options: SimulateOptions) -> Iterator[Input]:
    prices = _prices(options)
    for name in options.nodes:
        if name.endswith(_OBJECT_FILES):
            yield _objects_input(_documents(name), name, options, prices)
            continue
        source = read_source(name)
        yield Input(source.name, NODE_LIST, source.content)
    types = [each for each in options.fleet if each != _CLUSTER]
    if types:
        from dryrack.cli.hardware import load

        catalogue = load(options.catalogue_file)
        for text in types:
            spec = catalogue_fleet(text, catalogue, prices=prices, currency=CURRENCY)
            yield Input(text, OBJECTS, objects_of(spec))
    if _CLUSTER in options.fleet:
        yield _objects_input(_objects_of_cluster(options), _CLUSTER, options, prices)


def _prices(options: SimulateOptions) -> Mapping[str, float]:
    from dryrack.cluster import load_prices

    sources = [read_source(name) for name in options.prices]
    prices = load_prices({each.name: each.content for each in sources})
    return {name: float(each.amount) for name, each in prices.items()}


def _objects_input(
    documents: Sequence[Raw], name: str, options: SimulateOptions, prices: Mapping[str, float]
) -> Input:
    """Return the nodes of objects, with the devices of the catalog if there are no slices."""
    from dryrack.cli.hardware import load
    from dryrack.placement import supply_devices

    spec = objects_fleet(documents, name)
    if not spec.nodes:
        raise UsageError(f"{name}: no Nodes; name a file with Nodes and ResourceSlices")
    supplied = supply_devices(
        (*spec.nodes, *spec.slices, *spec.classes), lambda: load(options.catalogue_file)
    )
    spec = FleetSpec(
        name,
        spec.nodes,
        (*spec.slices, *supplied.slices),
        (*spec.classes, *supplied.classes),
        prices,
        CURRENCY,
    )
    return Input(name, OBJECTS, objects_of(spec))


def _documents(name: str) -> Sequence[Raw]:
    from dryrack.base.errors import ContentError
    from dryrack.kinds.documents import read

    source = read_source(name)
    reading = read(source.content, source.name)
    if reading.problems:
        raise ContentError("\n".join(map(str, reading.problems)))
    return [document.raw for document in reading.documents]


def _objects_of_cluster(options: SimulateOptions) -> Sequence[Raw]:
    from dryrack.cli.views.sources import Source, on_cluster
    from dryrack.cluster import RECORDED_KINDS, read_objects

    connection = Source(
        kubeconfig=options.kubeconfig, context=options.context, cluster=options.cluster
    ).connection()
    objects, _ = on_cluster(connection, lambda client: read_objects(client, RECORDED_KINDS))
    return objects
