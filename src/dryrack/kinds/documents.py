"""
Files of Kubernetes objects, as text, to documents that know their lines.

Any mix of YAML and JSON, many documents to a file, lists unwrapped. What is wrong comes back
as problems, all of them, each with file, line and what would fix it; nothing is raised. No
file is opened here: the caller brings the bytes and a name to call them by.
"""

import codecs
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dryrack.base.limits import FILE_BYTES_MAX
from dryrack.kinds.registry import KINDS
from dryrack.kinds.shape import Path, described
from dryrack.kinds.text import manifest_text
from dryrack.kinds.text.parsed import Fault, Parsed
from dryrack.kinds.text.source_positions import Place, Places, parse_path

# The marks of UTF-16 are the beginnings of those of UTF-32.
_OTHER_ENCODINGS = {
    "UTF-32": (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE),
    "UTF-16": (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE),
}
_CLUSTER_WIDE = frozenset(
    {"NodeOverlay", *(kind.kind for kind in KINDS if not kind.namespaced)},
)
_FILL = "put objects into it, or leave it out"
# Text that Helm and similar tools replace; no manifest starts a nested object like this.
_PLACEHOLDER = "{{"


@dataclass(frozen=True, slots=True)
class Problem:
    """
    Something wrong with a file, for a person.

    Of what was not read from a file no line is known: it is 0 then.
    """

    file: str
    line: int
    column: int
    message: str
    fix: str = ""

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}" if self.line else self.file
        text = f"{where}: {self.message}"
        return f"{text}; {self.fix}" if self.fix else text


@dataclass(frozen=True, slots=True)
class Document:
    """One object of a file: its raw value, and where each part of it stands."""

    file: str
    raw: dict[str, Any]
    tree: Places = field(repr=False, compare=False)
    within: Path = ()

    @property
    def api_version(self) -> str:
        return _text(self.raw.get("apiVersion"))

    @property
    def kind(self) -> str:
        return _text(self.raw.get("kind"))

    @property
    def name(self) -> str:
        return _text(_as_mapping(self.raw.get("metadata")).get("name"))

    @property
    def namespace(self) -> str:
        return _text(_as_mapping(self.raw.get("metadata")).get("namespace"))

    @property
    def uid(self) -> str:
        """The uid in a cluster; empty in files that people write."""
        return _text(_as_mapping(self.raw.get("metadata")).get("uid"))

    @property
    def identity(self) -> tuple[str, str, str, str] | None:
        """The group, kind, namespace and name of the object; None if it has no name."""
        if not self.name or not self.kind:
            return None
        namespace = "" if self.kind in _CLUSTER_WIDE else self.namespace or "default"
        return self.api_version.rpartition("/")[0], self.kind, namespace, self.name

    @property
    def line(self) -> int:
        return self.place("").line

    def place(self, path: str | Path) -> Place:
        """
        The line and column of a path such as `spec.devices[2].attributes["a/b"].string`.

        For a path that is not there, those of the nearest parent that is.
        """
        steps = parse_path(path) if isinstance(path, str) else path
        return self.tree.locate((*self.within, *steps))

    def problem(self, path: str | Path, message: str, fix: str = "") -> Problem:
        """A problem with the value at the path."""
        place = self.place(path)
        return Problem(self.file, place.line, place.column, message, fix)


class _Nowhere:
    """The places of an object that was read from no file."""

    def locate(self, path: Path) -> Place:
        return Place(0, 0)


def unwritten(raw: dict[str, Any], name: str) -> Document:
    """Return a document that is in no file; messages use the name instead of a file name."""
    return Document(name, raw, _Nowhere())


@dataclass(frozen=True, slots=True)
class Repeat:
    """A document with the same object as an earlier document, which it replaces."""

    before: Document
    document: Document

    @property
    def message(self) -> str:
        this = self.document
        where = f"{self.before.file}:{self.before.line}"
        return f"{this.kind} {this.name!r} is also at {where}, and this one counts"


def latest(documents: Iterable[Document]) -> tuple[tuple[Document, ...], tuple[Repeat, ...]]:
    """
    Return the last document of each object, and all documents that replace another.

    The last document takes the position of the first: applying it again does not change its age.
    """
    kept: dict[tuple[str, str, str, str] | int, Document] = {}
    repeats: list[Repeat] = []
    for index, document in enumerate(documents):
        key = document.identity or index
        if key in kept:
            repeats.append(Repeat(kept[key], document))
        kept[key] = document
    return tuple(kept.values()), tuple(repeats)


@dataclass(frozen=True, slots=True)
class Reading:
    """
    The objects of a file in order, and all problems.

    `texts` has the documents of the file as they are written: a list is one.
    """

    documents: tuple[Document, ...]
    problems: tuple[Problem, ...]
    texts: tuple[Parsed, ...] = ()


def read(data: bytes | str, name: str) -> Reading:
    """Read the text of a file."""
    text = _decode_text(data)
    if isinstance(text, Fault):
        return Reading((), (_problem(name, text),))
    documents: list[Document] = []
    problems: list[Problem] = []
    texts: list[Parsed] = []
    lines: list[str] = []
    for found in manifest_text.documents(text, name):
        if isinstance(found, Parsed):
            texts.append(found)
            objects, wrong = _unwrap_lists(name, found.value, found.tree)
            documents += objects
            problems += wrong
        else:
            lines = lines or text.split("\n")
            problems.append(_problem(name, _with_template_hint(found, lines)))
    if not documents and not problems:
        problems.append(Problem(name, 1, 1, "no document in this file", _FILL))
    return Reading(tuple(documents), tuple(problems), tuple(texts))


def _decode_text(data: bytes | str) -> str | Fault:
    if isinstance(data, str):
        data = data.encode("utf-8", "surrogatepass")
    if len(data) > FILE_BYTES_MAX:
        return Fault(Place(1, 1), f"larger than {FILE_BYTES_MAX} bytes", "split the file")
    if not data.strip():
        return Fault(Place(1, 1), "the file is empty", _FILL)
    for name, marks in _OTHER_ENCODINGS.items():
        if data.startswith(marks):
            return Fault(Place(1, 1), f"the file is {name}", "save it as UTF-8")
    nul = data.find(b"\0")
    if nul >= 0:
        return Fault(_place_in(data, nul), "a binary file, not YAML or JSON", "name another file")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        byte = data[error.start]
        return Fault(
            _place_in(data, error.start), f"byte 0x{byte:02x} is not UTF-8", "save it as UTF-8"
        )


def _place_in(data: bytes, offset: int) -> Place:
    return Place(data.count(b"\n", 0, offset) + 1, offset - data.rfind(b"\n", 0, offset))


def _with_template_hint(fault: Fault, lines: Sequence[str]) -> Fault:
    """Return the fault, with a hint for those who named a template instead of a manifest."""
    # The parser may notice a line later.
    around = lines[max(0, fault.place.line - 2) : fault.place.line]
    if fault.fix or not any(_PLACEHOLDER in line for line in around):
        return fault
    fix = "it looks like a template; render it first, for example with helm template"
    return Fault(fault.place, fault.message, fix)


def _problem(name: str, fault: Fault) -> Problem:
    return Problem(name, fault.place.line, fault.place.column, fault.message, fault.fix)


def _unwrap_lists(name: str, value: Any, tree: Places) -> tuple[list[Document], list[Problem]]:
    """The objects in a document: none, itself, or the items of a list."""
    if value is None:
        return [], []
    if not isinstance(value, dict):
        place = tree.locate(())
        # What has no objects may be any file, such as a key behind a link: quote none of it.
        got = "a string" if isinstance(value, str) else described(value)
        message = f"expected an object with apiVersion and kind, got {got}"
        return [], [Problem(name, place.line, place.column, message)]
    documents: list[Document] = []
    problems: list[Problem] = []
    # Lists may hold lists, and the objects of all of them are in the order of the text.
    waiting: list[Document | Problem] = [Document(name, value, tree)]
    while waiting:
        found = waiting.pop()
        if isinstance(found, Problem):
            problems.append(found)
        elif _is_list(found):
            waiting += reversed(_items(found))
        else:
            documents.append(found)
    return documents, problems


def _is_list(document: Document) -> bool:
    return document.kind == "List" or (document.kind.endswith("List") and "items" in document.raw)


def _items(whole: Document) -> list[Document | Problem]:
    items = whole.raw.get("items") or []
    if not isinstance(items, list):
        return [whole.problem("items", f"items: expected a list, got {described(items)}")]
    kind = whole.kind.removesuffix("List")
    # The items of a typed list need not repeat what the list says.
    implied = {"apiVersion": whole.api_version, "kind": kind} if kind else {}
    return [_item(whole, index, item, implied) for index, item in enumerate(items)]


def _item(whole: Document, index: int, item: Any, implied: Mapping[str, str]) -> Document | Problem:
    if isinstance(item, dict):
        within = (*whole.within, "items", index)
        return Document(whole.file, {**implied, **item}, whole.tree, within)
    message = f"items[{index}]: expected an object, got {described(item)}"
    return whole.problem(("items", index), message)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _as_mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
