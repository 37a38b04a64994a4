"""Messages of refusals, with the text that PostFilter plugins add."""

from __future__ import annotations

import re

_POST_FILTER = re.compile(
    r"\.? (no new claims to deallocate|still not schedulable), preemption: .*$"
)


def refusal_in(told: str) -> str:
    """Return the refusal without the text about preemption and without a full stop."""
    return _POST_FILTER.sub("", told).rstrip(".")


def no_victims_text(*, victims: int = 0, helpful: int = 0, claims: bool = False) -> str:
    """
    Return the text about preemption if no pod of lower priority runs.

    Of so many nodes that there are no `victims`, and of so many that none would be `helpful`.
    """
    first = "still not schedulable" if claims else "no new claims to deallocate"
    parts = [
        f"{victims} No preemption victims found for incoming pod" if victims else "",
        f"{helpful} Preemption is not helpful for scheduling" if helpful else "",
    ]
    counts = ", ".join(filter(None, sorted(parts)))
    return f"{first}, preemption: 0/{victims + helpful} nodes are available: {counts}."
