"""
The rules of custom kinds (`x-kubernetes-validations`), compiled once and tried on each write.

A rule is compiled against the types of the schema at which it stands, so most mistakes are found
when the definition is written. A rule about `oldSelf` is tried only where there is an old value
to compare with: of the items of a list, only those that have keys can be found again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dryrack.apiserver.custom.rule_types import environment, value_of, with_identity
from dryrack.apiserver.custom.values import NO_OLD as _NOTHING
from dryrack.apiserver.custom.values import item_key, items_by_key
from dryrack.cel import types as t
from dryrack.cel.checker import Checked
from dryrack.cel.frontend import compile_text
from dryrack.cel.planner import PlanError, Planner
from dryrack.cel.runtime_cost import CostLimitExceededError, Tracker
from dryrack.cel.values import Err, Optional, PanicError
from dryrack.kinds.validation.problems import FieldProblem, Reason, invalid

if TYPE_CHECKING:
    from dryrack.cel.attributes import Step
    from dryrack.cel.environment import Environment

Schema = Mapping[str, Any]
_REASONS = {reason.value: reason for reason in Reason}


class Unvalued(FieldProblem):
    """A problem whose value is too large to show."""

    __slots__ = ()

    @property
    def message(self) -> str:
        return f"Invalid value: {self.detail}"


class _Values:
    """The outermost scope of a rule: `self` and `oldSelf`."""

    __slots__ = ("_values",)

    def __init__(self, values: dict[str, Any]) -> None:
        self._values = values

    def resolve(self, name: str, _tracker: Tracker) -> Any:
        return self._values[name]


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule that compiles."""

    raw: Mapping[str, Any]
    condition: Step
    uses_old: bool
    checked: Checked
    message: Step | None = None

    @property
    def text(self) -> str:
        return str(self.raw["rule"]).strip()

    @property
    def name(self) -> str:
        """How a rule that cannot be evaluated is told apart: by its message, if it has one."""
        return str(self.raw.get("message") or "").strip() or self.text


@dataclass(frozen=True, slots=True)
class Uncompiled:
    """Why a rule does not compile, and whether its message is to blame."""

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
    condition = _compiled(raw.get("rule") or "", env)
    if isinstance(condition, str):
        return Uncompiled(condition)
    checked, step = condition
    if checked.output_type != t.BOOL:
        return Uncompiled("cel expression must evaluate to a bool")
    message = None
    if spoken := raw.get("messageExpression"):
        found = _compiled(spoken, env)
        if isinstance(found, str):
            return Uncompiled(found, "messageExpression")
        if found[0].output_type != t.STRING:
            return Uncompiled("messageExpression must evaluate to a string", "messageExpression")
        message = found[1]
    names = (reference.name for reference in checked.references.values())
    return Rule(raw, step, "oldSelf" in names, checked, message)


def _compiled(text: str, env: Environment) -> tuple[Checked, Step] | str:
    checked = compile_text(text, env)
    if not isinstance(checked, Checked):
        return f"compilation failed: {checked.text}"
    try:
        return checked, Planner(checked, env).plan(checked.expr)
    except (PlanError, PanicError) as error:
        return f"program instantiation failed: {error}"


def compiled(schema: Schema, *, is_root: bool = True) -> Ruled | None:
    """All rules of a schema that was accepted; nothing if it has none."""
    found = (
        compile_rule(raw, schema, is_root=is_root)
        for raw in schema.get("x-kubernetes-validations") or ()
    )
    rules = tuple(rule for rule in found if isinstance(rule, Rule))
    below = {
        name: compiled(place, is_root=False)
        for name, place in (schema.get("properties") or {}).items()
    }
    values, items = schema.get("additionalProperties"), schema.get("items")
    ruled = Ruled(
        with_identity(schema) if is_root else schema,
        rules,
        {name: each for name, each in sorted(below.items()) if each is not None},
        compiled(values, is_root=False) if isinstance(values, dict) else None,
        compiled(items, is_root=False) if isinstance(items, dict) else None,
    )
    return ruled if ruled.has_any else None


def broken(
    ruled: Ruled | None, value: Any, old: Any = _NOTHING, path: str = ""
) -> Iterator[FieldProblem]:
    """The rules that a value breaks; nothing is said about what has not changed."""
    if ruled is None or value is None or value == old:
        return
    for rule in ruled.rules:
        yield from _tried(rule, ruled.schema, value, old=old, path=path)
    if isinstance(value, dict):
        yield from _in_object(ruled, value, old if isinstance(old, dict) else {}, path=path)
    elif isinstance(value, list) and ruled.items is not None:
        keyed = items_by_key(ruled.schema, old)
        for index, item in enumerate(value):
            before = keyed.get(item_key(ruled.schema, item), _NOTHING)
            yield from broken(ruled.items, item, before, f"{path}[{index}]")


def _in_object(
    ruled: Ruled, value: dict[str, Any], old: dict[str, Any], *, path: str
) -> Iterator[FieldProblem]:
    for name in sorted(value):
        below = ruled.properties.get(name)
        if below is not None:
            at = f"{path}.{name}" if path else name
            yield from broken(below, value[name], old.get(name, _NOTHING), at)
        elif ruled.values is not None and name not in (ruled.schema.get("properties") or {}):
            yield from broken(ruled.values, value[name], old.get(name, _NOTHING), f"{path}[{name}]")


def _tried(
    rule: Rule, schema: Schema, value: Any, *, old: Any, path: str
) -> Iterator[FieldProblem]:
    is_optional = bool(rule.raw.get("optionalOldSelf"))
    if rule.uses_old and old is _NOTHING and not is_optional:
        return
    before = None if old is _NOTHING else value_of(schema, old)
    if is_optional:
        before = Optional() if old is _NOTHING else Optional(before)
    variables = _Values({"self": value_of(schema, value), "oldSelf": before})
    found = _evaluated(rule.condition, variables)
    if found is True:
        return
    if isinstance(found, Err):
        yield invalid(path or "<nil>", schema.get("type") or "", _failure(found, rule))
    else:
        yield _broken(rule, schema, value, variables=variables, path=path)


def _evaluated(step: Step, variables: _Values) -> Any:
    try:
        return step.eval(variables, Tracker())
    except CostLimitExceededError:
        return Err("operation cancelled: actual cost limit exceeded")
    except PanicError as panic:
        return Err(f"internal error: {panic}")


def _failure(error: Err, rule: Rule) -> str:
    told = error.message
    if told.startswith("no such overload"):
        return (
            f"'{told}': call arguments did not match a supported operator, function or macro "
            f"signature for rule: {rule.name}"
        )
    if told.startswith("operation cancelled"):
        return (
            f"'{told}': no further validation rules will be run due to call cost exceeds limit "
            f"for rule: {rule.name}"
        )
    return f"{told} evaluating rule: {rule.name}"


def _broken(
    rule: Rule, schema: Schema, value: Any, *, variables: _Values, path: str
) -> FieldProblem:
    detail = _message(rule, variables)
    field_path = (rule.raw.get("fieldPath") or "").removeprefix(".")
    at = ".".join(part for part in (path, field_path) if part) or "<nil>"
    reason = _REASONS.get(rule.raw.get("reason") or "", Reason.INVALID)
    if reason is Reason.INVALID and schema.get("type") in ("object", "array"):
        return Unvalued(reason, at, None, detail)
    return FieldProblem(reason, at, value, "" if reason is Reason.DUPLICATE else detail)


def _message(rule: Rule, variables: _Values) -> str:
    if rule.message is not None:
        spoken = _evaluated(rule.message, variables)
        # An expression that fails, or says nothing in one line, gives way to the plain message.
        if isinstance(spoken, str) and spoken.strip() and "\n" not in spoken:
            return spoken
    if message := rule.raw.get("message"):
        return str(message).strip()
    return f"failed rule: {rule.text}"
