"""
Native gangs of one Kubernetes release as those of another.

Kubernetes 1.35 has pod groups inside of a Workload; 1.36 has PodGroups of v1alpha2; 1.37 has them
in v1beta1, with other names for the template and the disruption mode.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dryrack.conversion.workspace import (
    dicts,
    get_at,
    name_of,
    pod_paths,
    text_at,
    with_value,
    without,
)
from dryrack.kinds.paths import metadata_of
from dryrack.kinds.registry import builtin_kinds
from dryrack.kinds.releases import Release

if TYPE_CHECKING:
    from dryrack.conversion.workspace import ManifestObject, Workspace
    from dryrack.kinds.raw import Raw
    from dryrack.kinds.shape import Path

_GROUP = "scheduling.k8s.io"
# The version of PodGroups and Workloads by release.
NATIVE_VERSIONS = {
    each.value: next(kind.api_version for kind in builtin_kinds(each) if kind.kind == "PodGroup")
    for each in Release
}
_FIRST = f"{_GROUP}/v1alpha2"
_OLD_WORKLOAD = f"{_GROUP}/v1alpha1"
_LATER = (f"{_GROUP}/v1beta1", f"{_GROUP}/v1alpha3")


def group_name_of(workload: str, group: str, replica: str) -> str:
    """Return the name of the PodGroup of a replica of a group in a Workload of 1.35."""
    return "-".join(filter(None, (workload, group, replica)))


def split_workload(workspace: Workspace, release: str) -> None:
    """Replace Workloads of 1.35 by PodGroups, one for each replica that a pod names."""
    replicas: dict[tuple[str, str], dict[str, Raw]] = {}
    workloads = {
        (each.namespace or "default", name_of(each.raw)): each
        for each in workspace.of_kind("Workload")
        if each.api_version == _OLD_WORKLOAD
    }
    for item in workspace.items:
        for path in pod_paths(item):
            ref = get_at(item.raw, (*path, "spec", "workloadRef"))
            if not isinstance(ref, dict):
                continue
            workload = workloads.get((item.namespace or "default", text_at(ref, "name")))
            group = text_at(ref, "podGroup")
            name = group_name_of(text_at(ref, "name"), group, text_at(ref, "podGroupReplicaKey"))
            at: Path = (*path, "spec", "workloadRef")
            if workload is None:
                message = f"Workload {text_at(ref, 'name')!r} is not in the files"
                workspace.note(item, at, message, f"its PodGroup must be named {name!r}")
            else:
                key = (workload.namespace or "default", name_of(workload.raw))
                replicas.setdefault(key, {})[name] = {"group": group}
            spec = get_at(item.raw, (*path, "spec"))
            new = {
                ("schedulingGroup" if key == "workloadRef" else key): (
                    {"podGroupName": name} if key == "workloadRef" else value
                )
                for key, value in spec.items()
            }
            item.raw = with_value(item.raw, (*path, "spec"), new)
    for place, item in workloads.items():
        _replace_workload(workspace, item, replicas.get(place, {}), release)


def _replace_workload(
    workspace: Workspace, item: ManifestObject, names: dict[str, Raw], release: str
) -> None:
    raw = item.raw
    assert raw is not None, "a Workload that is present"
    policies = {
        text_at(each, "name"): each.get("policy")
        for each in dicts(get_at(raw, ("spec", "podGroups")))
    }
    if get_at(raw, ("spec", "controllerRef")) is not None:
        workspace.note(item, ("spec", "controllerRef"), "spec.controllerRef is dropped")
    for group in policies:
        if all(each["group"] != group for each in names.values()):
            names[group_name_of(name_of(raw), group, "")] = {"group": group}
            message = f"no pod in the files is in group {group!r}"
            workspace.note(item, ("spec", "podGroups"), message, "convert its pods with it")
    made = [
        {
            **without(raw, "status"),
            "apiVersion": NATIVE_VERSIONS[release],
            "kind": "PodGroup",
            "metadata": {**metadata_of(raw), "name": name},
            "spec": {"schedulingPolicy": policies.get(each["group"]) or {"basic": {}}},
        }
        for name, each in names.items()
    ]
    item.raw = made[0] if made else None
    item.added += made[1:]


def convert_native_version(workspace: Workspace, release: str) -> None:
    """Convert PodGroups and Workloads to the version of the release."""
    target = NATIVE_VERSIONS[release]
    for item in workspace.of_kind("PodGroup", "Workload"):
        raw = item.raw
        versions = (_FIRST, *_LATER)
        if raw is None or item.api_version not in versions:
            continue
        if item.api_version == target or {item.api_version, target} <= set(_LATER):
            continue
        spec = raw.get("spec")
        if isinstance(spec, dict):
            raw = {**raw, "spec": _convert_spec(workspace, item, spec, ("spec",), target)}
        if "status" in raw:
            workspace.note(item, ("status",), "status is dropped: its conditions have other names")
        item.raw = {**without(raw, "status"), "apiVersion": target}


def _convert_spec(
    workspace: Workspace, item: ManifestObject, spec: Raw, path: Path, target: str
) -> Raw:
    """Return the spec of a PodGroup, a Workload, or a template in it, in another version."""
    is_later = target in _LATER
    new: Raw = {}
    for key, value in spec.items():
        if key == "podGroupTemplateRef" and is_later:
            workload = get_at(value, ("workload",)) or {}
            new["workloadRef"] = {
                "workloadName": workload.get("workloadName"),
                "templateName": workload.get("podGroupTemplateName"),
            }
        elif key == "workloadRef" and not is_later:
            new["podGroupTemplateRef"] = {
                "workload": {
                    "workloadName": value.get("workloadName"),
                    "podGroupTemplateName": value.get("templateName"),
                }
            }
        elif key == "disruptionMode":
            new[key] = _convert_mode(value, is_later=is_later)
        elif key == "podGroupTemplates" and isinstance(value, list):
            new[key] = [
                _convert_spec(workspace, item, each, (*path, key, index), target)
                if isinstance(each, dict)
                else each
                for index, each in enumerate(value)
            ]
        elif not is_later and key in (
            *("compositePodGroupTemplates", "parentCompositePodGroupName"),
            "preemptionPolicy",
        ):
            workspace.note(item, (*path, key), f"{key} is dropped: {target} has no such field")
        else:
            new[key] = value
    return new


def _convert_mode(mode: Any, *, is_later: bool) -> Any:
    if is_later and isinstance(mode, str):
        return {"all": {}} if mode == "PodGroup" else {"single": {}}
    if not is_later and isinstance(mode, dict):
        return "PodGroup" if "all" in mode else "Pod"
    return mode
