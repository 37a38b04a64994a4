"""The counting tier: what it remembers and what it catches must not show."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from tests.bench.expressions import DEVICE
from tests.cel.bombs import BODIES
from tests.cel.compare import device_of
from tests.cel.generate import generate
from tests.cel.generate_loops import looped

from dryrack.cel import CompileError, Environment, EvaluationError, Program, compile_expression
from dryrack.cel.runtime_cost import COST_LIMIT

if TYPE_CHECKING:
    from dryrack.cel import Device
    from dryrack.cel.program import Judged

EVERYTHING = Environment(consumable_capacity=True, list_type_attributes=True, new_expressions=True)
LIMITS = (COST_LIMIT, COST_LIMIT, 30, 60, 100, 200, 500, 1000)
CASES = 1500
# Of those that compile, so many must be decided by the counting tier, or little is tested.
DECIDED_MIN = 0.8


def _shown(judged: Judged) -> tuple[bool | str, int]:
    verdict, cost = judged
    return (verdict.message if isinstance(verdict, EvaluationError) else verdict), cost


def _compiled(expression: str, env: Environment = EVERYTHING) -> Program:
    program = compile_expression(expression, env)
    assert not isinstance(program, CompileError), program
    return program


def _assert_alike(program: Program, device: Device, limit: int, text: str) -> bool:
    """Whether the counting tier had an answer, which then is the exact one."""
    counted = program.matches_counting(device, limit)
    if counted is None:
        return False
    assert _shown(counted) == _shown(program.matches_exactly(device, limit)), (limit, text)
    return True


def _case(number: int) -> tuple[str, Device, int]:
    chance = random.Random(f"loops-{number}")
    first, second = (generate(f"loops-{number}-{name}") for name in "ab")
    text = looped(chance, first.expression.text, second.expression.text)
    return text, device_of(first.case), chance.choice(LIMITS)


@pytest.mark.parametrize("part", range(4))
def test_what_is_done_once_for_all_rounds_is_as_if_done_in_each(part: int) -> None:
    """Generated expressions in loops, under many limits: same verdict, same error, same cost."""
    decided: list[bool] = []
    for number in range(part, CASES, 4):
        text, device, limit = _case(number)
        program = compile_expression(text, EVERYTHING)
        if not isinstance(program, CompileError) and not device.lists.error:
            decided.append(_assert_alike(program, device, limit, text))

    assert decided
    assert sum(decided) >= DECIDED_MIN * len(decided)


@pytest.mark.parametrize("limit", [50, 73, 100, 500, 2000, COST_LIMIT])
@pytest.mark.parametrize("body", BODIES.values(), ids=list(BODIES))
def test_it_stops_at_the_step_at_which_the_exact_tier_stops(body: str, limit: int) -> None:
    """Wherever the limit is, in what is done for the first time or in what is remembered."""
    text = f"lists.range(9).all(w, lists.range(9).all(x, {body}))"

    assert _assert_alike(_compiled(text), device_of(DEVICE), limit, text)


@pytest.mark.parametrize(
    "expression",
    [
        # A failure in each kind of step that passes it on.
        "[1, 2].exists(x, [1 / (x - 1), x].size() == 2)",
        "[1, 2].exists(x, {'a': x, 'b': 1 / (x - 1)}.size() == 2)",
        "[1, 2].exists(x, {1 / (x - 1): x}.size() == 1)",
        "[1, 2].exists(x, (1 / (x - 1) > 0 ? x : 2) == 2)",
        "[1, 2].exists(x, [1, 2, 3][1 / (x - 1)] == 2)",
        "[1, 2].exists(x, optional.of(1 / (x - 1)).orValue(1) == 1)",
        "[1, 2].exists(x, 1 / (x - 1) in [1, 2])",
        "[1, 2].exists(x, 1 / (x - 1) == 1 / (x - 2))",
        "[1, 2].exists(x, string(1 / (x - 1)).replace(string(1 / (x - 2)), 'a') == 'a')",
        "[1, 2].exists(x, 'abc'.substring(1 / (x - 1), 3) == 'bc')",
        "[1, 2].exists(x, 'abc'.substring(0, 1 / (x - 1)) == 'a')",
        "[1, 2].exists(x, device.attributes['none'].none == x || x == 2)",
        "[1, 2].exists(x, has(device.attributes[string(1 / (x - 1))].none) || x == 2)",
        "[1, 2].all(x, dyn(x) || x == 2)",
        "[1, 2].exists(x, dyn(0)) < true",
        "[1, 2].all(x, dyn(x) ? true : false)",
        "[1, 2].exists_one(x, 1 / (x - 1) == 1)",
        "[1, 2].map(x, 1 / (x - 1)).size() == 2 || true",
        "[1, 2].filter(x, 1 / (x - 1) == 1).size() == 1 || true",
        "[1, 2].all(x, cel.bind(y, 1 / (x - 1), y == 1 || y == 2 || x == 1))",
        "[1, 2].all(x, [3, 4].exists(y, 1 / (x - 1) == y))",
        "[1, 2].all(x, [9223372036854775807].all(y, y + x > 0 || true))",
        "[1, 2].all(x, [1].flatten(-x) == [] || x == 2)",
        "[1, 2].all(x, quantity(string(x) + 'x').isInteger() || x == 2)",
        # A number that is large changes what it is compared with.
        "[1, 2].all(x, quantity('1').add(quantity('9E')).isGreaterThan(quantity('1')))",
        "cel.bind(q, quantity('9E').add(quantity('9E')), [1, 2].all(x, q.add(q).isGreaterThan(q)))",
        "cel.bind(q, quantity('1'),[1, 2].all(x, q.isInteger() && q.isLessThan(quantity('9e19'))))",
        # What is equal, and yet another one.
        "cel.bind(l, [1, 2].map(x, [7]), {l[0]: 1, l[1]: 2}.size() == 2)",
        "cel.bind(l, [1, 2].map(x, quantity('7')), {l[0]: 1, l[1]: 2}.size() == 2)",
        "[1, 2].all(x, [dyn(1), dyn(1.0), dyn(1u), dyn(true)].all(y, type(y) == type(1) || true))",
        "[dyn(1), dyn(true), dyn(1.0)].all(x, [1, 2].all(y, string(x) == '1' || y == 1))",
        "device.attributes['gpu.example.com'] in {device.attributes['gpu.example.com']: 1}",
        "device.attributes[?'gpu.example.com'].value() in {device.attributes: 1}",
        "device in {device: 1}",
        # What does not come back out of an optional.
        "{'a': optional.of(1).optFlatMap(v, optional.of(ip('::1'))).orValue(ip(''))}.a == dyn(1)",
        "[1, 2].all(x, dyn('') == dyn(x) || x > 0)",
        "[1, 2].all(x, has(device.attributes[?'none'].none) == false)",
    ],
)
@pytest.mark.parametrize("limit", [*range(0, 60, 7), COST_LIMIT])
def test_a_failure_costs_what_it_does_in_the_exact_tier(expression: str, limit: int) -> None:
    """Whichever step it is in, and whichever steps pass it on."""
    assert _assert_alike(_compiled(expression), device_of(DEVICE), limit, expression)


def test_a_constant_that_cannot_be_made_is_left_to_the_exact_tier() -> None:
    """It is an error at every evaluation, and no value that anything could be done with."""
    program = _compiled("[1, 2].exists(x, {?'a': dyn(1)}.size() == x || x == 2)")
    device = device_of(DEVICE)

    assert program.matches_counting(device) is None
    assert _shown(program.matches_with_cost(device)) == _shown(program.matches_exactly(device))


@pytest.mark.parametrize(
    "expression",
    [
        "quantity('1e30').add(quantity('1e30')).compareTo(quantity('2e30')) == 0",
        "[1, 2].all(x, quantity('1e30').sub(quantity('1')).isLessThan(quantity('1e30')))",
    ],
)
def test_a_large_constant_stays_what_it_is(expression: str) -> None:
    """To add to a large quantity changes it; whoever asks again must not see that."""
    program, device = _compiled(expression), device_of(DEVICE)

    assert [program.matches(device) for _ in range(4)] == [True] * 4
