"""Declared checks: what they replace, their order, and what they do not check again."""

from __future__ import annotations

from typing import Any

import pytest
from tests.kinds.validation import documents

from dryrack.kinds.releases import DECLARED_TYPES, FeatureSet, Release
from dryrack.kinds.validation.declared import Declared, declared_of, merge
from dryrack.kinds.validation.device_rules import DeviceRules
from dryrack.kinds.validation.problems import FieldProblem, Reason, duplicate, invalid, required


def problems(kind: str, spec: dict[str, Any], old: dict[str, Any] | None = None) -> list[str]:
    """Return the problems of the declared checks of 1.37."""
    declared = declared_of(kind, Release.V1_37)
    assert declared is not None
    stored = None if old is None else {"spec": old}
    return [str(each) for each in declared.problems({"spec": spec}, stored)]


def test_no_release_before_1_37_declares_checks() -> None:
    """1.36 has handwritten checks only."""
    assert declared_of("ResourceClaim", Release.V1_36) is None


@pytest.mark.parametrize("release", list(Release), ids=lambda release: release.value)
def test_every_type_that_a_field_has_is_declared(release: Release) -> None:
    """The table names no type that it does not contain, and every word of it is known."""
    types = DECLARED_TYPES[release]
    for name in types:
        # An object with a value in each field visits the types of all fields.
        Declared(types, name).problems({field: None for field in types[name] if field})


def test_a_declared_problem_replaces_a_handwritten_one_and_keeps_its_fix() -> None:
    """The declared problem comes last, with its text and the advice of the handwritten one."""
    found = merge(
        [
            FieldProblem(Reason.DUPLICATE, "spec.requests[1]", "a", fix="rename it"),
            invalid("spec.name", "A", "must be lower case"),
        ],
        [duplicate("spec.requests[1]", {"name": "a"})],
    )

    assert [str(each) for each in found] == [
        'spec.name: Invalid value: "A": must be lower case',
        'spec.requests[1]: Duplicate value: {"name":"a"}',
    ]
    assert found[1].fix


def test_a_problem_is_reported_once() -> None:
    """Two checks of one label report it once; different texts about one field stay."""
    twice = [invalid("metadata.labels", "a b", "why"), invalid("metadata.labels", "a b", "why")]

    assert len(merge([*twice, required("metadata.name")], ())) == 2


def test_a_list_that_is_too_long_hides_its_items() -> None:
    """The limit ends the check of a list."""
    requests = [{"name": "same", "firstAvailable": [{"name": "x"}]}] * 33

    assert problems("ResourceClaim", {"devices": {"requests": requests}}) == [
        "spec.devices.requests: Too many: 33: must have at most 32 items"
    ]


def test_what_an_update_does_not_change_is_not_checked_again() -> None:
    """A stored slice can have what a new one cannot have."""
    broken = {"name": "d", "attributes": {"a": {"int": 1, "bool": True}}}
    spec = {"devices": [broken], "sharedCounters": [{"name": "A", "counters": {}}]}
    changed = {**spec, "sharedCounters": [*spec["sharedCounters"], {"name": "b", "counters": {}}]}

    assert len(problems("ResourceSlice", spec)) == 3
    assert problems("ResourceSlice", spec, spec) == []
    assert problems("ResourceSlice", changed, spec) == [
        "spec.sharedCounters[1].counters: Required value"
    ]


def test_a_claim_cannot_change_in_either_release() -> None:
    """The same change is refused with the value in 1.36, and without it in 1.37."""
    old = documents.stored(documents.CLAIMS[1])
    new = {**old, "spec": {"devices": {"requests": [{"name": "a"}]}}}
    found = {
        release: DeviceRules("ResourceClaim", features=FeatureSet(release)) for release in Release
    }
    texts = {
        release: [
            each.message for each in rules.report(rules.change_problems(new, old, ""), new, old)
        ]
        for release, rules in found.items()
    }

    assert texts[Release.V1_37] == ["Invalid value: null: field is immutable"]
    assert len(texts[Release.V1_36]) == 1
    assert texts[Release.V1_36][0].startswith('Invalid value: {"devices"')
