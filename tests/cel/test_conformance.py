"""Every selector of the conformance cases has the recorded answer of Kubernetes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from tests.cases.store import cases
from tests.cel.compare import Verdict, differing_fields, our_verdict

if TYPE_CHECKING:
    from collections.abc import Mapping


@pytest.mark.parametrize("case", cases("cel"), ids=lambda case: case["name"])
def test_cel_case(case: Mapping[str, Any]) -> None:
    """Verdict, error, estimated and actual cost of a selector are those of its release."""
    answer = case["answer"]
    expected = Verdict(
        compile_error=answer.get("compileError", ""),
        cost=answer.get("cost", 0),
        match=answer.get("match", False),
        match_error=answer.get("matchError", ""),
        actual_cost=answer.get("actualCost"),
    )
    actual = our_verdict(case)
    if not answer.get("hasWholeTexts", True):
        for error in ("compile_error", "match_error"):
            if getattr(expected, error) and getattr(expected, error) in getattr(actual, error):
                expected = replace(expected, **{error: getattr(actual, error)})

    assert differing_fields(actual, expected) == (), (expected, actual)
