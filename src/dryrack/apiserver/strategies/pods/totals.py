"""
What a pod asks for as a whole, if it sets limits for the whole and leaves requests to the server.

Requests follow from those of its containers where they have any, and else from the limits.
"""

from __future__ import annotations

from typing import Any

from dryrack.kinds.quantity import Quantity

Raw = dict[str, Any]

_SHARED = ("cpu", "memory")
_PAGES = "hugepages-"
_NOTHING = Quantity.parse("0")


def with_pod_requests(spec: Raw) -> Raw:
    """The spec with requests for the whole pod."""
    resources = spec.get("resources") or {}
    limits = resources.get("limits")
    if not limits:
        return spec
    requests = dict(resources.get("requests") or {})
    for name in _SHARED:
        total = requested(spec, name)
        if name not in requests and total is not None:
            requests[name] = str(total)
    for name, amount in limits.items():
        if name in _SHARED or name.startswith(_PAGES):
            requests.setdefault(name, amount)
    return {**spec, "resources": {**resources, "requests": dict(sorted(requests.items()))}}


def requested(spec: Raw, name: str) -> Quantity | None:
    """What containers request together; None if none does."""
    return _together(spec, name, "requests")


def totals(spec: Raw, part: str) -> dict[str, Quantity]:
    """What a pod requests (or is limited to) in all: its own word, or else its containers'."""
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    given = [(each.get("resources") or {}).get(part) or {} for each in containers]
    found = {name: _together(spec, name, part) or _NOTHING for each in given for name in each}
    whole = (spec.get("resources") or {}).get(part) or {}
    for name, amount in whole.items():
        if name in _SHARED or name.startswith(_PAGES):
            found[name] = Quantity.from_json(amount)
    for name, amount in (spec.get("overhead") or {}).items():
        if name in found or part == "requests":
            found[name] = found.get(name, _NOTHING) + Quantity.from_json(amount)
    return dict(sorted(found.items()))


def _together(spec: Raw, name: str, part: str) -> Quantity | None:
    """
    The sum over containers; None if none says anything.

    Those that come first run one by one, beside the ones before them that stay: the larger of
    what starting and what running takes is needed.
    """
    regular = [_amount(each, name, part) for each in spec.get("containers") or ()]
    first = [
        (_amount(each, name, part), each.get("restartPolicy") == "Always")
        for each in spec.get("initContainers") or ()
    ]
    if not any(each is not None for each in (*regular, *(amount for amount, _ in first))):
        return None
    staying = starting = _NOTHING
    for amount, stays in first:
        needed = staying + (amount or _NOTHING)
        starting = max(starting, needed)
        staying = needed if stays else staying
    running = staying
    for amount in regular:
        running = running + (amount or _NOTHING)
    return max(running, starting)


def _amount(container: Raw, name: str, part: str) -> Quantity | None:
    amounts = (container.get("resources") or {}).get(part) or {}
    return Quantity.from_json(amounts[name]) if name in amounts else None
