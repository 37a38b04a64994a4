"""The server under requests that are spoilt in every way: see `barrage`."""

from __future__ import annotations

import gc
from random import Random

import pytest
from tests.apiserver.barrage import Barrage, Target

SEEDS = 8
REQUESTS = 400


@pytest.mark.parametrize("seed", range(SEEDS))
def test_whatever_is_sent_is_answered(seed: int) -> None:
    """Each with an answer, in time, and none that says that the server is broken."""
    barrage = Barrage(Random(seed))
    with Target() as target:
        for _ in range(REQUESTS):
            answered = target.send(barrage.asked())

            assert answered.is_well, answered


def test_requests_leave_nothing_behind() -> None:
    """The same requests repeated: after the first rounds memory hardly grows."""
    counts = []
    with Target(requests_max=1_000_000) as target:
        for _ in range(4):
            barrage = Barrage(Random(SEEDS))
            for _ in range(REQUESTS):
                target.send(barrage.asked())
            gc.collect()
            counts.append(len(gc.get_objects()))

    # What a round may leave: events for watches, and objects that have names of their own.
    assert counts[3] - counts[2] <= REQUESTS
