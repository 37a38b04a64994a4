"""What the page shows in tests: pods that run and wait, a gang, and names that are markup."""

from __future__ import annotations

from typing import Any

Raw = dict[str, Any]

CLASS = "gpu.example.com"
GANG = "pod-group.scheduling.kubenexus.io"
# Where Kubernetes allows any text: it must come out as text.
MARKUP = "<img src=x onerror=\"document.title='broken into'\">"


def claim(name: str, count: int) -> Raw:
    exactly = {"deviceClassName": CLASS, "count": count}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "team", "annotations": {"note": MARKUP}},
        "spec": {"devices": {"requests": [{"name": "gpus", "exactly": exactly}]}},
    }


def pod(name: str, claim_name: str = "", gang: str = "", **spec: Any) -> Raw:
    labels = {f"{GANG}/name": gang, f"{GANG}/min-available": "2"} if gang else {}
    claims = [{"name": "c", "resourceClaimName": claim_name}] if claim_name else []
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "team",
            "labels": labels,
            "annotations": {"note": MARKUP},
        },
        "spec": {
            "containers": [{"name": "c", "image": "i"}],
            **({"resourceClaims": claims} if claims else {}),
            **spec,
        },
    }


def attacked_slice() -> Raw:
    """A device whose model and taint are markup."""
    device = {
        "name": "odd",
        "attributes": {
            "attack.example.com/productName": {"string": MARKUP[:64]},
            "attack.example.com/model": {"string": "<b onclick=alert(1)>bold</b>"},
        },
        "taints": [{"key": "example.com/odd", "value": "x", "effect": "NoSchedule"}],
    }
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": "attack"},
        "spec": {
            "driver": "attack.example.com",
            "pool": {"name": "attack", "generation": 1, "resourceSliceCount": 1},
            "allNodes": True,
            "devices": [device],
        },
    }


OBJECTS = [
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}},
    *(claim(name, count) for name, count in (("two", 2), ("many", 9), ("later", 1))),
    pod("train", "two"),
    pod("waits", "many"),
    pod("half", gang="pair"),
    pod("gated", "later", schedulingGates=[{"name": "example.com/quota"}]),
    attacked_slice(),
]

# By address, what is to be seen there.
VIEWS = {
    "#/fleet": "LATEST-GPU-MODEL",
    "#/fleet/gpu.example.com/node-1/gpu-0": "node-1",
    "#/fleet?group=pool": "LATEST-GPU-MODEL",
    "#/fleet?at=now": "moment",
    "#/pending": "team/waits",
    "#/claims": "team/two",
    "#/claims/team/two": "From request to pod",
    "#/gangs": "team/pair",
    "#/gangs/team/pair": "half",
    "#/pods/team/waits": "What happened",
    "#/why/pod/team/waits": "What would help",
    "#/why/claim/team/many": "nearest miss",
    "#/why/gang/team/pair": "needs at least 2",
    "#/slices": "gpu.example.com",
    "#/classes": "gpu.example.com",
    "#/events": "FailedScheduling",
}
