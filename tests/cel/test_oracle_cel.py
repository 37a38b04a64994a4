"""Thousands of random selectors have the same answers as Kubernetes gives them."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import pytest
from tests.cel.compare import case_count, differences, seed_of
from tests.cel.generate import generate
from tests.cel.shrink import shrunk

if TYPE_CHECKING:
    from tests.oracle.oracles import CelAnswer, Oracle

# The parts can run on several cores at once; together they are the whole.
PARTS = 4
SHOWN = 5


@pytest.mark.real
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("part", range(PARTS))
def test_random_selectors_are_answered_as_kubernetes_answers(
    real_cel: Oracle[CelAnswer], part: int
) -> None:
    """Same compile verdict, estimate, match or error, and actual cost, on every random case."""
    cases = [generate(seed_of(n)) for n in range(part, case_count(), PARTS)]
    shown = list(islice(differences(real_cel, cases), SHOWN))

    assert not shown, "\n".join(str(shrunk(g, d, real_cel)) for g, d in shown)
