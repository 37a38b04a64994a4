"""
NodeDevices: a document in a file that replaces many values of `--devices`.

It is never stored in a cluster. All problems are in one error, each with file, line, field and fix.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from dryrack.base.errors import ContentError
from dryrack.base.text import hint
from dryrack.kinds import shape
from dryrack.kinds.decode import DecodeError, decode
from dryrack.kinds.documents import Document, Problem, read
from dryrack.kinds.meta import Int32, Model
from dryrack.kinds.shape import Path
from dryrack.kinds.text.source_positions import parse_path
from dryrack.kubeletplugin.device_kind import KindOptions

API_VERSION = "dryrack.dev/v1alpha1"
KIND = "NodeDevices"


class DevicesFileError(ContentError):
    """All problems of NodeDevices documents, each with its line."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = tuple(problems)


class DevicesEntry(Model, frozen=True, kw_only=True):
    """Devices of one kind, as in one `--devices`."""

    kind: str = ""
    name: str = ""
    """The instance type or model, for the kind `catalogue`."""
    count: Int32 | None = None
    options: Mapping[str, Any] = {}


class NodeDevicesDocument(Model, frozen=True, kw_only=True):
    """The whole document."""

    api_version: str = ""
    kind: str = ""
    devices: tuple[DevicesEntry, ...] = ()


def is_node_devices(document: Document) -> bool:
    return document.kind == KIND and document.api_version.partition("/")[0] == "dryrack.dev"


def devices_documents(data: bytes, name: str) -> tuple[Document, ...]:
    """Return the documents of a file; raise an error if it has other documents."""
    reading = read(data, name)
    others = [each for each in reading.documents if not is_node_devices(each)]
    problems = [
        *reading.problems,
        *(
            each.problem(
                "",
                f"{each.kind or 'a document without kind'} is not {KIND}",
                f"write kind: {KIND} and apiVersion: {API_VERSION}",
            )
            for each in others
        ),
    ]
    _raise(problems)
    return reading.documents


def options_in(document: Document) -> tuple[KindOptions, ...]:
    """Return the options of a document's entries, in their order."""
    if document.api_version != API_VERSION:
        message = f"apiVersion: {document.api_version!r} is not supported"
        _raise([document.problem("apiVersion", message, f"write {API_VERSION}")])
    written = _decode(document)
    problems = [
        each for entry in enumerate(written.devices) for each in _problems(document, *entry)
    ]
    if not written.devices:
        message = "devices: the list is empty"
        problems.append(
            document.problem("devices", message, "add an entry, for example - kind: fake")
        )
    _raise(problems)
    return tuple(
        KindOptions(
            each.kind, each.count, {k: _text(v) for k, v in each.options.items()}, each.name
        )
        for each in written.devices
    )


def problem_with(
    document: Document, index: int, options: KindOptions, words: str
) -> DevicesFileError:
    """Return the error of a kind about its options, at the line of the options."""
    path: Path = ("devices", index)
    for name in options.options:
        if f"{name}=" in words or f"no option {name!r}" in words:
            path = (*path, "options", name)
            break
    if words.startswith("--devices "):
        _, _, words = words.partition(": ")
    return DevicesFileError([_problem(document, path, words)])


def _decode(document: Document) -> NodeDevicesDocument:
    form = shape.of(NodeDevicesDocument)
    known = ("apiVersion", "kind", "metadata", "devices", "name", "count", "options")
    problems = [
        _problem(document, path, "unknown field", hint(str(path[-1]), known))
        for path in shape.unknown(document.raw, form)
        if path[0] != "metadata"
    ]
    try:
        written = decode(document.raw, NodeDevicesDocument)
    except DecodeError as error:
        problems += [
            _problem(document, parse_path(each.path), f"expected {each.expected}, got {each.got}")
            for each in error.mismatches
        ]
        written = NodeDevicesDocument()
    _raise(problems)
    return written


def _problems(document: Document, index: int, entry: DevicesEntry) -> Sequence[Problem]:
    within: Path = ("devices", index)
    if not entry.kind:
        return [_problem(document, within, "kind is missing", "add a kind, for example kind: fake")]
    if entry.count is not None and entry.count < 1:
        return [_problem(document, (*within, "count"), f"{entry.count} is less than 1")]
    return [
        _problem(document, (*within, "options", name), "expected a string, a number or a boolean")
        for name, value in entry.options.items()
        if not isinstance(value, str | bool | int)
    ]


def _problem(document: Document, path: Path, message: str, fix: str = "") -> Problem:
    return document.problem(path, f"{shape.render(path)}: {message}", fix)


def _raise(problems: Sequence[Problem]) -> None:
    if problems:
        raise DevicesFileError(problems)


def _text(value: str | bool | int) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
