"""
`dryrack publish --dry-run`: print the ResourceSlices to standard output, notes to standard error.

The nodes and the device configuration come from a cluster or from files.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from typing import TYPE_CHECKING

from dryrack.base.errors import ContentError
from dryrack.cli.files import read_sources
from dryrack.cli.output import Format, many, print_data, print_table, say, shown
from dryrack.cli.publish import config_hint
from dryrack.cli.views.slice_table import SLICE_COLUMNS, slice_rows
from dryrack.client.endpoints import CONFIG_MAPS, DRA_CONFIGS, NODE_OVERLAYS, NODES
from dryrack.controllers import Create, Delete
from dryrack.controllers.slices import SHARED, DryRunInput, compute_dry_run, reader_of
from dryrack.hardware import Source, SourceKind
from dryrack.hardware.config_formats import read_config_map
from dryrack.kinds.catalog import Typed, typed
from dryrack.kinds.documents import read
from dryrack.kinds.other_kinds import Mistaken, standing
from dryrack.linter import object_problems

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from dryrack.controllers.slices import PublisherSettings, SliceChanges
    from dryrack.hardware.config_formats import Reading
    from dryrack.kinds.documents import Document, Problem
    from dryrack.kinds.raw import Raw

_SYSTEM = ("uid", "resourceVersion", "generation", "creationTimestamp", "managedFields")


def world_of(names: Sequence[str], options: PublisherSettings) -> DryRunInput:
    """Return the objects of the files; print a note for each object that publishing ignores."""
    contents = {source.name: source.content for source in read_sources(names)}
    documents: list[Document] = []
    problems: list[Problem] = []
    for name, content in contents.items():
        reading = read(content, name)
        documents += reading.documents
        problems += reading.problems
    problems += [problem for document in documents for problem in _faults(document)]
    if problems:
        raise ContentError("\n".join(str(problem) for problem in problems))
    return _world(documents, contents, options)


def _world(
    documents: Iterable[Document], contents: Mapping[str, bytes], options: PublisherSettings
) -> DryRunInput:
    objects: dict[str, list[Raw]] = {kind: [] for kind in _KINDS}
    readings: dict[Source, Reading] = {}
    for document in documents:
        if not _takes_part(document, options):
            what = f"{document.kind} {document.name}".strip()
            place = f"{document.file}:{document.line}"
            say(shown(f"{place}: ignored {what}: dryrack publish does not use it"))
        else:
            # The server would add a uid.
            metadata = {"uid": "", **document.raw["metadata"]}
            objects[document.kind].append(document.raw | {"metadata": metadata})
            readings.update(_read(document, contents[document.file], options))
    return DryRunInput(
        nodes=objects[NODES.kind],
        config_maps=objects[CONFIG_MAPS.kind],
        overlays=objects[NODE_OVERLAYS.kind],
        configs=objects[DRA_CONFIGS.kind],
        readings=readings,
    )


_KINDS = {each.kind: each for each in (NODES, CONFIG_MAPS, NODE_OVERLAYS, DRA_CONFIGS)}


def _faults(document: Document) -> Iterator[Problem]:
    """Yield the problems of an object: a misspelled kind, or an invalid Node."""
    kind = standing(document)
    if isinstance(kind, Mistaken):
        yield document.problem(kind.path, kind.message, kind.fix)
    elif (document.api_version, document.kind) == (NODES.api_version, NODES.kind):
        object_ = typed(document)
        if not isinstance(object_, Typed):
            yield from object_
            return
        named = f"Node {document.name}".strip()
        for each in object_problems(document) or ():
            message = f"{named}: {each.field}: {each.message}"
            yield document.problem(each.field, message, each.fix or "")


def _read(document: Document, content: bytes, options: PublisherSettings) -> dict[Source, Reading]:
    """Return the device configuration in a document, with the lines of its file."""
    if document.kind == NODES.kind:
        return {}
    kind = SourceKind(document.kind)
    source = Source(kind, document.name)
    if kind is not SourceKind.CONFIG_MAP:
        return {source: reader_of(kind, options)(document)}
    text = content.decode(errors="replace")
    reading = read_config_map(document, key=options.key, driver=options.driver, content=text)
    return {source: reading}


def _takes_part(document: Document, options: PublisherSettings) -> bool:
    endpoint = _KINDS.get(document.kind)
    if endpoint is None or endpoint.api_version != document.api_version or not document.name:
        return False
    if endpoint != CONFIG_MAPS:
        return True
    there = (document.namespace or options.namespace, document.name)
    return there == (options.namespace, options.config_map)


def show(world: DryRunInput, options: PublisherSettings, form: Format) -> bool:
    """Print what would be published; return whether every document could be read."""
    result = compute_dry_run(world, options, now=time.time())
    slices = [_without_server_fields(each) for change in result.changes for each in change.slices]
    if form is Format.TABLE:
        print_table(SLICE_COLUMNS, slice_rows(slices))
    elif form is Format.JSON:
        print_data({"apiVersion": "v1", "kind": "List", "items": slices}, form)
    else:
        for number, each in enumerate(slices):
            if number:
                sys.stdout.write("---\n")
            print_data(each, Format.YAML)
    if not (world.config_maps or world.overlays or world.configs or options.catalogue):
        say(config_hint(options))
    warnings = [str(warning) for warning in result.warnings]
    for warning in warnings:
        say(shown(f"warning: {warning}"))
    for note in result.notes:
        if not any(note.partition(": ")[2] in warning for warning in warnings):
            say(shown(f"note: {note}"))
    for problem in result.problems:
        say(shown(f"not applied: {problem}"))
    say(f"{_count_slices(result.changes)}: {_count_writes(result.changes)}")
    return not result.problems


def _without_server_fields(slice_: Raw) -> Raw:
    """Return a slice without the fields of the server and without owners that do not exist."""
    metadata = {key: value for key, value in slice_["metadata"].items() if key not in _SYSTEM}
    owners = [each for each in metadata.pop("ownerReferences", ()) if each.get("uid")]
    if owners:
        metadata["ownerReferences"] = owners
    kind = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice"}
    return {**kind, "metadata": metadata, "spec": slice_["spec"]}


def _count_slices(changes: Iterable[SliceChanges]) -> str:
    slices: Counter[str] = Counter({change.node: len(change.slices) for change in changes})
    shared = slices.pop(SHARED, 0)
    nodes = sum(bool(count) for count in slices.values())
    text = f"{many(slices.total(), 'slice')} for {many(nodes, 'node')}"
    return f"{text}, {many(shared, 'slice')} for the whole cluster" if shared else text


def _count_writes(changes: Iterable[SliceChanges]) -> str:
    counts = Counter(
        "create"
        if isinstance(write, Create)
        else "delete"
        if isinstance(write, Delete)
        else "change"
        for change in changes
        for write in change.writes
    )
    parts = (f"{counts[verb]} to {verb}" for verb in ("create", "change", "delete") if counts[verb])
    return ", ".join(parts) or "nothing to write"
