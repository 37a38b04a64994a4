"""
Selectors that follow the pod's own labels.

`matchLabelKeys` are labels whose values are to be those of the pod itself, `mismatchLabelKeys`
those that must not be: when a pod is made, the values go into the selectors beside them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.kinds.paths import get
from dryrack.kinds.rules.json_edit import map_items, update_at

if TYPE_CHECKING:
    from dryrack.kinds.raw import Raw

_TERMS = "requiredDuringSchedulingIgnoredDuringExecution"
_WISHES = "preferredDuringSchedulingIgnoredDuringExecution"
_KEYS = (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn"))


def following(spec: Raw, labels: Raw) -> Raw:
    """The spec of a new pod with these labels."""

    def term(given: Raw) -> Raw:
        return update_at(
            given, "labelSelector", lambda selector: _narrowed(selector, given, labels)
        )

    def terms(affinity: Raw) -> Raw:
        made = map_items(affinity, _TERMS, term)
        return map_items(made, _WISHES, lambda wish: update_at(wish, "podAffinityTerm", term))

    def affinity(given: Raw) -> Raw:
        return update_at(update_at(given, "podAffinity", terms), "podAntiAffinity", terms)

    return update_at(map_items(spec, "topologySpreadConstraints", term), "affinity", affinity)


def _narrowed(selector: Raw, term: Raw, labels: Raw) -> Raw:
    added = [
        {"key": key, "operator": operator, "values": [labels[key]]}
        for name, operator in _KEYS
        for key in term.get(name) or ()
        if key in labels
    ]
    if not added:
        return selector
    return {**selector, "matchExpressions": [*get(selector, "matchExpressions", ()), *added]}
