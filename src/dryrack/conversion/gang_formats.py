"""
Gangs of one format to gangs of another.

Pods name their gang by labels or annotations, or by a field of Kubernetes 1.35 or later; the
minimum is in the labels as well, or in an object that defines the gang. `convert_gangs` reads the
gangs of all formats and rewrites their pods and their definitions in one format. What the other
format cannot say is noted with its line.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from dryrack.base.numbers import read_int64
from dryrack.conversion.native_groups import (
    NATIVE_VERSIONS,
    convert_native_version,
    split_workload,
)
from dryrack.conversion.workspace import get_at, name_of, pod_paths, text_at, with_value, without
from dryrack.kinds.scheduling import CoschedulingPodGroup
from dryrack.kinds.shape import render

if TYPE_CHECKING:
    from collections.abc import Callable

    from dryrack.conversion.workspace import ManifestObject, Workspace
    from dryrack.kinds.raw import Raw
    from dryrack.kinds.shape import Path

NATIVE = "native"
_COSCHEDULING = "scheduling.x-k8s.io"
_VOLCANO = "scheduling.volcano.sh"
_LABELS: Path = ("metadata", "labels")
_ANNOTATIONS: Path = ("metadata", "annotations")


class _Place(NamedTuple):
    """The entry of a pod that names its gang, and the one that states its minimum."""

    name_path: Path
    minimum_path: Path | None = None


def _labels(prefix: str) -> _Place:
    return _Place((*_LABELS, f"{prefix}/name"), (*_LABELS, f"{prefix}/min-available"))


_FORMATS = {
    "kubenexus": (_labels("pod-group.scheduling.kubenexus.io"),),
    "sigs": (_labels("pod-group.scheduling.sigs.k8s.io"),),
    "coscheduling": (_Place((*_LABELS, CoschedulingPodGroup.POD_LABEL)),),
    # The first one is written.
    "volcano": (
        _Place((*_ANNOTATIONS, "scheduling.k8s.io/group-name")),
        _Place((*_ANNOTATIONS, f"{_VOLCANO}/group-name")),
    ),
    "kueue": (
        _Place(
            (*_LABELS, "kueue.x-k8s.io/pod-group-name"),
            (*_ANNOTATIONS, "kueue.x-k8s.io/pod-group-total-count"),
        ),
    ),
    NATIVE: (_Place(("spec", "schedulingGroup", "podGroupName")),),
}
FORMATS = tuple(_FORMATS)
# The groups of the objects that define gangs.
_DEFINED_IN = {_COSCHEDULING: "coscheduling", _VOLCANO: "volcano", "scheduling.k8s.io": NATIVE}
_VOLCANO_MINIMUM: Path = (*_ANNOTATIONS, f"{_VOLCANO}/group-min-member")
_SCHEDULERS = {
    "coscheduling": "scheduler-plugins-scheduler",
    "kubenexus": "kubenexus-scheduler",
    "sigs": "kubenexus-scheduler",
    "volcano": "volcano",
}
_MINIMUM = "write the number of pods that must run together"
# Fields of a definition that say the same in all formats, or that are read otherwise.
_KNOWN = frozenset({"minMember", "schedulingPolicy", "priorityClassName"})


class _Member(NamedTuple):
    """A pod, or a pod template, of a gang."""

    item: ManifestObject
    path: Path


@dataclass(slots=True)
class _Gang:
    """A gang of any format."""

    format: str
    namespace: str
    name: str
    members: list[_Member] = field(default_factory=list)
    definition: ManifestObject | None = None
    # None if nothing in the files states it.
    min_count: int | None = None
    priority_class: str = ""


def convert_gangs(workspace: Workspace, target: str, release: str) -> None:
    """Convert all gangs to a format; `release` decides about the version of native groups."""
    split_workload(workspace, release)
    for item in workspace.of_kind("Job"):
        if item.group == "batch.volcano.sh":
            message = "a Job of Volcano stays: its controller makes the gang"
            workspace.note(item, ("kind",), message, "write a Job of batch/v1 with a gang")
    gangs = _read_gangs(workspace)
    for gang in gangs:
        if gang.format == target:
            continue
        if not gang.members and gang.definition is not None:
            message = f"no pod in the files is in PodGroup {gang.name!r}"
            workspace.note(gang.definition, (), message, "convert its pods together with it")
            if target not in _DEFINITIONS:
                continue
        if gang.min_count is None and target != NATIVE:
            _refuse_unknown(workspace, gang)
            continue
        for member in gang.members:
            _rewrite_member(workspace, gang, member, target)
        _rewrite_definition(workspace, gang, target, release)
    if target == NATIVE:
        convert_native_version(workspace, release)


def set_scheduler_name(workspace: Workspace, name: str) -> None:
    """Set the scheduler of all pods that name one."""
    for item in workspace.items:
        for path in pod_paths(item):
            at = (*path, "spec", "schedulerName")
            if get_at(item.raw, at) is not None:
                item.raw = with_value(item.raw, at, name)


def note_scheduler_names(workspace: Workspace, target: str) -> None:
    """Note each pod whose scheduler does not know the format of its gang."""
    wanted = _SCHEDULERS.get(target)
    others = {name for name in _SCHEDULERS.values() if name != wanted}
    for item in workspace.items:
        for path in pod_paths(item):
            at = (*path, "spec", "schedulerName")
            name = get_at(item.raw, at)
            in_gang = any(
                get_at(item.raw, (*path, *place.name_path)) is not None
                for place in _FORMATS[target]
            )
            if in_gang and isinstance(name, str) and name in others:
                message = f"{render(at)} stays {name!r}, which may not read these gangs"
                workspace.note(item, at, message, "set another one with --scheduler-name")


def _read_gangs(workspace: Workspace) -> list[_Gang]:
    gangs: dict[tuple[str, str, str], _Gang] = {}
    for item in workspace.of_kind("PodGroup"):
        kind = _DEFINED_IN.get(item.group)
        if kind is None or item.raw is None:
            continue
        gang = _Gang(kind, item.namespace, name_of(item.raw), definition=item)
        gangs[kind, item.namespace or "default", gang.name] = gang
        _read_definition(workspace, gang, item.raw)
    for item in workspace.items:
        for path in pod_paths(item):
            for kind, places in _FORMATS.items():
                for place in places:
                    name = get_at(item.raw, (*path, *place.name_path))
                    if not isinstance(name, str) or not name:
                        continue
                    key = (kind, item.namespace or "default", name)
                    minimum = _read_minimum(workspace, item, path, place)
                    if place.minimum_path is not None and minimum is None:
                        continue
                    gang = gangs.setdefault(key, _Gang(kind, item.namespace, name))
                    gang.members.append(_Member(item, path))
                    if minimum is not None and gang.min_count not in (None, minimum):
                        at = (*path, *(place.minimum_path or place.name_path))
                        message = f"{render(at)}: {minimum}, but another pod of gang {name!r} has"
                        message += f" {gang.min_count}"
                        workspace.refuse(item, at, message, "use one value for all its pods")
                    gang.min_count = minimum if minimum is not None else gang.min_count
    return list(gangs.values())


def _read_minimum(
    workspace: Workspace, item: ManifestObject, path: Path, place: _Place
) -> int | None:
    """Return the minimum that a pod states; None if it states none, or is in no gang."""
    at = (*path, *(place.minimum_path or _VOLCANO_MINIMUM))
    text = get_at(item.raw, at)
    if place.minimum_path is None and text is None:
        return None
    if text is None:
        name_at = (*path, *place.name_path)
        message = f"{render(name_at)}: without {at[-1]}, the pod is in no gang, and it stays"
        workspace.note(item, name_at, message)
        return None
    count = read_int64(text) if isinstance(text, str) else None
    if count is None or count < 1:
        workspace.refuse(item, at, f"{render(at)}: {text!r} is no positive number", _MINIMUM)
        return None
    return count


def _read_definition(workspace: Workspace, gang: _Gang, raw: Raw) -> None:
    """Read the minimum of a PodGroup, in any of its kinds."""
    item = gang.definition
    assert item is not None, "a gang with a definition"
    path: Path = ("spec", "minMember")
    if gang.format == NATIVE:
        path = ("spec", "schedulingPolicy", "gang", "minCount")
        if get_at(raw, path[:-1]) is None:
            gang.min_count = 1
            return
    count = get_at(raw, path)
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
        workspace.refuse(item, path, f"{render(path)}: {count!r} is no positive number", _MINIMUM)
        return
    gang.min_count = count
    gang.priority_class = text_at(raw, "spec.priorityClassName")


def _refuse_unknown(workspace: Workspace, gang: _Gang) -> None:
    if not gang.members:
        # The problem of its definition is known.
        return
    member = gang.members[0]
    at = (*member.path, *_FORMATS[gang.format][0].name_path)
    message = f"PodGroup {gang.name!r}, which states the minimum of the gang, is not in the files"
    workspace.refuse(member.item, at, message, "convert it together with this object")


def _rewrite_member(workspace: Workspace, gang: _Gang, member: _Member, target: str) -> None:
    """Name the gang in the way of the target format, in place of the old one."""
    item, path = member
    for place in _FORMATS[gang.format]:
        for each in (place.name_path, place.minimum_path, _VOLCANO_MINIMUM):
            if each is None or get_at(item.raw, (*path, *each)) is None:
                continue
            if each == _VOLCANO_MINIMUM and gang.format != "volcano":
                continue
            selected = get_at(item.raw, ("spec", "selector", "matchLabels"))
            if path and isinstance(selected, dict) and each[-1] in selected:
                at = ("spec", "selector", "matchLabels", each[-1])
                message = f"{render(at)}: the selector needs the label of the gang"
                workspace.refuse(item, at, message, "remove it from the selector")
                return
            item.raw = _drop(item.raw, (*path, *each), len(path) + 1)
    if gang.format == "kueue" and get_at(item.raw, (*path, *_LABELS, "kueue.x-k8s.io/queue-name")):
        message = "the label kueue.x-k8s.io/queue-name stays: Kueue admits each pod by itself now"
        workspace.note(item, (*path, *_LABELS, "kueue.x-k8s.io/queue-name"), message)
    place = _FORMATS[target][0]
    item.raw = with_value(item.raw, (*path, *place.name_path), gang.name)
    if place.minimum_path is not None:
        item.raw = with_value(item.raw, (*path, *place.minimum_path), str(gang.min_count))
    if target == "kueue" and not get_at(item.raw, (*path, *_LABELS, "kueue.x-k8s.io/queue-name")):
        message = "without the label kueue.x-k8s.io/queue-name, Kueue does not manage the pod"
        workspace.note(item, (*path, *place.name_path), message, "add the label")


def _drop(raw: Raw | None, path: Path, depth: int) -> Raw:
    """Return the object without an entry, and without its parents that are empty then."""
    holder = get_at(raw, path[:-1])
    left = without(holder, str(path[-1]))
    if left or len(path) - 1 <= depth:
        new: Raw = with_value(raw, path[:-1], left)
        return new
    return _drop(raw, path[:-1], depth)


def _rewrite_definition(workspace: Workspace, gang: _Gang, target: str, release: str) -> None:
    """Write the object that defines the gang; labels need none."""
    item = gang.definition
    make = _DEFINITIONS.get(target)
    spec = get_at(item.raw, ("spec",)) if item is not None else {}
    if item is not None:
        kept = _KNOWN if make is not None else _KNOWN - {"priorityClassName"}
        for name in spec if isinstance(spec, dict) else ():
            if name not in kept:
                message = f"spec.{name} is dropped: the format {target} has no such field"
                workspace.note(item, ("spec", name), message)
        if "status" in (item.raw or {}):
            workspace.note(item, ("status",), "status is dropped")
    if make is None:
        if item is not None:
            item.raw = None
        return
    if gang.min_count is None:
        member = gang.members[0]
        at = (*member.path, *_FORMATS[gang.format][0].name_path)
        message = f"PodGroup {gang.name!r} is not in the files"
        workspace.note(member.item, at, message, "convert it as well: the pods wait for it")
        return
    made = make(gang, release)
    if item is not None and item.raw is not None:
        item.raw = {**without(item.raw, "status"), **made}
        return
    metadata = {"name": gang.name, "namespace": gang.namespace}
    metadata = metadata if gang.namespace else without(metadata, "namespace")
    head = {"apiVersion": made["apiVersion"], "kind": made["kind"], "metadata": metadata}
    gang.members[0].item.added.append({**head, **made})


def _native(gang: _Gang, release: str) -> Raw:
    spec: Raw = {"schedulingPolicy": {"gang": {"minCount": gang.min_count}}}
    if gang.priority_class:
        spec["priorityClassName"] = gang.priority_class
    return {"apiVersion": NATIVE_VERSIONS[release], "kind": "PodGroup", "spec": spec}


def _coscheduling(gang: _Gang, _: str) -> Raw:
    spec = {"minMember": gang.min_count}
    return {"apiVersion": CoschedulingPodGroup.API_VERSION, "kind": "PodGroup", "spec": spec}


def _volcano(gang: _Gang, _: str) -> Raw:
    spec: Raw = {"minMember": gang.min_count}
    if gang.priority_class:
        spec["priorityClassName"] = gang.priority_class
    return {"apiVersion": f"{_VOLCANO}/v1beta1", "kind": "PodGroup", "spec": spec}


_DEFINITIONS: dict[str, Callable[[_Gang, str], Raw]] = {
    NATIVE: _native,
    "coscheduling": _coscheduling,
    "volcano": _volcano,
}

__all__ = [
    "FORMATS",
    "convert_gangs",
    "note_scheduler_names",
    "set_scheduler_name",
]
