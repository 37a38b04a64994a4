"""
Limit ranges: defaults and limits of pods and persistent volume claims.

`set_limit_range_defaults` runs when a pod is admitted, `check` when it is valid: the first limit
range that the object violates refuses it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.apiserver.answer.status import Subject, forbidden
from dryrack.kinds.paths import spec_of
from dryrack.kinds.quota_usage import limits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.apiserver.strategy import Write
    from dryrack.kinds.raw import Raw


def _ranges(write: Write) -> Sequence[Raw]:
    return write.lookup.list("limitranges", write.namespace)


def set_limit_range_defaults(pod: Raw, write: Write) -> Raw:
    """Return the pod with the resources that its namespace has for those who name none."""
    return limits.add_defaults(pod, _ranges(write))


def check(pod: Raw, write: Write) -> None:
    """Refuse a pod that does not keep to the limits."""
    for limit_range in _ranges(write):
        _refuse("pods", pod, limits.broken_by_pod(limit_range, spec_of(pod)))


def check_volume(claim: Raw, write: Write) -> None:
    """Refuse a claim of storage that does not keep to the limits."""
    for limit_range in _ranges(write):
        _refuse("persistentvolumeclaims", claim, limits.broken_by_volume(limit_range, claim))


def _refuse(plural: str, obj: Raw, broken: tuple[str, ...]) -> None:
    if broken:
        raise forbidden(Subject("", plural), obj["metadata"]["name"], limits.format_broken(broken))
