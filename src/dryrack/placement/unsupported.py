"""What a pod asks for that the scheduler does not honour yet, so that it can be told."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dryrack.kinds.core import Pod


def may_preempt(pod: Pod, priorities: Mapping[int, int]) -> bool:
    """Whether pods of lower priority run, by the number of those that do per priority."""
    if pod.spec.preemption_policy == "Never":
        return False
    return any(count and each < (pod.spec.priority or 0) for each, count in priorities.items())
