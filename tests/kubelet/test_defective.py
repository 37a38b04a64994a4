"""The conformance suite finds each planted defect by the fitting requirement, and by no other."""

from __future__ import annotations

import pytest
from tests.kubelet.defective import DEFECTS, failures

# What every driver that works at all meets; each call takes milliseconds.
_COMMON = "^(prepare-is|unprepare-is|prepare-answers|prepare-returns|slices-form|calls-run)"
# These end in seconds; `python -m tests.kubelet.defective --table` runs the rest of the suite, too.
_QUICK = ("shared-devices", "subrequests-in-results", "results-of-all-drivers")


@pytest.mark.parametrize(
    "name",
    [each if each in _QUICK else pytest.param(each, marks=pytest.mark.real) for each in DEFECTS],
)
def test_a_defect_is_found_by_the_fitting_requirement(name: str) -> None:
    """Requirements that have nothing to do with the defect are met."""
    expected = DEFECTS[name].found_by
    focus = "|".join((_COMMON, *(f"^{each}$" for each in expected)))

    assert failures(name, focus) == expected
