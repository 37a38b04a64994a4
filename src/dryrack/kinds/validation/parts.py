"""
Parts that several kinds share: lists and maps, node selectors, expressions, configuration,
taints and tolerations, binding conditions.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias, TypeVar

from dryrack.kinds.core import NodeSelector, NodeSelectorRequirement
from dryrack.kinds.releases import FeatureSet, ValidationBehaviour
from dryrack.kinds.resource import (
    DeviceSelector,
    DeviceTaint,
    DeviceToleration,
    OpaqueDeviceConfiguration,
)
from dryrack.kinds.validation.names import (
    checked,
    driver_name,
    label_key,
    label_value,
    repeated,
    subdomain,
)
from dryrack.kinds.validation.problems import (
    FieldProblem,
    Reason,
    Token,
    byte_length,
    duplicate,
    forbidden,
    invalid,
    json_length,
    not_supported,
    required,
    too_long,
    too_many,
)

T = TypeVar("T")
ItemCheck: TypeAlias = Callable[[str, T], Iterator[FieldProblem]]

EXPRESSION_BYTES_MAX = 10 * 1024
# The limit of the estimated cost, which the compiler checks.
EXPRESSION_COST_MAX = 1_000_000
PARAMETERS_BYTES_MAX = 10 * 1024
SELECTORS_MAX = 32
BINDING_CONDITIONS_MAX = 4
TAINT_EFFECTS = ("NoExecute", "NoSchedule", "None")
TOLERATION_OPERATORS = ("Equal", "Exists")


@dataclass(frozen=True, slots=True)
class ExpressionProblem:
    """An error of the expression compiler."""

    detail: str
    reason: Reason = Reason.INVALID


TOO_COMPLEX = ExpressionProblem("too complex, exceeds cost limit", Reason.FORBIDDEN)


class ExpressionChecker(Protocol):
    """A compiler of CEL expressions."""

    def check(self, expression: str, *, stored: bool) -> ExpressionProblem | None:
        """Return the first problem; `stored` expressions can use what was removed since."""
        ...

    def check_derived(self, expression: str) -> tuple[ExpressionProblem | None, int]:
        """Return the first problem of a derived attribute, and the highest cost."""
        ...


@dataclass(frozen=True, slots=True)
class Expressions:
    """The compiler for the expressions of one list, and whether they are stored already."""

    checker: ExpressionChecker | None
    stored: bool = False
    checks_stored: bool = True

    def problem(self, expression: str) -> ExpressionProblem | None:
        if self.checker is None:
            return None
        return self.checker.check(expression, stored=self.stored)


@dataclass(frozen=True, slots=True)
class Judging:
    """The context of validation: the compiler, the labels of the namespace, and the server."""

    expressions: Expressions
    namespace_labels: Mapping[str, str] | None
    behaviour: ValidationBehaviour
    features: FeatureSet


def items(
    field: str, values: Sequence[T], check: ItemCheck[T], *, count_max: int | None = None
) -> Iterator[FieldProblem]:
    """Check every item of a list; a list that is too long is not checked further."""
    if count_max is not None and len(values) > count_max:
        yield too_many(field, len(values), count_max)
        return
    for position, value in enumerate(values):
        yield from check(f"{field}[{position}]", value)


def distinct(
    field: str,
    values: Sequence[T],
    check: ItemCheck[T],
    *,
    key: Callable[[T], str],
    count_max: int | None,
) -> Iterator[FieldProblem]:
    """Check every item of a list, and that keys are unique."""
    yield from items(field, values, check, count_max=count_max)
    if count_max is None or len(values) <= count_max:
        for position in repeated(map(key, values)):
            yield duplicate(f"{field}[{position}]", key(values[position]))


def entries(
    field: str,
    values: Mapping[str, T],
    check: ItemCheck[T],
    *,
    key: Callable[[str, str], Iterator[FieldProblem]],
    key_bytes_shown: int,
) -> Iterator[FieldProblem]:
    """Check every entry of a map; problems of a key name the map."""
    for name in sorted(values):
        yield from key(field, name)
        yield from check(f"{field}[{shortened(name, key_bytes_shown)}]", values[name])


def shortened(text: str, bytes_max: int) -> str:
    """Return the text without its middle if it is too long for a message."""
    data = text.encode()
    if len(data) <= bytes_max:
        return text
    kept = bytes_max - len("...")
    return (data[: (kept + 1) // 2] + b"..." + data[len(data) - kept // 2 :]).decode(
        "utf-8", "replace"
    )


def node_selector(field: str, selector: NodeSelector) -> Iterator[FieldProblem]:
    terms = f"{field}.nodeSelectorTerms"
    if not selector.node_selector_terms:
        yield required(terms, "must have at least one node selector term")
    for position, term in enumerate(selector.node_selector_terms):
        at = f"{terms}[{position}]"
        yield from items(f"{at}.matchExpressions", term.match_expressions, _label_requirement)
        yield from items(f"{at}.matchFields", term.match_fields, _field_requirement)


def _label_requirement(field: str, given: NodeSelectorRequirement) -> Iterator[FieldProblem]:
    count = len(given.values)
    match given.operator:
        case "In" | "NotIn":
            if not count:
                yield required(
                    f"{field}.values", "must be specified when `operator` is 'In' or 'NotIn'"
                )
        case "Exists" | "DoesNotExist":
            if count:
                yield forbidden(
                    f"{field}.values",
                    "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
                )
        case "Gt" | "Lt":
            if count != 1:
                yield required(
                    f"{field}.values",
                    "must be specified single value when `operator` is 'Lt' or 'Gt'",
                )
        case _:
            yield _unknown_operator(field, given.operator)
    yield from checked(f"{field}.key", given.key, label_key)
    for position, value in enumerate(given.values):
        yield from checked(f"{field}.values[{position}]", value, label_value)


def _unknown_operator(field: str, operator: str) -> FieldProblem:
    return invalid(f"{field}.operator", Token(operator), "not a valid selector operator")


def _field_requirement(field: str, given: NodeSelectorRequirement) -> Iterator[FieldProblem]:
    if given.operator not in ("In", "NotIn"):
        yield _unknown_operator(field, given.operator)
    elif len(given.values) != 1:
        yield required(
            f"{field}.values",
            "must be only one value when `operator` is 'In' or 'NotIn' for node field selector",
        )
    if given.key != "metadata.name":
        yield invalid(f"{field}.key", given.key, "not a valid field selector key")
        return
    for position, value in enumerate(given.values):
        yield from checked(f"{field}.values[{position}]", value, subdomain)


def device_selectors(
    field: str, selectors: Sequence[DeviceSelector], expressions: Expressions
) -> Iterator[FieldProblem]:
    def check(at: str, selector: DeviceSelector) -> Iterator[FieldProblem]:
        if selector.cel is None:
            yield required(f"{at}.cel")
        else:
            yield from _expression(f"{at}.cel.expression", selector.cel.expression, expressions)

    return items(field, selectors, check, count_max=SELECTORS_MAX)


def _expression(field: str, text: str, expressions: Expressions) -> Iterator[FieldProblem]:
    if expressions.stored and not expressions.checks_stored:
        return
    if byte_length(text) > EXPRESSION_BYTES_MAX:
        yield too_long(field, EXPRESSION_BYTES_MAX)
        return
    problem = expressions.problem(text)
    if problem is not None:
        yield FieldProblem(problem.reason, field, text, problem.detail)


def configuration(
    field: str, opaque: OpaqueDeviceConfiguration | None, *, stored: bool
) -> Iterator[FieldProblem]:
    """Check parameters for a driver; stored parameters can have any size."""
    if opaque is None:
        yield required(f"{field}.opaque")
        return
    yield from driver_name(f"{field}.opaque.driver", opaque.driver)
    bytes_max = None if stored else PARAMETERS_BYTES_MAX
    yield from json_object(f"{field}.opaque.parameters", opaque.parameters, bytes_max=bytes_max)


def json_object(field: str, value: object, *, bytes_max: int | None) -> Iterator[FieldProblem]:
    if value is None:
        yield required(field)
    elif bytes_max is not None and json_length(value) > bytes_max:
        yield too_long(field, bytes_max)
    elif not isinstance(value, Mapping):
        yield invalid(field, "<value omitted>", "must be a valid JSON object")


def taint(field: str, given: DeviceTaint, old: DeviceTaint | None = None) -> Iterator[FieldProblem]:
    yield from checked(f"{field}.key", given.key, label_key)
    yield from checked(f"{field}.value", given.value, label_value)
    if old is not None and old.effect == given.effect:
        return
    if not given.effect:
        yield required(f"{field}.effect")
    elif given.effect not in TAINT_EFFECTS:
        yield not_supported(f"{field}.effect", given.effect, TAINT_EFFECTS)


def toleration(field: str, given: DeviceToleration) -> Iterator[FieldProblem]:
    """A toleration; the server takes one without operator to say `Equal`."""
    if given.key:
        yield from checked(f"{field}.key", given.key, label_key)
    operator = given.operator or "Equal"
    if operator == "Exists" and given.value:
        detail = "must be empty for operator `Exists`"
        yield invalid(f"{field}.value", given.value, detail, fix="leave the value out")
    elif operator == "Equal":
        yield from checked(f"{field}.value", given.value, label_value)
    elif operator not in TOLERATION_OPERATORS:
        yield not_supported(f"{field}.operator", operator, TOLERATION_OPERATORS)
    if given.effect and given.effect not in TAINT_EFFECTS:
        yield not_supported(f"{field}.effect", given.effect, TAINT_EFFECTS)


def skipped_operations(field: str, names: tuple[str, ...]) -> Iterator[FieldProblem]:
    """Operations of the kubelet that a driver does not need; the names are declared checks."""
    if "NodePrepareResources" in names and not {"NodeUnprepareResources", "*"} & set(names):
        detail = (
            "NodePrepareResources cannot be skipped unless NodeUnprepareResources is also skipped"
        )
        yield invalid(field, names, detail, fix="add NodeUnprepareResources")


def binding_conditions(
    field: str, awaited: tuple[str, ...], failures: tuple[str, ...]
) -> Iterator[FieldProblem]:
    """Conditions that a device waits for before its pod is bound, and those that end the wait."""
    at = f"{field}.bindingConditions"
    failures_at = f"{field}.bindingFailureConditions"
    yield from items(at, awaited, _condition_type, count_max=BINDING_CONDITIONS_MAX)
    yield from items(failures_at, failures, _condition_type, count_max=BINDING_CONDITIONS_MAX)
    for position in repeated(awaited):
        yield duplicate(f"{at}[{position}]", awaited[position])
    for position in repeated(failures):
        yield duplicate(f"{failures_at}[{position}]", failures[position])
    for position, failure in enumerate(failures):
        if failure in awaited:
            detail = "bindingFailureConditions must not overlap with bindingConditions"
            yield invalid(f"{failures_at}[{position}]", failure, detail)
    given = (bool(awaited), bool(failures))
    if given == (False, True):
        yield invalid(at, None, "bindingConditions are required to use bindingFailureConditions")
    if given == (True, False):
        yield invalid(
            failures_at, None, "bindingFailureConditions are required to use bindingConditions"
        )


def _condition_type(field: str, name: str) -> Iterator[FieldProblem]:
    return checked(field, name, label_key)
