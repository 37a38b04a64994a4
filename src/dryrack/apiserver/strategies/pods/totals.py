"""
What a pod asks for as a whole, if it sets limits for the whole and leaves requests to the server.

Requests follow from those of its containers where they have any, and else from the limits.
"""

from __future__ import annotations

from typing import Any

from dryrack.kinds.quantity import Quantity

Raw = dict[str, Any]

_SHARED = ("cpu", "memory")


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
        if name in _SHARED or name.startswith("hugepages-"):
            requests.setdefault(name, amount)
    return {**spec, "resources": {**resources, "requests": dict(sorted(requests.items()))}}


def requested(spec: Raw, name: str) -> Quantity | None:
    """
    What containers request together; None if none does.

    Those that come first run one by one, beside the ones before them that stay: the larger of
    what starting and what running takes is needed.
    """
    regular = [_request(each, name) for each in spec.get("containers") or ()]
    first = [
        (_request(each, name), each.get("restartPolicy") == "Always")
        for each in spec.get("initContainers") or ()
    ]
    if not any(each is not None for each in (*regular, *(amount for amount, _ in first))):
        return None
    nothing = Quantity.parse("0")
    staying = starting = nothing
    for amount, stays in first:
        needed = staying + (amount or nothing)
        starting = max(starting, needed)
        staying = needed if stays else staying
    running = staying
    for amount in regular:
        running = running + (amount or nothing)
    return max(running, starting)


def _request(container: Raw, name: str) -> Quantity | None:
    amounts = (container.get("resources") or {}).get("requests") or {}
    return Quantity.from_json(amounts[name]) if name in amounts else None
