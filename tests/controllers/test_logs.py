"""The log of a container that was never executed: its devices, whichever way it asked for them."""

from __future__ import annotations

from typing import Any

from dryrack.controllers import log_of

Raw = dict[str, Any]


def claim(*results: tuple[str, str]) -> Raw:
    """A claim whose requests have these devices."""
    devices = [
        {"request": request, "driver": "x", "pool": "n", "device": device}
        for request, device in results
    ]
    return {"status": {"allocation": {"devices": {"results": devices}}}}


def test_a_container_sees_the_devices_of_its_claims_and_of_its_extended_resources() -> None:
    """By the mappings of its pod, and not those of other containers."""
    uses = [("c", "r-0"), ("other", "r-1"), ("c", "r-2")]
    mappings = [
        {"containerName": container, "requestName": request, "resourceName": "x/gpu"}
        for container, request in uses
    ]
    pod = {
        "metadata": {"name": "p", "namespace": "default"},
        "spec": {
            "resourceClaims": [{"name": "own", "resourceClaimName": "by-name"}],
            "containers": [{"name": "c", "resources": {"claims": [{"name": "own"}]}}],
        },
        "status": {
            "containerStatuses": [{"name": "c", "state": {"running": {}}}],
            "extendedResourceClaimStatus": {
                "resourceClaimName": "made",
                "requestMappings": mappings,
            },
        },
    }
    found = {
        "by-name": claim(("r", "a")),
        "made": claim(("r-0", "b"), ("r-1", "c"), ("r-2", "d")),
    }
    log = log_of(pod, "c", lambda namespace, name: found.get(name))

    assert [line for line in log.splitlines() if line.startswith("device:")] == [
        "device: x/n/a",
        "device: x/n/b",
        "device: x/n/d",
    ]
