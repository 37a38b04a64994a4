"""
Old versions of resource.k8s.io to another version of the group.

v1beta1 and v1beta2 become v1 by `kinds.convert`. v1alpha3 has claims in the form of v1beta1, with
amounts of capacity as bare quantities. v1alpha2, which has another design, is in `classic`. Each
field that a version does not have any more is noted with its line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dryrack.conversion.classic import convert_classic
from dryrack.conversion.workspace import ManifestObject, Workspace, get_at, with_value, without
from dryrack.kinds.convert import (
    EXACT_FIELDS,
    GROUP,
    V1,
    V1ALPHA3,
    V1BETA1,
    V1BETA2,
    from_v1,
    misplaced,
    to_v1,
)
from dryrack.kinds.migrations import convert_command
from dryrack.kinds.paths import get
from dryrack.kinds.registry import builtin_kinds
from dryrack.kinds.releases import DEFAULT_RELEASE, Release
from dryrack.kinds.shape import render
from dryrack.kinds.text.yaml_printing import print_flow

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dryrack.kinds.documents import Document
    from dryrack.kinds.raw import Raw
    from dryrack.kinds.shape import Path

_V1ALPHA2 = f"{GROUP}/v1alpha2"
# A message has one line, so a longer object is not shown in it.
_SHOWN_MAX = 600
_CURRENT_KINDS = (
    "DeviceClass",
    "DeviceTaintRule",
    "ResourceClaim",
    "ResourceClaimTemplate",
    "ResourceSlice",
)
# Fields of v1alpha3 that no later version has: path, and the reason.
_DROPPED: tuple[tuple[Path, str], ...] = (
    (("spec", "controller"), "the scheduler allocates devices by itself"),
    (("spec", "spec", "controller"), "the scheduler allocates devices by itself"),
    (("spec", "suitableNodes"), "ResourceSlices contain the nodes of devices"),
    (("status", "deallocationRequested"), "the scheduler deallocates devices by itself"),
    (("status", "allocation", "controller"), "the scheduler allocates devices by itself"),
)


def convert_versions(
    workspace: Workspace, target: str, release: str = DEFAULT_RELEASE.value
) -> None:
    """
    Convert every object of resource.k8s.io to the target version: `v1`, `v1beta2`, `v1beta1`.

    Kubernetes 1.36 has DeviceTaintRules in v1beta2, and not in v1, so they become v1beta2 for it.
    """
    convert_classic(workspace)
    kinds = [each for each in builtin_kinds(Release.parse(release)) if each.group == GROUP]
    newest_versions = {each.kind: each.api_version for each in reversed(kinds)}
    for item in workspace.items:
        raw = item.raw
        if raw is None or item.group != GROUP or item.kind not in _CURRENT_KINDS:
            continue
        own_target = target
        newest = newest_versions[item.kind]
        if target == "v1" and newest != V1:
            own_target = newest.rpartition("/")[2]
        if own_target != target and item.api_version == V1:
            # A rule for a later release stays.
            continue
        if own_target != "v1" and item.api_version == f"{GROUP}/{own_target}":
            continue
        if not isinstance(raw.get("spec", {}), dict):
            workspace.refuse(item, ("spec",), "spec: expected an object", "correct it")
            continue
        version = item.api_version
        if version in (V1ALPHA3, _V1ALPHA2):
            # Pages copied claims of later versions below the apiVersion of an older one.
            raw = _from_v1alpha3(workspace, item, raw)
            version = V1BETA1
        if version == V1BETA1:
            raw = _without_v1_fields(workspace, item, {**raw, "apiVersion": V1BETA1})
            raw = to_v1(raw)
        elif version == V1BETA2:
            raw = to_v1(raw)
        elif version == V1:
            raw = _repair(workspace, item, raw)
        else:
            message = f"{version} is no version of {GROUP}"
            workspace.refuse(item, ("apiVersion",), message, f"write apiVersion: {V1}")
            continue
        if own_target != "v1":
            raw = _downgrade(workspace, item, raw, f"{GROUP}/{own_target}")
        item.raw = raw
    if target != "v1":
        for item in workspace.items:
            # What other steps added is in v1.
            item.added = [
                from_v1(each, f"{GROUP}/{target}") if each.get("apiVersion") == V1 else each
                for each in item.added
            ]


def _without_v1_fields(workspace: Workspace, item: ManifestObject, raw: Raw) -> Raw:
    """Return an object of v1beta1 in which fields stand where v1 has them, as v1beta1 has them."""
    for path in misplaced(raw):
        entry = get_at(raw, path[:-1])
        value = get_at(raw, path)
        rest = without(entry, str(path[-1]))
        if path[-1] == "exactly":
            new = {**rest, **(value if isinstance(value, dict) else {})}
        else:
            new = {**rest, "basic": {**get(entry, "basic", {}), path[-1]: value}}
        raw = with_value(raw, path[:-1], new)
        workspace.note(item, path, f"{render(path)} is of v1 already, and stays")
    return raw


def _repair(workspace: Workspace, item: ManifestObject, raw: Raw) -> Raw:
    """Return an object of v1 in which fields stand where v1beta1 has them, as v1 has them."""
    path: Path = ("spec", "devices")
    if item.kind == "ResourceClaimTemplate":
        path = ("spec", *path)
    is_slice = item.kind == "ResourceSlice"
    holder = path if is_slice else (*path, "requests")
    entries = get_at(raw, holder)
    if not isinstance(entries, list):
        return raw
    for index, each in enumerate(entries):
        if not isinstance(each, dict):
            continue
        flat = [name for name in EXACT_FIELDS if name in each]
        is_flat = flat and "exactly" not in each and "firstAvailable" not in each
        basic = each.get("basic")
        if is_slice and isinstance(basic, dict):
            new = {**without(each, "basic"), **basic}
        elif is_flat and not is_slice:
            new = {**without(each, *flat), "exactly": {name: each[name] for name in flat}}
        else:
            continue
        where = (*holder, index, "basic" if is_slice else flat[0])
        workspace.note(item, where, f"{render(where)} is of v1beta1; it is in its place of v1 now")
        raw = with_value(raw, (*holder, index), new)
    return raw


def upgrade(sources: Iterable[Document]) -> list[Raw | None]:
    """
    Return the object of each document in v1; None for an object that others contain then.

    An object that cannot be converted is also None.
    """
    workspace = Workspace([ManifestObject(each, each.raw) for each in sources])
    convert_versions(workspace, "v1")
    return [
        None if item.raw is None or item.raw is item.document.raw else item.raw
        for item in workspace.items
    ]


def conversion_fix(document: Document, converted: Raw | None) -> str:
    """Return the fix of an object of an older version: the converted object, if it is short."""
    command = convert_command(document.file)
    text = "" if converted is None else print_flow(converted)
    return f"{command}; or write {text}" if 0 < len(text) <= _SHOWN_MAX else command


def _from_v1alpha3(workspace: Workspace, item: ManifestObject, raw: Raw) -> Raw:
    """Return an object of v1alpha3 in the form of v1beta1, with the apiVersion of v1alpha3."""
    if item.kind == "DeviceTaintRule":
        selector = get_at(raw, ("spec", "deviceSelector"))
        for name in ("deviceClassName", "selectors"):
            if isinstance(selector, dict) and name in selector:
                path: Path = ("spec", "deviceSelector", name)
                message = (
                    f"{render(path)} does not exist in v1, so the rule would taint more devices"
                )
                fix = "name the devices by driver, pool and device"
                workspace.refuse(item, path, message, fix)
        return raw
    for path, reason in _DROPPED:
        holder = get_at(raw, path[:-1])
        is_template = item.kind == "ResourceClaimTemplate"
        if (
            isinstance(holder, dict)
            and path[-1] in holder
            and (len(path) != 3 or path[1] != "spec" or is_template)
        ):
            workspace.note(item, path, f"{render(path)} is dropped: {reason}")
            raw = with_value(raw, path[:-1], without(holder, str(path[-1])))
    if item.kind == "ResourceSlice":
        devices = get_at(raw, ("spec", "devices"))
        if isinstance(devices, list):
            raw = with_value(raw, ("spec", "devices"), [_with_amounts(each) for each in devices])
    return raw


def _with_amounts(device: Any) -> Any:
    """Return a device of v1alpha3 whose capacity has values in objects."""
    capacity = get_at(device, ("basic", "capacity"))
    if not isinstance(capacity, dict):
        return device
    amounts = {
        name: each if isinstance(each, dict) else {"value": each} for name, each in capacity.items()
    }
    return with_value(device, ("basic", "capacity"), amounts)


def _downgrade(workspace: Workspace, item: ManifestObject, raw: Raw, api_version: str) -> Raw:
    """Return an object of v1 in an older version."""
    if item.kind == "DeviceTaintRule" and api_version == V1BETA1:
        message = f"{api_version} has no DeviceTaintRule"
        workspace.refuse(item, ("kind",), message, "convert to v1beta2 or v1")
        return raw
    return from_v1(raw, api_version)
