"""Policies and their bindings by themselves: defaults, and what is wrong with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.extension.policies.compiled_policy import PolicyCompiler
from dryrack.extension.policies.policy_problems import (
    binding_problems,
    mutating_binding_problems,
    mutating_policy_problems,
    policy_problems,
)
from dryrack.kinds.paths import spec_of
from dryrack.kinds.rules.json_edit import map_items, set_missing, update_at
from dryrack.kinds.rules.kind_rules import KindRules

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.kinds.raw import Raw
    from dryrack.kinds.validation import FieldProblem

_MATCHES = {"matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {}}


class PolicyRules(KindRules):
    """A policy is refused if an expression does not compile."""

    def __init__(self) -> None:
        super().__init__(namespaced=False, has_status=True)

    def default(self, obj: Raw) -> Raw:
        made = update_at(obj, "spec", lambda spec: set_missing(spec, {"failurePolicy": "Fail"}))
        return update_at(made, "spec.matchConstraints", with_matches)

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
        made = update_at(obj, "spec", lambda spec: set_missing(spec, {"failurePolicy": "Fail"}))
        return update_at(made, "spec.matchConstraints", with_matches)

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
    """Where a policy holds."""

    def __init__(self) -> None:
        super().__init__(namespaced=False)

    def default(self, obj: Raw) -> Raw:
        return update_at(obj, "spec.matchResources", with_matches)

    def problems(self, obj: Raw) -> Sequence[FieldProblem]:
        return list(binding_problems(spec_of(obj)))


def with_matches(found: Raw) -> Raw:
    """What a policy or a binding is about, with what is so if nobody says otherwise."""
    ruled = with_scopes(with_scopes(found, "resourceRules"), "excludeResourceRules")
    return set_missing(ruled, _MATCHES)


def with_scopes(holder: Raw, key: str) -> Raw:
    """Rules are about objects in namespaces and outside of them."""
    return map_items(holder, key, lambda rule: set_missing(rule, {"scope": "*"}))
