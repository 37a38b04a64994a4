"""The recursion limit for deep expressions, also with several threads."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from dryrack import cel
from dryrack.cel.parsing.depth import raised_recursion_limit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_ENV = cel.Environment(consumable_capacity=True, list_type_attributes=False, new_expressions=False)
_DEVICE = cel.Device("d.example.com", {}, {}, None)


def test_who_leaves_first_takes_only_its_own_room() -> None:
    """The limit is raised for all that are deep at the time, and is as before when none is."""
    before = sys.getrecursionlimit()
    first = raised_recursion_limit(1000)
    second = raised_recursion_limit(2000)

    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert sys.getrecursionlimit() - before >= 2000
    second.__exit__(None, None, None)
    assert sys.getrecursionlimit() == before


def test_room_is_given_back_after_a_failure() -> None:
    """An evaluation that is cancelled leaves nothing behind."""
    before = sys.getrecursionlimit()
    deep = "1" + " + 1" * 200
    program = cel.compile_expression(f"lists.range(1000000).all(x, {deep} > x)", _ENV)

    assert isinstance(program, cel.Program)
    verdict, _cost = program.matches_with_cost(_DEVICE)
    assert isinstance(verdict, cel.EvaluationError)
    assert sys.getrecursionlimit() == before


def _nested(levels: int) -> cel.Program:
    index = "0"
    for _ in range(levels):
        index = f"[0][{index}]"
    program = cel.compile_expression(f"{index} == 0", _ENV)
    assert isinstance(program, cel.Program)
    return program


@contextmanager
def _little_room_and_many_switches() -> Iterator[None]:
    limit = sys.getrecursionlimit()
    interval = sys.getswitchinterval()
    sys.setrecursionlimit(400)
    sys.setswitchinterval(1e-6)
    try:
        yield
        assert sys.getrecursionlimit() == 400
    finally:
        sys.setswitchinterval(interval)
        sys.setrecursionlimit(limit)


def test_threads_evaluate_deep_expressions_at_once() -> None:
    """Expressions of different depth do not change each other's limit."""
    programs = [_nested(levels) for levels in (90, 240, 120, 210, 150, 180)]

    def evaluate(program: cel.Program) -> bool:
        return all(program.matches_with_cost(_DEVICE)[0] is True for _ in range(50))

    with _little_room_and_many_switches(), ThreadPoolExecutor(4) as threads:
        assert all(threads.map(evaluate, programs))


_SHAPES = (
    "(…)", "[…]", "{1: …}", "[0][…]", "(device.driver == 'd' ? … : false)", "optional.of(…)",
    "[1].exists(x, …)", "[1].map(x, …)", "[1].map(x, true, …)", "[1].exists_one(x, …)",
    "lists.range(1 + 0).all(x, …)", "cel.bind(x, 1, …)", "dyn(…)", "string(…)", "!(…)",
    "dyn(…).?a", "dyn(…).a", "dyn(…) + 1", "….trim()", "[…].flatten(500)",
)  # fmt: skip


def _within(frames: int, call: Callable[[], None]) -> None:
    if frames:
        _within(frames - 1, call)
    else:
        call()


@pytest.mark.parametrize("shape", _SHAPES)
@pytest.mark.parametrize("levels", [80, 120, 240])
def test_no_nesting_is_too_deep_for_python(shape: str, levels: int) -> None:
    """Expressions that upstream compiles are compiled and evaluated, even far down the stack."""
    text = "device.driver"
    for _ in range(levels):
        text = shape.replace("…", text)

    def ask() -> None:
        for whole in (text, f"{text} == {text}", f"dyn({text}) == 1"):
            program = cel.compile_expression(whole, _ENV)
            if isinstance(program, cel.Program):
                program.matches_with_cost(_DEVICE)
                program.matches_with_cost(_DEVICE)

    _within(300, ask)
