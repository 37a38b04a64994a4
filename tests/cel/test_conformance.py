"""Every selector in the books is judged as it is written there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.cases.store import cases
from tests.cel.compare import Verdict, differing_fields, our_verdict

if TYPE_CHECKING:
    from collections.abc import Mapping

CASES = cases("cel")
# Our own cases have the whole answer, others what must be part of it.
OWN = [case for case in CASES if "idea" in case]
# One that does not say how a gate is switched has the same answer both ways.
OTHERS = [
    {"driver": "", **case, "listTypeAttributes": lists}
    for case in CASES
    for lists in (False, True)
    if "idea" not in case and case.get("listTypeAttributes", lists) == lists
]


@pytest.mark.parametrize("case", OWN, ids=lambda case: case["name"])
def test_cel_case(case: Mapping[str, Any]) -> None:
    """Verdict, error, estimated and actual cost of a selector are those of Kubernetes."""
    answer = case["answer"]
    expected = Verdict(
        compile_error=answer.get("compileError", ""),
        cost=answer.get("cost", 0),
        match=answer.get("match", False),
        match_error=answer.get("matchError", ""),
        actual_cost=answer.get("actualCost"),
    )
    actual = our_verdict(case)

    assert differing_fields(actual, expected) == (), (expected, actual)


@pytest.mark.parametrize(
    "case", OTHERS, ids=lambda case: case["name"] + "+lists" * case["listTypeAttributes"]
)
def test_cel_case_of_another_book(case: Mapping[str, Any]) -> None:
    """Verdict and estimated cost are as written, and errors contain what is written."""
    answer = case["answer"]
    actual = our_verdict(case)

    assert actual.crash == ""
    assert answer.get("compileError", "") in actual.compile_error
    assert answer.get("matchError", "") in actual.match_error
    assert bool(actual.compile_error) == ("compileError" in answer)
    assert bool(actual.match_error) == ("matchError" in answer)
    assert actual.match == answer.get("match", False)
    assert actual.compile_error or actual.cost == answer["cost"]
