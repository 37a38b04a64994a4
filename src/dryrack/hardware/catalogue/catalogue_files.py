"""
From files to a catalogue, or to everything that is wrong with them.

Files add to a catalogue that is there already, and replace what it has under the same name. What
comes out is valid for the API: every model is tried in a slot such as there might be, and every
machine is put together as a node of it would publish it. That takes most of the time, and the
files that come with dryrack need not be tried each time that somebody looks something up.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING, Any

import msgspec

from dryrack.base.errors import DryrackError
from dryrack.hardware.catalogue.entries import (
    API_VERSION,
    KEPT,
    KIND,
    DeviceClassEntry,
    FileEntry,
    FittingEntry,
    InstanceTypeEntry,
    ModelEntry,
    ProfileEntry,
    SizeEntry,
)
from dryrack.hardware.catalogue.mig import Mig, Profile
from dryrack.hardware.catalogue.templates import completed
from dryrack.hardware.catalogue.validation import (
    class_problems,
    count_of,
    fitting_problems,
    machine_problems,
    model_problems,
    name_problems,
    value_at,
)
from dryrack.hardware.catalogue.values import Catalogue, Fitting, InstanceType, Model
from dryrack.hardware.names import suggestion
from dryrack.kinds import documents, shape
from dryrack.kinds.decode import DecodeError, decode
from dryrack.kinds.meta import ObjectMeta
from dryrack.kinds.resource import (
    CELDeviceSelector,
    DeviceClass,
    DeviceClassSpec,
    DeviceSelector,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dryrack.hardware.catalogue.entries import MigEntry
    from dryrack.hardware.catalogue.values import Slot
    from dryrack.kinds.documents import Document, Problem
    from dryrack.kinds.shape import Path

EMPTY = Catalogue()


class CatalogueError(DryrackError):
    """Files that are no catalogue; all that is wrong with them, with file and line."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = problems


class CatalogueCheck(Enum):
    """What is tried while files are read, beyond that they can be."""

    EVERYTHING = "everything"
    NOTHING = "nothing"


def parse(
    files: Mapping[str, bytes],
    base: Catalogue = EMPTY,
    *,
    check: CatalogueCheck = CatalogueCheck.EVERYTHING,
) -> Catalogue:
    """The catalogue of these files, by their names, on top of another."""
    reader = _Reader(base, check)
    for name, content in files.items():
        reader.read(name, content)
    reader.resolve()
    if reader.problems:
        raise CatalogueError(tuple(reader.problems))
    return Catalogue(
        {**base.models, **reader.models},
        {**base.instance_types, **reader.refitted, **reader.instance_types},
        {**base.families, **reader.families},
        {**base.device_classes, **reader.device_classes},
    )


@dataclass(slots=True)
class _Entry:
    """A named part of a file, and where it stands."""

    document: Document
    path: Path
    sources: tuple[str, ...]

    def problem(self, path: Path, message: str, fix: str = "") -> Problem:
        return self.document.problem((*self.path, *path), message, fix)


@dataclass(slots=True)
class _Reader:
    """Gathers what the files say, then puts it together."""

    base: Catalogue
    check: CatalogueCheck
    families: dict[str, ModelEntry] = field(default_factory=dict)
    entries: list[tuple[_Entry, ModelEntry]] = field(default_factory=list)
    machines: list[tuple[_Entry, InstanceTypeEntry]] = field(default_factory=list)
    sizes: list[tuple[_Entry, str, SizeEntry]] = field(default_factory=list)
    models: dict[str, Model] = field(default_factory=dict)
    instance_types: dict[str, InstanceType] = field(default_factory=dict)
    refitted: dict[str, InstanceType] = field(default_factory=dict)
    device_classes: dict[str, DeviceClass] = field(default_factory=dict)
    wrong_models: set[str] = field(default_factory=set)
    problems: list[Problem] = field(default_factory=list)

    def read(self, name: str, content: bytes) -> None:
        reading = documents.read(content, name)
        self.problems += reading.problems
        for document in reading.documents:
            wrong = list(_strangeness(document))
            self.problems += wrong
            if not wrong:
                self._gather(document, decode(document.raw, FileEntry))

    def _gather(self, document: Document, file: FileEntry) -> None:
        for index, family in enumerate(file.families):
            at = _Entry(document, ("families", index), file.sources)
            self.problems += self._naming(at, family.name, self.families)
            self.families[family.name] = family
        for index, model in enumerate(file.models):
            self.entries.append((_Entry(document, ("models", index), file.sources), model))
        for index, machine in enumerate(file.instance_types):
            at = _Entry(document, ("instanceTypes", index), file.sources)
            self.machines.append((at, machine))
        for name, size in file.sizes.items():
            self.sizes.append((_Entry(document, ("sizes", name), file.sources), name, size))
        for index, each in enumerate(file.device_classes):
            self._add_class(_Entry(document, ("deviceClasses", index), file.sources), each)

    def _add_class(self, entry: _Entry, written: DeviceClassEntry) -> None:
        self.problems += self._naming(entry, written.name, self.device_classes)
        made = self.device_classes[written.name] = _device_class(written)
        if self.check is CatalogueCheck.EVERYTHING:
            self.problems += (
                entry.problem(found.path, f"class {written.name!r}: {found.message}", found.fix)
                for found in class_problems(made)
            )

    def resolve(self) -> None:
        """Models first: machines are made of them."""
        for entry, model in self.entries:
            self._add_model(entry, model)
        for entry, machine in self.machines:
            self._add_machine(entry, machine)
        for entry, name, size in self.sizes:
            self._add_size(entry, name, size)

    def _add_size(self, entry: _Entry, name: str, size: SizeEntry) -> None:
        stated = {"cpu": size.cpu, "memory": size.memory}
        known = {key: str(value) for key, value in stated.items() if value is not None}
        below = {**self.base.instance_types, **self.refitted}
        if name in self.instance_types:
            self.instance_types[name] = replace(self.instance_types[name], size=known)
        elif name in below:
            self.refitted[name] = replace(below[name], size=known)
        else:
            message = f"size of {name!r}: unknown instance type"
            fix = suggestion(name, {**below, **self.instance_types}) or "add the instance type"
            self.problems.append(entry.problem((), message, fix))

    def _add_model(self, entry: _Entry, written: ModelEntry) -> None:
        families = {**self.base.families, **self.families}
        if written.family and written.family not in families:
            message = f"model {written.name!r}: unknown family {written.family!r}"
            fix = suggestion(written.family, families) or f"use one of: {', '.join(families)}"
            self.problems.append(entry.problem(("family",), message, fix))
            return
        model = _model(written, families.get(written.family), entry.sources)
        self.problems += self._naming(entry, written.name, self.models)
        wrong = (
            list(model_problems(model, written)) if self.check is CatalogueCheck.EVERYTHING else []
        )
        self.problems += (
            entry.problem(found.path, f"model {written.name!r}: {found.message}", found.fix)
            for found in wrong
        )
        # Even one that is wrong is known: what has it should not be said to be wrong as well.
        self.models[written.name] = model
        if wrong:
            self.wrong_models.add(written.name)
        elif written.name in self.base.models:
            self._refit(entry, model)

    def _refit(self, entry: _Entry, model: Model) -> None:
        """Machines of the catalogue below have the model as it is now."""
        needed = [name for name, must in model.variables().items() if must]
        for machine in {**self.base.instance_types, **self.refitted}.values():
            slots = machine.slots_of(model.name)
            lacking = [name for name in needed if any(name not in slot for slot in slots)]
            if lacking:
                what = f"instance type {machine.name!r} does not set {lacking[0]}"
                fix = f"write {{{lacking[0]}?}}, or add the instance type as well"
                self.problems.append(entry.problem((), f"model {model.name!r}: {what}", fix))
                return
            if slots:
                self.refitted[machine.name] = _with_model(machine, model)
                self._try_machine(entry, self.refitted[machine.name])

    def _naming(self, entry: _Entry, name: str, taken: Mapping[str, Any]) -> Iterator[Problem]:
        if not name:
            yield entry.problem((), "an entry has no name", "add a name that no other entry has")
        elif name in taken:
            yield entry.problem((), f"{name!r} is defined twice", "remove one of the two")

    def _add_machine(self, entry: _Entry, written: InstanceTypeEntry) -> None:
        if not written.names:
            self.problems += self._naming(entry, "", {})
        fittings = list(self._fittings(entry, written))
        if len(fittings) != len(written.devices):
            return
        for name in written.names:
            self.problems += self._naming(entry, name, self.instance_types)
            self.problems += (
                entry.problem(("names",), f"instance type {name!r}: {message}")
                for message in name_problems(name)
            )
            made = tuple(Fitting(model, _slots(each, name)) for model, each in fittings)
            machine = InstanceType(name, written.provider, made, written.note, entry.sources)
            self.instance_types[name] = machine
        # Machines of one entry differ in nothing but their name: it is enough to try the first.
        for name in written.names[:1]:
            self._try_machine(entry, self.instance_types[name])

    def _try_machine(self, entry: _Entry, machine: InstanceType) -> None:
        doubtful = any(fitting.model.name in self.wrong_models for fitting in machine.fittings)
        if self.check is CatalogueCheck.EVERYTHING and not doubtful:
            self.problems += (
                entry.problem(
                    found.path, f"instance type {machine.name!r}: {found.message}", found.fix
                )
                for found in machine_problems(machine)
            )

    def _fittings(
        self, entry: _Entry, written: InstanceTypeEntry
    ) -> Iterator[tuple[Model, FittingEntry]]:
        known = {**self.base.models, **self.models}
        title = ", ".join(written.names)
        for index, fitting in enumerate(written.devices):
            at = ("devices", index)
            model = known.get(fitting.model)
            if model is None:
                message = f"instance type {title}: unknown model {fitting.model!r}"
                fix = (
                    suggestion(fitting.model, known)
                    or "for the known models, run: dryrack hardware list"
                )
                self.problems.append(entry.problem((*at, "model"), message, fix))
                continue
            wrong = list(fitting_problems(model, fitting))
            self.problems += (
                entry.problem((*at, *found.path), f"instance type {title}: {found.message}")
                for found in wrong
            )
            if not wrong:
                yield model, fitting


def _strangeness(document: Document) -> Iterator[Problem]:
    """What makes a document no file of a catalogue."""
    if (document.api_version, document.kind) != (API_VERSION, KIND):
        message = f"expected apiVersion {API_VERSION} and kind {KIND}"
        got = f"{document.api_version!r} and {document.kind!r}"
        yield document.problem(("kind",), f"{message}, got {got}")
        return
    for path in shape.unknown(document.raw, shape.of(FileEntry)):
        yield document.problem(path, f"{shape.render(path)}: unknown field", _field_meant(path))
    try:
        decode(document.raw, FileEntry)
    except DecodeError as error:
        for mismatch in error.mismatches:
            yield document.problem(mismatch.path, str(mismatch))


def _field_meant(path: Path) -> str:
    known = sorted(
        field.encode_name
        for entry in (
            *(FileEntry, ModelEntry, InstanceTypeEntry, FittingEntry, ProfileEntry),
            *(DeviceClassEntry, SizeEntry),
        )
        for field in msgspec.structs.fields(entry)
    )
    return suggestion(str(path[-1]), known)


def _model(written: ModelEntry, family: ModelEntry | None, sources: tuple[str, ...]) -> Model:
    shared = family or ModelEntry()
    multiple = written.allow_multiple_allocations
    return Model(
        name=written.name,
        vendor=written.vendor or shared.vendor,
        title=written.title or written.name,
        driver=written.driver or shared.driver,
        device=written.device or shared.device,
        attributes={**shared.attributes, **written.attributes},
        capacity={**shared.capacity, **written.capacity},
        allow_multiple_allocations=(
            shared.allow_multiple_allocations if multiple is None else multiple
        ),
        mig=_mig(written.mig or shared.mig),
        note=written.note or shared.note,
        sources=sources,
    )


def _device_class(written: DeviceClassEntry) -> DeviceClass:
    selector = DeviceSelector(cel=CELDeviceSelector(expression=written.expression))
    return DeviceClass(
        metadata=ObjectMeta(name=written.name),
        spec=DeviceClassSpec(
            selectors=(selector,), extended_resource_name=written.extended_resource_name
        ),
    )


def _with_model(machine: InstanceType, model: Model) -> InstanceType:
    fittings = tuple(
        replace(each, model=model) if each.model.name == model.name else each
        for each in machine.fittings
    )
    return replace(machine, fittings=fittings)


def _mig(written: MigEntry | None) -> Mig | None:
    if written is None:
        return None
    profiles = (
        Profile(each.name, each.id, each.starts, each.slices, each.capacity)
        for each in written.profiles
    )
    return Mig(written.whole_device == KEPT, tuple(profiles))


def _slots(written: FittingEntry, type_: str) -> tuple[Slot, ...]:
    """What is particular to each device, from lists with one item for each."""
    return tuple(
        completed(
            {"index": index, "type": type_}
            | {name: value_at(values, index) for name, values in written.each.items()}
        )
        for index in range(count_of(written))
    )
