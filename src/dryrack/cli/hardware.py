"""
`dryrack hardware`: show the instance types and device models of the hardware catalog.

`show -o yaml` prints the ResourceSlices that `dryrack publish` writes for such a node.
"""

from __future__ import annotations

import enum
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dryrack.cli.command import Output, argument, option
from dryrack.cli.files import UsageError, read_sources
from dryrack.cli.output import Format, many, print_data, print_line, print_table, shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from dryrack.hardware.catalogue import Catalogue, InstanceType, Model
    from dryrack.kinds.resource import Device, ResourceSlice

app = typer.Typer(
    help="Show the instance types and device models of the hardware catalog.",
    no_args_is_help=True,
)

_NEAR_MAX = 3
# The node in the ResourceSlices of a device model.
_SOME_NODE = "node-1"
# Width of the values on a terminal of 80 columns.
_VALUE_COLUMNS = 34
# The capacities of a partition, in the order and with the names of `nvidia-smi mig -lgip`.
_SHORT = {
    "memory": "MEMORY",
    "multiprocessors": "SM",
    "copyEngines": "CE",
    "decoders": "DEC",
    "encoders": "ENC",
    "jpegEngines": "JPEG",
    "ofaEngines": "OFA",
}


class ListFormat(enum.StrEnum):
    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"


class Kind(enum.StrEnum):
    TYPE = "type"
    MODEL = "model"


OwnFiles = Annotated[
    list[str] | None,
    option(
        "--catalogue-file", metavar="FILE", help="File with your own instance types. Repeatable."
    ),
]


@app.command("list")
def list_(
    kind: Annotated[
        Kind | None, option(help="Kind of entries to list. Default: both kinds.")
    ] = None,
    vendor: Annotated[
        str, option(help="List only this vendor or cloud, for example NVIDIA or AWS.")
    ] = "",
    model: Annotated[
        str, option(help="List only the instance types that have this device model.")
    ] = "",
    output: Annotated[ListFormat, option("-o", "--output", help="Output format.")] = (
        ListFormat.TABLE
    ),
    catalogue_file: OwnFiles = None,
) -> None:
    """List the instance types and device models of the hardware catalog."""
    catalogue = load(catalogue_file)
    if model and model not in catalogue.models:
        raise UsageError(unknown(f"model {model!r}", model, catalogue.models))
    types = [each for each in _types(catalogue) if _is_wanted(each, vendor, model)]
    models = sorted(catalogue.models.values(), key=lambda each: (each.vendor, each.name))
    models = [each for each in models if _is_of(each, vendor) and not model]
    if not types and not models:
        vendors = {each.vendor for each in catalogue.models.values()}
        vendors |= {each.provider for each in catalogue.instance_types.values()}
        fix = f"use one of: {', '.join(sorted(vendors))}"
        raise UsageError(f"--vendor {vendor!r}: the catalog has no matching entry; {fix}")
    if kind is Kind.MODEL:
        types = []
    if kind is Kind.TYPE:
        models = []
    match output:
        case ListFormat.NAME:
            names = [f"{Kind.TYPE}/{each.name}" for each in types]
            names += [f"{Kind.MODEL}/{each.name}" for each in models]
            sys.stdout.writelines(f"{shown(name)}\n" for name in names)
        case ListFormat.JSON | ListFormat.YAML:
            data = {
                "instanceTypes": [_type_data(each) for each in types],
                "models": [_model_data(each) for each in models],
            }
            print_data(data, Format(output.value))
        case ListFormat.TABLE | ListFormat.WIDE:
            _print_rows(types, models, wide=output is ListFormat.WIDE)


@app.command()
def show(
    name: Annotated[
        str, argument(metavar="NAME", help="Name of an instance type or device model.")
    ],
    node: Annotated[str, option(help="Name of the node in the output.")] = _SOME_NODE,
    mig: Annotated[
        bool, option("--mig", help="Show the MIG partitions that a node label enables.")
    ] = False,
    output: Annotated[
        Format,
        option("-o", "--output", help="Output format. yaml and json print the ResourceSlices."),
    ] = Format.TABLE,
    catalogue_file: OwnFiles = None,
) -> None:
    """Show the devices of an instance type or device model, or their ResourceSlices."""
    catalogue = load(catalogue_file)
    entry = _find_entry(catalogue, name)
    slices = _slices(_machine(entry, catalogue), node, mig=mig)
    if output is Format.TABLE:
        _print_entry(entry, slices)
    else:
        from dryrack.kinds.decode import to_builtins

        items = [to_builtins(each) for each in slices]
        print_data({"apiVersion": "v1", "kind": "List", "items": items}, output)


@app.command("classes")
def print_classes(
    output: Output = Format.YAML,
    catalogue_file: OwnFiles = None,
) -> None:
    """Print the DeviceClasses of the drivers in the hardware catalog."""
    from dryrack.kinds.decode import to_builtins

    classes = load(catalogue_file).device_classes
    if output is Format.TABLE:
        rows = [
            [name, " && ".join(it.cel.expression for it in each.spec.selectors if it.cel)]
            for name, each in classes.items()
        ]
        print_table(["NAME", "DEVICES"], rows)
        return
    items = [to_builtins(each) for each in classes.values()]
    print_data({"apiVersion": "v1", "kind": "List", "items": items}, output)


def load(files: Sequence[str] | None) -> Catalogue:
    """Return the hardware catalog with the given files."""
    from dryrack.cluster import load_catalogue

    sources = read_sources(files) if files else ()
    return load_catalogue({source.name: source.content for source in sources})


def _types(catalogue: Catalogue) -> list[InstanceType]:
    return sorted(catalogue.instance_types.values(), key=lambda each: (each.provider, each.name))


def _is_wanted(machine: InstanceType, vendor: str, model: str) -> bool:
    models = [fitting.model for fitting in machine.fittings]
    by_vendor = machine.provider.lower() == vendor.lower() or any(
        _is_of(each, vendor) for each in models
    )
    return by_vendor and (not model or any(each.name == model for each in models))


def _is_of(model: Model, vendor: str) -> bool:
    return not vendor or model.vendor.lower() == vendor.lower()


def _print_rows(types: Sequence[InstanceType], models: Sequence[Model], *, wide: bool) -> None:
    columns = ["NAME", "KIND", "VENDOR", "DEVICES", *(["DRIVERS", "MIG", "NOTE"] if wide else [])]
    rows = []
    for machine in types:
        more = [", ".join(machine.drivers), _yes(len(machine.cards) > 1), machine.note]
        row = [machine.name, Kind.TYPE.value, machine.provider, _devices_text(machine)]
        rows.append([*row, *(more if wide else [])])
    for model in models:
        more = [model.driver, _yes(model.mig is not None), model.note]
        row = [model.name, Kind.MODEL.value, model.vendor, model.title]
        rows.append([*row, *(more if wide else [])])
    print_table(columns, rows)


def _yes(flag: bool) -> str:
    return "yes" if flag else "no"


def _devices_text(machine: InstanceType) -> str:
    return ", ".join(f"{len(each.slots)} × {each.model.name}" for each in machine.fittings)


def _type_data(machine: InstanceType) -> dict[str, Any]:
    devices = [
        {"model": each.model.name, "driver": each.model.driver, "count": len(each.slots)}
        for each in machine.fittings
    ]
    return {
        "name": machine.name,
        "provider": machine.provider,
        "devices": devices,
        "size": dict(machine.size),
        "mig": len(machine.cards) > 1,
        "note": machine.note,
        "sources": list(machine.sources),
    }


def _model_data(model: Model) -> dict[str, Any]:
    return {
        "name": model.name,
        "vendor": model.vendor,
        "title": model.title,
        "driver": model.driver,
        "mig": model.mig is not None,
        "note": model.note,
        "sources": list(model.sources),
    }


def _find_entry(catalogue: Catalogue, name: str) -> InstanceType | Model:
    """Return the entry for a name, with or without the prefix that `list -o name` prints."""
    kind, slash, bare = name.partition("/")
    entry: InstanceType | Model | None = None
    if not slash or kind == Kind.TYPE:
        entry = catalogue.instance_types.get(bare if slash else name)
    if entry is None and (not slash or kind == Kind.MODEL):
        entry = catalogue.models.get(bare if slash else name)
    if entry is None:
        names = [*catalogue.instance_types, *catalogue.models]
        raise UsageError(unknown(repr(name), bare if slash else name, names))
    return entry


def unknown(subject: str, name: str, known: Iterable[str]) -> str:
    """Return the error for a name that is not in the catalog, with similar names."""
    import difflib

    by_case = {each.lower(): each for each in known}
    longer = sorted(each for each in by_case if each.startswith(name.lower()))
    similar = difflib.get_close_matches(name.lower(), sorted(by_case), n=_NEAR_MAX)
    near = [by_case[each] for each in dict.fromkeys([*longer, *similar])][:_NEAR_MAX]
    hint = f"did you mean {' or '.join(map(repr, near))}? " if near else ""
    return f"{subject}: not in the hardware catalog; {hint}see: dryrack hardware list"


def unknown_type(subject: str, name: str, catalogue: Catalogue) -> str:
    """Return the error for an unknown instance type; a device model gets its own error."""
    for each in _types(catalogue):
        if any(fitting.model.name.startswith(name.lower()) for fitting in each.fittings):
            problem = f"{subject}: this is a device model, not an instance type"
            return f"{problem}; use a type that has it, for example {each.name}"
    return unknown(subject, name, catalogue.instance_types)


def _machine(entry: InstanceType | Model, catalogue: Catalogue) -> InstanceType:
    """Return the instance type; for a device model, one with a single device of it."""
    from dryrack.hardware.catalogue import Fitting, InstanceType

    if isinstance(entry, InstanceType):
        return entry
    slots = (
        fitting.slots[0]
        for machine in catalogue.instance_types.values()
        for fitting in machine.fittings
        if fitting.model is entry
    )
    slot = next(slots, entry.sample_slot())
    return InstanceType(entry.name, entry.vendor, (Fitting(entry, (slot,)),))


def _slices(machine: InstanceType, node: str, *, mig: bool) -> list[ResourceSlice]:
    from dryrack.hardware import INSTANCE_TYPE, Inventory, pools_of, slices_of
    from dryrack.hardware.catalogue import MIG, MIG_DYNAMIC, Catalogue
    from dryrack.kinds.core import Node
    from dryrack.kinds.meta import ObjectMeta

    if mig and len(machine.cards) == 1:
        raise UsageError(
            f"--mig: the catalog has no MIG profiles for {machine.name}; leave out --mig"
        )
    labels = {INSTANCE_TYPE: machine.name} | ({MIG: MIG_DYNAMIC} if mig else {})
    inventory = Inventory(instance_types=Catalogue({}, {machine.name: machine}).assignments())
    on = Node(metadata=ObjectMeta(name=node, labels=labels))
    return [each for pool in pools_of(inventory, on).pools for each in slices_of(pool)]


def _print_entry(entry: InstanceType | Model, slices: Sequence[ResourceSlice]) -> None:
    from dryrack.hardware.catalogue import InstanceType

    if isinstance(entry, InstanceType):
        print_line(shown(f"{entry.name} ({entry.provider}): {_devices_text(entry)}"))
        if entry.size:
            print_line(shown(", ".join(f"{key}: {value}" for key, value in entry.size.items())))
    else:
        print_line(shown(f"{entry.name} ({entry.vendor}): {entry.title}"))
    if entry.note:
        print_line(shown(f"note: {entry.note}"))
    for source in entry.sources:
        print_line(shown(f"source: {source}"))
    # Devices of a driver that have the same attributes and capacities.
    groups: dict[tuple[str, ...], list[Device]] = {}
    for slice_ in slices:
        for device in slice_.spec.devices:
            key = (slice_.spec.driver, *device.attributes, *device.capacity)
            groups.setdefault(key, []).append(device)
    for (driver, *_), devices in groups.items():
        _print_group(driver, devices)


def _print_group(driver: str, devices: Sequence[Device]) -> None:
    names = [device.name for device in devices]
    all_names = f"{names[0]} … {names[-1]}" if len(names) > 1 else names[0]
    print_line("\n" + shown(f"{driver}: {many(len(names), 'device')}, {all_names}"))
    documents = [_values_of(device) for device in devices]
    rows = [
        [name, kind, _summarize([document[kind, name] for document in documents])]
        for kind, name in documents[0]
    ]
    print_table(["NAME", "TYPE", "VALUE"], rows)
    if "profile" in devices[0].attributes:
        _print_profiles(devices)


def _print_profiles(devices: Sequence[Device]) -> None:
    """Print the sizes of partitions, smallest first, with the number of devices of each."""
    by_profile: dict[str, list[Device]] = {}
    for device in devices:
        by_profile.setdefault(device.attributes["profile"].string_value or "", []).append(device)
    capacities = devices[0].capacity
    names = [
        *(name for name in _SHORT if name in capacities),
        *sorted(capacities.keys() - _SHORT.keys()),
    ]
    rows = [
        [profile, str(len(same)), *(str(same[0].capacity[name].value) for name in names)]
        for profile, same in sorted(
            by_profile.items(), key=lambda each: each[1][0].capacity["memory"].value
        )
    ]
    print_line()
    print_table(["PROFILE", "DEVICES", *(_SHORT.get(name, name) for name in names)], rows)


def _values_of(device: Device) -> Mapping[tuple[str, str], str]:
    """Return the attributes and capacities of a device, by type and name."""
    from dryrack.kinds.decode import to_builtins

    values: dict[tuple[str, str], str] = {}
    for name, attribute in device.attributes.items():
        [(kind, value)] = to_builtins(attribute).items()
        values[kind, name] = str(value).lower() if isinstance(value, bool) else str(value)
    shared = "shared capacity" if device.allow_multiple_allocations else "capacity"
    for name, capacity in device.capacity.items():
        values[shared, name] = str(capacity.value)
    return values


def _summarize(values: Sequence[str]) -> str:
    """Return the common value, or the first and last value, or how many values differ."""
    different = list(dict.fromkeys(values))
    if len(different) == 1:
        return values[0]
    ends = f"{values[0]} … {values[-1]}"
    if len(ends) <= _VALUE_COLUMNS:
        return ends
    return f"{values[0][: _VALUE_COLUMNS // 2]}…, {len(different)} values"
