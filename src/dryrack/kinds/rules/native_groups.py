"""
PodGroups, CompositePodGroups and Workloads of Kubernetes 1.37 and later.

v1beta1 and v1alpha3 have the same shape. The rules are those that Kubernetes generates from its
types, and the checks of the tree of templates in a Workload, which it has as code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dryrack.kinds.decode import decode
from dryrack.kinds.meta import Condition
from dryrack.kinds.paths import get, spec_of, status_of
from dryrack.kinds.rules.declared_fields import (
    Field,
    Operation,
    Struct,
    check_name,
    items,
    maximum,
    minimum,
)
from dryrack.kinds.rules.json_edit import map_items, set_missing, update_at, without
from dryrack.kinds.rules.kind_rules import KindRules
from dryrack.kinds.validation.meta import conditions
from dryrack.kinds.validation.names import label_key, long_name, path_segment, short_name
from dryrack.kinds.validation.problems import (
    FieldProblem,
    duplicate,
    invalid,
    not_supported,
    required,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from dryrack.kinds.raw import Raw
    from dryrack.kinds.releases import FeatureSet

TEMPLATES_MAX = 8
CLAIMS_MAX = 4
DEPTH_MAX = 4
_PRIORITY_MAX = 1_000_000_000
_POLICIES = ("Never", "PreemptLowerPriority")
_TOPOLOGY = "TopologyAwareWorkloadScheduling"
_CLAIMS = "DRAWorkloadResourceClaims"
_PREEMPTION = "PodGroupPreemptionPolicy"
_COMPOSITE = "CompositePodGroup"


def _preemption_policy(at: str, new: Any, old: Any, operation: Operation) -> Iterator[FieldProblem]:
    if new not in _POLICIES:
        yield not_supported(at, new, _POLICIES)


def _policy(name: str) -> Struct:
    """Return the table of a scheduling policy; `name` is the count of its gang."""
    count = Field(name=name, is_required=True, check=minimum(1))
    basic = Field(name="basic", is_immutable=True, is_pointer=True)
    gang = Field(name="gang", keeps_presence=True, is_pointer=True, check=Struct((count,)))
    return Struct((basic, gang), union=("basic", "gang"))


def _topology(at: str, new: Any, old: Any, operation: Operation) -> Iterator[FieldProblem]:
    table = Struct((Field(name="key", is_required=True, check=check_name(label_key)),))
    for position, item in enumerate(new):
        yield from table(f"{at}[{position}]", item, None, operation)


_CONSTRAINTS = Struct((Field(name="topology", items_max=1, check=_topology),))
_CLAIM = Struct(
    (
        Field(name="name", is_required=True, check=check_name(short_name)),
        Field(name="resourceClaimName", is_pointer=True, check=check_name(long_name)),
        Field(name="resourceClaimTemplateName", is_pointer=True, check=check_name(long_name)),
    ),
    union=("resourceClaimName", "resourceClaimTemplateName"),
)
_MODE = Struct((), union=("single", "all"))
_REFERENCE = Struct(
    (
        Field(name="workloadName", is_required=True, check=check_name(long_name)),
        Field(name="templateName", is_required=True, check=check_name(short_name)),
    )
)
_TEMPLATE_NAME = Field(name="name", is_required=True, check=check_name(short_name))
_PARENT = Field(
    name="parentCompositePodGroupName",
    is_immutable=True,
    is_pointer=True,
    gate=_COMPOSITE,
    check=check_name(long_name),
)
_PRIORITY = (
    Field(name="priorityClassName", is_immutable=True, check=check_name(long_name)),
    Field(name="priority", is_immutable=True, is_pointer=True, check=maximum(_PRIORITY_MAX)),
    Field(
        name="preemptionPolicy",
        is_immutable=True,
        is_pointer=True,
        gate=_PREEMPTION,
        check=_preemption_policy,
    ),
)
_GROUP_CONSTRAINTS = Field(
    name="schedulingConstraints", is_immutable=True, gate=_TOPOLOGY, check=_CONSTRAINTS
)
_COMPOSITE_CONSTRAINTS = Field(name="schedulingConstraints", is_immutable=True, check=_CONSTRAINTS)
_GROUP_CLAIMS = Field(
    name="resourceClaims", is_immutable=True, items_max=CLAIMS_MAX, check=items(_CLAIM)
)
_TEMPLATE_MODE = Field(name="disruptionMode", is_immutable=True, check=_MODE)
_GROUP_MODE = Field(name="disruptionMode", is_immutable=True, is_required=True, check=_MODE)
_POD_GROUP = Struct(
    (
        _PARENT,
        Field(name="workloadRef", is_immutable=True, check=_REFERENCE),
        Field(name="schedulingPolicy", is_struct=True, check=_policy("minCount")),
        _GROUP_CONSTRAINTS,
        _GROUP_CLAIMS,
        _GROUP_MODE,
        *_PRIORITY,
    )
)
_COMPOSITE_POD_GROUP = Struct(
    (
        _PARENT,
        Field(name="workloadRef", is_immutable=True, is_required=True, check=_REFERENCE),
        Field(
            name="schedulingPolicy",
            is_struct=True,
            is_immutable=True,
            check=_policy("minGroupCount"),
        ),
        _COMPOSITE_CONSTRAINTS,
        _GROUP_MODE,
        *_PRIORITY,
    )
)
_TEMPLATE = Struct(
    (
        _TEMPLATE_NAME,
        Field(name="schedulingPolicy", is_struct=True, check=_policy("minCount")),
        _GROUP_CONSTRAINTS,
        _GROUP_CLAIMS,
        _TEMPLATE_MODE,
        *_PRIORITY,
    )
)
_TEMPLATES = Field(
    name="podGroupTemplates", items_max=TEMPLATES_MAX, fixed_items=True, check=items(_TEMPLATE)
)


def _composite_template(
    at: str, new: Any, old: Any, operation: Operation
) -> Iterator[FieldProblem]:
    yield from _COMPOSITE_TEMPLATE(at, new, old, operation)


def _composites(gate: str = "") -> Field:
    return Field(
        name="compositePodGroupTemplates",
        items_max=TEMPLATES_MAX,
        fixed_items=True,
        gate=gate,
        check=items(_composite_template),
    )


_COMPOSITE_TEMPLATE = Struct(
    (
        _TEMPLATE_NAME,
        Field(name="schedulingPolicy", is_struct=True, check=_policy("minGroupCount")),
        _COMPOSITE_CONSTRAINTS,
        _TEMPLATE_MODE,
        *_PRIORITY,
        _TEMPLATES,
        _composites(),
    )
)
_CONTROLLER = Struct(
    (
        Field(name="apiGroup", check=check_name(long_name)),
        Field(name="kind", is_required=True, check=check_name(path_segment)),
        Field(name="name", is_required=True, check=check_name(path_segment)),
    )
)
_WORKLOAD = Struct(
    (
        Field(name="controllerRef", is_immutable=True, check=_CONTROLLER),
        _TEMPLATES,
        _composites(_COMPOSITE),
    ),
    union=("podGroupTemplates", "compositePodGroupTemplates"),
)
_STATUS = Struct(
    (
        Field(
            name="resourceClaimStatuses",
            items_max=CLAIMS_MAX,
            check=items(
                Struct(
                    (Field(name="resourceClaimName", is_pointer=True, check=check_name(long_name)),)
                )
            ),
        ),
    )
)
# Fields that a server drops while their gate is off.
_TEMPLATE_GATES = {
    "schedulingConstraints": _TOPOLOGY,
    "resourceClaims": _CLAIMS,
    "preemptionPolicy": _PREEMPTION,
}


def _drop_fields(holder: Raw, stored: Raw, gates: Mapping[str, str], features: FeatureSet) -> Raw:
    """Return the object without fields of gates that are off and that the stored one lacks."""
    off = (name for name, gate in gates.items() if not features.is_on(gate))
    return without(holder, *(name for name in off if not stored.get(name)))


class NativeGroupRules(KindRules):
    """PodGroup and CompositePodGroup."""

    def __init__(self, *, is_composite: bool = False) -> None:
        super().__init__(namespaced=True, has_status=True)
        self.is_composite = is_composite
        self._table = _COMPOSITE_POD_GROUP if is_composite else _POD_GROUP

    def default(self, obj: Raw) -> Raw:
        defaults: Raw = {"disruptionMode": {"single": {}}}
        if self.features.is_on(_PREEMPTION):
            defaults["preemptionPolicy"] = "PreemptLowerPriority"
        return update_at(obj, "spec", lambda spec: set_missing(spec, defaults))

    def drop_disabled(self, obj: Raw, old: Raw | None) -> Raw:
        """Return the object without fields of gates that are off, unless it has them already."""
        gates = {"preemptionPolicy": _PREEMPTION}
        if not self.is_composite:
            gates |= _TEMPLATE_GATES | {_PARENT.name: _COMPOSITE}
        stored = {} if old is None else spec_of(old)
        return update_at(obj, "spec", lambda spec: _drop_fields(spec, stored, gates, self.features))

    def problems(self, obj: Raw) -> Iterator[FieldProblem]:
        spec = spec_of(obj)
        if not self.is_composite and spec.get(_PARENT.name) and spec.get("workloadRef") is None:
            detail = "must be set when parentCompositePodGroupName is set"
            yield required("spec.workloadRef", detail)
        yield from self._table("spec", spec, None, Operation(False, self.features))

    def update_problems(self, obj: Raw, old: Raw) -> Iterator[FieldProblem]:
        """Yield the problems of a new spec."""
        yield from self._table("spec", spec_of(obj), spec_of(old), Operation(True, self.features))

    def status_problems(self, obj: Raw, old: Raw) -> Iterator[FieldProblem]:
        """Yield the problems of a new status."""
        status = status_of(obj)
        given = tuple(decode(each, Condition) for each in get(status, "conditions", ()))
        yield from conditions("status.conditions", given, self.behaviour)
        names = {each.get("name") for each in get(obj, "spec.resourceClaims", ())}
        statuses: Sequence[Raw] = get(status, "resourceClaimStatuses", ())
        for position, each in enumerate(statuses):
            if each.get("name") not in names:
                at = f"status.resourceClaimStatuses[{position}].name"
                detail = "must match the name of an entry in `spec.resourceClaims`"
                yield invalid(at, each.get("name") or "", detail)
        yield from _STATUS("status", status, status_of(old), Operation(True, self.features))


class NativeWorkloadRules(KindRules):
    """Workload."""

    def __init__(self) -> None:
        super().__init__(namespaced=True)

    def drop_disabled(self, obj: Raw, old: Raw | None) -> Raw:
        """Return the object without fields of gates that are off, unless it has them already."""
        stored = {} if old is None else spec_of(old)
        return update_at(obj, "spec", lambda spec: self._drop_in(spec, stored))

    def _drop_in(self, holder: Raw, stored: Raw) -> Raw:
        """Drop fields of the templates of a Workload or of a template."""
        groups = iter(get(stored, "podGroupTemplates", ()))
        holder = map_items(
            holder,
            "podGroupTemplates",
            lambda each: _drop_fields(each, next(groups, {}), _TEMPLATE_GATES, self.features),
        )
        key = "compositePodGroupTemplates"
        holder = _drop_fields(holder, stored, {key: _COMPOSITE}, self.features)
        composites = {each.get("name"): each for each in get(stored, key, ())}

        def change(template: Raw) -> Raw:
            before = composites.get(template.get("name"), {})
            gates = {"preemptionPolicy": _PREEMPTION}
            return self._drop_in(_drop_fields(template, before, gates, self.features), before)

        return map_items(holder, key, change)

    def problems(self, obj: Raw) -> Iterator[FieldProblem]:
        yield from _tree_problems(spec_of(obj))
        yield from _WORKLOAD("spec", spec_of(obj), None, Operation(False, self.features))

    def update_problems(self, obj: Raw, old: Raw) -> Iterator[FieldProblem]:
        """Yield the problems of a new spec."""
        yield from _tree_problems(spec_of(obj))
        yield from _WORKLOAD("spec", spec_of(obj), spec_of(old), Operation(True, self.features))


def _tree_problems(spec: Raw) -> Iterator[FieldProblem]:
    """Check the whole tree of templates: names, depth, priorities, and children."""
    names = {each.get("name") or "" for each in get(spec, "podGroupTemplates", ())}
    yield from _repeated_names("spec", spec, names)
    composites = get(spec, "compositePodGroupTemplates", ())
    for position, each in enumerate(composites):
        if _depth(each) >= DEPTH_MAX:
            at = f"spec.compositePodGroupTemplates[{position}]"
            inner = each.get("compositePodGroupTemplates")
            yield invalid(at, inner, f"maximum template hierarchy depth is {DEPTH_MAX}")
    yield from _priority_problems(spec)
    for position, each in enumerate(composites):
        yield from _childless(f"spec.compositePodGroupTemplates[{position}]", each)


def _repeated_names(at: str, holder: Raw, names: set[str]) -> Iterator[FieldProblem]:
    """Yield names that occur elsewhere in the tree; a list alone is checked with its items."""
    at = f"{at}.compositePodGroupTemplates"
    composites = get(holder, "compositePodGroupTemplates", ())
    own = [each.get("name") or "" for each in composites]
    for position, name in enumerate(own):
        if name in names:
            yield duplicate(f"{at}[{position}].name", name)
    names.update(own)
    for position, each in enumerate(composites):
        inner = f"{at}[{position}]"
        groups = [group.get("name") or "" for group in get(each, "podGroupTemplates", ())]
        for index, name in enumerate(groups):
            if name in names:
                yield duplicate(f"{inner}.podGroupTemplates[{index}].name", name)
        names.update(groups)
        yield from _repeated_names(inner, each, names)


def _depth(template: Raw) -> int:
    return 1 + max(map(_depth, get(template, "compositePodGroupTemplates", ())), default=0)


def _priority_problems(spec: Raw) -> Iterator[FieldProblem]:
    groups = {_priority_of(each) for each in get(spec, "podGroupTemplates", ())}
    if len(groups) > 1:
        yield invalid("spec", None, "detected multiple priority configurations")
        return
    everywhere = groups | {
        each for top in get(spec, "compositePodGroupTemplates", ()) for each in _priorities(top)
    }
    if len(everywhere) > 1:
        detail = (
            "all priority and priorityClassName values must be identical, detected multiple values"
        )
        yield invalid("spec", None, detail)


def _priorities(template: Raw) -> Iterator[tuple[str, int | None]]:
    yield _priority_of(template)
    for each in get(template, "compositePodGroupTemplates", ()):
        yield from _priorities(each)
    for each in get(template, "podGroupTemplates", ()):
        yield _priority_of(each)


def _priority_of(template: Raw) -> tuple[str, int | None]:
    return template.get("priorityClassName") or "", template.get("priority")


def _childless(at: str, template: Raw) -> Iterator[FieldProblem]:
    composites = get(template, "compositePodGroupTemplates", ())
    if not composites and not get(template, "podGroupTemplates", ()):
        detail = "must have at least one child PodGroupTemplate or CompositePodGroupTemplate"
        yield invalid(at, template.get("name") or "", detail)
    for position, each in enumerate(composites):
        yield from _childless(f"{at}.compositePodGroupTemplates[{position}]", each)
