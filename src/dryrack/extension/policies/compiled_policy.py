"""
The expressions of a validating or mutating admission policy, compiled; or their problems.

The same walk serves validation, which reports every problem with its path, and enforcement, where
a policy has no problems.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dryrack.cel import KEYWORDS_AND_RESERVED_WORDS
from dryrack.cel.checking import types as t
from dryrack.cel.condition import compile_condition
from dryrack.cel.patch_types import APPLY_CONFIGURATION_TYPE, JSON_PATCHES_TYPE
from dryrack.extension.policies.policy_environment import (
    environment,
    variable_type,
    with_patch_types,
)
from dryrack.kinds.paths import get
from dryrack.kinds.rules.checks import qualified_name
from dryrack.kinds.validation.names import repeated
from dryrack.kinds.validation.problems import duplicate, invalid, not_supported, required

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.cel import Environment
    from dryrack.cel.condition import Condition
    from dryrack.extension.definitions.rule_types import RuleEnvironment
    from dryrack.kinds.raw import Raw
    from dryrack.kinds.validation import FieldProblem

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_REASONS = ("Forbidden", "Invalid", "RequestEntityTooLarge")
# By type of a patch: the field that holds its expression, and the type that this has.
PATCH_TYPES = {
    "ApplyConfiguration": ("applyConfiguration", APPLY_CONFIGURATION_TYPE),
    "JSONPatch": ("jsonPatch", JSON_PATCHES_TYPE),
}
_UNSPECIFIED = "expression is not specified"


@dataclass(frozen=True, slots=True)
class Named:
    """A variable or a match condition: a name, its text, and the expression behind it."""

    name: str
    text: str
    condition: Condition


@dataclass(frozen=True, slots=True)
class Validation:
    """A condition that must be true, and the message if it is not."""

    text: str
    condition: Condition
    message: str
    spoken: Condition | None
    reason: str


@dataclass(frozen=True, slots=True)
class Mutation:
    """A change of objects: an expression that makes a patch of one of two types."""

    text: str
    condition: Condition
    patch_type: str
    """`ApplyConfiguration` or `JSONPatch`."""


@dataclass(frozen=True, slots=True)
class CompiledPolicy:
    """A policy that can be evaluated; it has validations or mutations."""

    match_conditions: tuple[Named, ...]
    variables: tuple[Named, ...]
    validations: tuple[Validation, ...]
    mutations: tuple[Mutation, ...] = ()


@dataclass(slots=True)
class PolicyCompiler:
    """Compiles one policy's spec and collects what is wrong with it."""

    spec: Raw
    name: str = ""
    problems: list[FieldProblem] = field(default_factory=list)
    _types: dict[str, t.Type] = field(default_factory=dict)

    def compile(self) -> CompiledPolicy:
        conditions = tuple(self._match_conditions())
        variables = tuple(self._variables())
        validations = tuple(self._validations())
        # There is no audit log: annotations are only checked.
        given = get(self.spec, "auditAnnotations", ())
        for index, each in enumerate(given):
            path = f"spec.auditAnnotations[{index}]"
            text = each.get("valueExpression") or ""
            self.problems.extend(qualified_name(f"{path}.key", f"{self.name}/{each.get('key')}"))
            if not text.strip():
                detail = "valueExpression is not specified"
                self.problems.append(required(f"{path}.valueExpression", detail))
            else:
                kinds = (t.STRING, t.NULL)
                self._compiled(f"{path}.valueExpression", text, self._environment, kinds)
        mutations = tuple(self._mutations())
        return CompiledPolicy(conditions, variables, validations, mutations)

    @property
    def _has_params(self) -> bool:
        return self.spec.get("paramKind") is not None

    @property
    def _environment(self) -> RuleEnvironment:
        return self._with_variables(has_authorizer=True)

    def _with_variables(self, *, has_authorizer: bool) -> RuleEnvironment:
        variables = self._types if self.spec.get("variables") else None
        return environment(
            has_params=self._has_params, variables=variables, has_authorizer=has_authorizer
        )

    def _match_conditions(self) -> list[Named]:
        given = get(self.spec, "matchConditions", ())
        again = set(repeated([each.get("name") or "" for each in given]))
        env = environment(has_params=self._has_params)
        compiled = []
        for index, each in enumerate(given):
            path = f"spec.matchConditions[{index}]"
            name = each.get("name") or ""
            text = (each.get("expression") or "").strip()
            if not text:
                self.problems.append(required(f"{path}.expression"))
            elif condition := self._compiled(f"{path}.expression", text, env, (t.BOOL,)):
                compiled.append(Named(name, text, condition))
            if not name:
                self.problems.append(required(f"{path}.name"))
            else:
                self.problems.extend(qualified_name(f"{path}.name", name))
            if name and index in again:
                self.problems.append(duplicate(f"{path}.name", name))
        return compiled

    def _variables(self) -> list[Named]:
        compiled = []
        for index, each in enumerate(get(self.spec, "variables", ())):
            path = f"spec.variables[{index}]"
            name = each.get("name") or ""
            if not name.strip():
                self.problems.append(required(f"{path}.name", "name is not specified"))
            elif not _IDENTIFIER.fullmatch(name) or name in KEYWORDS_AND_RESERVED_WORDS:
                detail = "must be a valid CEL identifier"
                self.problems.append(invalid(f"{path}.name", name, detail))
            text = each.get("expression") or ""
            condition = self._compiled(f"{path}.expression", text, self._environment)
            self._types[name] = t.DYN
            if condition is not None:
                self._types[name] = variable_type(condition.checked.output_type)
                compiled.append(Named(name, text, condition))
        return compiled

    def _validations(self) -> list[Validation]:
        compiled = []
        for index, each in enumerate(get(self.spec, "validations", ())):
            path = f"spec.validations[{index}]"
            text = each.get("expression") or ""
            condition = self._compiled(f"{path}.expression", text, self._environment, (t.BOOL,))
            spoken = self._message(f"{path}.messageExpression", each.get("messageExpression"))
            message = each.get("message") or ""
            if message and not message.strip():
                detail = "must be non-empty if specified"
                self.problems.append(invalid(f"{path}.message", message, detail))
            elif "\n" in message.strip():
                detail = "must not contain line breaks"
                self.problems.append(invalid(f"{path}.message", message, detail))
            reason = each.get("reason") or "Invalid"
            if reason not in _REASONS:
                self.problems.append(not_supported(f"{path}.reason", reason, _REASONS))
            if condition is not None:
                compiled.append(Validation(text, condition, message.strip(), spoken, reason))
        return compiled

    def _mutations(self) -> list[Mutation]:
        compiled = []
        for index, each in enumerate(get(self.spec, "mutations", ())):
            patch_type = each.get("patchType") or ""
            if patch_type not in PATCH_TYPES:
                continue
            field, kind = PATCH_TYPES[patch_type]
            if each.get(field) is None:
                continue
            path = f"spec.mutations[{index}].{field}"
            text = each[field].get("expression") or ""
            if not text.strip():
                self.problems.append(required(f"{path}.expression"))
                continue
            env = with_patch_types(self._environment)
            condition = self._compiled(f"{path}.expression", text.strip(), env, (kind,))
            if condition is not None:
                compiled.append(Mutation(text.strip(), condition, patch_type))
        return compiled

    def _message(self, path: str, text: str | None) -> Condition | None:
        if not text:
            return None
        if not text.strip():
            self.problems.append(invalid(path, text, "must be non-empty if specified"))
            return None
        env = self._with_variables(has_authorizer=False)
        return self._compiled(path, text, env, (t.STRING,))

    def _compiled(
        self, path: str, text: str, env: Environment, kinds: Sequence[t.Type] = ()
    ) -> Condition | None:
        """`kinds` are the types that it may have; any, if there are none."""
        if not text.strip():
            self.problems.append(required(path, _UNSPECIFIED))
            return None
        condition = compile_condition(text, env)
        if isinstance(condition, str):
            self.problems.append(invalid(path, text, condition))
            return None
        if kinds and condition.checked.output_type not in kinds:
            shown = str(condition.checked.output_type)
            detail = f"must evaluate to {_list(kinds)} but got {shown}"
            self.problems.append(invalid(path, text, detail))
            return None
        return condition


def _list(kinds: Sequence[t.Type]) -> str:
    if len(kinds) == 1:
        return str(kinds[0])
    return f"one of [{' '.join(each.runtime_name for each in kinds)}]"
