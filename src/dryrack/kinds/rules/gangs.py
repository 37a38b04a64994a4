"""
PodGroups, and the Workloads to which they belong.

Both are alpha. The rules are those of a real server with their feature gates on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.kinds.paths import get, spec_of
from dryrack.kinds.rules.json_edit import set_defaults, update_at
from dryrack.kinds.rules.kind_rules import KindRules
from dryrack.kinds.validation.names import checked, label, path_segment, subdomain
from dryrack.kinds.validation.problems import duplicate, invalid, required, too_many

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dryrack.kinds.raw import Raw
    from dryrack.kinds.validation import FieldProblem

TEMPLATES_MAX = 8


class PodGroupRules(KindRules):
    """PodGroup."""

    def __init__(self) -> None:
        super().__init__(namespaced=True, has_status=True)

    def default(self, obj: Raw) -> Raw:
        return update_at(obj, "spec", lambda spec: set_defaults(spec, {"disruptionMode": "Pod"}))

    def problems(self, obj: Raw) -> Iterator[FieldProblem]:
        spec = spec_of(obj)
        reference = spec.get("podGroupTemplateRef")
        if reference is not None:
            yield from _reference("spec.podGroupTemplateRef", reference)
        yield from _policy("spec.schedulingPolicy", get(spec, "schedulingPolicy", {}))


class WorkloadObjectRules(KindRules):
    """Workload."""

    def __init__(self) -> None:
        super().__init__(namespaced=True)

    def problems(self, obj: Raw) -> Iterator[FieldProblem]:
        spec = spec_of(obj)
        controller = spec.get("controllerRef")
        if controller is not None:
            yield from _controller("spec.controllerRef", controller)
        templates = get(spec, "podGroupTemplates", [])
        at = "spec.podGroupTemplates"
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
            yield from _policy(f"{path}.schedulingPolicy", get(template, "schedulingPolicy", {}))


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


def _controller(at: str, given: Raw) -> Iterator[FieldProblem]:
    if given.get("apiGroup"):
        yield from checked(f"{at}.apiGroup", given["apiGroup"], subdomain)
    for name in ("kind", "name"):
        value = given.get(name) or ""
        path = f"{at}.{name}"
        yield from checked(path, value, path_segment) if value else (required(path),)
