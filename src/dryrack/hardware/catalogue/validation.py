"""
Would the API server take what a model or a machine publishes?

Asked when a file is read, so that no node learns of it. What is found is told by the path within
the entry that has it.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dryrack.cel.admission import SelectorChecker
from dryrack.hardware.catalogue.entries import HIDDEN, KEPT
from dryrack.hardware.catalogue.identity import devices_on
from dryrack.hardware.catalogue.selection import Cards
from dryrack.hardware.catalogue.templates import GIVEN, PCI_ADDRESS
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

# A machine has 16 cards and 32 network adapters at most; many more is a slip of the finger.
COUNT_MAX = 128
# With a counter for each, and one for each kind of engine, a counter set is full.
SLICES_MAX = 24
# As many devices as a slice may have, whatever they are.
_DEVICES_OF_A_SLICE = 64
_COUNTERS_OF_A_SLICE = 8
_SOME_NODE = "node"
_WITHIN = re.compile(r"^spec\.(devices\[\d+\]\.)?")


@dataclass(frozen=True, slots=True)
class Found:
    """Something wrong with an entry."""

    path: Path
    message: str
    fix: str = ""


def class_problems(made: DeviceClass) -> Iterator[Found]:
    """What the API server would have against a class."""
    for problem in validate(made, checker=SelectorChecker()):
        path: Path = ("expression",)
        if "metadata" in problem.field:
            path = ("name",)
        elif problem.field == "spec.extendedResourceName":
            path = ("extendedResourceName",)
        yield Found(path, problem.message, problem.fix)


def model_problems(model: Model, written: ModelEntry) -> Iterator[Found]:
    """What is wrong with a model, wherever it sits."""
    if not model.device:
        yield Found((), "has no device", "add device with a name such as gpu-{index}")
        return
    mig = list(_mig_problems(written.mig)) if written.mig is not None else []
    yield from mig
    slot = model.sample_slot()
    unreadable = list(_unreadable(model, slot))
    yield from unreadable
    if mig or unreadable:
        return
    for cards in Cards if model.mig else (Cards.WHOLE,):
        for problem in _refusals(model.batch((slot,), cards)):
            yield _found(problem)


def fitting_problems(model: Model, written: FittingEntry) -> Iterator[Found]:
    """What does not fit between a model and what a machine says of its devices."""
    count = count_of(written)
    if not 1 <= count <= COUNT_MAX:
        yield Found((), f"{count} devices; expected 1 to {COUNT_MAX}")
    for name, values in written.each.items():
        if isinstance(values, list) and len(values) != count:
            yield Found(("each", name), f"{len(values)} values of {name} for {count} devices")
    known = model.variables()
    for name in sorted(set(written.each) - {*known, *GIVEN}):
        yield Found(("each", name), f"model {model.name!r} has no placeholder {{{name}}}")
    for name in sorted(name for name, needed in known.items() if needed):
        if name not in written.each:
            yield Found(("each",), f"model {model.name!r} needs {name}, one for each device")
    for index, address in enumerate(_list_of(written.each.get("pci", []))):
        if not (isinstance(address, str) and PCI_ADDRESS.fullmatch(address)):
            message = f"{address!r} is not a PCI address in lower case, such as 0000:1f:00.0"
            yield Found(("each", "pci", index), message)


def machine_problems(machine: InstanceType) -> Iterator[Found]:
    """What is wrong with all devices of a machine together."""
    for index, fitting in enumerate(machine.fittings):
        wrong = [found for slot in fitting.slots for found in _unreadable(fitting.model, slot)]
        if wrong:
            yield Found(("devices", index), wrong[0].message)
            return
    for batch in machine.assignment(Cards.WHOLE).batches:
        for name, times in Counter(device.name for device in batch.devices).items():
            if times > 1:
                fix = "give each device a different index"
                yield Found(("devices",), f"{times} devices of {batch.driver} named {name}", fix)
        for problem in _refusals(batch):
            yield Found(("devices",), str(problem), problem.fix)


def name_problems(name: str) -> tuple[str, ...]:
    """Why no node can have this instance type: it is the value of a label."""
    return label_value(name)


def count_of(written: FittingEntry) -> int:
    """How many devices: as many as were said, or as many as there are values for."""
    if written.count is not None:
        return written.count
    lists = (values for values in written.each.values() if isinstance(values, list))
    return max(map(len, lists), default=1)


def value_at(values: Any, index: int) -> Any:
    """What is particular to one device."""
    return values[index] if isinstance(values, list) else values


def _list_of(values: Any) -> list[Any]:
    return values if isinstance(values, list) else [values]


def _mig_problems(mig: MigEntry) -> Iterator[Found]:
    if mig.whole_device not in (KEPT, HIDDEN):
        message = f"mig.wholeDevice: expected {KEPT} or {HIDDEN}, got {mig.whole_device!r}"
        yield Found(("mig", "wholeDevice"), message)
    if not mig.profiles:
        yield Found(("mig",), "mig.profiles is empty")
    for index, profile in enumerate(mig.profiles):
        at: Path = ("mig", "profiles", index)
        if not (profile.name and profile.starts and profile.capacity):
            yield Found(at, "a profile needs a name, starts, slices and capacity")
        elif profile.slices < 1 or min(profile.starts) < 0:
            yield Found(at, "slices must be at least 1, and starts must be at least 0")
        elif max(profile.starts) + profile.slices > SLICES_MAX:
            yield Found(at, f"a GPU has at most {SLICES_MAX} memory slices")


def _unreadable(model: Model, slot: Slot) -> Iterator[Found]:
    """What keeps a model from being a device at all."""
    document = model.document(slot)
    for path in unknown_fields(document, Device):
        yield Found(parse_path(path), f"{path}: unknown field")
    try:
        model.batch((slot,))
    except DecodeError as error:
        for mismatch in error.mismatches:
            yield Found(parse_path(mismatch.path), str(mismatch))


def _refusals(batch: Batch) -> Iterator[FieldProblem]:
    devices = devices_on(batch, _SOME_NODE)
    for start in range(0, len(devices), _DEVICES_OF_A_SLICE):
        some = devices[start : start + _DEVICES_OF_A_SLICE]
        yield from _refused(batch, ResourceSliceSpec(devices=some))
    for start in range(0, len(batch.shared_counters), _COUNTERS_OF_A_SLICE):
        sets = batch.shared_counters[start : start + _COUNTERS_OF_A_SLICE]
        yield from _refused(batch, ResourceSliceSpec(shared_counters=sets))


def _refused(batch: Batch, spec: ResourceSliceSpec) -> Iterable[FieldProblem]:
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


def _found(problem: FieldProblem) -> Found:
    """A model's problem by the path in the model: its fields are named as the device's are."""
    field = _WITHIN.sub("", problem.field)
    # The name of a device is made from what the model calls `device`.
    path = ("device",) if field == "name" else parse_path(field)
    return Found(path, f"{field}: {problem.message}", problem.fix)
