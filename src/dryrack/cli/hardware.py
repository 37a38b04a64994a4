"""
`dryrack hardware`: which machines and devices the catalogue knows, and what they publish.

What `show -o yaml` prints is what a publisher would write for such a node, by the same way.
"""

from __future__ import annotations

import enum
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dryrack.cli.files import UsageError, read_sources
from dryrack.cli.output import Format, many, print_data, print_line, print_table, shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from dryrack.hardware.catalogue import Catalogue, InstanceType, Model
    from dryrack.kinds.resource import Device, DeviceClass, ResourceSlice

app = typer.Typer(
    help="Which machines and devices the catalogue knows, and what they publish.",
    no_args_is_help=True,
)

_NEAR_MAX = 3
# Whoever looks at a model sees it on a machine of this name.
_SOME_NODE = "node-1"
# What is left for values on a terminal of 80 columns.
_VALUE_COLUMNS = 34
# What a partition has, in the order and the words of `nvidia-smi mig -lgip`.
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
    typer.Option(
        "--catalogue-file", metavar="FILE", help="Instance types of your own; repeatable."
    ),
]


@app.command("list")
def list_(
    kind: Annotated[Kind | None, typer.Option(help="Instance types or models alone.")] = None,
    vendor: Annotated[
        str, typer.Option(help="Of this vendor or cloud, such as NVIDIA or AWS.")
    ] = "",
    model: Annotated[str, typer.Option(help="Instance types that have this model.")] = "",
    output: Annotated[ListFormat, typer.Option("-o", "--output", help="How to print.")] = (
        ListFormat.TABLE
    ),
    catalogue_file: OwnFiles = None,
) -> None:
    """List the instance types and the models of devices that the catalogue knows."""
    known = load(catalogue_file)
    if model and model not in known.models:
        raise UsageError(unknown(f"model {model!r}", model, known.models))
    types = [each for each in _types(known) if _is_wanted(each, vendor, model)]
    models = [each for each in _models(known) if _is_of(each, vendor) and not model]
    if not types and not models:
        raise UsageError(f"--vendor {vendor!r}: has none of these; vendors are {_vendors(known)}")
    _print_list(
        types if kind is not Kind.MODEL else [], models if kind is not Kind.TYPE else [], output
    )


@app.command()
def show(
    name: Annotated[str, typer.Argument(metavar="NAME", help="An instance type or a model.")],
    node: Annotated[str, typer.Option(help="The node that has the devices.")] = _SOME_NODE,
    mig: Annotated[
        bool, typer.Option("--mig", help="As where the node's label asks for partitions.")
    ] = False,
    output: Annotated[
        Format, typer.Option("-o", "--output", help="How to print; yaml and json are slices.")
    ] = Format.TABLE,
    catalogue_file: OwnFiles = None,
) -> None:
    """Show the devices of an instance type or a model, or the ResourceSlices of such a node."""
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
    output: Annotated[Format, typer.Option("-o", "--output", help="How to print.")] = Format.YAML,
    catalogue_file: OwnFiles = None,
) -> None:
    """Print the DeviceClasses that come with the drivers of the catalogue, for kubectl apply."""
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
    """By a name alone, or as `list -o name` prints it."""
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
    return f"{said}: not in the catalogue; {hint}see: dryrack hardware list"


def unknown_type(said: str, name: str, known: Catalogue) -> str:
    """The same of an instance type; who names a card is told a machine that has it."""
    for each in _types(known):
        if any(fitting.model.name.startswith(name.lower()) for fitting in each.fittings):
            return f"{said}: a card, not a machine; {each.name} has it, see: dryrack hardware list"
    return unknown(said, name, known.instance_types)


def _near(name: str, known: Iterable[str]) -> list[str]:
    """Names that begin with what was typed, then those that are like it."""
    import difflib

    by_case = {each.lower(): each for each in known}
    longer = sorted(each for each in by_case if each.startswith(name.lower()))
    alike = difflib.get_close_matches(name.lower(), sorted(by_case), n=_NEAR_MAX)
    return [by_case[each] for each in dict.fromkeys([*longer, *alike])][:_NEAR_MAX]


def _machine(entry: InstanceType | Model, known: Catalogue) -> InstanceType:
    """The machine itself; for a model one with a single device, as some machine has it."""
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
        raise UsageError(f"--mig: {machine.name} has no cards whose partitions are known")
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
    """Devices of one driver that have the same things to tell, in the order of their slices."""
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
    """The sizes of partitions, the smallest first, and how many places there are for each."""
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
    """All that a device tells, by type and name."""
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
    """One value if all have it, else the first and the last; of long ones, that they differ."""
    different = list(dict.fromkeys(values))
    if len(different) == 1:
        return values[0]
    ends = f"{values[0]} … {values[-1]}"
    if len(ends) <= _VALUE_COLUMNS:
        return ends
    return f"{values[0][: _VALUE_COLUMNS // 2]}…, {len(different)} different"
