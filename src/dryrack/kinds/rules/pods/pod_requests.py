"""
What a pod asks for as a whole, if it sets limits for the whole and leaves requests to the server.

Requests follow from those of its containers where they have any, and else from the limits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.kinds.quota_usage.pods import PAGES, SHARED, requested

if TYPE_CHECKING:
    from dryrack.kinds.raw import Raw


def with_pod_requests(spec: Raw) -> Raw:
    """The spec with requests for the whole pod."""
    resources = spec.get("resources") or {}
    limits = resources.get("limits")
    if not limits:
        return spec
    requests = dict(resources.get("requests") or {})
    for name in SHARED:
        total = requested(spec, name)
        if name not in requests and total is not None:
            requests[name] = str(total)
    for name, amount in limits.items():
        if name in SHARED or name.startswith(PAGES):
            requests.setdefault(name, amount)
    return {**spec, "resources": {**resources, "requests": dict(sorted(requests.items()))}}
