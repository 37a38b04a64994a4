"""
The files of a conversion: read, converted, and written with as few changes as possible.

The text of each document that changes is edited in place. Documents that a conversion adds follow
the document that they belong to. JSON stays JSON.
"""

from __future__ import annotations

import codecs
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dryrack.conversion.text_edits import edit, same
from dryrack.conversion.workspace import ManifestObject, Workspace
from dryrack.kinds.documents import Problem, Reading, read
from dryrack.kinds.paths import get
from dryrack.kinds.text.yaml_printing import print_block

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from dryrack.kinds.raw import Raw
    from dryrack.kinds.shape import Path
    from dryrack.kinds.text.parsed import Parsed


@dataclass(frozen=True, slots=True)
class ConvertedFile:
    """The text of a file before and after the conversion, and its objects after it."""

    name: str
    before: str
    after: str
    objects: tuple[Raw, ...]


@dataclass(frozen=True, slots=True)
class Conversion:
    """The result; with problems, it has no files."""

    files: tuple[ConvertedFile, ...]
    notes: tuple[Problem, ...] = ()
    problems: tuple[Problem, ...] = ()


def convert_manifests(
    sources: Iterable[tuple[str, bytes]], steps: Sequence[Callable[[Workspace], None]]
) -> Conversion:
    """Convert the objects of files by the steps, in their order."""
    readings: list[tuple[str, bytes, Reading]] = []
    items: list[ManifestObject] = []
    problems: list[Problem] = []
    for name, data in sources:
        reading = read(data, name)
        readings.append((name, data, reading))
        problems += reading.problems
        items += (ManifestObject(each, each.raw) for each in reading.documents)
    if problems:
        return Conversion((), problems=tuple(problems))
    workspace = Workspace(items, {name: data.decode("utf-8-sig") for name, data, _ in readings})
    for step in steps:
        step(workspace)
    if workspace.problems:
        return Conversion((), tuple(workspace.notes), tuple(workspace.problems))
    by_tree: dict[int, list[ManifestObject]] = {}
    for item in items:
        by_tree.setdefault(id(item.document.tree), []).append(item)
    files = tuple(
        _write(name, data, reading.texts, by_tree, workspace) for name, data, reading in readings
    )
    notes = sorted(workspace.notes, key=lambda each: (each.file, each.line))
    return Conversion(files, tuple(notes))


def _write(
    name: str,
    data: bytes,
    texts: Sequence[Parsed],
    by_tree: dict[int, list[ManifestObject]],
    workspace: Workspace,
) -> ConvertedFile:
    """Return the new text of a file."""
    before = data.decode()
    mark = "\ufeff" if data.startswith(codecs.BOM_UTF8) else ""
    text = before.removeprefix(mark)
    has_crlf = "\r\n" in text and text.count("\r\n") == text.count("\n")
    parts: list[str] = [mark]
    objects: list[Raw] = []
    end = 0
    line = 0
    is_empty = True
    for parsed in texts:
        items = by_tree.get(id(parsed.tree), [])
        objects += (each for item in items for each in (item.raw, *item.added) if each is not None)
        start, after = parsed.span
        between = text[end:start]
        line += text.count("\n", end, start)
        if end and is_empty:
            # All documents before this one are gone.
            between = _without_divider(between)
        is_new = any(item.raw is not item.document.raw or item.added for item in items)
        if not is_new:
            parts += [between, text[start:after]]
            line += text.count("\n", start, after)
            end = after
            is_empty = False
            continue
        value, added = _new_value(parsed.value, items)
        source = text[start:after]
        source = source.replace("\r\n", "\n") if has_crlf else source
        written = _write_document(name, source, line, parsed, value, workspace)
        if value is None:
            between = _without_divider(between)
        for each in added:
            head = "" if not written.strip() else "---\n"
            written = written if not written or written.endswith("\n") else f"{written}\n"
            written += _print_like(source, each, head)
        parts += [between, written.replace("\n", "\r\n") if has_crlf else written]
        is_empty = is_empty and not (between + written).strip()
        line += text.count("\n", start, after)
        end = after
    parts.append(text[end:])
    if not objects:
        workspace.notes.append(Problem(name, 1, 1, "no object is left in this file", "delete it"))
    return ConvertedFile(name, before, "".join(parts), tuple(objects))


def _without_divider(between: str) -> str:
    """Return the text before a document that is removed: comments stay, its divider goes."""
    head, found, rest = between.rpartition("---")
    return between if not found or rest.strip() else head


def _print_like(source: str, raw: Raw, head: str) -> str:
    """Return a new document in the format of the document before it."""
    if _is_json(source):
        return json.dumps(raw, indent=_json_indent(source), ensure_ascii=False) + "\n"
    return head + print_block(raw)


def _write_document(
    name: str, source: str, line: int, parsed: Parsed, value: Any, workspace: Workspace
) -> str:
    """Return the new text of one document."""
    if value is None:
        return ""
    if same(value, parsed.value):
        return source
    if _is_json(source):
        ending = source[len(source.rstrip()) :]
        return json.dumps(value, indent=_json_indent(source), ensure_ascii=False) + ending
    edited = edit(source, parsed.value, value)
    for lost in edited.lost:
        at = line + lost.line + 1
        message = f"the comment {lost.comment!r} is dropped with its line"
        if edited.reprinted:
            message = f"the document loses its comments: {edited.reprinted}"
        workspace.notes.append(Problem(name, at, 1, message))
    if edited.reprinted and not edited.lost:
        message = f"the document loses its layout: {edited.reprinted}"
        workspace.notes.append(Problem(name, line + 1, 1, message))
    return edited.text


def _is_json(source: str) -> bool:
    if not source.lstrip().startswith("{"):
        return False
    try:
        json.loads(source)
    except ValueError:
        return False
    return True


def _json_indent(source: str) -> int | None:
    """Return by how many spaces a JSON text indents; None if it is in one line."""
    _, found, rest = source.strip().partition("\n")
    return max(len(rest) - len(rest.lstrip(" ")), 1) if found else None


def _new_value(value: Any, items: Sequence[ManifestObject]) -> tuple[Any, list[Raw]]:
    """Return the new value of a document, and the documents to add after it."""
    if len(items) == 1 and not items[0].document.within:
        return items[0].raw, items[0].added
    of_paths = {item.document.within: item for item in items}
    return _new_list(value, (), of_paths), []


def _new_list(value: Raw, path: Path, items: dict[Path, ManifestObject]) -> Raw:
    """Return a list with the new values of its items."""
    new: list[Any] = []
    versions: set[Any] = set()
    for index, each in enumerate(get(value, "items", ())):
        at = (*path, "items", index)
        item = items.get(at)
        if item is None:
            new.append(_new_list(each, at, items) if isinstance(each, dict) else each)
        else:
            for raw in (item.raw, *item.added):
                if raw is not None:
                    versions.add((raw.get("apiVersion"), f"{raw.get('kind')}List"))
                    new.append(raw)
    if value.get("kind") == "List" or len(versions) > 1:
        return {**value, "apiVersion": "v1", "kind": "List", "items": new}
    # A typed list says the version and the kind of its items.
    written = [
        {
            key: each
            for key, each in raw.items()
            if key in before or key not in ("apiVersion", "kind")
        }
        for raw, before in zip(new, value["items"], strict=True)
    ]
    version, kind = next(iter(versions), (value.get("apiVersion"), value.get("kind")))
    return {**value, "apiVersion": version, "kind": kind, "items": written}
