"""
Pod templates of Deployments, Jobs and other workloads, and the pods that they define.

Controllers make pods from templates in a cluster, and a what-if on files makes the same ones
without a cluster (`workload_pods`). What both need is here, on raw objects.
"""

from collections.abc import Mapping

from dryrack.kinds.core import Node, NodeSelector
from dryrack.kinds.decode import decode
from dryrack.kinds.paths import get, metadata_of, spec_of
from dryrack.kinds.raw import Raw
from dryrack.kinds.registry import KINDS
from dryrack.kinds.selectors import parse_node_selector
from dryrack.kinds.shape import Path

# The path of the pod template of each kind that creates pods.
TEMPLATES: Mapping[str, Path] = {
    kind.kind: tuple(kind.pod_template.split(".")) for kind in KINDS if kind.pod_template
}

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
# Every pod of a DaemonSet has these tolerations, so that it also runs on failing nodes.
_TOLERATED = (
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)
_TOLERATED_ON_HOST = ("node.kubernetes.io/network-unavailable", "NoSchedule")


def pod_of(template: Raw, metadata: Raw) -> Raw:
    """Return a pod with this metadata, and the rest of the template."""
    given = metadata_of(template)
    kept = {key: given[key] for key in ("labels", "annotations", "finalizers") if given.get(key)}
    return {"metadata": {**metadata, **kept}, "spec": spec_of(template)}


# The pods of daemon sets.


def daemon_tolerations(spec: Raw) -> list[Raw]:
    """Return the tolerations of a pod of a DaemonSet: those of its template and of all."""
    added = [*_TOLERATED, *((_TOLERATED_ON_HOST,) if spec.get("hostNetwork") else ())]
    every = [{"key": key, "operator": "Exists", "effect": effect} for key, effect in added]
    given = get(spec, "tolerations", [])
    return [*given, *(each for each in every if each not in given)]


def pin_to_node(affinity: Raw, node: str) -> Raw:
    """Return the affinity for one node, which already matches the terms of the template."""
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    return affinity | {"nodeAffinity": get(affinity, "nodeAffinity", {}) | {_REQUIRED: terms}}


def is_daemon_node(spec: Raw, node: Raw) -> bool:
    """Return whether a DaemonSet with this pod spec has a pod on the node."""
    if spec.get("nodeName") and spec["nodeName"] != node["metadata"]["name"]:
        return False
    labels = get(node["metadata"], "labels", {})
    if not get(spec, "nodeSelector", {}).items() <= labels.items():
        return False
    affinity = get(spec, "affinity.nodeAffinity", {}).get(_REQUIRED)
    if affinity is not None:
        matcher = parse_node_selector(decode(affinity, NodeSelector))
        if not matcher.matches(decode(node, Node)):
            return False
    tolerations = daemon_tolerations(spec)
    return all(
        any(tolerates(each, taint) for each in tolerations)
        for taint in get(node, "spec.taints", ())
        if taint.get("effect") in ("NoSchedule", "NoExecute")
    )


def tolerates(toleration: Raw, taint: Raw) -> bool:
    """Return whether a toleration tolerates a taint of a node or of a device."""
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    if toleration.get("key") and toleration["key"] != taint.get("key"):
        return False
    if toleration.get("operator") == "Exists":
        return True
    return bool(toleration.get("key")) and (toleration.get("value") or "") == (
        taint.get("value") or ""
    )
