"""
Arrivals without times: the pods of a trace in random order, repeated until a demand is reached.

This is the experiment of "Beware of Fragmentation" (ATC'23): every pod arrives once, in random
order; then random pods arrive again until they ask for more than so many times the devices of the
fleet. No pod ends, and a pod that does not fit is not tried again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.base.draws import Draws

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dryrack.simulation.workload import Job


def inflate(
    jobs: Sequence[Job],
    milli_of: Callable[[Job], tuple[int, int]],
    target: float,
    seed: int,
) -> Sequence[Job]:
    """
    Return jobs whose requests sum up to the target, in the order of their arrivals.

    `milli_of` returns what a job takes of all its devices, and of one of them, in thousandths.
    """
    draws = Draws(seed, "arrivals")
    order = sorted(jobs, key=lambda job: job.name)
    draws.shuffle(order)
    originals = list(order)
    total = sum(milli_of(job)[0] for job in order)
    while total > target and order:
        total -= milli_of(order.pop(draws.below(len(order))))[0]
    if len(order) < len(originals) or not total:
        return order
    while True:
        job = draws.choice(originals)
        of_all, of_one = milli_of(job)
        # As published: the test counts one device of the pod, the sum all of them.
        if total + of_one > target:
            return order
        order.append(job)
        total += of_all
