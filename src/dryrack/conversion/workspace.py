"""
The objects that a conversion reads and changes.

A step of a conversion looks at all objects of all files, because a claim of one file refers to the
class of another. It replaces the value of an object by a new value, removes the object, or adds
objects after it. Values are never changed in place: the editor compares the new one with the old.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from dryrack.kinds.expansion.embedded_templates import embedded_templates, is_custom_workload
from dryrack.kinds.paths import get

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dryrack.kinds.documents import Document, Problem
    from dryrack.kinds.raw import Raw
    from dryrack.kinds.shape import Path

_TEMPLATE: Path = ("spec", "template")
# The path of the pod, or of the pod template, in objects of Kubernetes.
_POD_PATHS: dict[str, Path] = {
    "Pod": (),
    "PodTemplate": ("template",),
    "CronJob": ("spec", "jobTemplate", "spec", "template"),
    **dict.fromkeys(
        ("DaemonSet", "Deployment", "Job", "ReplicaSet", "ReplicationController", "StatefulSet"),
        _TEMPLATE,
    ),
}


@dataclass(slots=True, eq=False)
class ManifestObject:
    """An object of a file, its new value, and the objects to add after it."""

    document: Document
    raw: Raw | None
    added: list[Raw] = field(default_factory=list)

    @property
    def kind(self) -> str:
        return "" if self.raw is None else str(self.raw.get("kind", ""))

    @property
    def api_version(self) -> str:
        return "" if self.raw is None else str(self.raw.get("apiVersion", ""))

    @property
    def group(self) -> str:
        return self.api_version.rpartition("/")[0]

    @property
    def namespace(self) -> str:
        return self.document.namespace


@dataclass(slots=True)
class Workspace:
    """All objects of a conversion, and what to tell the user."""

    items: list[ManifestObject]
    # The text of each file.
    texts: dict[str, str] = field(default_factory=dict)
    # What the result does not contain, or what a person has to check.
    notes: list[Problem] = field(default_factory=list)
    # Why an object cannot be converted; nothing is written then.
    problems: list[Problem] = field(default_factory=list)

    def note(self, item: ManifestObject, path: Path, message: str, fix: str = "") -> None:
        self.notes.append(item.document.problem(path, message, fix))

    def refuse(self, item: ManifestObject, path: Path, message: str, fix: str = "") -> None:
        self.problems.append(item.document.problem(path, message, fix))

    def of_kind(self, *kinds: str) -> Iterator[ManifestObject]:
        """Yield the present objects of these kinds."""
        yield from (each for each in self.items if each.raw is not None and each.kind in kinds)


def pod_paths(item: ManifestObject) -> tuple[Path, ...]:
    """Return the paths of the pod, or of the pod templates, in an object; each has a `spec`."""
    if item.raw is None:
        return ()
    path = _POD_PATHS.get(item.kind)
    if path is not None and item.group in ("", "apps", "batch"):
        return (path,) if isinstance(get_at(item.raw, (*path, "spec")), dict) else ()
    if not is_custom_workload(item.document):
        return ()
    found = (each.spec_path for each in embedded_templates(item.document))
    return tuple(each[:-1] for each in found if each[-1] == "spec")


def get_at(raw: Any, path: Path) -> Any:
    """Return the value at a path; None if it does not exist."""
    value = raw
    for step in path:
        if isinstance(value, dict):
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            return None
    return value


def with_value(raw: Raw | None, path: Path, value: Any) -> Raw:
    """Return a copy with another value at a path; the objects on the path are created."""
    return cast("Raw", _with_value(raw, path, value))


def _with_value(raw: Any, path: Path, value: Any) -> Any:
    if not path:
        return value
    step, rest = path[0], path[1:]
    if isinstance(raw, list):
        return [
            _with_value(each, rest, value) if at == step else each for at, each in enumerate(raw)
        ]
    there = raw if isinstance(raw, dict) else {}
    return {**there, str(step): _with_value(there.get(str(step)), rest, value)}


def without(raw: Raw, *keys: str) -> Raw:
    """Return a copy without some keys."""
    return {key: value for key, value in raw.items() if key not in keys}


def dicts(values: Any) -> list[Raw]:
    """Return the objects in a list; nothing if it is no list."""
    return [each for each in values if isinstance(each, dict)] if isinstance(values, list) else []


def name_of(raw: Raw | None) -> str:
    """Return the name of an object, or ""."""
    return str(get(raw, "metadata.name", ""))


def text_at(raw: Any, path: str) -> str:
    """Return the string at a dotted path; "" if there is none."""
    value = get(raw, path)
    return value if isinstance(value, str) else ""
