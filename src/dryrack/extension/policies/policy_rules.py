"""Admission policies and their bindings: their defaults and their problems."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.extension.policies.compiled_policy import PATCH_TYPES, PolicyCompiler
from dryrack.kinds.paths import get, spec_of
from dryrack.kinds.rules.checks import one_of, selector_problems
from dryrack.kinds.rules.json_edit import map_items, set_missing, update_at
from dryrack.kinds.rules.kind_rules import KindRules
from dryrack.kinds.validation.names import checked, path_segment, repeated, subdomain
from dryrack.kinds.validation.problems import (
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dryrack.kinds.raw import Raw
    from dryrack.kinds.validation import FieldProblem


_MATCHES = {"matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {}}


class PolicyRules(KindRules):
    """A policy is refused if an expression does not compile."""

    def __init__(self) -> None:
        super().__init__(namespaced=False, has_status=True)

    def default(self, obj: Raw) -> Raw:
        with_policy = update_at(
            obj, "spec", lambda spec: set_missing(spec, {"failurePolicy": "Fail"})
        )
        return update_at(with_policy, "spec.matchConstraints", with_matches)

    def problems(self, obj: Raw) -> Sequence[FieldProblem]:
        spec = spec_of(obj)
        compiler = PolicyCompiler(spec, obj["metadata"].get("name") or "")
        compiler.compile()
        return [*policy_problems(spec), *compiler.problems]


class MutatingPolicyRules(KindRules):
    """The rules of a mutating policy, which is refused if an expression does not compile."""

    def __init__(self) -> None:
        super().__init__(namespaced=False)

    def default(self, obj: Raw) -> Raw:
        with_policy = update_at(
            obj, "spec", lambda spec: set_missing(spec, {"failurePolicy": "Fail"})
        )
        return update_at(with_policy, "spec.matchConstraints", with_matches)

    def problems(self, obj: Raw) -> Sequence[FieldProblem]:
        spec = spec_of(obj)
        compiler = PolicyCompiler(spec, obj["metadata"].get("name") or "")
        compiler.compile()
        return [*mutating_policy_problems(spec), *compiler.problems]


class MutatingPolicyBindingRules(KindRules):
    """The rules of a binding, which says where a mutating policy applies."""

    def __init__(self) -> None:
        super().__init__(namespaced=False)

    def default(self, obj: Raw) -> Raw:
        return update_at(obj, "spec.matchResources", with_matches)

    def problems(self, obj: Raw) -> Sequence[FieldProblem]:
        return list(mutating_binding_problems(spec_of(obj)))


class PolicyBindingRules(KindRules):
    """The rules of a binding, which says where a validating policy applies."""

    def __init__(self) -> None:
        super().__init__(namespaced=False)

    def default(self, obj: Raw) -> Raw:
        return update_at(obj, "spec.matchResources", with_matches)

    def problems(self, obj: Raw) -> Sequence[FieldProblem]:
        return list(binding_problems(spec_of(obj)))


def with_matches(found: Raw) -> Raw:
    """Return the match resources of a policy or a binding with their defaults."""
    ruled = with_scopes(with_scopes(found, "resourceRules"), "excludeResourceRules")
    return set_missing(ruled, _MATCHES)


def with_scopes(holder: Raw, key: str) -> Raw:
    """Return the rules with the default scope, which is all objects."""
    return map_items(holder, key, lambda rule: set_missing(rule, {"scope": "*"}))


_OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_MUTABLE = ("*", "CONNECT", "CREATE", "UPDATE")
_REINVOCATIONS = ("IfNeeded", "Never")
_SCOPES = ("*", "Cluster", "Namespaced")
_ACTIONS = ("Audit", "Deny", "Warn")
_NEITHER = "validations or auditAnnotations must contain at least one item"
_ALONE = "if '*' is present, must not specify other {}"


def policy_problems(spec: Raw) -> Iterator[FieldProblem]:
    """Yield the problems of a validating policy; its expressions are for the compiler."""
    yield from _common_problems(spec)
    if not spec.get("validations") and not spec.get("auditAnnotations"):
        yield required("spec.validations", _NEITHER)
        yield required("spec.auditAnnotations", _NEITHER)


def mutating_policy_problems(spec: Raw) -> Iterator[FieldProblem]:
    """Yield the problems of a mutating policy; its expressions are for the compiler."""
    yield from _common_problems(spec)
    yield from _mutable("spec.matchConstraints", get(spec, "matchConstraints", {}))
    mutations = get(spec, "mutations", ())
    if not mutations:
        yield required("spec.mutations", "mutations must contain at least one item")
    for index, mutation in enumerate(mutations):
        path = f"spec.mutations[{index}]"
        patch_type = mutation.get("patchType") or ""
        if not patch_type:
            yield required(f"{path}.patchType")
        elif patch_type not in PATCH_TYPES:
            yield not_supported(f"{path}.patchType", patch_type, tuple(PATCH_TYPES))
        else:
            for name, (field, _) in PATCH_TYPES.items():
                if name == patch_type and mutation.get(field) is None:
                    yield required(f"{path}.{field}", f"must be specified when patchType is {name}")
                elif name != patch_type and mutation.get(field) is not None:
                    detail = f"must not be specified when patchType is {patch_type}"
                    yield invalid(f"{path}.{field}", f"{{{field}}}", detail)
    if not spec.get("reinvocationPolicy"):
        yield required("spec.reinvocationPolicy")
    elif spec["reinvocationPolicy"] not in _REINVOCATIONS:
        given = spec["reinvocationPolicy"]
        yield not_supported("spec.reinvocationPolicy", given, _REINVOCATIONS)


def _mutable(path: str, match: Raw) -> Iterator[FieldProblem]:
    """A deletion has no object that could be changed."""
    for rule in get(match, "resourceRules", ()):
        for operation in get(rule, "operations", ()):
            if operation not in _MUTABLE:
                yield not_supported(f"{path}.resourceRules.operations", operation, _MUTABLE)


def _common_problems(spec: Raw) -> Iterator[FieldProblem]:
    yield from one_of("spec.failurePolicy", spec.get("failurePolicy") or "", ("Fail", "Ignore"))
    if (kind := spec.get("paramKind")) is not None:
        for key in ("apiVersion", "kind"):
            if not kind.get(key):
                yield required(f"spec.paramKind.{key}")
    match = spec.get("matchConstraints")
    if match is None:
        yield required("spec.matchConstraints")
    else:
        yield from match_problems("spec.matchConstraints", match)
        if not match.get("resourceRules"):
            yield required("spec.matchConstraints.resourceRules")


def binding_problems(spec: Raw) -> Iterator[FieldProblem]:
    """Yield the problems of a binding of a validating policy."""
    yield from _common_binding_problems(spec)
    yield from _actions("spec.validationActions", get(spec, "validationActions", []))


def mutating_binding_problems(spec: Raw) -> Iterator[FieldProblem]:
    """Yield the problems of a binding of a mutating policy."""
    yield from _common_binding_problems(spec)
    yield from _mutable("spec.matchResources", get(spec, "matchResources", {}))


def _common_binding_problems(spec: Raw) -> Iterator[FieldProblem]:
    if not spec.get("policyName"):
        yield required("spec.policyName")
    else:
        yield from checked("spec.policyName", spec["policyName"], subdomain)
    if (reference := spec.get("paramRef")) is not None:
        yield from _reference("spec.paramRef", reference)
    if (match := spec.get("matchResources")) is not None:
        yield from match_problems("spec.matchResources", match)


def match_problems(path: str, match: Raw) -> Iterator[FieldProblem]:
    """The rules and selectors of what a policy or a binding is about."""
    yield from one_of(
        f"{path}.matchPolicy", match.get("matchPolicy") or "", ("Equivalent", "Exact")
    )
    for key in ("namespaceSelector", "objectSelector"):
        yield from selector_problems(f"{path}.{key}", match.get(key))
    for key in ("resourceRules", "excludeResourceRules"):
        for index, rule in enumerate(match.get(key) or ()):
            yield from _rule(f"{path}.{key}[{index}]", rule)


def _rule(path: str, rule: Raw) -> Iterator[FieldProblem]:
    names = get(rule, "resourceNames", [])
    again = set(repeated(names))
    for index, name in enumerate(names):
        yield from checked(f"{path}.resourceNames[{index}]", name, path_segment)
        if index in again:
            yield duplicate(f"{path}.resourceNames[{index}]", name)
    operations = get(rule, "operations", [])
    yield from _alone(path, "operations", operations, "operations")
    for index, operation in enumerate(operations):
        if operation not in _OPERATIONS:
            yield not_supported(f"{path}.operations[{index}]", operation, _OPERATIONS)
    yield from _alone(path, "apiGroups", get(rule, "apiGroups", []), "API groups")
    versions = get(rule, "apiVersions", [])
    yield from _alone(path, "apiVersions", versions, "API versions")
    yield from _all_given(f"{path}.apiVersions", versions)
    yield from _resources(f"{path}.resources", get(rule, "resources", []))
    if (scope := rule.get("scope")) is not None and scope not in _SCOPES:
        yield not_supported(f"{path}.scope", scope, _SCOPES)


def _alone(path: str, key: str, values: Sequence[str], what: str) -> Iterator[FieldProblem]:
    if not values:
        yield required(f"{path}.{key}")
    if len(values) > 1 and "*" in values:
        yield invalid(f"{path}.{key}", list(values), _ALONE.format(what))


def _all_given(path: str, values: Sequence[str]) -> Iterator[FieldProblem]:
    for index, value in enumerate(values):
        if not value:
            yield required(f"{path}[{index}]")


def _resources(path: str, values: Sequence[str]) -> Iterator[FieldProblem]:
    if not values:
        yield required(path)
    yield from _all_given(path, values)
    if len(values) > 1 and "*/*" in values:
        detail = "if '*/*' is present, must not specify other resources"
        yield invalid(path, list(values), detail)
    if "*" in values and any("/" not in value and value != "*" for value in values):
        detail = "if '*' is present, must not specify other resources without subresources"
        yield invalid(path, list(values), detail)


def _reference(path: str, reference: Raw) -> Iterator[FieldProblem]:
    name = reference.get("name")
    selector = reference.get("selector")
    if name:
        yield from checked(f"{path}.name", name, path_segment)
        if selector is not None:
            yield forbidden(f"{path}.name", "name and selector are mutually exclusive")
    if selector is not None:
        yield from selector_problems(f"{path}.selector", selector)
        if name:
            yield forbidden(f"{path}.selector", "name and selector are mutually exclusive")
    if not name and selector is None:
        yield required(path, "one of name or selector must be specified")
    action = reference.get("parameterNotFoundAction")
    if not action:
        yield required(f"{path}.parameterNotFoundAction")
    elif action not in ("Deny", "Allow"):
        yield not_supported(f"{path}.parameterNotFoundAction", action, ("Deny", "Allow"))


def _actions(path: str, actions: Sequence[str]) -> Iterator[FieldProblem]:
    again = set(repeated(actions))
    for index, action in enumerate(actions):
        if action not in _ACTIONS:
            yield not_supported(f"{path}[{index}]", action, _ACTIONS)
        if index in again:
            yield duplicate(f"{path}[{index}]", action)
    if "Deny" in actions and "Warn" in actions:
        detail = (
            "must not contain both Deny and Warn (repeating the same validation failure "
            "information in the API response and headers serves no purpose)"
        )
        yield invalid(path, list(actions), detail)
    if not actions:
        yield required(path, "at least one validation action is required")
