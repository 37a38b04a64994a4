"""What the page shows in tests: pods, claims, a gang, all states, long names and markup."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dryrack.client.endpoints import CLAIMS, PODS

if TYPE_CHECKING:
    from dryrack.client.endpoints import Endpoint
    from dryrack.kinds.raw import Raw


CLASS = "gpu.example.com"
GANG = "pod-group.scheduling.kubenexus.io"
# A driver of which nothing is on the nodes themselves.
DRIVER = "scene.example.com"
LONG = (
    "a-name-that-is-as-long-as-the-names-of-labels-are-allowed-to-be" + "-and-then-" * 12 + "-end"
)
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


def resource_slice(driver: str, pool: str, devices: list[Raw], **spec: Any) -> Raw:
    spec = spec or {"allNodes": True}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"{pool}-slice"},
        "spec": {
            "driver": driver,
            "pool": {"name": pool, "generation": 1, "resourceSliceCount": 1},
            "devices": devices,
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
    return resource_slice("attack.example.com", "attack", [device])


def attacked_event() -> Raw:
    """An event whose message is markup."""
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "odd", "namespace": "team"},
        "type": "Warning",
        "reason": "Odd",
        "message": MARKUP,
        "involvedObject": {"apiVersion": "v1", "kind": "Pod", "namespace": "team", "name": "train"},
        "source": {"component": "attack"},
        "firstTimestamp": "2026-01-01T00:00:00Z",
        "lastTimestamp": "2026-01-01T00:00:00Z",
    }


def incomplete_slice() -> Raw:
    """One slice of a pool that has two."""
    found = resource_slice(DRIVER, "partial", [{"name": "known"}], nodeName="node-2")
    found["spec"]["pool"]["resourceSliceCount"] = 2
    return found


def long_slice() -> Raw:
    """Names of every kind as long as Kubernetes takes them."""
    device = {
        "name": LONG[:63],
        "attributes": {f"{DRIVER}/model": {"string": f"Example {LONG}"[:64]}},
        "capacity": {LONG[:32].replace("-", "_"): {"value": "80Gi"}},
    }
    return resource_slice(DRIVER, LONG, [device], nodeName=LONG)


def shared_objects() -> list[Raw]:
    """A device whose capacity claims share, and a claim for half of it."""
    memory = {
        "value": "80Gi",
        "requestPolicy": {
            "default": "1Gi",
            "validRange": {"min": "1Gi", "max": "80Gi", "step": "1Gi"},
        },
    }
    device = {
        "name": "gpu-shared",
        "allowMultipleAllocations": True,
        "attributes": {f"{DRIVER}/model": {"string": "Example shared"}},
        "capacity": {"memory": memory},
    }
    half = claim("half-of-one", 1)
    half["spec"]["devices"]["requests"][0]["exactly"] = {
        "deviceClassName": DRIVER,
        "count": 1,
        "selectors": [{"cel": {"expression": "device.allowMultipleAllocations == true"}}],
        "capacity": {"requests": {"memory": "40Gi"}},
    }
    cel = {"expression": f"device.driver == '{DRIVER}'"}
    return [
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceClass",
            "metadata": {"name": DRIVER},
            "spec": {"selectors": [{"cel": cel}]},
        },
        resource_slice(DRIVER, "shared", [device], nodeName="node-1"),
        half,
        pod("shares", "half-of-one"),
    ]


OBJECTS = [
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}},
    *(claim(name, count) for name, count in (("two", 2), ("many", 9), ("later", 1))),
    claim("orphan", 1),
    claim(LONG, 1),
    pod("train", "two"),
    pod("waits", "many"),
    pod("half", gang="pair"),
    pod("gated", "later", schedulingGates=[{"name": "example.com/quota"}]),
    pod(LONG, LONG, schedulingGates=[{"name": "example.com/quota"}]),
    pod("elsewhere", schedulerName="another"),
    # kubectl proxy refuses pods/…/exec.
    pod("executor", schedulerName="another"),
    attacked_slice(),
    attacked_event(),
    incomplete_slice(),
    long_slice(),
    *shared_objects(),
]

_GONE = {"driver": DRIVER, "pool": "partial", "device": "gone"}
_CONDITION = {
    "status": "False",
    "reason": "Odd",
    "message": MARKUP,
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}
# By kind and name, what others than the plane say of objects: a claim has a device that is not
# published any more, and two conditions have messages that are markup.
STATUSES: list[tuple[Endpoint, str, Raw]] = [
    (
        CLAIMS,
        "orphan",
        {
            "allocation": {"devices": {"results": [{"request": "gpus", **_GONE}]}},
            "devices": [{**_GONE, "conditions": [{"type": "Ready", **_CONDITION}]}],
        },
    ),
    (PODS, "elsewhere", {"conditions": [{"type": "PodScheduled", **_CONDITION}]}),
]

# By address, what is to be seen there.
VIEWS = {
    "#/fleet": "LATEST-GPU-MODEL",
    "#/fleet/gpu.example.com/node-1/gpu-0": "node-1",
    f"#/fleet/{DRIVER}/partial/known": "incomplete",
    f"#/fleet/{DRIVER}/partial/gone": "withdrawn",
    f"#/fleet/{DRIVER}/shared/gpu-shared": "40Gi of 80Gi used",
    f"#/fleet/{DRIVER}/{LONG}/{LONG[:63]}": LONG[:63],
    "#/fleet?group=pool": "LATEST-GPU-MODEL",
    "#/fleet?at=now": "moment",
    "#/devices": "gpu-shared",
    "#/pending": "team/waits",
    "#/claims": "team/two",
    "#/claims/team/two": "From request to pod",
    f"#/claims/team/{LONG}": LONG,
    "#/claims/team/orphan": "Conditions",
    "#/gangs": "team/pair",
    "#/gangs/team/pair": "half",
    "#/pods/team/waits": "Events",
    f"#/pods/team/{LONG}": "quota",
    "#/pods/team/executor": "another",
    "#/why/pod/team/waits": "Changes that would help",
    "#/why/claim/team/many": "closest node",
    "#/why/gang/team/pair": "needs at least 2",
    "#/nodes": "node-2",
    "#/nodes/node-1": "Resources",
    "#/object/class/gpu.example.com": "kind: DeviceClass",
    "#/slices": "gpu.example.com",
    "#/classes": "gpu.example.com",
    "#/events": "FailedScheduling",
    "#/history": "Difference",
    "#/fragmentation": "Find pods to move",
    "#/results": "No results",
}
