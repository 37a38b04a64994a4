"""The named cases: our causes are those that Kubernetes gave when they were recorded."""

from __future__ import annotations

import pytest
from tests.kinds.validation.cases import BASES, Case, load
from tests.kinds.validation.judgement import Answer, Cause, difference, ours

from dryrack.kinds.releases import Release

CASES = load()


@pytest.mark.parametrize("release", list(Release), ids=lambda release: release.value)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_causes_are_the_recorded_ones(case: Case, release: Release) -> None:
    """Reason, field and message of every cause, and no cause more."""
    outcome = case.outcome(release)
    recorded = Answer(causes=outcome.causes, panic="recorded" if outcome.panic else "")

    assert not difference(recorded, ours(case.question(), release=release))


def test_every_base_is_valid_by_itself() -> None:
    """The causes of a case come from its change: every base is valid."""
    untouched = {case.base for case in CASES if case.name == f"a valid {case.base}"}

    assert untouched == set(BASES)
    assert not any(case.causes for case in CASES if case.name.startswith("a valid "))


def test_every_reason_has_a_case() -> None:
    """No kind of cause goes unrecorded."""
    reasons = {cause.reason for case in CASES for cause in case.causes}

    assert reasons == {
        "FieldValueDuplicate",
        "FieldValueForbidden",
        "FieldValueInvalid",
        "FieldValueNotFound",
        "FieldValueNotSupported",
        "FieldValueRequired",
        "FieldValueTooLong",
        "FieldValueTooMany",
    }


@pytest.mark.parametrize(
    ("theirs", "our"),
    [
        (Answer(causes=(Cause("A", "f", "m"),)), Answer()),
        (Answer(), Answer(causes=(Cause("A", "f", "m"),))),
        (Answer(causes=(Cause("A", "f", "m"),)), Answer(causes=(Cause("B", "f", "m"),))),
        (Answer(causes=(Cause("A", "f", "m"),)), Answer(causes=(Cause("A", "g", "m"),))),
        (Answer(causes=(Cause("A", "f", "m"),)), Answer(causes=(Cause("A", "f", "n"),))),
        (Answer(causes=(Cause("A", "f", "m"),) * 2), Answer(causes=(Cause("A", "f", "m"),))),
        (Answer(bad_request="x"), Answer()),
        (Answer(panic="x"), Answer()),
        (Answer(bad_request="x"), Answer(panic="x")),
    ],
)
def test_a_comparison_can_fail(theirs: Answer, our: Answer) -> None:
    """Answers that differ are reported."""
    assert difference(theirs, our)
