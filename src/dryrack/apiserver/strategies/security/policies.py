"""
The Pod Security policy that the labels of a namespace set.

Each of the modes enforce, warn and audit has a level and a version of the rules; audit has no
effect here. An invalid label counts as the strictest level for enforce, and is ignored for warn.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dryrack.kinds.validation.problems import FieldProblem, invalid

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dryrack.kinds.raw import Raw

PREFIX = "pod-security.kubernetes.io/"
LEVELS = ("privileged", "baseline", "restricted")
# The rules have not changed since; what is asked for by a later version are these.
LATEST_MINOR = 35
_VERSION = re.compile(r"v1\.(0|[1-9][0-9]*)")
_MODES = ("enforce", "audit", "warn")


@dataclass(frozen=True, slots=True)
class Standard:
    """A level of rules in a version; for the latest version, `minor` has no value."""

    level: str = "privileged"
    minor: int | None = None

    def __str__(self) -> str:
        return f"{self.level}:{'latest' if self.minor is None else f'v1.{self.minor}'}"

    @property
    def rules_minor(self) -> int:
        return LATEST_MINOR if self.minor is None else min(self.minor, LATEST_MINOR)

    def is_stricter(self, other: Standard) -> bool:
        return LEVELS.index(self.level) > LEVELS.index(other.level)


@dataclass(frozen=True, slots=True)
class Policy:
    """The standards that are enforced and warned of."""

    enforce: Standard = Standard()
    warn: Standard = Standard()


def policy_of(labels: Raw) -> Policy:
    """Return the policy of a namespace with these labels."""
    enforce, warn = (_standard(labels, mode) for mode in ("enforce", "warn"))
    is_said = labels.get(f"{PREFIX}enforce") in LEVELS and f"{PREFIX}warn" not in labels
    if is_said and enforce.is_stricter(warn):
        # What is enforced of pods is worth a warning about what makes pods.
        minor = warn.minor if f"{PREFIX}warn-version" in labels else enforce.minor
        warn = Standard(enforce.level, minor)
    return Policy(enforce, warn)


def _standard(labels: Raw, mode: str) -> Standard:
    level = labels.get(f"{PREFIX}{mode}", "privileged")
    if level not in LEVELS:
        level = "restricted" if mode == "enforce" else "privileged"
    found = _VERSION.fullmatch(labels.get(f"{PREFIX}{mode}-version", ""))
    return Standard(level, int(found[1]) if found else None)


def label_problems(labels: Raw) -> Iterator[FieldProblem]:
    """Labels that do not say what they are there for."""
    for mode in _MODES:
        for key in (f"{PREFIX}{mode}", f"{PREFIX}{mode}-version"):
            value = labels.get(key)
            detail = f"must be one of {', '.join(LEVELS)}"
            is_known = value in LEVELS
            if key.endswith("-version"):
                detail = 'must be "latest" or "v1.x"'
                is_known = value == "latest" or bool(_VERSION.fullmatch(value or ""))
            if value is not None and not is_known:
                yield invalid(f"metadata.labels[{key}]", value, detail)
