"""Random workloads: plans are the cheapest, their bounds are true, and they replay."""

from __future__ import annotations

import pytest
from tests.planning.workloads import (
    cheapest_by_brute_force,
    empty_cluster,
    fits_together,
    random_case,
)

from dryrack.planning import plan


@pytest.mark.parametrize("start", range(0, 60, 10))
def test_small_plans_cost_what_brute_force_finds(start: int) -> None:
    """For up to six pods no division of the pods among nodes is cheaper than the plan."""
    for seed in range(start, start + 10):
        case = random_case(seed, pods_max=5)
        result = plan(case.workload, case.types, empty_cluster())
        refused = {each.pod for each in result.unplaceable}
        for each in case.workload.members:
            alone = any(fits_together([each], type_) for type_ in case.types)
            assert alone == (each.name not in refused), (seed, each.name)
        known = cheapest_by_brute_force(case.without(refused))

        assert result.cost == known, seed
        assert result.is_optimal, (seed, result.proof)
        assert result.bound <= known, seed
