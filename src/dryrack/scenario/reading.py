"""
Read a scenario file, and report each mistake with its line.

All problems are reported at once, each with file, line and field. The files that a scenario names
are read here, too: from its folder, or else from the manifests that come with dryrack. A scenario
from another author cannot read other files of the machine, through `..`, an absolute path or a
symbolic link, and no error quotes the content of a file that has no objects.
"""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from dryrack.base.errors import ContentError
from dryrack.base.limits import FILE_BYTES_MAX
from dryrack.base.text import hint
from dryrack.cluster.rights import MANIFESTS
from dryrack.kinds import shape
from dryrack.kinds.documents import read
from dryrack.kinds.text.source_positions import parse_path
from dryrack.scenario.model import API_VERSION, KIND, Scenario
from dryrack.scenario.problems import NAME_IT, NO_OBJECT, is_file, is_object, problems_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from dryrack.kinds.documents import Document, Problem
    from dryrack.kinds.raw import Raw

FILE_NAME = "scenario.yaml"
LIBRARY = Path(__file__).parent / "library"


class ScenarioError(ContentError):
    """All mistakes in a scenario file, each with its line."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = tuple(problems)


@dataclass(frozen=True, slots=True)
class LoadedScenario:
    """A valid scenario, and the objects of the files that it names."""

    name: str
    scenario: Scenario
    files: Mapping[str, tuple[Raw, ...]]
    document: Document | None = None
    """The file, for messages; None if the scenario was not read from a file."""

    def describe_place(self, path: shape.Path) -> str:
        """Return the file, the line, and the path of a field, for messages."""
        if self.document is None:
            return shape.render(path)
        return f"{self.document.file}:{self.document.place(path).line}: {shape.render(path)}"

    def objects_of(self, entries: Iterable[Any]) -> list[Raw]:
        """Return the objects of entries of `apply`, `delete` or `objects`, in order."""
        found: list[Raw] = []
        for each in entries:
            if isinstance(each, dict) and "repeat" in each:
                found += (number_object(each["object"], n) for n in range(1, each["repeat"] + 1))
            elif isinstance(each, dict):
                found.append(each)
            elif each in self.files:
                found += self.files[each]
        return found


def number_object(value: Any, number: int) -> Any:
    """Return a repeated object with its number in the place of `$n`."""
    if isinstance(value, str):
        return value.replace("$n", str(number))
    if isinstance(value, dict):
        return {
            number_object(key, number): number_object(each, number) for key, each in value.items()
        }
    return [number_object(each, number) for each in value] if isinstance(value, list) else value


def load_scenario(path: Path) -> LoadedScenario:
    """Read the scenario in a file; raise an error with all its mistakes."""
    name = path.parent.name if path.name == FILE_NAME else path.stem
    return read_scenario(_bytes(path), str(path), name=name, folder=path.parent)


def read_scenario(data: bytes | str, file: str, *, name: str, folder: Path) -> LoadedScenario:
    """Read a scenario from text; `folder` has the files that it names."""
    document = _document(data, file)
    wrong = list(_shape_problems(document))
    if wrong:
        raise ScenarioError(wrong)
    try:
        scenario = msgspec.convert(document.raw, Scenario)
    except msgspec.ValidationError as error:
        raise ScenarioError([_missing_field_problem(document, str(error))]) from None
    files: dict[str, tuple[Raw, ...]] = {}
    for place, entry in _file_entries(scenario):
        if entry not in files:
            objects, found = _objects(folder, entry, document, place)
            files[entry] = objects
            wrong += found
    wrong += problems_of(document, scenario)
    if wrong:
        raise ScenarioError(sorted(wrong, key=lambda each: (each.file != file, each.line)))
    return LoadedScenario(name, scenario, files, document)


def scenario_problems(data: bytes, file: str) -> tuple[Problem, ...]:
    """Return all problems of the scenario in a file that was read already."""
    try:
        read_scenario(data, file, name=file, folder=Path(file).parent)
    except ScenarioError as error:
        return error.problems
    return ()


def _bytes(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(FILE_BYTES_MAX + 1)


def _document(data: bytes | str, file: str) -> Document:
    reading = read(data, file)
    if reading.problems:
        raise ScenarioError(reading.problems)
    if len(reading.documents) > 1:
        second = reading.documents[1]
        fix = "put objects into the field objects, and other scenarios into other files"
        raise ScenarioError([second.problem("", "a scenario file has one document", fix)])
    [document] = reading.documents
    found = (document.api_version, document.kind)
    if found != (API_VERSION, KIND):
        said = " ".join(found).strip() or "neither apiVersion nor kind"
        fix = f"write apiVersion: {API_VERSION} and kind: {KIND}"
        raise ScenarioError([document.problem("kind", f"expected a scenario, got {said}", fix)])
    return document


def _shape_problems(document: Document) -> Iterator[Problem]:
    expected = shape.of(Scenario)
    for path in shape.unknown(document.raw, expected):
        known = _fields_at(expected, path[:-1])
        message = f"{shape.render(path)}: unknown field"
        yield document.problem(path, message, hint(str(path[-1]), known))
    for each in shape.mismatches(document.raw, expected):
        yield document.problem(each.path, str(each), each.fix)


def _fields_at(expected: shape.Shape, path: shape.Path) -> Iterable[str]:
    for step in path:
        match expected:
            case shape.Fields(fields=fields):
                expected = fields[str(step)]
            case shape.Items(item=inner) | shape.Entries(value=inner):
                expected = inner
            case _:
                return ()
    return expected.fields if isinstance(expected, shape.Fields) else ()


def _missing_field_problem(document: Document, complaint: str) -> Problem:
    """Return the problem of a required field that is missing."""
    what, _, where = complaint.partition(" - at `$")
    path = parse_path(where.rstrip("`"))
    name = what.rpartition("field ")[2].strip("`")
    message = f"{shape.render((*path, name))}: required value"
    return document.problem(path, message)


def _file_entries(scenario: Scenario) -> Iterator[tuple[shape.Path, str]]:
    rows: list[tuple[shape.Path, tuple[Any, ...]]] = [(("objects",), scenario.objects)]
    for index, step in enumerate(scenario.steps):
        rows += [(("steps", index, "apply"), step.apply), (("steps", index, "delete"), step.delete)]
    for place, entries in rows:
        for index, entry in enumerate(entries):
            if is_file(entry):
                yield (*place, index), entry


def _objects(
    folder: Path, name: str, document: Document, place: shape.Path
) -> tuple[tuple[Raw, ...], Sequence[Problem]]:
    path = folder / name
    try:
        reading = read(_bytes(_find_file(folder, name)), str(path))
    except (OSError, ValueError) as error:
        why = (getattr(error, "strerror", None) or str(error)).lower()
        message = f"{shape.render(place)}: {name!r}: {why}"
        fix = f"use a file in {folder} or below it"
        return (), [document.problem(place, message, fix)]
    # The problem of a file that has no objects might quote its text, which may be secret.
    unreadable = [
        replace(
            each,
            message="not a file with Kubernetes objects",
            fix=f"to see the problem, run: dryrack lint {path}",
        )
        for each in reading.problems
    ]
    nameless = [
        each.problem("", NO_OBJECT, NAME_IT)
        for each in reading.documents
        if not is_object(each.raw)
    ]
    return tuple(each.raw for each in reading.documents), (*unreadable, *nameless)


def _find_file(folder: Path, name: str) -> Path:
    """
    Return the file in the folder of the scenario, or else the one that comes with dryrack.

    Raises an OSError for a file that is not there, and a ValueError for one that is elsewhere.
    """
    if Path(name).is_absolute():
        raise ValueError("an absolute path")
    for root in (folder, MANIFESTS, LIBRARY):
        path = Path(os.path.realpath(root / name))
        if not path.is_relative_to(os.path.realpath(root)):
            raise ValueError("not in the folder of the scenario")
        if path.is_file():
            return path
    if (folder / name).exists():
        raise ValueError("not a regular file")
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
