"""Thousands of random selectors have the same answers as Kubernetes gives them."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import pytest
from tests.cel.compare import (
    Difference,
    case_count,
    differing_fields,
    our_verdict,
    seed_of,
    settled,
)
from tests.cel.compare import their_verdict as verdict_of
from tests.cel.generate import generate
from tests.cel.shrink import shrunk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cel.generate import Generated
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
    found = list(islice(differences(real_cel, cases), SHOWN))

    assert not found, "\n".join(str(shrunk(g, d, real_cel)) for g, d in found)


def differences(
    oracle: Oracle[CelAnswer], generated: list[Generated]
) -> Iterator[tuple[Generated, Difference]]:
    """Those that still differ when upstream is asked again; its own crashes do not count."""
    asked = zip(generated, oracle.ask(g.case for g in generated), strict=True)
    suspects = []
    for one, (case, answer) in asked:
        ours = our_verdict(case)
        if not answer.panic and differing_fields(ours, verdict_of(answer)):
            suspects.append((one, ours))
    for one, ours in suspects:
        theirs = settled(oracle, one.case, ours)
        if theirs is not None:
            yield one, Difference(one.seed, one.case, ours, theirs)
