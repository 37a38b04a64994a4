"""What pods are told: the refusal, and what PostFilter plugins say behind it."""

from __future__ import annotations

import re

_POST_FILTER = re.compile(
    r"\.? (no new claims to deallocate|still not schedulable), preemption: .*$"
)


def refusal_in(told: str) -> str:
    """What is against the pod, without what is said about preemption, and without a full stop."""
    return _POST_FILTER.sub("", told).rstrip(".")


def nobody_goes(*, victims: int = 0, helpful: int = 0, claims: bool = False) -> str:
    """
    What is said where no pod of lower priority runs.

    Of so many nodes that there are no `victims`, and of so many that none would be `helpful`.
    """
    first = "still not schedulable" if claims else "no new claims to deallocate"
    parts = [
        f"{victims} No preemption victims found for incoming pod" if victims else "",
        f"{helpful} Preemption is not helpful for scheduling" if helpful else "",
    ]
    counts = ", ".join(filter(None, sorted(parts)))
    return f"{first}, preemption: 0/{victims + helpful} nodes are available: {counts}."
