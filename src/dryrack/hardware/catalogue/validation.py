"""
Validation of the devices that a model or an instance type publishes, by the API's rules.

Files are validated when they are read, so that problems do not appear on nodes. A problem has the
path within its entry.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dryrack.cel.admission import SelectorChecker
from dryrack.hardware.catalogue.entries import HIDDEN, KEPT
from dryrack.hardware.catalogue.identity import devices_on
from dryrack.hardware.catalogue.templates import GIVEN, PCI_ADDRESS
from dryrack.hardware.catalogue.values import Cards
from dryrack.kinds.decode import DecodeError, unknown_fields
from dryrack.kinds.meta import ObjectMeta
from dryrack.kinds.resource import Device, ResourcePool, ResourceSlice, ResourceSliceSpec
from dryrack.kinds.text.source_positions import parse_path
from dryrack.kinds.validation.device_rules import validate
from dryrack.kinds.validation.names import label_value

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dryrack.hardware.catalogue.entries import FittingEntry, MigEntry, ModelEntry
    from dryrack.hardware.catalogue.values import InstanceType, Model, Slot
    from dryrack.hardware.inventory import Batch
    from dryrack.kinds.resource import DeviceClass
    from dryrack.kinds.shape import Path
    from dryrack.kinds.validation import FieldProblem

# A machine has 16 GPUs and 32 network adapters at most; a much larger number is a mistake.
COUNT_MAX = 128
# With a counter for each, and one for each kind of engine, a counter set is full.
SLICES_MAX = 24
# A slice may have as many devices of any kind.
_DEVICES_OF_A_SLICE = 64
_COUNTERS_OF_A_SLICE = 8
_SOME_NODE = "node"
_WITHIN = re.compile(r"^spec\.(devices\[\d+\]\.)?")


@dataclass(frozen=True, slots=True)
class EntryProblem:
    """A problem of an entry."""

    path: Path
    message: str
    fix: str = ""


def class_problems(made: DeviceClass) -> Iterator[EntryProblem]:
    """Yield the problems for which the API server refuses a class."""
    for problem in validate(made, checker=SelectorChecker()):
        path: Path = ("expression",)
        if "metadata" in problem.field:
            path = ("name",)
        elif problem.field == "spec.extendedResourceName":
            path = ("extendedResourceName",)
        yield EntryProblem(path, problem.message, problem.fix)


def model_problems(model: Model, written: ModelEntry) -> Iterator[EntryProblem]:
    """Yield the problems of a model in a sample slot."""
    if not model.device:
        yield EntryProblem((), "has no device", "add device with a name such as gpu-{index}")
        return
    mig = list(_mig_problems(written.mig)) if written.mig is not None else []
    yield from mig
    slot = model.sample_slot()
    decoding = list(_decoding_problems(model, slot))
    yield from decoding
    if mig or decoding:
        return
    for cards in Cards if model.mig else (Cards.WHOLE,):
        for problem in _batch_problems(model.batch((slot,), cards)):
            # The fields of a device have the same path in the model, but for its name.
            field = _WITHIN.sub("", problem.field)
            path = ("device",) if field == "name" else parse_path(field)
            yield EntryProblem(path, f"{field}: {problem.message}", problem.fix)


def fitting_problems(model: Model, written: FittingEntry) -> Iterator[EntryProblem]:
    """Yield the mismatches between a model and the values that a machine gives its devices."""
    count = count_of(written)
    if not 1 <= count <= COUNT_MAX:
        yield EntryProblem((), f"{count} devices; expected 1 to {COUNT_MAX}")
    for name, values in written.each.items():
        if isinstance(values, list) and len(values) != count:
            message = f"{len(values)} values of {name} for {count} devices"
            yield EntryProblem(("each", name), message)
    variables = model.variables()
    for name in sorted(set(written.each) - {*variables, *GIVEN}):
        message = f"model {model.name!r} has no placeholder {{{name}}}"
        yield EntryProblem(("each", name), message)
    for name in sorted(name for name, is_required in variables.items() if is_required):
        if name not in written.each:
            message = f"model {model.name!r} needs {name}, one for each device"
            yield EntryProblem(("each",), message)
    addresses = written.each.get("pci", [])
    for index, address in enumerate(addresses if isinstance(addresses, list) else [addresses]):
        if not (isinstance(address, str) and PCI_ADDRESS.fullmatch(address)):
            message = f"{address!r} is not a PCI address in lower case, such as 0000:1f:00.0"
            yield EntryProblem(("each", "pci", index), message)


def machine_problems(machine: InstanceType) -> Iterator[EntryProblem]:
    """Yield the problems of all devices of a machine together."""
    for index, fitting in enumerate(machine.fittings):
        for slot in fitting.slots:
            for problem in _decoding_problems(fitting.model, slot):
                yield EntryProblem(("devices", index), problem.message)
                return
    for batch in machine.assignment(Cards.WHOLE).batches:
        for name, times in Counter(device.name for device in batch.devices).items():
            if times > 1:
                message = f"{times} devices of {batch.driver} named {name}"
                yield EntryProblem(("devices",), message, "give each device a different index")
        for refusal in _batch_problems(batch):
            yield EntryProblem(("devices",), str(refusal), refusal.fix)


def name_problems(name: str) -> tuple[str, ...]:
    """Return the problems of the name of an instance type, which is the value of a label."""
    return label_value(name)


def count_of(written: FittingEntry) -> int:
    """Return the number of devices: the stated one, or that of the values."""
    if written.count is not None:
        return written.count
    lists = (values for values in written.each.values() if isinstance(values, list))
    return max(map(len, lists), default=1)


def value_at(values: Any, index: int) -> Any:
    """Return the value for one device: an item of a list, or the value for all devices."""
    return values[index] if isinstance(values, list) else values


def _mig_problems(mig: MigEntry) -> Iterator[EntryProblem]:
    if mig.whole_device not in (KEPT, HIDDEN):
        message = f"mig.wholeDevice: expected {KEPT} or {HIDDEN}, got {mig.whole_device!r}"
        yield EntryProblem(("mig", "wholeDevice"), message)
    if not mig.profiles:
        yield EntryProblem(("mig",), "mig.profiles is empty")
    for index, profile in enumerate(mig.profiles):
        path: Path = ("mig", "profiles", index)
        if not (profile.name and profile.starts and profile.capacity):
            yield EntryProblem(path, "a profile needs a name, starts, slices and capacity")
        elif profile.slices < 1 or min(profile.starts) < 0:
            yield EntryProblem(path, "slices must be at least 1, and starts must be at least 0")
        elif max(profile.starts) + profile.slices > SLICES_MAX:
            yield EntryProblem(path, f"a GPU has at most {SLICES_MAX} memory slices")


def _decoding_problems(model: Model, slot: Slot) -> Iterator[EntryProblem]:
    """Yield the reasons why the document of a model is not a device of the API."""
    document = model.document(slot)
    for path in unknown_fields(document, Device):
        yield EntryProblem(parse_path(path), f"{path}: unknown field")
    try:
        model.batch((slot,))
    except DecodeError as error:
        for mismatch in error.mismatches:
            yield EntryProblem(parse_path(mismatch.path), str(mismatch))


def _batch_problems(batch: Batch) -> Iterator[FieldProblem]:
    devices = devices_on(batch, _SOME_NODE)
    for start in range(0, len(devices), _DEVICES_OF_A_SLICE):
        chunk = devices[start : start + _DEVICES_OF_A_SLICE]
        yield from _slice_problems(batch, ResourceSliceSpec(devices=chunk))
    for start in range(0, len(batch.shared_counters), _COUNTERS_OF_A_SLICE):
        sets = batch.shared_counters[start : start + _COUNTERS_OF_A_SLICE]
        yield from _slice_problems(batch, ResourceSliceSpec(shared_counters=sets))


def _slice_problems(batch: Batch, spec: ResourceSliceSpec) -> Iterable[FieldProblem]:
    return validate(
        ResourceSlice(
            metadata=ObjectMeta(name=_SOME_NODE),
            spec=ResourceSliceSpec(
                driver=batch.driver,
                node_name=_SOME_NODE,
                pool=ResourcePool(name=_SOME_NODE, generation=1, resource_slice_count=1),
                devices=spec.devices,
                shared_counters=spec.shared_counters,
            ),
        )
    )
