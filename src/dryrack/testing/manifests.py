"""Read the manifests that a test applies: files, folders, YAML, objects, or lists of these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dryrack.base.errors import ContentError
from dryrack.kinds.documents import read, unwritten

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dryrack.kinds.documents import Document

One = str | Path | Mapping[str, Any]
Manifest = One | Sequence[One]
_SUFFIXES = (".json", ".yaml", ".yml")


def documents_of(manifest: Manifest, folders: Sequence[Path] = ()) -> list[Document]:
    """
    Return the objects in their order; raise `ContentError` with the file and line of mistakes.

    A text with a line end or a colon and a space is YAML. Another text is the name of a file, in
    the first of the folders that has it, or in the current directory.
    """
    return list(_documents(manifest, folders))


def _documents(manifest: Manifest, folders: Sequence[Path]) -> Iterator[Document]:
    if isinstance(manifest, str) and ("\n" in manifest or ": " in manifest):
        yield from _read(manifest.encode(), "manifest")
    elif isinstance(manifest, str | Path):
        for path in _files(Path(manifest), folders):
            yield from _read(path.read_bytes(), str(path))
    elif isinstance(manifest, Mapping):
        yield from _of_object(manifest)
    else:
        for each in manifest:
            yield from _documents(each, folders)


def _of_object(manifest: Mapping[str, Any]) -> Iterator[Document]:
    if manifest.get("kind") == "List" and isinstance(manifest.get("items"), list):
        for each in manifest["items"]:
            yield from _of_object(each)
    else:
        yield unwritten(dict(manifest), "manifest")


def _files(name: Path, folders: Sequence[Path]) -> list[Path]:
    tried = [folder / name for folder in folders] + [name]
    path = next((each for each in tried if each.exists()), None)
    if path is None:
        where = " and ".join(dict.fromkeys(str(each.parent.absolute()) for each in tried))
        raise ContentError(f"{name}: no such file in {where}; check the path")
    if not path.is_dir():
        return [path]
    return sorted(each for each in path.iterdir() if each.suffix in _SUFFIXES)


def _read(data: bytes, name: str) -> tuple[Document, ...]:
    reading = read(data, name)
    if reading.problems:
        raise ContentError("\n".join(map(str, reading.problems)))
    return reading.documents
