"""A simulation decides as the scheduler of the embedded control plane does in virtual time."""

from __future__ import annotations

from random import Random

import pytest
from tests.simulation.plane import on_plane
from tests.simulation.traces import agree, random_fleet, random_trace, read, simulated

from dryrack.client.timekeeping import run_virtual

# The last event, and the time until all has happened that follows from it.
_SECONDS = 60.0


@pytest.mark.parametrize("seed", range(25))
def test_pods_start_on_the_nodes_and_devices_of_the_plane(seed: int) -> None:
    """All pods of a random trace start at the same times, or never; also preempted pods."""
    random = Random(f"trace {seed}")
    while True:
        trace, spec = read(random_trace(random), random_fleet(random))
        mine = simulated(trace, spec)
        if not mine.has_ties:
            break

    theirs = run_virtual(on_plane(trace, spec, mine.last + _SECONDS))

    different = [
        (job.pod(worker), mine.starts.get(job.pod(worker)), theirs.get(job.pod(worker)))
        for job in trace.jobs
        if not agree(mine.starts, theirs, job)
        for worker in range(job.workers)
    ]
    assert not different
