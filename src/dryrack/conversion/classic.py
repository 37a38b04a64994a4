"""
resource.k8s.io/v1alpha2 to v1.

v1alpha2 has classes and claims that refer to parameters in other objects. A ResourceClass becomes a
DeviceClass that selects the devices of its driver; the parameters of a claim become requests,
selectors and opaque configuration in the claim. Parameters of kinds of a driver become opaque
configuration unchanged; of FakeClaimParameters, the count and the model are known as well.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, NamedTuple

from dryrack.conversion.workspace import (
    dicts,
    get_at,
    name_of,
    pod_paths,
    text_at,
    with_value,
    without,
)
from dryrack.kinds.convert import GROUP, V1

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.conversion.workspace import ManifestObject, Workspace
    from dryrack.kinds.raw import Raw
    from dryrack.kinds.shape import Path

# v1alpha1, of Kubernetes 1.26, has the same claims and classes.
_VERSIONS = (f"{GROUP}/v1alpha1", f"{GROUP}/v1alpha2")
REQUEST = "devices"
_FAKE = ("fake.resource.3-shake.com", "FakeClaimParameters")
_READ = re.compile(
    r'attributes\.(string|bool|int|version|quantity|intslice|stringslice)\["((?:[^"\\]|\\.)*)"\]'
)
_MEMBER = re.compile(r'"((?:[^"\\]|\\.)*)"\s+in\s+attributes\.(\w+)')
_NO_IDENTIFIER = re.compile(r"[^A-Za-z0-9_]")


class _Key(NamedTuple):
    """An object that parameters refer to."""

    group: str
    kind: str
    namespace: str
    name: str


def convert_classic(workspace: Workspace) -> None:
    """Convert all objects of v1alpha2, and the fields of pods that belong to it."""
    found = [each for each in workspace.items if each.api_version in _VERSIONS]
    for item in workspace.items:
        _convert_pods(item)
    if not found:
        return
    objects = {_key_of(each): each for each in workspace.items if each.raw is not None}
    drivers = {
        name_of(each.raw): text_at(each.raw, "driverName")
        for each in found
        if each.kind == "ResourceClass"
    }
    used: list[ManifestObject] = []
    for item in found:
        assert item.raw is not None, "an object that is present"
        match item.kind:
            case "ResourceClass":
                item.raw = _convert_class(workspace, item, item.raw, objects, used)
            case "ResourceClaim" | "ResourceClaimTemplate":
                _convert_claim(workspace, item, item.raw, objects, drivers, used)
            case "ResourceSlice":
                item.raw = _convert_slice(workspace, item, item.raw)
            case "PodSchedulingContext" | "PodScheduling":
                message = f"{item.kind} is removed: the scheduler allocates devices by itself"
                workspace.note(item, ("kind",), message)
                item.raw = None
            case "ResourceClaimParameters" | "ResourceClassParameters":
                pass
            case "DeviceClass":
                # Of a later version, below this apiVersion; the later step converts it.
                pass
            case kind:
                message = f"{item.api_version} has no kind {kind!r}"
                workspace.refuse(item, ("kind",), message, "correct kind or apiVersion")
    for item in found:
        if item.kind in ("ResourceClaimParameters", "ResourceClassParameters"):
            if item not in used:
                message = f"{item.kind} {item.document.name!r} is removed, and nothing refers to it"
                workspace.note(item, ("kind",), message)
            item.raw = None
    for item in used:
        # The parameters of a driver are in the claim now.
        item.raw = None


def _convert_pods(item: ManifestObject) -> None:
    """Move what is in `source` of each resource claim of a pod one level up."""
    for path in pod_paths(item):
        claims = get_at(item.raw, (*path, "spec", "resourceClaims"))
        if not isinstance(claims, list):
            continue
        new = [
            {**without(each, "source"), **each["source"]}
            if isinstance(each, dict) and isinstance(each.get("source"), dict)
            else each
            for each in claims
        ]
        if new != claims:
            item.raw = with_value(item.raw, (*path, "spec", "resourceClaims"), new)


def _key_of(item: ManifestObject) -> _Key:
    return _Key(item.group, item.kind, item.namespace or "default", item.document.name)


def _find_parameters(
    item: ManifestObject, path: Path, objects: dict[_Key, ManifestObject], namespace: str
) -> ManifestObject | None:
    """Return the object that a parametersRef names, if it is in the files."""
    ref = get_at(item.raw, path)
    kind = text_at(ref, "kind")
    group = text_at(ref, "apiGroup")
    name = text_at(ref, "name")
    found = objects.get(_Key(group, kind, namespace, name))
    return found or objects.get(_Key(group, kind, "default", name))


def _convert_class(
    workspace: Workspace,
    item: ManifestObject,
    raw: Raw,
    objects: dict[_Key, ManifestObject],
    used: list[ManifestObject],
) -> Raw:
    driver = text_at(raw, "driverName")
    if not driver:
        workspace.refuse(item, (), "a ResourceClass without driverName", "add driverName")
        return raw
    selectors = [{"cel": {"expression": f"device.driver == {json.dumps(driver)}"}}]
    config: list[Raw] = []
    ref = raw.get("parametersRef")
    if ref is not None:
        namespace = text_at(ref, "namespace") or "default"
        found = _find_parameters(item, ("parametersRef",), objects, namespace)
        if found is None or found.raw is None:
            _note_missing(workspace, item, ("parametersRef",))
        elif found.kind == "ResourceClassParameters":
            used.append(found)
            for each in dicts(found.raw.get("filters")):
                expression = text_at(each, "namedResources.selector")
                if expression:
                    of = text_at(each, "driverName") or driver
                    selectors.append({"cel": {"expression": rewrite_selector(expression, of)}})
            config += _vendor_config(found.raw, driver)
        else:
            config.append({"opaque": {"driver": driver, "parameters": _as_parameters(found.raw)}})
            used.append(found)
    if "suitableNodes" in raw:
        message = "suitableNodes is dropped: a DeviceClass selects no nodes"
        fix = "add it to the node affinity of the pods"
        workspace.note(item, ("suitableNodes",), message, fix)
    spec: Raw = {"selectors": selectors}
    if config:
        spec["config"] = config
    gone = ("driverName", "parametersRef", "suitableNodes", "structuredParameters")
    converted: Raw = {}
    for key, value in raw.items():
        if key == "driverName":
            converted["spec"] = spec
        elif key not in gone:
            converted[key] = value
    return {**converted, "apiVersion": V1, "kind": "DeviceClass"}


def _convert_claim(
    workspace: Workspace,
    item: ManifestObject,
    raw: Raw,
    objects: dict[_Key, ManifestObject],
    drivers: dict[str, str],
    used: list[ManifestObject],
) -> None:
    path: Path = ("spec", "spec") if item.kind == "ResourceClaimTemplate" else ("spec",)
    spec = get_at(raw, path)
    if not isinstance(spec, dict) or "resourceClassName" not in spec:
        if isinstance(spec, dict) and isinstance(spec.get("devices"), dict):
            # A claim of a later version below this apiVersion; the later step converts it.
            return
        message = f"a {item.kind} of v1alpha2 without resourceClassName"
        workspace.refuse(item, path, message, "name a ResourceClass")
        return
    class_name = text_at(spec, "resourceClassName")
    driver = drivers.get(class_name, "")
    requests: list[Raw] = []
    config: list[Raw] = []
    ref = spec.get("parametersRef")
    if ref is not None:
        namespace = item.namespace or "default"
        found = _find_parameters(item, (*path, "parametersRef"), objects, namespace)
        if found is None or found.raw is None:
            _note_missing(workspace, item, (*path, "parametersRef"))
        elif found.kind == "ResourceClaimParameters":
            used.append(found)
            requests, config = _read_claim_parameters(workspace, found, class_name, driver)
        else:
            # A driver without a class in the files: its group is usually its name.
            driver = driver or found.group
            requests, config = _read_driver_parameters(found.raw, class_name, driver)
            used.append(found)
            if (found.group, found.kind) != _FAKE:
                message = f"{found.kind} {found.document.name!r} is opaque configuration now"
                fix = f"check that driver {driver} reads it, and how many devices it means"
                workspace.note(found, (), message, fix)
    mode = spec.get("allocationMode")
    if mode == "Immediate":
        message = "allocationMode: Immediate is dropped: devices are allocated for the first pod"
        workspace.note(item, (*path, "allocationMode"), message)
    devices: Raw = {"requests": requests or [_request(REQUEST, class_name)]}
    if config:
        devices["config"] = config
    new: Raw = {}
    for key, value in spec.items():
        if key == "resourceClassName":
            new["devices"] = devices
        elif key not in ("parametersRef", "allocationMode"):
            new[key] = value
    if item.kind == "ResourceClaim" and "status" in raw:
        workspace.note(
            item, ("status",), "status is dropped: its allocation has another form in v1"
        )
        raw = without(raw, "status")
    item.raw = {**with_value(raw, path, new), "apiVersion": V1}


def _note_missing(workspace: Workspace, item: ManifestObject, path: Path) -> None:
    ref = get_at(item.raw, path)
    what = f"{text_at(ref, 'kind')} {text_at(ref, 'name')!r}"
    message = f"parametersRef is dropped: {what} is not in the files"
    fix = "convert it together with this object, or write its parameters by hand"
    workspace.note(item, path, message, fix)


def _request(name: str, class_name: str, selectors: Sequence[str] = (), count: int = 1) -> Raw:
    exactly: Raw = {"deviceClassName": class_name}
    if selectors:
        exactly["selectors"] = [{"cel": {"expression": each}} for each in selectors]
    if count != 1:
        exactly["count"] = count
    return {"name": name, "exactly": exactly}


def _read_claim_parameters(
    workspace: Workspace, found: ManifestObject, class_name: str, driver: str
) -> tuple[list[Raw], list[Raw]]:
    """Return the requests and the configuration of a ResourceClaimParameters."""
    raw = found.raw or {}
    if raw.get("shareable") is False:
        message = "shareable: false is dropped: every claim can be shared"
        workspace.note(found, ("shareable",), message)
    requests: list[Raw] = []
    config: list[Raw] = []
    for of_driver in dicts(raw.get("driverRequests")):
        name_of_driver = text_at(of_driver, "driverName") or driver
        config += _vendor_config({"vendorParameters": [of_driver]}, name_of_driver)
        for each in dicts(of_driver.get("requests")):
            expression = text_at(each, "namedResources.selector")
            selectors = [rewrite_selector(expression, name_of_driver)] if expression else []
            name = f"{REQUEST}-{len(requests)}"
            requests.append(_request(name, class_name, selectors))
            parameters = each.get("vendorParameters")
            if parameters is not None:
                opaque = {"driver": name_of_driver, "parameters": parameters}
                config.append({"requests": [name], "opaque": opaque})
    if len(requests) == 1:
        requests[0]["name"] = REQUEST
        config = [
            {**each, "requests": [REQUEST]} if "requests" in each else each for each in config
        ]
    return requests, config


def _vendor_config(raw: Raw, driver: str) -> list[Raw]:
    return [
        {
            "opaque": {
                "driver": text_at(each, "driverName") or driver,
                "parameters": each.get("parameters", each.get("vendorParameters")),
            }
        }
        for each in dicts(raw.get("vendorParameters"))
        if each.get("parameters", each.get("vendorParameters")) is not None
    ]


def _read_driver_parameters(raw: Raw, class_name: str, driver: str) -> tuple[list[Raw], list[Raw]]:
    """Return the requests and the configuration of an object of a driver's own kind."""
    spec = raw.get("spec")
    spec = spec if isinstance(spec, dict) else {}
    count = spec.get("count")
    selectors = []
    model = text_at(spec, "selector.model")
    parameters = _as_parameters(raw)
    if (text_at(raw, "apiVersion").partition("/")[0], raw.get("kind")) == _FAKE:
        if model:
            attribute = f"device.attributes[{json.dumps(driver)}].model"
            selectors.append(f"{attribute} == {json.dumps(model)}")
        # The driver reads the fields beside `kind`.
        head = {key: parameters[key] for key in ("apiVersion", "kind")}
        parameters = {**head, **spec}
    number = count if isinstance(count, int) and not isinstance(count, bool) and count > 0 else 1
    request = _request(REQUEST, class_name, selectors, number)
    return [request], [{"opaque": {"driver": driver, "parameters": parameters}}]


def _as_parameters(raw: Raw) -> Raw:
    return without(raw, "metadata", "status")


def rewrite_selector(expression: str, driver: str) -> str:
    """Return a selector of v1alpha2 as a selector of v1."""
    of = json.dumps(driver)

    def read(found: re.Match[str]) -> str:
        holder = "capacity" if found[1] == "quantity" else "attributes"
        return f"device.{holder}[{of}].{identifier(found[2])}"

    def is_member(found: re.Match[str]) -> str:
        holder = "capacity" if found[2] == "quantity" else "attributes"
        return f"{json.dumps(identifier(found[1]))} in device.{holder}[{of}]"

    return _MEMBER.sub(is_member, _READ.sub(read, expression))


def identifier(name: str) -> str:
    """Return the name of an attribute as v1 allows it."""
    return _NO_IDENTIFIER.sub("_", name)


def _convert_slice(workspace: Workspace, item: ManifestObject, raw: Raw) -> Raw:
    node = text_at(raw, "nodeName")
    driver = text_at(raw, "driverName")
    devices = [
        _device(workspace, item, ("namedResources", "instances", index), each)
        for index, each in enumerate(dicts(get_at(raw, ("namedResources", "instances"))))
    ]
    # Without a node, the devices are available to all nodes.
    place: Raw = {"nodeName": node} if node else {"allNodes": True}
    pool = {"name": node or driver, "generation": 1, "resourceSliceCount": 1}
    spec = {**place, "driver": driver, "pool": pool, "devices": devices}
    kept = without(raw, "nodeName", "driverName", "namedResources")
    return {**kept, "apiVersion": V1, "spec": spec}


def _device(workspace: Workspace, item: ManifestObject, path: Path, instance: Raw) -> Raw:
    attributes: Raw = {}
    capacity: Raw = {}
    for index, each in enumerate(dicts(instance.get("attributes"))):
        name = text_at(each, "name")
        short = identifier(name)
        if short != name:
            message = f"attribute {name!r} is {short!r} now: names are identifiers in v1"
            workspace.note(item, (*path, "attributes", index), message, "change selectors of it")
        for kind in ("string", "bool", "int", "version"):
            if kind in each:
                attributes[short] = {kind: each[kind]}
        if "quantity" in each:
            capacity[short] = {"value": each["quantity"]}
        for kind, inner in (("intSlice", "ints"), ("stringSlice", "strings")):
            if kind in each:
                attributes[short] = {inner: get_at(each, (kind, inner))}
                message = f"attribute {name!r} is a list, which needs DRAListTypeAttributes"
                workspace.note(item, (*path, "attributes", index), message)
    device: Raw = {"name": instance.get("name")}
    if attributes:
        device["attributes"] = attributes
    if capacity:
        device["capacity"] = capacity
    return device
