"""Selectors with the answers that Kubernetes gives: verdict, error and actual cost."""

from __future__ import annotations

from typing import Any

import pytest
from tests.cel.compare import told
from tests.cel.recordings import devices, recorded, run_cases

from dryrack import cel
from dryrack.kinds.decode import decode
from dryrack.kinds.releases import Release
from dryrack.kinds.resource import DeviceAttribute, DeviceCapacity

_CASES = run_cases()


def _device(raw: dict[str, Any]) -> cel.Device:
    return cel.Device(
        raw["driver"],
        {name: decode(value, DeviceAttribute) for name, value in raw["attributes"].items()},
        {name: decode(value, DeviceCapacity) for name, value in raw["capacity"].items()},
        None,
    )


_DEVICES = {name: _device(raw) for name, raw in devices().items()}


def _compile(case: dict[str, Any]) -> cel.Program:
    env = cel.Environment(
        consumable_capacity=True,
        list_type_attributes=case.get("lists", False),
        new_expressions=False,
        release=Release(case["release"]),
    )
    program = cel.compile_expression(str(case["expression"]), env)
    assert isinstance(program, cel.Program), program
    return program


@pytest.mark.parametrize("case", _CASES, ids=lambda case: case["name"])
def test_verdict_error_and_cost_are_those_of_kubernetes(case: dict[str, Any]) -> None:
    """The answer is that of Kubernetes, to the unit of cost."""
    verdict, cost = _compile(case).matches_with_cost(_DEVICES[case["device"]])

    answer = verdict.message if isinstance(verdict, cel.EvaluationError) else verdict
    expected = case["answer"]
    if "error" in expected:
        assert told(str(answer)) == told(expected["error"])
    else:
        assert answer is expected["match"]
    assert cost == expected.get("cost", 0)


def test_there_are_enough_cases() -> None:
    """The data file has not been cut down."""
    assert len(_CASES) >= 250 * len(Release)


@pytest.mark.real
def test_recorded_answers_are_what_kubernetes_says() -> None:
    """No answer of the release of the oracle was written by hand, and none is out of date."""
    assert [
        path.name for path, text in recorded() if path.read_text(encoding="utf-8") != text
    ] == []
