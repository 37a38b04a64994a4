"""
Disruption budgets: how many nodes of a pool may be removed now, and which budget says so.

Of all budgets that are active, the strictest counts. A budget with a schedule is active from each
time of the schedule for its duration, in UTC. Expiry ignores budgets.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from dryrack.base.durations import seconds_in
from dryrack.client.timekeeping import timestamp
from dryrack.kinds.rules.cron_schedules import ScheduleError, parse_schedule
from dryrack.kinds.rules.int_or_percent import scaled_value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.kinds.provisioning import Budget


class Reason(StrEnum):
    """The reasons to remove a node."""

    EMPTY = "Empty"
    UNDERUTILIZED = "Underutilized"
    DRIFTED = "Drifted"


@dataclass(frozen=True, slots=True)
class Allowance:
    """The number of nodes that may be removed now, and the budget that limits it."""

    nodes: int
    budget: Budget | None = None
    until: float | None = None
    """The time at which the budget is no longer active; None if it is always active."""

    def text(self) -> str:
        """Return the budget and the time until which it holds, as people read it."""
        if self.budget is None:
            return "no budget limits the number of nodes"
        parts = [f"nodes: {self.budget.nodes}"]
        if self.budget.schedule:
            parts += [f"schedule: {self.budget.schedule}", f"duration: {self.budget.duration}"]
        if self.budget.reasons:
            parts.append(f"reasons: {', '.join(self.budget.reasons)}")
        until = "until it changes" if self.until is None else f"until {timestamp(self.until)}"
        return f"budget ({'; '.join(parts)}) {until}"


def allowance(
    budgets: Sequence[Budget], reason: Reason, *, nodes: int, leaving: int, now: float
) -> Allowance:
    """
    Return how many nodes of a pool may be removed for a reason.

    The pool has so many `nodes`, of which some are `leaving` already. A budget with an invalid
    schedule allows no removal.
    """
    strictest = Allowance(nodes)
    for each in budgets:
        if each.reasons and reason not in each.reasons:
            continue
        active, until = _active(each, now)
        if not active:
            continue
        percentage = each.nodes if each.nodes.endswith("%") else int(each.nodes)
        most = scaled_value(percentage, nodes, default=0, rounds_up=True)
        if until is None and each.schedule and not _is_readable(each.schedule):
            most = 0
        if most < strictest.nodes or (strictest.budget is None and most == strictest.nodes):
            strictest = Allowance(most, each, until)
    return Allowance(max(0, strictest.nodes - leaving), strictest.budget, strictest.until)


def _is_readable(schedule: str) -> bool:
    try:
        parse_schedule(schedule)
    except ScheduleError:
        return False
    return True


def _active(budget: Budget, now: float) -> tuple[bool, float | None]:
    """Return whether a budget is active, and until when."""
    if not budget.schedule or not budget.duration:
        return True, None
    seconds = seconds_in(budget.duration) or 0.0
    try:
        schedule = parse_schedule(budget.schedule)
    except ScheduleError:
        return True, None
    # The last time of the schedule in the past decides; it is later than now minus the duration.
    latest = None
    start = schedule.next_after(now - seconds)
    while start is not None and start <= now:
        latest = start
        start = schedule.next_after(start)
    return latest is not None, None if latest is None else latest + seconds
