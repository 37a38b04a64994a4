"""Messages of refusals, with the text that PostFilter plugins add."""

from __future__ import annotations

import re

from dryrack.kinds.releases import DEFAULT_RELEASE, SCHEDULING, Release

_POST_FILTER = re.compile(
    r"\.? ((no new claims to deallocate|still not schedulable), )?preemption: .*$"
)


def refusal_in(told: str) -> str:
    """Return the refusal without the text about preemption and without a full stop."""
    return _POST_FILTER.sub("", told).rstrip(".")


def no_victims_text(
    *,
    victims: int = 0,
    helpful: int = 0,
    claims: bool = False,
    release: Release = DEFAULT_RELEASE,
) -> str:
    """
    Return the text about preemption if no pod of lower priority runs.

    Of so many nodes that there are no `victims`, and of so many that none would be `helpful`.
    """
    first = SCHEDULING[release].no_deallocation_texts[claims]
    parts = [
        f"{victims} No preemption victims found for incoming pod" if victims else "",
        f"{helpful} Preemption is not helpful for scheduling" if helpful else "",
    ]
    counts = ", ".join(filter(None, sorted(parts)))
    text = f"preemption: 0/{victims + helpful} nodes are available: {counts}."
    return f"{first}, {text}" if first else text
