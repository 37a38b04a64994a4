"""
The rules of custom kinds (`x-kubernetes-validations`), compiled once for `rule_evaluation`.

A rule is compiled against the types of the schema at which it stands, so most mistakes are found
when the definition is written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dryrack.cel.checking import types as t
from dryrack.cel.condition import compile_condition
from dryrack.extension.definitions.rule_types import environment, with_identity
from dryrack.kinds.paths import get

if TYPE_CHECKING:
    from dryrack.cel import Checked
    from dryrack.cel.condition import Condition

Schema = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule that compiles."""

    raw: Mapping[str, Any]
    condition: Condition
    uses_old: bool
    message: Condition | None = None

    @property
    def checked(self) -> Checked:
        return self.condition.checked

    @property
    def text(self) -> str:
        return str(self.raw["rule"]).strip()

    @property
    def name(self) -> str:
        """Return the name of a rule in evaluation errors: its message, if it has one."""
        return str(self.raw.get("message") or "").strip() or self.text


@dataclass(frozen=True, slots=True)
class Uncompiled:
    """The reason why a rule or its message does not compile."""

    problem: str
    field: str = "rule"


@dataclass(frozen=True, slots=True)
class Ruled:
    """The rules at a schema and below it."""

    schema: Schema
    rules: tuple[Rule, ...]
    properties: Mapping[str, Ruled]
    values: Ruled | None
    items: Ruled | None

    @property
    def has_any(self) -> bool:
        below = (self.values, self.items)
        return bool(self.rules or self.properties or any(each is not None for each in below))


def compile_rule(
    raw: Mapping[str, Any], schema: Schema, *, is_root: bool = False
) -> Rule | Uncompiled:
    """Compiles a rule against the schema at which it stands."""
    env = environment(schema, optional_old=bool(raw.get("optionalOldSelf")), is_root=is_root)
    condition = compile_condition(raw.get("rule") or "", env)
    if isinstance(condition, str):
        return Uncompiled(condition)
    if condition.checked.output_type != t.BOOL:
        return Uncompiled("cel expression must evaluate to a bool")
    message = None
    if spoken := raw.get("messageExpression"):
        found = compile_condition(spoken, env)
        if isinstance(found, str):
            return Uncompiled(found, "messageExpression")
        if found.checked.output_type != t.STRING:
            return Uncompiled("messageExpression must evaluate to a string", "messageExpression")
        message = found
    names = (reference.name for reference in condition.checked.references.values())
    return Rule(raw, condition, "oldSelf" in names, message)


def compile_rules(schema: Schema, *, is_root: bool = True) -> Ruled | None:
    """All rules of a schema that was accepted; nothing if it has none."""
    candidates = (
        compile_rule(raw, schema, is_root=is_root)
        for raw in get(schema, "x-kubernetes-validations", ())
    )
    rules = tuple(rule for rule in candidates if isinstance(rule, Rule))
    below = {
        name: compile_rules(place, is_root=False)
        for name, place in get(schema, "properties", {}).items()
    }
    values = schema.get("additionalProperties")
    items = schema.get("items")
    ruled = Ruled(
        with_identity(schema) if is_root else schema,
        rules,
        {name: each for name, each in sorted(below.items()) if each is not None},
        compile_rules(values, is_root=False) if isinstance(values, dict) else None,
        compile_rules(items, is_root=False) if isinstance(items, dict) else None,
    )
    return ruled if ruled.has_any else None
