"""
The end of a random world: what is there is deleted, and a healthy fleet is filled anew.

What is expected then follows from the fleet alone, and not from the code that places pods: gangs
that need the right choice of devices, that share a claim or are a PodGroup run on an empty fleet,
as many pods run as there are devices, and one more when another goes. A device that has been lost
out of some memory is found out so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dryrack.kinds.raw import Raw

FABRIC = "fabric.example.com"
_LABELS = "pod-group.scheduling.kubenexus.io"
_ALL = (
    *("Deployment", "StatefulSet", "Job", "PodDisruptionBudget", "PodGroup", "Pod"),
    "ResourceClaim",
)
# Nodes count as lost for minutes, and pods take half a minute to go.
_WELL_SECONDS = 400.0
_EMPTY_SECONDS = 100.0
_RUN_SECONDS = 100.0
_RUN_WITHIN = "60s"


def fabric() -> tuple[Raw, ...]:
    """A device that every node reaches, and its class."""
    selector = {"cel": {"expression": f"device.driver == '{FABRIC}'"}}
    device_class = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": FABRIC},
        "spec": {"selectors": [selector]},
    }
    offered = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": "fabric"},
        "spec": {
            "driver": FABRIC,
            "allNodes": True,
            "pool": {"name": "fabric", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "channel-0"}],
        },
    }
    return device_class, offered


def refill(at: float, places: int, specials: int, spec: Raw) -> Iterator[tuple[float, Raw]]:
    """
    Steps from then on, for a fleet with so many devices, of which `spec` wants one.

    So many of them are special: a gang that wants all these and any other must choose well.
    """
    yield at + _WELL_SECONDS, _deletion()
    at += _WELL_SECONDS + _EMPTY_SECONDS
    for batch in (
        _choosing(specials),
        [_claim("common", spec), *(_pod(f"common-{n}", claim="common", gang=2) for n in "01")],
        [_group("group"), *(_pod(f"group-{n}", "one", group="group") for n in "01")],
    ):
        names = [each["metadata"]["name"] for each in batch if each["kind"] == "Pod"]
        yield at, {"apply": batch, "expect": [_running(name) for name in names]}
        yield at + _RUN_SECONDS, _deletion()
        at += _RUN_SECONDS + _EMPTY_SECONDS
    channel = _claim("channel", _channel_spec())
    pods = [_pod(f"fill-{number}", "one") for number in range(places)]
    for pod in pods[:2]:
        source = {"name": "channel", "resourceClaimName": "channel"}
        pod["spec"]["resourceClaims"].append(source)
    expected = [_running(pod["metadata"]["name"]) for pod in pods]
    yield at, {"apply": [channel, *pods], "expect": expected}
    yield at + _RUN_SECONDS, {"apply": [_pod("waits", "one")]}
    delete = [f"Pod/{pods[-1]['metadata']['name']}"]
    yield at + 2 * _RUN_SECONDS, {"delete": delete, "expect": [_running("waits")]}


def _choosing(specials: int) -> list[Raw]:
    size = specials + 1
    pods = [_pod(f"special-{number}", "special", gang=size) for number in range(specials)]
    return [_pod("any", "one", gang=size), *pods]


def _deletion() -> Raw:
    return {"delete": [f"{kind}/*" for kind in _ALL]}


def _running(name: str) -> Raw:
    return {"object": f"Pod/{name}", "fields": {"status.phase": "Running"}, "within": _RUN_WITHIN}


def _pod(name: str, template: str = "", *, claim: str = "", gang: int = 0, group: str = "") -> Raw:
    labels = {f"{_LABELS}/name": "gang", f"{_LABELS}/min-available": str(gang)} if gang else {}
    source = {"resourceClaimName": claim} if claim else {"resourceClaimTemplateName": template}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "containers": [
                {"name": "main", "image": "trainer", "resources": {"claims": [{"name": "gpu"}]}}
            ],
            "resourceClaims": [{"name": "gpu", **source}],
            **({"schedulingGroup": {"podGroupName": group}} if group else {}),
        },
    }


def _group(name: str) -> Raw:
    claims = [{"name": "gpu", "resourceClaimTemplateName": "one"}]
    return {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}, "resourceClaims": claims},
    }


def _claim(name: str, spec: Raw) -> Raw:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name},
        "spec": spec,
    }


def _channel_spec() -> Raw:
    return {"devices": {"requests": [{"name": "channel", "exactly": {"deviceClassName": FABRIC}}]}}
