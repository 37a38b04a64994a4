"""
The resources of a pod that is there: what `pods/resize` writes, and what it refuses.

It changes processor time and memory, of each container and of the pod as a whole, and nothing
else: whatever besides is sent is left out, unless containers came, went or changed places.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dryrack.apiserver.status import Cause, Status, StatusError, Subject
from dryrack.apiserver.status import forbidden as refused
from dryrack.apiserver.strategies.edits import with_value, without
from dryrack.apiserver.strategies.pods.quality import quality
from dryrack.kinds.quantity import Quantity
from dryrack.kinds.usage.pods import totals, with_overhead
from dryrack.kinds.validation.problems import Token, forbidden, invalid

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dryrack.apiserver.strategy import Write
    from dryrack.kinds.validation import FieldProblem

Raw = dict[str, Any]

MIRROR = "kubernetes.io/config.mirror"
_LISTS = ("initContainers", "containers")
_RESIZED = ("cpu", "memory")
_PARTS = ("limits", "requests")
_PODS = Subject("", "pods")
_NOTHING = Quantity.parse("0")
_quantity = Quantity.from_json
_ONLY = "only cpu and memory resources"


def resized(spec: Raw, old: Raw) -> Raw:
    """The stored spec with the resources of the new one."""
    if any(len(spec.get(key) or ()) != len(old.get(key) or ()) for key in _LISTS):
        return spec
    made = with_value(old, "resources", spec.get("resources"))
    for key in _LISTS:
        made = with_value(made, key, _containers(spec.get(key) or (), old.get(key) or ()) or None)
    return made


def _containers(now: Sequence[Raw], before: Sequence[Raw]) -> list[Raw]:
    if [each.get("name") for each in now] != [each.get("name") for each in before]:
        return list(now)
    return [_resized(*pair) for pair in zip(now, before, strict=True)]


def _resized(now: Raw, before: Raw) -> Raw:
    made = before
    for key in ("resources", "resizePolicy"):
        made = with_value(made, key, now.get(key))
    return made


def refusal(old: Raw) -> FieldProblem | None:
    """Why a pod cannot be resized at all; what else is wrong does not matter then."""
    if MIRROR in (old["metadata"].get("annotations") or {}):
        return forbidden("[]", "static pods cannot be resized")
    if ((old.get("spec") or {}).get("os") or {}).get("name") == "windows":
        return forbidden("[]", "windows pods cannot be resized")
    return None


def changes(pod: Raw, old: Raw) -> Iterator[FieldProblem]:
    """What is wrong with a change of resources."""
    spec, before, status = pod["spec"], old["spec"], old.get("status") or {}
    known = status.get("qosClass")
    if quality(spec) != (known or quality(before)):
        detail = "Pod QOS Class may not change as a result of resizing"
        yield invalid("spec", Token(known or ""), detail)
    if not _is_supported(status):
        yield forbidden("spec", "Pod running on node without support for resize")
    if _amounts(spec.get("resources")) or _amounts(before.get("resources")):
        yield from _whole(spec.get("resources"), before.get("resources"))
    if status.get("nodeAllocatableResourceClaimStatuses"):
        yield forbidden("spec", "pods with node allocatable resource claims cannot be resized")
    moved = list(_moves(spec, before))
    yield from moved or _each(spec, before)


def _is_supported(status: Raw) -> bool:
    """What runs tells its resources, where they can change; of what does not nobody knows."""
    running = (
        each
        for each in status.get("containerStatuses") or ()
        if (each.get("state") or {}).get("running") is not None
    )
    return (next(running, {"resources": {}})).get("resources") is not None


def _amounts(resources: Raw | None) -> bool:
    return any((resources or {}).get(part) for part in _PARTS)


def _whole(now: Raw | None, before: Raw | None) -> Iterator[FieldProblem]:
    if before is not None and now is None:
        yield forbidden("spec.resources", "pod-level resources cannot be removed")
        return
    if before is not None:
        removed = "pod-level resource {} cannot be removed"
        yield from _removals("spec.resources", now or {}, before, removed)
    if _unresized(now or {}) != _unresized(before or {}):
        yield forbidden("spec", f"{_ONLY} are mutable at pod-level")


def _removals(at: str, now: Raw, before: Raw, detail: str) -> Iterator[FieldProblem]:
    for part in reversed(_PARTS):
        if not (before.get(part) or {}).keys() <= (now.get(part) or {}).keys():
            yield forbidden(f"{at}.{part}", detail.format(part))


def _unresized(resources: Raw) -> Raw:
    """What of it must stay."""
    left = {part: without(resources.get(part) or {}, *_RESIZED) for part in _PARTS}
    return {part: amounts for part, amounts in left.items() if amounts}


def _moves(spec: Raw, old: Raw) -> Iterator[FieldProblem]:
    for key in reversed(_LISTS):
        now, before = spec.get(key) or (), old.get(key) or ()
        if len(now) != len(before):
            yield forbidden(f"spec.{key}", f"{key} may not be added or removed on resize")
            continue
        for position, (new, known) in enumerate(zip(now, before, strict=True)):
            if new.get("name") != known.get("name"):
                detail = f"{key} may not be renamed or reordered on resize"
                yield forbidden(f"spec.{key}[{position}].name", detail)


def _each(spec: Raw, old: Raw) -> Iterator[FieldProblem]:
    pairs = {key: list(zip(spec.get(key) or (), old.get(key) or (), strict=True)) for key in _LISTS}
    for key in _LISTS:
        for position, (now, before) in enumerate(pairs[key]):
            at, detail = f"spec.{key}[{position}].resources", "resource {} cannot be removed"
            given, known = now.get("resources") or {}, before.get("resources") or {}
            yield from _removals(at, given, known, detail)
    for now, before in pairs["containers"]:
        if _is_changed(now, before):
            yield forbidden("spec", f"{_ONLY} are mutable")
    for position, (now, before) in enumerate(pairs["initContainers"]):
        yield from _init_container(f"spec.initContainers[{position}]", now, before)


def _init_container(at: str, now: Raw, before: Raw) -> Iterator[FieldProblem]:
    if _is_changed(now, before):
        yield forbidden(at, f"{_ONLY} for init or sidecar containers are mutable")
    if now == before or now.get("restartPolicy") == "Always":
        return
    for policy in now.get("resizePolicy") or ():
        if policy.get("restartPolicy") == "RestartContainer":
            detail = "non-sidecar init containers with a resize policy of RestartContainer"
            yield forbidden(at, f"{detail} cannot be resized")


def _is_changed(now: Raw, before: Raw) -> bool:
    """Whether anything else changed; claims never pass, whoever has them."""
    given, known = now.get("resources") or {}, before.get("resources") or {}
    return (
        bool(known.get("claims"))
        or (now.get("resizePolicy") or []) != (before.get("resizePolicy") or [])
        or _unresized(given) != _unresized(known)
    )


def check_node(pod: Raw, old: Raw, write: Write) -> None:
    """Refuses what the node of a pod cannot do, or has not got."""
    spec, meta = pod["spec"], pod["metadata"]
    if not spec.get("nodeName") or meta.get("generation") == old["metadata"].get("generation"):
        return
    missing = _features(spec, old["spec"])
    node = write.lookup.get("nodes", "", spec["nodeName"])
    if node is None:
        raise refused(_PODS, meta["name"], f'node "{spec["nodeName"]}" not found')
    declared = (node.get("status") or {}).get("declaredFeatures") or ()
    missing = [each for each in missing if each not in declared]
    if missing:
        detail = f"pod update requires features {', '.join(missing)} which are not available on"
        raise refused(_PODS, meta["name"], f'{detail} node "{spec["nodeName"]}"')
    _check_system(meta["name"], node)
    _check_room(meta["name"], spec, node)


def _features(spec: Raw, old: Raw) -> list[str]:
    """What a kubelet must be able to do for this change."""
    found = []
    if spec.get("resources") != old.get("resources"):
        found.append("InPlacePodLevelResourcesVerticalScaling")
    pairs = zip(spec.get("initContainers") or (), old.get("initContainers") or (), strict=True)
    if any(
        now.get("resources") != before.get("resources")
        for now, before in pairs
        if before.get("restartPolicy") != "Always"
    ):
        found.append("InPlacePodVerticalScalingInitContainers")
    return found


def _check_system(name: str, node: Raw) -> None:
    system = (node["metadata"].get("labels") or {}).get("kubernetes.io/os", "linux")
    if system != "linux":
        detail = f'pod resize is only supported on linux nodes, node "{node["metadata"]["name"]}"'
        raise _because("UnsupportedPlatform", name, f'{detail} is "{system}"')


def _check_room(name: str, spec: Raw, node: Raw) -> None:
    has = (node.get("status") or {}).get("allocatable") or {}
    asks = with_overhead(spec, totals(spec, "requests"), "requests")
    cpu, memory = ((asks.get(each, _NOTHING), _quantity(has.get(each, "0"))) for each in _RESIZED)
    lacking = []
    if cpu[0] > cpu[1]:
        asked, found = (each.milli_value() for each in cpu)
        lacking.append(f"cpu, requested: {asked}, allocatable: {found}")
    if memory[0] > memory[1]:
        asked, found = (each.value() for each in memory)
        lacking.append(f"memory, requested: {asked}, allocatable: {found}")
    if lacking:
        detail = f"node didn't have enough allocatable resources: {'; '.join(lacking)}"
        raise _because("NodeCapacity", name, detail)


def _because(reason: str, name: str, detail: str) -> StatusError:
    """Forbidden, with a reason for programs."""
    status = refused(_PODS, name, detail).status
    details = {**(status.details or {}), "causes": [Cause(reason).to_raw()]}
    return StatusError(Status(status.code, status.reason, status.message, details))
