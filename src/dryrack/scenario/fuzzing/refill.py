"""
The end of a random world: delete everything, and fill the healthy fleet again.

The expected result then follows from the fleet alone, and not from the code that places pods: gangs
that need the right choice of devices, that share a claim or are a PodGroup run on an empty fleet, a
DaemonSet on every node, a StatefulSet with its volume, as many pods as there are devices, and one
more when another is deleted. So a device that a component has lost from memory is noticed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dryrack.kinds.scheduling import CoschedulingPodGroup
from dryrack.scenario.fuzzing.random_work import (
    FIRST_CONSUMER,
    NATIVE_GROUPS,
    mount,
    volume_claim,
    volume_claim_spec,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dryrack.kinds.raw import Raw

FABRIC = "fabric.example.com"
_LABELS = "pod-group.scheduling.kubenexus.io"
_COSCHEDULED = "coscheduled"
_ALL = (
    *("DaemonSet", "Deployment", "StatefulSet", "Job", "PodDisruptionBudget", "Pod"),
    "PersistentVolumeClaim",
    *("PodGroup.scheduling.k8s.io", "PodGroup.scheduling.x-k8s.io", "ResourceClaim"),
)
# Nodes count as lost for minutes, and pods take half a minute to go.
WELL_SECONDS = 400.0
_EMPTY_SECONDS = 100.0
_RUN_SECONDS = 100.0
# For a pod that finds what its group has; it runs or not before all is deleted.
_LATE_SECONDS = 30.0
# How many pods share a device that every node reaches.
_SHARERS = 2
_RUN_WITHIN = "60s"


def fabric() -> tuple[Raw, ...]:
    """Return a device that every node reaches, and its class."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Emptied:
    """A fleet on which nothing runs."""

    nodes: int
    places: int
    """The number of devices."""
    specials: int
    """The number of special devices: a gang of these and other devices must choose well."""
    daemon_template: str
    """The template of the claims of a DaemonSet."""
    spec: Raw
    """A claim for one device."""
    has_counters: bool
    """True if slices have counters, and exist without devices as well."""


def refill(at: float, fleet: Emptied) -> Iterator[tuple[float, Raw]]:
    """Return the steps from then on."""
    yield at + WELL_SECONDS, _deletion()
    at += WELL_SECONDS + _EMPTY_SECONDS
    for batch in (
        _choose(fleet.specials),
        [
            _claim("common", fleet.spec),
            *(_pod(f"common-{n}", claim="common", gang=2) for n in "01"),
        ],
        [
            *(
                _group("group"),
                _daemon_set("agent", fleet.daemon_template),
                _stateful_set("stored"),
            ),
            *(_pod(f"group-{n}", "one", group="group") for n in "01"),
        ],
        [
            *(_pod(f"coscheduled-{n}", "one", group=_COSCHEDULED) for n in "01"),
            _coscheduling_group(),
        ],
        # All that are special; where they draw on one counter they cannot be had together.
        [] if fleet.has_counters else [_pod("everything", "all")],
    ):
        if not batch:
            continue
        yield at, {"apply": batch, "expect": [*_expect_all(batch, fleet)]}
        if batch[0]["metadata"]["name"] == "group":
            late = _pod("group-late", "one", group="group")
            yield at + _LATE_SECONDS, {"apply": [late], "expect": [_expect_running("group-late")]}
        yield at + _RUN_SECONDS, _deletion()
        at += _RUN_SECONDS + _EMPTY_SECONDS
    if not fleet.has_counters:
        # A node that has lost all its devices publishes nothing.
        left = {"object": "ResourceSlice/*", "count": 1, "within": _RUN_WITHIN}
        yield at, {"fail": ["device */* lost"], "expect": [left]}
        yield at + _RUN_SECONDS, {"heal": ["all"]}
        at += _RUN_SECONDS + _EMPTY_SECONDS
    yield from _fill(at, fleet)


def _fill(at: float, fleet: Emptied) -> Iterator[tuple[float, Raw]]:
    """Allocate every device, one of them to two pods; then delete pods, and reboot a node."""
    claims = [
        _claim(
            "channel",
            {
                "devices": {
                    "requests": [{"name": "channel", "exactly": {"deviceClassName": FABRIC}}]
                }
            },
        ),
        _claim("last", fleet.spec),
    ]
    # Nodes are scored by what is chosen of a list, beside a claim that is allocated already.
    pods = [_pod(f"fill-{n}", "any" if n < _SHARERS else "one") for n in range(fleet.places - 1)]
    for pod in pods[:_SHARERS]:
        source = {"name": "channel", "resourceClaimName": "channel"}
        pod["spec"]["resourceClaims"].append(source)
    pods += [_pod(name, claim="last") for name in ("stays", "leaves")]
    # Drivers come back when pods are on their nodes already.
    gone = [f"node worker-{number} driver=gone for 10s" for number in range(1, fleet.nodes + 1)]
    yield at - 1, {"fail": gone}
    names = [pod["metadata"]["name"] for pod in pods]
    yield at, {"apply": [*claims, *pods], "expect": [_expect_running(name) for name in names]}
    yield at + _RUN_SECONDS, {"apply": [_pod("waits", "one")]}
    delete = {"delete": ["Pod/fill-0"], "expect": [_expect_running("waits")]}
    yield at + 2 * _RUN_SECONDS, delete
    # What a reboot takes is prepared again, and what another pod still has is left to it.
    yield (
        at + 3 * _RUN_SECONDS,
        {"fail": ["node worker-1 reboot"], "expect": [_expect_running("stays")]},
    )
    yield at + 4 * _RUN_SECONDS, {"delete": ["Pod/leaves"]}


def everywhere(name: str, nodes: int) -> Raw:
    """Return the expectation that a DaemonSet has a pod on every node."""
    fields = {"status.desiredNumberScheduled": nodes, "status.numberReady": nodes}
    return _fields(f"DaemonSet/{name}", fields)


def _expect_all(batch: Iterable[Raw], fleet: Emptied) -> Iterator[Raw]:
    for each in batch:
        if each["kind"] == "Pod":
            yield _expect_running(each["metadata"]["name"])
        elif each["kind"] == "DaemonSet":
            yield everywhere(each["metadata"]["name"], fleet.nodes)
        elif each["kind"] == "StatefulSet":
            pod = f"{each['metadata']['name']}-0"
            yield _expect_running(pod)
            yield _fields(f"PersistentVolumeClaim/data-{pod}", {"status.phase": "Bound"})
        elif each["apiVersion"] == CoschedulingPodGroup.API_VERSION:
            fields = {"status.phase": "Running", "status.running": each["spec"]["minMember"]}
            yield _fields(f"PodGroup.scheduling.x-k8s.io/{each['metadata']['name']}", fields)


def _choose(specials: int) -> list[Raw]:
    size = specials + 1
    pods = [_pod(f"special-{number}", "special", gang=size) for number in range(specials)]
    return [_pod("any", "one", gang=size), *pods]


def _deletion() -> Raw:
    return {"delete": [f"{kind}/*" for kind in _ALL]}


def _expect_running(name: str) -> Raw:
    return _fields(f"Pod/{name}", {"status.phase": "Running"})


def _fields(name: str, fields: Raw) -> Raw:
    return {"object": name, "fields": fields, "within": _RUN_WITHIN}


def _pod(name: str, template: str = "", *, claim: str = "", gang: int = 0, group: str = "") -> Raw:
    labels = {f"{_LABELS}/name": "gang", f"{_LABELS}/min-available": str(gang)} if gang else {}
    container: Raw = {"name": "main", "image": "trainer"}
    spec: Raw = {"terminationGracePeriodSeconds": 0, "containers": [container]}
    if claim or template:
        container["resources"] = {"claims": [{"name": "gpu"}]}
        source = "resourceClaimName" if claim else "resourceClaimTemplateName"
        spec["resourceClaims"] = [{"name": "gpu", source: claim or template}]
    if group == _COSCHEDULED:
        labels = {CoschedulingPodGroup.POD_LABEL: group}
    elif group:
        spec["schedulingGroup"] = {"podGroupName": group}
    metadata = {"name": name, "labels": labels}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _daemon_set(name: str, template: str) -> Raw:
    pod = _pod(name, template)
    own = {"volumeClaimTemplate": {"spec": volume_claim_spec(FIRST_CONSUMER)}}
    mount(pod, {"ephemeral": own})
    labels = {"app": name}
    spec: Raw = {"selector": {"matchLabels": labels}}
    spec["template"] = {"metadata": {"labels": labels}, "spec": pod["spec"]}
    return {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": name}, "spec": spec}


def _stateful_set(name: str) -> Raw:
    labels = {"app": name}
    spec: Raw = {"serviceName": name, "selector": {"matchLabels": labels}}
    spec["template"] = {"metadata": {"labels": labels}, "spec": _pod(name)["spec"]}
    spec["volumeClaimTemplates"] = [volume_claim("data", volume_claim_spec(FIRST_CONSUMER))]
    stateful_set = {"apiVersion": "apps/v1", "kind": "StatefulSet"}
    return stateful_set | {"metadata": {"name": name}, "spec": spec}


def _group(name: str) -> Raw:
    claims = [{"name": "gpu", "resourceClaimTemplateName": "one"}]
    return {
        "apiVersion": NATIVE_GROUPS,
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}, "resourceClaims": claims},
    }


def _coscheduling_group() -> Raw:
    return {
        "apiVersion": CoschedulingPodGroup.API_VERSION,
        "kind": "PodGroup",
        "metadata": {"name": _COSCHEDULED},
        "spec": {"minMember": 2},
    }


def _claim(name: str, spec: Raw) -> Raw:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name},
        "spec": spec,
    }
