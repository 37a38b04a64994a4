"""Selectors with the answers that Kubernetes gives: verdict, error and actual cost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cel.compare import told

from dryrack import cel
from dryrack.kinds.decode import decode
from dryrack.kinds.resource import DeviceAttribute, DeviceCapacity

_FILE = Path(__file__).with_name("run_cases.yaml")
_DATA: dict[str, Any] = yaml.load(_FILE.read_text(), Loader=yaml.CSafeLoader)


def _device(raw: dict[str, Any]) -> cel.Device:
    return cel.Device(
        raw["driver"],
        {name: decode(value, DeviceAttribute) for name, value in raw["attributes"].items()},
        {name: decode(value, DeviceCapacity) for name, value in raw["capacity"].items()},
        None,
    )


_DEVICES = {name: _device(raw) for name, raw in _DATA["devices"].items()}


def _compile(case: dict[str, Any]) -> cel.Program:
    env = cel.Environment(
        consumable_capacity=True,
        list_type_attributes=case.get("lists", False),
        new_expressions=False,
    )
    program = cel.compile_expression(str(case["expression"]), env)
    assert isinstance(program, cel.Program), program
    return program


def _by_name(case: dict[str, Any]) -> str:
    return str(case["name"])


@pytest.mark.parametrize("case", _DATA["cases"], ids=_by_name)
def test_verdict_error_and_cost_are_those_of_kubernetes(case: dict[str, Any]) -> None:
    """The answer is that of Kubernetes, to the unit of cost."""
    verdict, cost = _compile(case).matches_with_cost(_DEVICES[case["device"]])

    answer = verdict.message if isinstance(verdict, cel.EvaluationError) else verdict
    if "error" in case:
        assert told(str(answer)) == told(case["error"])
    else:
        assert answer is case["match"]
    assert cost == case.get("cost", 0)


def test_there_are_enough_cases() -> None:
    """The data file has not been cut down."""
    assert len(_DATA["cases"]) >= 250
