"""
The subresources `resize` and `ephemeralcontainers`: the parts of a pod's spec that each may write.

A resize changes CPU and memory, of each container and of the pod as a whole. A debug container
(`kubectl debug`) is added and cannot change. Other changes are ignored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.apiserver.answer.status import Subject
from dryrack.apiserver.answer.status import forbidden as refused
from dryrack.apiserver.strategies.pods.qos_class import quality
from dryrack.kinds.paths import get
from dryrack.kinds.quantity import Quantity
from dryrack.kinds.quota_usage.pods import totals, with_overhead
from dryrack.kinds.rules.json_edit import with_value, without
from dryrack.kinds.validation.problems import Token, forbidden, invalid

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dryrack.apiserver.strategy import Write
    from dryrack.kinds.raw import Raw
    from dryrack.kinds.releases import ValidationBehaviour
    from dryrack.kinds.validation import FieldProblem

_LISTS = ("containers", "initContainers")
_RESIZED = ("cpu", "memory")
_NOTHING = Quantity.parse("0")
_DEBUGGERS = "ephemeralContainers"


def apply_resize(spec: Raw, old: Raw) -> Raw:
    """The stored spec with the resources of the new one; with other containers, the new one."""
    if any(_names(spec, key) != _names(old, key) for key in _LISTS):
        return spec
    made = with_value(old, "resources", spec.get("resources"))
    for key in _LISTS:
        pairs = zip(spec.get(key) or (), old.get(key) or (), strict=True)
        made = with_value(
            made, key, [_with_resources_of(now, before) for now, before in pairs] or None
        )
    return made


def _names(spec: Raw, key: str) -> list[str | None]:
    return [each.get("name") for each in spec.get(key) or ()]


def _with_resources_of(now: Raw, before: Raw) -> Raw:
    made = with_value(before, "resources", now.get("resources"))
    return with_value(made, "resizePolicy", now.get("resizePolicy"))


def resize_problems(pod: Raw, old: Raw, behaviour: ValidationBehaviour) -> Iterator[FieldProblem]:
    """Yield the problems of a change of resources."""
    spec = pod["spec"]
    before = old["spec"]
    known = get(old, "status.qosClass") or quality(before)
    if quality(spec) != known:
        yield invalid("spec", Token(known), "Pod QOS Class may not change as a result of resizing")
    yield from _resources("spec.resources", spec, before, behaviour)
    for key in _LISTS:
        if _names(spec, key) != _names(before, key):
            detail = f"{key} may not be added, removed, renamed or reordered on resize"
            yield forbidden(f"spec.{key}", detail)
            continue
        pairs = zip(spec.get(key) or (), before.get(key) or (), strict=True)
        for position, pair in enumerate(pairs):
            yield from _resources(f"spec.{key}[{position}].resources", *pair, behaviour)


def _resources(
    at: str, now: Raw, before: Raw, behaviour: ValidationBehaviour
) -> Iterator[FieldProblem]:
    """Check a change of resources: only CPU and memory can change."""
    given = get(now, "resources", {})
    known = get(before, "resources", {})
    for part in ("requests", "limits"):
        if not (known.get(part) or {}).keys() <= (given.get(part) or {}).keys():
            yield forbidden(f"{at}.{part}", f"resource {part} cannot be removed")
    is_other = now.get("resizePolicy") != before.get("resizePolicy")
    if behaviour.resizes_beside_claims:
        is_other |= get(given, "claims", []) != get(known, "claims", [])
    else:
        is_other |= bool(known.get("claims"))
    if is_other or _immutable_resources(given) != _immutable_resources(known):
        yield forbidden("spec", "only cpu and memory resources are mutable")


def _immutable_resources(resources: Raw) -> Raw:
    """Return the resources that a resize cannot change."""
    left = {part: without(resources.get(part) or {}, *_RESIZED) for part in ("limits", "requests")}
    return {part: amounts for part, amounts in left.items() if amounts}


def check_node_capacity(pod: Raw, old: Raw, write: Write) -> None:
    """Refuses a resize to more than the node of the pod has in all."""
    spec = pod["spec"]
    meta = pod["metadata"]
    node = write.lookup.get("nodes", "", spec.get("nodeName") or "")
    if node is None or meta.get("generation") == old["metadata"].get("generation"):
        return
    has = get(node, "status.allocatable", {})
    asks = with_overhead(spec, totals(spec, "requests"), "requests")
    lacking = [
        f"{name}, requested: {asks[name]}, allocatable: {has.get(name, '0')}"
        for name in _RESIZED
        if asks.get(name, _NOTHING) > Quantity.from_json(has.get(name, "0"))
    ]
    if lacking:
        detail = f"node didn't have enough allocatable resources: {'; '.join(lacking)}"
        raise refused(Subject("", "pods"), meta["name"], detail)


def apply_debug_containers(spec: Raw, old: Raw) -> Raw:
    """Return the stored spec with the ephemeral containers of the new one."""
    return with_value(old, _DEBUGGERS, spec.get(_DEBUGGERS))


def debugger_problems(spec: Raw, old: Raw) -> Iterator[FieldProblem]:
    """Yield problems of changes of existing ephemeral containers."""
    now: Sequence[Raw] = spec.get(_DEBUGGERS) or ()
    for before in old.get(_DEBUGGERS) or ():
        if before not in now:
            name = before.get("name")
            detail = f'existing ephemeral containers "{name}" may not be changed or removed'
            yield forbidden(f"spec.{_DEBUGGERS}", detail)
