"""The order of API versions: stable ones first, then beta, then alpha, newer before older."""

from __future__ import annotations

import re

_VERSION = re.compile(r"v([1-9][0-9]*)(?:(alpha|beta)([1-9][0-9]*))?")
_STAGES = {None: 0, "beta": 1, "alpha": 2}


def version_order(version: str) -> tuple[int, int, int, str]:
    """A key that sorts the best version first; names of no known form come last, by name."""
    found = _VERSION.fullmatch(version)
    if found is None:
        return 3, 0, 0, version
    major, stage, minor = found.groups()
    return _STAGES[stage], -int(major), -int(minor or 0), version
