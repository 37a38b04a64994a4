"""
Resources of device plugins to claims, or to DeviceClasses that provide them.

`convert_to_claims` rewrites pods: each container that requests `nvidia.com/gpu: 2` gets a request
of a ResourceClaimTemplate. `add_extended_resources` keeps pods and adds DeviceClasses whose
`extendedResourceName` is the resource, which Kubernetes serves from 1.36 on by default.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from dryrack.conversion.node_labels import driver_of_label, selector_of
from dryrack.conversion.workspace import (
    dicts,
    get_at,
    name_of,
    pod_paths,
    text_at,
    with_value,
    without,
)
from dryrack.kinds.convert import V1
from dryrack.kinds.paths import get
from dryrack.kinds.quantity import Quantity, QuantityError
from dryrack.kinds.shape import render

if TYPE_CHECKING:
    from dryrack.conversion.workspace import ManifestObject, Workspace
    from dryrack.kinds.raw import Raw
    from dryrack.kinds.shape import Path

_NVIDIA = "gpu.nvidia.com"
_MIG = "nvidia.com/mig-"
_MEMORY = f'device.capacity["{_NVIDIA}"].memory'
_QUOTA = "requests."
_QUOTA_OF_CLASS = ".deviceclass.resource.k8s.io/devices"
_NAME_LENGTH_MAX = 63


@dataclass(frozen=True, slots=True)
class PluginResource:
    """A resource of a device plugin: the class, the driver and the name of its devices."""

    device_class: str
    driver: str
    noun: str
    # An expression about the devices, beside that of the class.
    selector: str = ""
    # What a claim does otherwise than the device plugin.
    note: str = ""


_SHARED = PluginResource(
    _NVIDIA,
    _NVIDIA,
    "gpus",
    note="a shared device becomes a whole one: configure time slicing or consumable capacity",
)
_RESOURCES = {
    "nvidia.com/gpu": PluginResource(_NVIDIA, _NVIDIA, "gpus"),
    "nvidia.com/gpu.shared": _SHARED,
    "amd.com/gpu": PluginResource("gpu.amd.com", "gpu.amd.com", "gpus"),
    "gpu.intel.com/i915": PluginResource("gpu.intel.com", "gpu.intel.com", "gpus"),
    "gpu.intel.com/xe": PluginResource("gpu.intel.com", "gpu.intel.com", "gpus"),
    "habana.ai/gaudi": PluginResource("gaudi.intel.com", "gaudi.intel.com", "gaudis"),
    "google.com/tpu": PluginResource("tpu.google.com", "tpu.google.com", "tpus"),
    "aws.amazon.com/neuron": PluginResource("neuron.aws.com", "neuron.aws.com", "neurons"),
    "aws.amazon.com/neurondevice": PluginResource("neuron.aws.com", "neuron.aws.com", "neurons"),
}
# What the classes of the drivers select, beside their driver.
_TYPES = {_NVIDIA: "gpu", "mig.nvidia.com": "mig"}


class _Ask(NamedTuple):
    """A request of one container for one resource."""

    path: Path
    container: str
    resource: str
    amount: int
    # An init container that ends before the others start.
    ends_early: bool


def resource_of(name: str) -> PluginResource | None:
    """Return what a resource of a device plugin is; None if it is of none that is known."""
    if name.startswith(_MIG):
        # A label value cannot contain `+`, which profiles with media engines have.
        profile = name.removeprefix(_MIG).replace(".me", "+me")
        selector = f'device.attributes["{_NVIDIA}"].profile == "{profile}"'
        return PluginResource("mig.nvidia.com", _NVIDIA, "migs", selector)
    return _RESOURCES.get(name)


def convert_to_claims(workspace: Workspace) -> None:
    """Replace the resources of device plugins by claims, in all pods and pod templates."""
    taken: dict[str, set[str]] = {}
    for each in workspace.of_kind("ResourceClaimTemplate"):
        taken.setdefault(each.namespace or "default", set()).add(name_of(each.raw))
    for item in list(workspace.items):
        asking = [
            (path, asks) for path in pod_paths(item) if (asks := _read_asks(workspace, item, path))
        ]
        for number, (path, asks) in enumerate(asking):
            _convert_pod(workspace, item, path, asks, number if len(asking) > 1 else None, taken)
        if item.kind == "ResourceQuota" and item.group == "":
            _convert_quota(item)
        elif item.kind == "LimitRange" and item.group == "":
            _note_limits(workspace, item)


def _convert_pod(
    workspace: Workspace,
    item: ManifestObject,
    path: Path,
    asks: list[_Ask],
    number: int | None,
    taken: dict[str, set[str]],
) -> None:
    raw = item.raw
    assert raw is not None, "an object that requests devices"
    nouns = {found.noun for ask in asks if (found := resource_of(ask.resource))}
    noun = nouns.pop() if len(nouns) == 1 else "devices"
    spec_path = (*path, "spec")
    claims = get_at(raw, (*spec_path, "resourceClaims")) or []
    claim = _make_unique(noun, {text_at(each, "name") for each in dicts(claims)})
    namespace = item.namespace or "default"
    base = name_of(raw) or text_at(raw, "metadata.generateName").rstrip("-") or item.kind.lower()
    suffix = noun if number is None else f"{number}-{noun}"
    names = taken.setdefault(namespace, set())
    template = _make_unique(f"{base}-{suffix}", names)
    names.add(template)
    raw, selectors = _take_labels(workspace, item, path, {ask.resource for ask in asks})
    requests: dict[str, Raw] = {}
    of_ask: dict[_Ask, str] = {}
    for ask in sorted(asks, key=lambda each: each.ends_early):
        of_ask[ask] = _find_request(ask, asks, of_ask, requests, noun, selectors)
    for container_path in dict.fromkeys(ask.path for ask in asks):
        mine = [ask for ask in asks if ask.path == container_path]
        used = dict.fromkeys(of_ask[ask] for ask in mine)
        raw = _without_resources(raw, container_path, {ask.resource for ask in mine})
        resources = get_at(raw, (*container_path, "resources")) or {}
        named = [
            {"name": claim} if len(requests) == 1 else {"name": claim, "request": request}
            for request in used
        ]
        resources = {**resources, "claims": [*resources.get("claims", []), *named]}
        raw = with_value(raw, (*container_path, "resources"), resources)
    for ask in asks:
        found = resource_of(ask.resource)
        if found is not None and found.note:
            workspace.note(item, (*ask.path, "resources"), f"{ask.resource}: {found.note}")
    entry = {"name": claim, "resourceClaimTemplateName": template}
    item.raw = with_value(raw, (*spec_path, "resourceClaims"), [*claims, entry])
    metadata = {"name": template, "namespace": item.namespace}
    item.added.append(
        {
            "apiVersion": V1,
            "kind": "ResourceClaimTemplate",
            "metadata": metadata if item.namespace else without(metadata, "namespace"),
            "spec": {"spec": {"devices": {"requests": list(requests.values())}}},
        }
    )


def _read_asks(workspace: Workspace, item: ManifestObject, path: Path) -> list[_Ask]:
    """Return what the containers of a pod request of device plugins."""
    asks = []
    for field in ("containers", "initContainers"):
        containers = get_at(item.raw, (*path, "spec", field))
        for index, container in enumerate(containers if isinstance(containers, list) else ()):
            at = (*path, "spec", field, index)
            amounts: Raw = {}
            for part in ("requests", "limits"):
                said = get_at(container, ("resources", part))
                amounts |= (
                    {name: (part, each) for name, each in (said or {}).items()}
                    if isinstance(said, dict)
                    else {}
                )
            for name, (part, amount) in amounts.items():
                if resource_of(name) is None:
                    continue
                count = _count(amount)
                if count is None:
                    where = (*at, "resources", part, name)
                    message = f"{render(where)}: {amount!r} is no whole number"
                    workspace.refuse(item, where, message, "write the number of devices")
                    continue
                is_sidecar = text_at(container, "restartPolicy") == "Always"
                ends_early = field == "initContainers" and not is_sidecar
                asks.append(_Ask(at, text_at(container, "name"), name, count, ends_early))
    return asks


def _count(amount: Any) -> int | None:
    try:
        number = Quantity.from_json(amount).value()
    except QuantityError:
        return None
    return int(number) if number == int(number) and number >= 0 else None


def _find_request(
    ask: _Ask,
    asks: list[_Ask],
    of_ask: dict[_Ask, str],
    requests: dict[str, Raw],
    noun: str,
    selectors: dict[str, list[str]],
) -> str:
    """Return the request of a container; an init container uses that of a later container."""
    if ask.ends_early:
        for other in asks:
            fits = other.resource == ask.resource and other.amount >= ask.amount
            if not other.ends_early and fits:
                return of_ask[other]
    resource = resource_of(ask.resource)
    assert resource is not None, "a resource of a device plugin"
    own = [each for each in asks if each.path == ask.path]
    is_alone = len([each for each in asks if not each.ends_early]) <= 1
    name = noun if is_alone and len(own) == 1 else ask.container
    if len(own) > 1:
        name = f"{ask.container}-{resource.noun}"
    name = _make_unique(name[:_NAME_LENGTH_MAX] or noun, set(requests))
    exactly: Raw = {"deviceClassName": resource.device_class}
    of_labels = selectors.get(resource.driver, ())
    if resource.selector:
        # The label states the memory of the whole device.
        of_labels = [each for each in of_labels if _MEMORY not in each]
    expressions = [*filter(None, [resource.selector]), *of_labels]
    if expressions:
        exactly["selectors"] = [{"cel": {"expression": each}} for each in expressions]
    if ask.amount != 1:
        exactly["count"] = ask.amount
    requests[name] = {"name": name, "exactly": exactly}
    return name


def _without_resources(raw: Raw, path: Path, names: set[str]) -> Raw:
    resources = get_at(raw, (*path, "resources"))
    for part in ("limits", "requests"):
        said = resources.get(part)
        if isinstance(said, dict) and names & said.keys():
            left = without(said, *names)
            resources = {**resources, part: left} if left else without(resources, part)
    return with_value(raw, (*path, "resources"), resources)


def _take_labels(
    workspace: Workspace, item: ManifestObject, path: Path, resources: set[str]
) -> tuple[Raw, dict[str, list[str]]]:
    """Return the object without GPU labels in its node selectors, and selectors by driver."""
    raw = item.raw
    assert raw is not None, "an object that is present"
    drivers = {found.driver for name in resources if (found := resource_of(name))}
    has_whole = any(not name.startswith(_MIG) for name in resources)
    selectors: dict[str, list[str]] = {}
    at = (*path, "spec", "nodeSelector")
    wanted = get_at(raw, at)
    kept: Raw = {}
    for label, value in (wanted if isinstance(wanted, dict) else {}).items():
        if not _take(
            workspace,
            item,
            (*at, label),
            (label, "In", [str(value)]),
            drivers,
            selectors,
            has_whole=has_whole,
        ):
            kept[label] = value
    raw = _with_or_without(raw, at, kept) if kept != (wanted or {}) else raw
    at = (*path, "spec", "affinity", "nodeAffinity")
    required = (*at, "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
    terms = get_at(raw, required)
    terms = terms if isinstance(terms, list) else []
    labels = [
        text_at(each, "key")
        for term in dicts(terms)
        for each in dicts(term.get("matchExpressions"))
    ]
    if len(terms) > 1:
        if any(driver_of_label(each) in drivers for each in labels):
            message = f"{render(required)} keeps its labels: a claim has no alternatives for nodes"
            workspace.note(item, required, message, "use firstAvailable, if the devices differ")
        return raw, selectors
    for index, term in enumerate(dicts(terms)):
        expressions = dicts(term.get("matchExpressions"))
        left = []
        for number, each in enumerate(expressions):
            where = (*required, index, "matchExpressions", number)
            values = [str(value) for value in get(each, "values", ())]
            read = (text_at(each, "key"), text_at(each, "operator"), values)
            if not _take(workspace, item, where, read, drivers, selectors, has_whole=has_whole):
                left.append(each)
        if len(left) != len(expressions):
            if not left and not term.get("matchFields"):
                raw = _with_or_without(raw, required[:-1], {})
            else:
                raw = _with_or_without(raw, (*required, index, "matchExpressions"), left)
    return raw, selectors


def _take(
    workspace: Workspace,
    item: ManifestObject,
    where: Path,
    requirement: tuple[str, str, list[str]],
    drivers: set[str],
    selectors: dict[str, list[str]],
    *,
    has_whole: bool,
) -> bool:
    """Return whether a selector of devices replaces a requirement on nodes, and add it."""
    label = requirement[0]
    driver = driver_of_label(label)
    if driver not in drivers:
        return False
    selector = selector_of(*requirement)
    if selector is None or (_MEMORY in selector and not has_whole):
        message = f"{label} stays a label of nodes: no attribute of a device states it"
        workspace.note(item, where, message)
        return False
    if selector:
        selectors.setdefault(driver, []).append(selector)
    return True


def _with_or_without(raw: Raw, path: Path, value: Any) -> Raw:
    """Return the object with a value; without the field, and its empty parents, if it is empty."""
    if value:
        new: Raw = with_value(raw, path, value)
        return new
    holder = get_at(raw, path[:-1])
    left = without(holder, str(path[-1]))
    is_needed = left or path[-2] == "spec"
    if is_needed:
        return with_value(raw, path[:-1], left)
    return _with_or_without(raw, path[:-1], {})


def _convert_quota(item: ManifestObject) -> None:
    """Limit the devices of the class instead of the resource."""
    hard = get_at(item.raw, ("spec", "hard"))
    new: Raw = {}
    for name, value in (hard if isinstance(hard, dict) else {}).items():
        resource = resource_of(name.removeprefix(_QUOTA)) if name.startswith(_QUOTA) else None
        new[f"{resource.device_class}{_QUOTA_OF_CLASS}" if resource else name] = value
    if new and new != hard:
        item.raw = with_value(item.raw, ("spec", "hard"), new)


def _note_limits(workspace: Workspace, item: ManifestObject) -> None:
    for index, each in enumerate(dicts(get_at(item.raw, ("spec", "limits")))):
        for part, values in each.items():
            for name in values if isinstance(values, dict) else ():
                if resource_of(name) is not None:
                    where = ("spec", "limits", index, part, name)
                    message = f"{name} stays: a LimitRange has no limits for claims"
                    workspace.note(item, where, message, "limit the devices in a ResourceQuota")


def add_extended_resources(workspace: Workspace) -> None:
    """Add a DeviceClass for each resource of a device plugin that no class in the files has."""
    present = {
        text_at(each.raw, "spec.extendedResourceName") for each in workspace.of_kind("DeviceClass")
    }
    for item in list(workspace.items):
        for path in pod_paths(item):
            for ask in _read_asks(workspace, item, path):
                resource = resource_of(ask.resource)
                if resource is None or ask.resource in present:
                    continue
                present.add(ask.resource)
                item.added.append(_class_of(ask.resource, resource))
                if resource.note:
                    where = (*ask.path, "resources")
                    workspace.note(item, where, f"{ask.resource}: {resource.note}")


def _class_of(name: str, resource: PluginResource) -> Raw:
    """Return the DeviceClass that provides a resource."""
    tests = [f'device.driver == "{resource.driver}"']
    if resource.device_class in _TYPES:
        kind = _TYPES[resource.device_class]
        tests.append(f'device.attributes["{resource.driver}"].type == "{kind}"')
    if resource.selector:
        tests.append(resource.selector)
    class_name = resource.device_class
    if name.startswith(_MIG):
        class_name = f"{name.removeprefix('nvidia.com/')}.nvidia.com"
    elif name != "nvidia.com/gpu" and resource.driver == _NVIDIA:
        class_name = f"shared.{class_name}"
    elif name == "gpu.intel.com/xe":
        # Both drivers of the kernel serve one class, which can provide one resource.
        class_name = f"xe.{class_name}"
    return {
        "apiVersion": V1,
        "kind": "DeviceClass",
        "metadata": {"name": class_name},
        "spec": {
            "selectors": [{"cel": {"expression": " && ".join(tests)}}],
            "extendedResourceName": name,
        },
    }


def _make_unique(name: str, taken: set[str]) -> str:
    """Return the name, or the name with the first number that makes it unique."""
    number = 2
    unique = name
    while unique in taken:
        unique = f"{name}-{number}"
        number += 1
    return unique
