"""Derived attributes of requests (DRADerivedAttributes)."""

from collections.abc import Iterator, Sequence

from dryrack.kinds.resource import DerivedAttribute, DeviceConstraint
from dryrack.kinds.validation.parts import (
    EXPRESSION_BYTES_MAX,
    EXPRESSION_COST_MAX,
    Expressions,
    distinct,
)
from dryrack.kinds.validation.problems import (
    FieldProblem,
    byte_length,
    forbidden,
    invalid,
    too_long,
)

_UNUSED = (
    "must be referenced by at least one matchAttribute or distinctAttribute constraint targeting "
    "this request"
)
_TOO_COMPLEX = (
    "too complex, total cost of derived attribute CEL expressions in the claim exceeds cost limit"
)


class DerivedAttributes:
    """The derived attributes of one claim; declared checks judge their names."""

    def __init__(self, constraints: Sequence[DeviceConstraint], expressions: Expressions) -> None:
        self._expressions = expressions
        self._cost = 0
        # The attributes of constraints by the request that they are for; "" is every request.
        self._constrained: dict[str, set[str]] = {}
        for constraint in constraints:
            name = constraint.match_attribute
            if name is None:
                name = constraint.distinct_attribute
            if name is not None:
                for request in constraint.requests or ("",):
                    self._constrained.setdefault(request, set()).add(name)

    def problems(
        self, field: str, given: Sequence[DerivedAttribute], request: str
    ) -> Iterator[FieldProblem]:
        """Yield the problems of a request, or of a subrequest as "request/subrequest"."""
        at = f"{field}.derivedAttributes"
        places = ("", request, request.partition("/")[0])
        used = set().union(*(self._constrained.get(place, ()) for place in places))

        def check(where: str, attribute: DerivedAttribute) -> Iterator[FieldProblem]:
            if attribute.name and attribute.name not in used:
                fix = "name the attribute in a constraint"
                yield invalid(f"{where}.name", attribute.name, _UNUSED, fix=fix)
            if attribute.expression:
                yield from self._expression(f"{where}.expression", attribute.expression)

        return distinct(at, given, check, key=lambda each: each.name, count_max=None)

    def _expression(self, field: str, text: str) -> Iterator[FieldProblem]:
        if byte_length(text) > EXPRESSION_BYTES_MAX:
            yield too_long(field, EXPRESSION_BYTES_MAX)
        elif self._expressions.checker is not None:
            problem, cost = self._expressions.checker.check_derived(text)
            self._cost += cost
            if problem is not None:
                yield FieldProblem(problem.reason, field, text, problem.detail)

    def cost_problems(self, field: str) -> Iterator[FieldProblem]:
        """Yield a problem if all expressions together cost too much; call it last."""
        if self._cost > EXPRESSION_COST_MAX:
            yield forbidden(field, _TOO_COMPLEX)
