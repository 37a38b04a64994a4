"""
Our answer to a case beside Kubernetes' own, and whether they are the same.

Compared are: whether the expression compiles, its estimated cost, whether the device matches
or the evaluation fails, the cost of the evaluation, and the texts of both errors, but for those of
syntax, of which dryrack reports the first alone, in words that may be others. The answer that
a scheduler uses, from a table of selectors, must equal that of an evaluation on the device.

Upstream iterates over maps in random order, so for a few expressions it gives several answers
to one question. Where the answers differ at first, upstream is asked again many times, and
any answer that it gave itself is right.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import msgspec
import yaml
from tests.oracle.oracles import RELEASE

from dryrack.cel import (
    CompileError,
    Device,
    Environment,
    EvaluationError,
    Program,
    compile_expression,
)
from dryrack.cel.evaluation.runtime_cost import COST_LIMIT
from dryrack.cel.selectors import SelectorFailure, SelectorTable
from dryrack.kinds.decode import decode
from dryrack.kinds.releases import Release
from dryrack.kinds.resource import DeviceAttribute, DeviceCapacity

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from tests.cel.generate import Generated
    from tests.oracle.oracles import CelAnswer

    Case: TypeAlias = Mapping[str, Any]

# A small map has eight places to begin at; each is tried in so many runs, but for one time in
# a hundred thousand million.
ASKED_AGAIN = 200


_NO_ADDRESS = re.compile(r'(ParseAddr\("(?:[^"\\]|\\.)*"\)): .*')
_SYNTAX_ERROR = re.compile(r"<input>:(\d+:\d+): Syntax error: ")


class Asks(Protocol):
    """A program that answers cases: Kubernetes itself, or a double of a test."""

    def ask(self, cases: Iterable[Case], /) -> Iterator[tuple[Case, CelAnswer]]: ...


@dataclass(frozen=True, slots=True)
class Verdict:
    """The compared results. An error is its text; `actual_cost` is None without an evaluation."""

    crash: str = ""
    compile_error: str = ""
    cost: int = 0
    match: bool = False
    match_error: str = ""
    actual_cost: int | None = None


@dataclass(frozen=True, slots=True)
class Difference:
    seed: str
    case: Case
    ours: Verdict
    theirs: Verdict

    @property
    def fields(self) -> tuple[str, ...]:
        return differing_fields(self.ours, self.theirs)

    def __str__(self) -> str:
        report = {
            "seed": self.seed,
            "differs in": list(self.fields),
            "case": dict(self.case),
            "dryrack": _shown(self.ours),
            "kubernetes": _shown(self.theirs),
        }
        return yaml.safe_dump(report, sort_keys=False, allow_unicode=True, width=100)


def _shown(verdict: Verdict) -> dict[str, Any]:
    return {name: value for name, value in msgspec.to_builtins(verdict).items() if value != ""}


def case_count() -> int:
    return int(os.environ.get("DRYRACK_ORACLE_CASES", "20000"))


def seed_of(number: int) -> str:
    return f"selector-{os.environ.get('DRYRACK_ORACLE_SEED', '1')}-{number}"


def differing_fields(ours: Verdict, theirs: Verdict) -> tuple[str, ...]:
    if ours.crash:
        return ("crash",)
    if bool(ours.compile_error) != bool(theirs.compile_error):
        return ("compile_error",)
    if ours.compile_error:
        same = _same_refusal(ours.compile_error, theirs.compile_error)
        return () if same else ("compile_error_text",)
    fields = ["cost"] if ours.cost != theirs.cost else []
    if (ours.match, bool(ours.match_error)) != (theirs.match, bool(theirs.match_error)):
        fields.append("match")
    elif told(ours.match_error) != told(theirs.match_error):
        fields.append("match_error_text")
    if theirs.actual_cost is not None and ours.actual_cost != theirs.actual_cost:
        fields.append("actual_cost")
    return tuple(fields)


def _same_refusal(ours: str, theirs: str) -> bool:
    """Compare word for word; of syntax errors Kubernetes reports more than the first."""
    if _SYNTAX_ERROR.search(ours):
        return _SYNTAX_ERROR.search(theirs) is not None
    return told(ours) == told(theirs)


def told(error: str) -> str:
    """An error without why a text is no address, which dryrack says in its own words."""
    return _NO_ADDRESS.sub(r"\1", error)


def first_syntax_error(text: str) -> str:
    """Return line and column of the first syntax error, or ""."""
    found = _SYNTAX_ERROR.search(text)
    return found[1] if found else ""


def their_verdict(answer: CelAnswer) -> Verdict:
    if answer.compile_error:
        return Verdict(compile_error=answer.compile_error)
    return Verdict(
        cost=answer.cost,
        match=answer.match,
        match_error=answer.match_error,
        actual_cost=answer.actual_cost,
    )


def our_verdict(case: Case) -> Verdict:
    try:
        return _our_verdict(case)
    except Exception as error:  # noqa: BLE001 - shrunk and shown like any other difference
        return Verdict(crash=f"{type(error).__name__}: {error}")


def _our_verdict(case: Case) -> Verdict:
    env = Environment(
        consumable_capacity=case.get("consumableCapacity", False),
        list_type_attributes=case.get("listTypeAttributes", False),
        new_expressions=case.get("newExpressions", False),
        release=Release(case.get("release", RELEASE)),
    )
    program = compile_expression(case["expression"], env)
    if isinstance(program, CompileError):
        return Verdict(compile_error=program.message)
    return _evaluated(program, device_of(case))


def device_of(case: Case) -> Device:
    attributes = case.get("attributes", {}).items()
    capacity = case.get("capacity", {}).items()
    return Device(
        driver=case.get("driver", ""),
        attributes={name: decode(value, DeviceAttribute) for name, value in attributes},
        capacity={name: decode(value, DeviceCapacity) for name, value in capacity},
        allow_multiple_allocations=case.get("allowMultipleAllocations"),
    )


def _evaluated(program: Program, device: Device) -> Verdict:
    result, actual_cost = program.matches_with_cost(device)
    error = result.message if isinstance(result, EvaluationError) else ""
    # Above the limit an evaluation is slow, and a second one would show nothing new.
    if program.max_cost <= COST_LIMIT:
        verdict = SelectorTable(lambda _text: program).judge(("",), device)
        other = verdict.message if isinstance(verdict, SelectorFailure) else ""
        same = (verdict is True, other) == (result is True, error)
        assert same, f"the table has {verdict}, the evaluation gives {result}"
    return Verdict(
        cost=program.max_cost, match=result is True, match_error=error, actual_cost=actual_cost
    )


def settled(oracle: Asks, case: Case, ours: Verdict) -> Verdict | None:
    """Their answer that differs from ours, or None if upstream gives ours too, or fails."""
    for times in (1, ASKED_AGAIN):
        # As a list: an unfinished iteration would leave answers for the next question.
        answers = list(oracle.ask([case] * times))
        if any(a.panic or not differing_fields(ours, their_verdict(a)) for _, a in answers):
            return None
    return their_verdict(answers[0][1])


def differences(oracle: Asks, generated: list[Generated]) -> Iterator[tuple[Generated, Difference]]:
    """Yield cases that still differ when upstream is asked again, apart from its own crashes."""
    asked = zip(generated, oracle.ask(g.case for g in generated), strict=True)
    suspects = []
    for one, (case, answer) in asked:
        ours = our_verdict(case)
        if not answer.panic and differing_fields(ours, their_verdict(answer)):
            suspects.append((one, ours))
    for one, ours in suspects:
        theirs = settled(oracle, one.case, ours)
        if theirs is not None:
            yield one, Difference(one.seed, one.case, ours, theirs)
