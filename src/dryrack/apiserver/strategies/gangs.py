"""
Groups of pods that are scheduled together, and the workloads that they belong to.

Both are alpha. They are kept and judged as a real server does it whose gates are on. Every group
gets a finalizer, so that it stays while it has pods; a controller takes it away.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.apiserver.strategies.copies import filled, with_metadata, within
from dryrack.apiserver.strategy import PlainStrategy
from dryrack.kinds.decode import decode
from dryrack.kinds.meta import Condition
from dryrack.kinds.validation.meta import conditions
from dryrack.kinds.validation.names import checked, label, path_segment, subdomain
from dryrack.kinds.validation.problems import duplicate, invalid, required, too_many

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dryrack.apiserver.strategy import Write
    from dryrack.kinds.raw import Raw
    from dryrack.kinds.validation import FieldProblem

TEMPLATES_MAX = 8
PROTECTION = "scheduling.k8s.io/podgroup-protection"
_FIXED = "field is immutable"


class PodGroupStrategy(PlainStrategy):
    """How it is scheduled is fixed once said."""

    def __init__(self) -> None:
        super().__init__(namespaced=True, has_status=True)

    def default(self, obj: Raw, write: Write) -> Raw:
        return within(obj, "spec", lambda spec: filled(spec, {"disruptionMode": "Pod"}))

    def admit(self, obj: Raw, old: Raw | None, write: Write) -> Raw:
        finalizers = obj["metadata"].get("finalizers") or []
        if old is not None or PROTECTION in finalizers:
            return obj
        return with_metadata(obj, "finalizers", [*finalizers, PROTECTION])

    def problems(self, obj: Raw, write: Write) -> Sequence[FieldProblem]:
        return list(_group(obj.get("spec") or {}))

    def change_problems(self, obj: Raw, old: Raw, write: Write) -> Sequence[FieldProblem]:
        if write.subresource == "status":
            return list(_group_status(obj))
        spec, before = obj.get("spec") or {}, old.get("spec") or {}
        names = sorted({*spec, *before})
        return [
            invalid(f"spec.{name}", None, _FIXED)
            for name in names
            if spec.get(name) != before.get(name)
        ]


class WorkloadObjectStrategy(PlainStrategy):
    """Templates of groups, fixed once said."""

    def __init__(self) -> None:
        super().__init__(namespaced=True)

    def problems(self, obj: Raw, write: Write) -> Sequence[FieldProblem]:
        return list(_workload(obj.get("spec") or {}))

    def change_problems(self, obj: Raw, old: Raw, write: Write) -> Sequence[FieldProblem]:
        spec, before = obj.get("spec") or {}, old.get("spec") or {}
        return [
            invalid(f"spec.{name}", None, _FIXED)
            for name in ("controllerRef", "podGroupTemplates")
            if spec.get(name) != before.get(name)
        ]


def _group(spec: Raw) -> Iterator[FieldProblem]:
    reference = spec.get("podGroupTemplateRef")
    if reference is not None:
        yield from _reference("spec.podGroupTemplateRef", reference)
    yield from _policy("spec.schedulingPolicy", spec.get("schedulingPolicy") or {})


def _reference(at: str, given: Raw) -> Iterator[FieldProblem]:
    workload = given.get("workload")
    if workload is None:
        yield invalid(at, "", "must specify one of: `workload`")
        return
    for name, checker in (("workloadName", subdomain), ("podGroupTemplateName", label)):
        value = workload.get(name) or ""
        path = f"{at}.workload.{name}"
        yield from checked(path, value, checker) if value else (required(path),)


def _policy(at: str, given: Raw) -> Iterator[FieldProblem]:
    found = [name for name in ("basic", "gang") if given.get(name) is not None]
    if not found:
        yield invalid(at, "", "must specify one of: `basic`, `gang`")
    if len(found) > 1:
        shown = f"{{{', '.join(found)}}}"
        yield invalid(at, shown, "must specify exactly one of: `basic`, `gang`")
    if "gang" in found:
        count = given["gang"].get("minCount") or 0
        if not count:
            yield required(f"{at}.gang.minCount")
        elif count < 1:
            yield invalid(f"{at}.gang.minCount", count, "must be greater than or equal to 1")


def _workload(spec: Raw) -> Iterator[FieldProblem]:
    controller = spec.get("controllerRef")
    if controller is not None:
        yield from _controller("spec.controllerRef", controller)
    templates, at = spec.get("podGroupTemplates") or [], "spec.podGroupTemplates"
    if not templates:
        yield required(at)
    if len(templates) > TEMPLATES_MAX:
        yield too_many(at, len(templates), TEMPLATES_MAX)
    names = [template.get("name") or "" for template in templates]
    seen: set[str] = set()
    for position, template in enumerate(templates):
        if names[position] in seen:
            yield duplicate(f"{at}[{position}]", template)
        seen.add(names[position])
    for position, template in enumerate(templates):
        path = f"{at}[{position}]"
        name = names[position]
        yield from checked(f"{path}.name", name, label) if name else (required(f"{path}.name"),)
        yield from _policy(f"{path}.schedulingPolicy", template.get("schedulingPolicy") or {})


def _controller(at: str, given: Raw) -> Iterator[FieldProblem]:
    if given.get("apiGroup"):
        yield from checked(f"{at}.apiGroup", given["apiGroup"], subdomain)
    for name in ("kind", "name"):
        value = given.get(name) or ""
        path = f"{at}.{name}"
        yield from checked(path, value, path_segment) if value else (required(path),)


def _group_status(obj: Raw) -> Iterator[FieldProblem]:
    status = obj.get("status") or {}
    given = tuple(decode(each, Condition) for each in status.get("conditions") or ())
    yield from conditions("status.conditions", given)
    claims = {each.get("name") for each in (obj.get("spec") or {}).get("resourceClaims") or ()}
    for position, claim in enumerate(status.get("resourceClaimStatuses") or ()):
        if claim.get("name") not in claims:
            at = f"status.resourceClaimStatuses[{position}].name"
            detail = "must match the name of an entry in `spec.resourceClaims`"
            yield invalid(at, claim.get("name") or "", detail)
