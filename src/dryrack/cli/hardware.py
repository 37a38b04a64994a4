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
    from dryrack.kinds.resource import Device, DeviceClass, ResourceSlice

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
    known = load(catalogue_file)
    if model and model not in known.models:
        raise UsageError(unknown(f"model {model!r}", model, known.models))
    types = [each for each in _types(known) if _is_wanted(each, vendor, model)]
    models = [each for each in _models(known) if _is_of(each, vendor) and not model]
    if not types and not models:
        fix = f"use one of: {_vendors(known)}"
        raise UsageError(f"--vendor {vendor!r}: the catalog has no matching entry; {fix}")
    _print_list(
        types if kind is not Kind.MODEL else [], models if kind is not Kind.TYPE else [], output
    )


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
    known = load(catalogue_file)
    entry = _entry(known, name)
    slices = _slices(_machine(entry, known), node, mig=mig)
    if output is Format.TABLE:
        _print_entry(entry, slices)
    else:
        from dryrack.kinds.decode import to_builtins

        items = [to_builtins(each) for each in slices]
        print_data({"apiVersion": "v1", "kind": "List", "items": items}, output)


@app.command()
def classes(
    output: Output = Format.YAML,
    catalogue_file: OwnFiles = None,
) -> None:
    """Print the DeviceClasses of the drivers in the hardware catalog."""
    from dryrack.kinds.decode import to_builtins

    found = load(catalogue_file).device_classes
    if output is Format.TABLE:
        rows = [[name, _expression(each)] for name, each in found.items()]
        print_table(["NAME", "DEVICES"], rows)
        return
    items = [to_builtins(each) for each in found.values()]
    print_data({"apiVersion": "v1", "kind": "List", "items": items}, output)


def _expression(class_: DeviceClass) -> str:
    return " && ".join(each.cel.expression for each in class_.spec.selectors if each.cel)


def load(own: Sequence[str] | None) -> Catalogue:
    from dryrack.cluster import load_catalogue

    sources = read_sources(own) if own else ()
    return load_catalogue({source.name: source.content for source in sources})


def _vendors(known: Catalogue) -> str:
    makers = {each.vendor for each in known.models.values()}
    return ", ".join(sorted(makers | {each.provider for each in known.instance_types.values()}))


def _types(known: Catalogue) -> list[InstanceType]:
    return sorted(known.instance_types.values(), key=lambda each: (each.provider, each.name))


def _models(known: Catalogue) -> list[Model]:
    return sorted(known.models.values(), key=lambda each: (each.vendor, each.name))


def _is_wanted(machine: InstanceType, vendor: str, model: str) -> bool:
    models = [fitting.model for fitting in machine.fittings]
    by_vendor = machine.provider.lower() == vendor.lower() or any(
        _is_of(each, vendor) for each in models
    )
    return by_vendor and (not model or any(each.name == model for each in models))


def _is_of(model: Model, vendor: str) -> bool:
    return not vendor or model.vendor.lower() == vendor.lower()


def _print_list(types: Sequence[InstanceType], models: Sequence[Model], form: ListFormat) -> None:
    match form:
        case ListFormat.NAME:
            names = [f"{Kind.TYPE}/{each.name}" for each in types]
            names += [f"{Kind.MODEL}/{each.name}" for each in models]
            sys.stdout.writelines(f"{shown(name)}\n" for name in names)
        case ListFormat.JSON | ListFormat.YAML:
            data = {
                "instanceTypes": [_type_data(each) for each in types],
                "models": [_model_data(each) for each in models],
            }
            print_data(data, Format(form.value))
        case ListFormat.TABLE | ListFormat.WIDE:
            _print_rows(types, models, wide=form is ListFormat.WIDE)


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


def _entry(known: Catalogue, name: str) -> InstanceType | Model:
    """Return the entry for a name, with or without the prefix that `list -o name` prints."""
    kind, slash, bare = name.partition("/")
    found: InstanceType | Model | None = None
    if not slash or kind == Kind.TYPE:
        found = known.instance_types.get(bare if slash else name)
    if found is None and (not slash or kind == Kind.MODEL):
        found = known.models.get(bare if slash else name)
    if found is None:
        everything = [*known.instance_types, *known.models]
        raise UsageError(unknown(repr(name), bare if slash else name, everything))
    return found


def unknown(said: str, name: str, known: Iterable[str]) -> str:
    meant = " or ".join(map(repr, _near(name, known)))
    hint = f"did you mean {meant}? " if meant else ""
    return f"{said}: not in the hardware catalog; {hint}see: dryrack hardware list"


def unknown_type(said: str, name: str, known: Catalogue) -> str:
    """Return the error for an unknown instance type; a device model gets its own error."""
    for each in _types(known):
        if any(fitting.model.name.startswith(name.lower()) for fitting in each.fittings):
            problem = f"{said}: this is a device model, not an instance type"
            return f"{problem}; use a type that has it, for example {each.name}"
    return unknown(said, name, known.instance_types)


def _near(name: str, known: Iterable[str]) -> list[str]:
    """Return the names that begin with the text, then similar names."""
    import difflib

    by_case = {each.lower(): each for each in known}
    longer = sorted(each for each in by_case if each.startswith(name.lower()))
    alike = difflib.get_close_matches(name.lower(), sorted(by_case), n=_NEAR_MAX)
    return [by_case[each] for each in dict.fromkeys([*longer, *alike])][:_NEAR_MAX]


def _machine(entry: InstanceType | Model, known: Catalogue) -> InstanceType:
    """Return the instance type; for a device model, one with a single device of it."""
    from dryrack.hardware.catalogue import Fitting, InstanceType

    if isinstance(entry, InstanceType):
        return entry
    slots = (
        fitting.slots[0]
        for machine in known.instance_types.values()
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
    for driver, alike in _groups(slices):
        _print_group(driver, alike)


def _groups(slices: Sequence[ResourceSlice]) -> Iterable[tuple[str, list[Device]]]:
    """Return groups of devices with the same driver, attributes and capacities."""
    groups: dict[tuple[str, ...], list[Device]] = {}
    for slice_ in slices:
        for device in slice_.spec.devices:
            key = (slice_.spec.driver, *device.attributes, *device.capacity)
            groups.setdefault(key, []).append(device)
    return [(key[0], devices) for key, devices in groups.items()]


def _print_group(driver: str, devices: Sequence[Device]) -> None:
    names = [device.name for device in devices]
    all_names = f"{names[0]} … {names[-1]}" if len(names) > 1 else names[0]
    print_line("\n" + shown(f"{driver}: {many(len(names), 'device')}, {all_names}"))
    documents = [_document(device) for device in devices]
    rows = [
        [name, kind, _alike([document[kind, name] for document in documents])]
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
    there = devices[0].capacity
    names = [*(name for name in _SHORT if name in there), *sorted(there.keys() - _SHORT.keys())]
    rows = [
        [profile, str(len(alike)), *(str(alike[0].capacity[name].value) for name in names)]
        for profile, alike in sorted(
            by_profile.items(), key=lambda each: each[1][0].capacity["memory"].value
        )
    ]
    print_line()
    print_table(["PROFILE", "DEVICES", *(_SHORT.get(name, name) for name in names)], rows)


def _document(device: Device) -> Mapping[tuple[str, str], str]:
    """Return the attributes and capacities of a device, by type and name."""
    from dryrack.kinds.decode import to_builtins

    told: dict[tuple[str, str], str] = {}
    for name, attribute in device.attributes.items():
        [(kind, value)] = to_builtins(attribute).items()
        told[kind, name] = str(value).lower() if isinstance(value, bool) else str(value)
    shared = "shared capacity" if device.allow_multiple_allocations else "capacity"
    for name, capacity in device.capacity.items():
        told[shared, name] = str(capacity.value)
    return told


def _alike(values: Sequence[str]) -> str:
    """Return the common value, or the first and last value, or how many values differ."""
    different = list(dict.fromkeys(values))
    if len(different) == 1:
        return values[0]
    ends = f"{values[0]} … {values[-1]}"
    if len(ends) <= _VALUE_COLUMNS:
        return ends
    return f"{values[0][: _VALUE_COLUMNS // 2]}…, {len(different)} values"
