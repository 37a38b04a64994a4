"""Every case in the books is decided as it is written there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.cases.store import cases
from tests.oracle.verdicts import our_verdict, recorded_verdict

if TYPE_CHECKING:
    from collections.abc import Mapping


@pytest.mark.parametrize("case", cases("allocator"), ids=lambda case: case["name"])
def test_allocator_case(case: Mapping[str, Any]) -> None:
    """Devices, order, configuration, node selector and errors are those of Kubernetes."""
    expected = recorded_verdict(case["answer"])
    actual = our_verdict(case)

    assert expected.same_as(actual), (expected.as_json(), actual.as_json())
