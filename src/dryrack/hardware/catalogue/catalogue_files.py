"""
Catalog files: read them into a catalog, or report all their problems.

Files add to an existing catalog, and replace its entries of the same name. The result is valid for
the API: every model is validated in a sample slot, and every instance type with the devices that
its nodes publish. Validation takes most of the time; it is skipped for the files that come with
dryrack.
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
from dryrack.hardware.catalogue.templates import add_pci_values
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

    from dryrack.hardware.catalogue.values import Slot
    from dryrack.kinds.documents import Document, Problem
    from dryrack.kinds.shape import Path

EMPTY = Catalogue()


class CatalogueError(DryrackError):
    """Catalog files are invalid; contains all problems, with file and line."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = problems


class CatalogueCheck(Enum):
    """The extent of the validation of files, beyond their syntax."""

    EVERYTHING = "everything"
    NOTHING = "nothing"


def parse(
    files: Mapping[str, bytes],
    base: Catalogue = EMPTY,
    *,
    check: CatalogueCheck = CatalogueCheck.EVERYTHING,
) -> Catalogue:
    """Return the catalog of these files, by file name, on top of another catalog."""
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
    """An entry of a file, and its path."""

    document: Document
    path: Path
    sources: tuple[str, ...]

    def problem(self, path: Path, message: str, fix: str = "") -> Problem:
        return self.document.problem((*self.path, *path), message, fix)


@dataclass(slots=True)
class _Reader:
    """Collects the entries of all files, then resolves their references."""

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
    invalid_models: set[str] = field(default_factory=set)
    problems: list[Problem] = field(default_factory=list)

    def read(self, name: str, content: bytes) -> None:
        reading = documents.read(content, name)
        self.problems += reading.problems
        for document in reading.documents:
            problems = list(_document_problems(document))
            self.problems += problems
            if not problems:
                self._collect(document, decode(document.raw, FileEntry))

    def _collect(self, document: Document, file: FileEntry) -> None:
        for index, family in enumerate(file.families):
            at = _Entry(document, ("families", index), file.sources)
            self.problems += _name_problems(at, family.name, self.families)
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
        self.problems += _name_problems(entry, written.name, self.device_classes)
        selector = DeviceSelector(cel=CELDeviceSelector(expression=written.expression))
        device_class = self.device_classes[written.name] = DeviceClass(
            metadata=ObjectMeta(name=written.name),
            spec=DeviceClassSpec(
                selectors=(selector,), extended_resource_name=written.extended_resource_name
            ),
        )
        if self.check is CatalogueCheck.EVERYTHING:
            self.problems += (
                entry.problem(each.path, f"class {written.name!r}: {each.message}", each.fix)
                for each in class_problems(device_class)
            )

    def resolve(self) -> None:
        """Resolve models before the instance types that have them."""
        for entry, model in self.entries:
            self._add_model(entry, model)
        for entry, machine in self.machines:
            self._add_machine(entry, machine)
        for entry, name, size in self.sizes:
            self._add_size(entry, name, size)

    def _add_size(self, entry: _Entry, name: str, size: SizeEntry) -> None:
        quantities = {"cpu": size.cpu, "memory": size.memory}
        texts = {key: str(value) for key, value in quantities.items() if value is not None}
        existing = {**self.base.instance_types, **self.refitted}
        if name in self.instance_types:
            self.instance_types[name] = replace(self.instance_types[name], size=texts)
        elif name in existing:
            self.refitted[name] = replace(existing[name], size=texts)
        else:
            message = f"size of {name!r}: unknown instance type"
            fix = suggestion(name, {**existing, **self.instance_types}) or "add the instance type"
            self.problems.append(entry.problem((), message, fix))

    def _add_model(self, entry: _Entry, written: ModelEntry) -> None:
        families = {**self.base.families, **self.families}
        if written.family and written.family not in families:
            message = f"model {written.name!r}: unknown family {written.family!r}"
            fix = suggestion(written.family, families) or f"use one of: {', '.join(families)}"
            self.problems.append(entry.problem(("family",), message, fix))
            return
        model = _model(written, families.get(written.family), entry.sources)
        self.problems += _name_problems(entry, written.name, self.models)
        is_checked = self.check is CatalogueCheck.EVERYTHING
        problems = list(model_problems(model, written)) if is_checked else []
        self.problems += (
            entry.problem(each.path, f"model {written.name!r}: {each.message}", each.fix)
            for each in problems
        )
        # An invalid model is added as well, so that instance types with it get no further problem.
        self.models[written.name] = model
        if problems:
            self.invalid_models.add(written.name)
        elif written.name in self.base.models:
            self._refit(entry, model)

    def _refit(self, entry: _Entry, model: Model) -> None:
        """Replace the model in instance types of the existing catalog."""
        required = [name for name, is_required in model.variables().items() if is_required]
        for machine in {**self.base.instance_types, **self.refitted}.values():
            slots = machine.slots_of(model.name)
            missing = [name for name in required if any(name not in slot for slot in slots)]
            if missing:
                what = f"instance type {machine.name!r} does not set {missing[0]}"
                fix = f"write {{{missing[0]}?}}, or add the instance type as well"
                self.problems.append(entry.problem((), f"model {model.name!r}: {what}", fix))
                return
            if slots:
                fittings = tuple(
                    replace(each, model=model) if each.model.name == model.name else each
                    for each in machine.fittings
                )
                self.refitted[machine.name] = replace(machine, fittings=fittings)
                self._check_machine(entry, self.refitted[machine.name])

    def _add_machine(self, entry: _Entry, written: InstanceTypeEntry) -> None:
        if not written.names:
            self.problems += _name_problems(entry, "", {})
        fittings = list(self._find_fittings(entry, written))
        if len(fittings) != len(written.devices):
            return
        for name in written.names:
            self.problems += _name_problems(entry, name, self.instance_types)
            self.problems += (
                entry.problem(("names",), f"instance type {name!r}: {message}")
                for message in name_problems(name)
            )
            machine = InstanceType(
                name,
                written.provider,
                tuple(Fitting(model, _slots(each, name)) for model, each in fittings),
                written.note,
                entry.sources,
            )
            self.instance_types[name] = machine
        # The instance types of one entry differ only in their names: one check is enough.
        for name in written.names[:1]:
            self._check_machine(entry, self.instance_types[name])

    def _check_machine(self, entry: _Entry, machine: InstanceType) -> None:
        if self.check is not CatalogueCheck.EVERYTHING:
            return
        if any(fitting.model.name in self.invalid_models for fitting in machine.fittings):
            return
        prefix = f"instance type {machine.name!r}"
        self.problems += (
            entry.problem(each.path, f"{prefix}: {each.message}", each.fix)
            for each in machine_problems(machine)
        )

    def _find_fittings(
        self, entry: _Entry, written: InstanceTypeEntry
    ) -> Iterator[tuple[Model, FittingEntry]]:
        models = {**self.base.models, **self.models}
        title = ", ".join(written.names)
        for index, fitting in enumerate(written.devices):
            path = ("devices", index)
            model = models.get(fitting.model)
            if model is None:
                message = f"instance type {title}: unknown model {fitting.model!r}"
                fix = (
                    suggestion(fitting.model, models)
                    or "for the known models, run: dryrack hardware list"
                )
                self.problems.append(entry.problem((*path, "model"), message, fix))
                continue
            problems = list(fitting_problems(model, fitting))
            self.problems += (
                entry.problem((*path, *each.path), f"instance type {title}: {each.message}")
                for each in problems
            )
            if not problems:
                yield model, fitting


def _name_problems(entry: _Entry, name: str, taken: Mapping[str, Any]) -> Iterator[Problem]:
    if not name:
        yield entry.problem((), "an entry has no name", "add a name that no other entry has")
    elif name in taken:
        yield entry.problem((), f"{name!r} is defined twice", "remove one of the two")


def _document_problems(document: Document) -> Iterator[Problem]:
    """Yield the reasons why a document is not a catalog file."""
    if (document.api_version, document.kind) != (API_VERSION, KIND):
        message = f"expected apiVersion {API_VERSION} and kind {KIND}"
        got = f"{document.api_version!r} and {document.kind!r}"
        yield document.problem(("kind",), f"{message}, got {got}")
        return
    for path in shape.unknown(document.raw, shape.of(FileEntry)):
        fix = _suggest_field(path)
        yield document.problem(path, f"{shape.render(path)}: unknown field", fix)
    try:
        decode(document.raw, FileEntry)
    except DecodeError as error:
        for mismatch in error.mismatches:
            yield document.problem(mismatch.path, str(mismatch))


def _suggest_field(path: Path) -> str:
    fields = sorted(
        field.encode_name
        for entry in (
            *(FileEntry, ModelEntry, InstanceTypeEntry, FittingEntry, ProfileEntry),
            *(DeviceClassEntry, SizeEntry),
        )
        for field in msgspec.structs.fields(entry)
    )
    return suggestion(str(path[-1]), fields)


def _model(written: ModelEntry, family: ModelEntry | None, sources: tuple[str, ...]) -> Model:
    shared = family or ModelEntry()
    multiple = written.allow_multiple_allocations
    mig = written.mig or shared.mig
    if mig is not None:
        profiles = tuple(
            Profile(each.name, each.id, each.starts, each.slices, each.capacity)
            for each in mig.profiles
        )
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
        mig=None if mig is None else Mig(mig.whole_device == KEPT, profiles),
        note=written.note or shared.note,
        sources=sources,
    )


def _slots(written: FittingEntry, type_: str) -> tuple[Slot, ...]:
    """Return the values of each device, from lists with one item for each."""
    return tuple(
        add_pci_values(
            {"index": index, "type": type_}
            | {name: value_at(values, index) for name, values in written.each.items()}
        )
        for index in range(count_of(written))
    )
