"""
Times both sides on the same case, one after the other, in the same run.

What is timed is what a scheduler does for a pod: build an allocator for the cluster as it is,
with expressions that are compiled already, and ask it about one node. Reading JSON is no part
of it on either side. Times are what the thread used of the processor, so that a busy machine
does not decide; the fastest of several runs counts, because everything else only adds.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.cel.compare import device_of
from tests.oracle.oracles import RELEASE
from tests.oracle.patience import TooLongError, within
from tests.oracle.verdicts import Prepared, our_verdict, real_verdict

from dryrack.allocation import AllocationError
from dryrack.cel import CompileError, Environment, EvaluationError, compile_expression

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.bench.scenes import Scene
    from tests.oracle.oracles import AllocatorAnswer, CelAnswer, Oracle

    from dryrack.cel import Device, Program

STORED = Environment(
    consumable_capacity=True, list_type_attributes=False, new_expressions=False, release=RELEASE
)

TIMEOUT_SECONDS = 10.0
# One evaluation is too short for a clock.
MATCHES = 1000
MEASURE_SECONDS = 0.3
RUNS_MAX = 200

# What the project promises itself. Adversarial: no wait that a person notices, and that much
# faster wherever an exhaustive search takes long. Typical: Python may not cost more than this.
ADVERSARIAL_NANOS_MAX = 10_000_000
ADVERSARIAL_FASTER_MIN = 100.0
LONG_NANOS = 100_000_000
HOSTILE_NANOS_MAX = 1_000_000_000
TYPICAL_SLOWER_MAX = 3.0


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table; a time of None means: gave up."""

    name: str
    ours: int | None
    theirs: int | None
    goal: str
    met: bool
    same: bool = True

    @property
    def ratio(self) -> str:
        """Return how many times faster or slower dryrack is."""
        if self.ours is None:
            return "?" if self.theirs is None else "slower"
        waited = TIMEOUT_SECONDS * 1e9
        faster = (self.theirs if self.theirs is not None else waited) / self.ours
        more = "" if self.theirs is not None else ">"
        return f"{more}{faster:,.1f}x faster" if faster >= 1 else f"{1 / faster:,.1f}x slower"


def typical_row(oracle: Oracle[AllocatorAnswer], scene: Scene) -> Row:
    """A typical case; what counts is not to be much slower."""
    ours, theirs, same = _both(oracle, scene, runs=20)
    met = ours is not None and theirs is not None and ours <= TYPICAL_SLOWER_MAX * theirs
    goal = f"at most {TYPICAL_SLOWER_MAX:g}x slower"
    return Row(scene.name, ours, theirs, goal, met, same)


def adversarial_row(oracle: Oracle[AllocatorAnswer], scene: Scene) -> Row:
    """An adversarial case; what counts is an answer, at once."""
    ours, theirs, same = _both(oracle, scene, runs=1)
    goal = "under 10 ms"
    met = ours is not None and ours < ADVERSARIAL_NANOS_MAX
    if theirs is None or theirs > LONG_NANOS:
        waited = theirs if theirs is not None else TIMEOUT_SECONDS * 1e9
        goal = f"under 10 ms, {ADVERSARIAL_FASTER_MIN:g}x faster"
        met = met and ours is not None and waited >= ADVERSARIAL_FASTER_MIN * ours
    return Row(scene.name, ours, theirs, goal, met, same)


def _both(
    oracle: Oracle[AllocatorAnswer], scene: Scene, *, runs: int
) -> tuple[int | None, int | None, bool]:
    case = {**scene.case, "timeoutSeconds": TIMEOUT_SECONDS, "runs": runs}
    [(_, answer)] = oracle.ask([case])
    prepared = Prepared(case)
    try:
        verdict = within(TIMEOUT_SECONDS, lambda: our_verdict(case))
        ours = _fastest(lambda: _allocate(prepared))
    except TooLongError:
        return None, None if answer.timeout else answer.nanos, True
    if answer.timeout:
        return ours, None, True
    return ours, answer.nanos, real_verdict(answer).same_as(verdict)


def _allocate(prepared: Prepared) -> None:
    try:
        prepared.outcome()
    except AllocationError:
        return


def cel_row(oracle: Oracle[CelAnswer], name: str, case: Mapping[str, Any]) -> Row:
    """One evaluation of a compiled expression on a device that is at hand."""
    [(_, answer)] = oracle.ask([{**case, "runs": 20 * MATCHES}])
    program = compile_expression(case["expression"], STORED)
    device = device_of(case)
    assert not isinstance(program, CompileError), program
    same = program.matches(device) == answer.match
    ours = _fastest(lambda: _match_often(program, device)) // MATCHES
    met = ours <= TYPICAL_SLOWER_MAX * answer.nanos_per_run
    goal = f"at most {TYPICAL_SLOWER_MAX:g}x slower"
    return Row(name, ours, answer.nanos_per_run, goal, met, same)


def hostile_row(oracle: Oracle[CelAnswer], name: str, case: Mapping[str, Any]) -> Row:
    """An expression that is meant to hurt; what counts is an end within a second."""
    ours, theirs, same = _from_text_to_answer(oracle, case)
    return Row(name, ours, theirs, "under 1 s", ours < HOSTILE_NANOS_MAX, same)


def _from_text_to_answer(
    oracle: Oracle[CelAnswer], case: Mapping[str, Any]
) -> tuple[int, int, bool]:
    [(_, answer)] = oracle.ask([{**case, "runs": 1}])
    device = device_of(case)
    same = _judge(case["expression"], device) == (
        answer.compile_error or answer.match_error or answer.match
    )
    ours = _fastest(lambda: _judge(case["expression"], device))
    return ours, answer.compile_nanos + answer.nanos_per_run, same


def _judge(expression: str, device: Device) -> str | bool:
    program = compile_expression(expression, STORED)
    if isinstance(program, CompileError):
        return program.message
    try:
        return program.matches(device)
    except EvaluationError as error:
        return error.message


def _match_often(program: Program, device: Device) -> None:
    for _ in range(MATCHES):
        program.matches(device)


def _fastest(work: Callable[[], object]) -> int:
    """The fewest nanoseconds of as many runs as the time for measuring allows."""
    best: int | None = None
    end = time.perf_counter() + MEASURE_SECONDS
    for _ in range(RUNS_MAX):
        start = time.thread_time_ns()
        within(TIMEOUT_SECONDS, work)
        taken = time.thread_time_ns() - start
        best = taken if best is None else min(best, taken)
        if time.perf_counter() > end:
            break
    assert best is not None
    return best
