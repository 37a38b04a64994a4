"""Checks of nodes, ResourceSlices, namespaces, and leases."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING

from dryrack.client.endpoints import (
    CLAIMS,
    DAEMON_SETS,
    DEPLOYMENTS,
    LEASES,
    NAMESPACES,
    NODES,
    QUOTAS,
    SLICES,
    TEMPLATES,
)
from dryrack.cluster.doctor.model import (
    Unknown,
    UnknownFactError,
    fail,
    ok,
    several,
    skip,
    warn,
)
from dryrack.cluster.doctor.server_checks import expired_seconds
from dryrack.controllers.slices import has_kubelet, is_ours
from dryrack.kinds.decode import decode
from dryrack.kinds.paths import get
from dryrack.kinds.pool_generation import newest_generation
from dryrack.kinds.quantity import Quantity
from dryrack.kinds.resource import ResourceSlice

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dryrack.cluster.doctor.model import ClusterFacts, MachineFacts, Subject, Verdict
    from dryrack.kinds.raw import Raw

_KWOK_NODE = "kwok.x-k8s.io/node"
_KWOK_CONTROLLER = "kwok-controller"
_RUNTIME = re.compile(r"(containerd|cri-o)://v?([0-9]+)\.([0-9]+)")
RUNTIMES_MIN = {"containerd": (1, 7), "cri-o": (1, 28)}
_ENFORCE = "pod-security.kubernetes.io/enforce"
_ADMIN_ACCESS = "resource.kubernetes.io/admin-access"
_REGISTRY = "plugins_registry"
_DEVICES = "deviceclass.resource.k8s.io/devices"
_CRITICAL = ("system-node-critical", "system-cluster-critical")


def _name(obj: Raw) -> str:
    metadata = obj["metadata"]
    namespace = metadata.get("namespace")
    return f"{namespace}/{metadata['name']}" if namespace else str(metadata["name"])


def check_kwok(cluster: ClusterFacts, _: MachineFacts, __: Subject) -> Verdict:
    nodes = [
        node for node in cluster.items(NODES) if _KWOK_NODE in get(node, "metadata.annotations", {})
    ]
    if not nodes:
        return skip(
            f"no node has the annotation {_KWOK_NODE}; dryrack publish uses only such nodes, "
            "unless you pass --node-selector or --all-nodes"
        )
    stale = [node["metadata"]["name"] for node in nodes if not _is_ready(node)]
    if not stale:
        return ok(f"{len(nodes)} KWOK nodes are Ready")
    message = f"{len(stale)} of {len(nodes)} KWOK nodes are not Ready"
    if cluster.is_virtual:
        fix = "start the cluster again without --without kubelet, or start your own kubelets"
        return fail(f"{message}: {several(stale)}", fix)
    try:
        has_controller = bool(cluster.items(DEPLOYMENTS))
    except UnknownFactError:
        has_controller = True
    cause = "" if has_controller else f", and Deployment {_KWOK_CONTROLLER} does not exist"
    return fail(
        f"{message}{cause}: {several(stale)}",
        "install kwok and the chart stage-fast, so that a controller keeps the nodes Ready",
    )


def _is_ready(node: Raw) -> bool:
    conditions = get(node, "status.conditions", ())
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def check_publisher_nodes(cluster: ClusterFacts, _: MachineFacts, __: Subject) -> Verdict:
    nodes = {node["metadata"]["name"]: node for node in cluster.items(NODES)}
    slices = [each for each in cluster.items(SLICES) if is_ours(each)]
    if not slices:
        return skip("dryrack publish has published no ResourceSlice")
    of_kubelets = [
        f"{_name(each)} on node {name}"
        for each in slices
        if (name := get(each, "spec.nodeName", "")) in nodes and has_kubelet(nodes[name])
    ]
    if of_kubelets:
        return fail(
            f"{len(of_kubelets)} ResourceSlices are for nodes with a kubelet, which deletes them: "
            f"{several(of_kubelets)}",
            "exclude the nodes with --node-selector, or run dryrack plugin there",
        )
    return ok(f"{len(slices)} published ResourceSlices are for nodes without a kubelet")


def check_runtimes(cluster: ClusterFacts, _: MachineFacts, __: Subject) -> Verdict:
    real = [node for node in cluster.items(NODES) if has_kubelet(node)]
    if not real:
        return skip("no node has a kubelet")
    old, off_by_default, others = [], [], []
    for node in real:
        text = get(node, "status.nodeInfo.containerRuntimeVersion", "")
        match = _RUNTIME.match(text)
        version = (int(match[2]), int(match[3])) if match else (0, 0)
        described = f"{text} of node {node['metadata']['name']}"
        if match is None:
            others.append(described)
        elif version < RUNTIMES_MIN[match[1]]:
            old.append(described)
        elif match[1] == "containerd" and version < (2, 0):
            off_by_default.append(described)
    if old:
        return fail(
            f"without CDI: {several(old)}", "upgrade to containerd 2 or CRI-O 1.28 or newer"
        )
    if off_by_default:
        return warn(
            f"CDI is off by default: {several(off_by_default)}",
            "set enable_cdi = true in the configuration of containerd, or upgrade to containerd 2",
        )
    if others:
        raise UnknownFactError(Unknown(f"the support of CDI is not known of {several(others)}"))
    return ok(f"the container runtimes of {len(real)} nodes support CDI")


def _driver_sets(cluster: ClusterFacts) -> Iterator[Raw]:
    """Yield the DaemonSets of kubelet plugins: they mount the registry of the kubelet."""
    for each in cluster.items(DAEMON_SETS):
        volumes = get(each, "spec.template.spec.volumes", ())
        if any(_REGISTRY in get(volume, "hostPath.path", "") for volume in volumes):
            yield each


def check_pod_security(cluster: ClusterFacts, _: MachineFacts, subject: Subject) -> Verdict:
    labels = {
        each["metadata"]["name"]: get(each, "metadata.labels", {})
        for each in cluster.items(NAMESPACES)
    }
    namespaces = {each["metadata"]["namespace"] for each in _driver_sets(cluster)}
    if "plugin" in subject.engines and subject.namespace:
        namespaces.add(subject.namespace)
    if not namespaces:
        return skip("no DaemonSet of a kubelet plugin exists")
    wrong = [
        f"namespace {name} enforces {level}"
        for name in sorted(namespaces)
        if (level := labels.get(name, {}).get(_ENFORCE, "privileged")) != "privileged"
    ]
    if wrong:
        names = " ".join(each.split()[1] for each in wrong)
        return fail(
            f"{several(wrong)}, which refuses the hostPath volumes of a kubelet plugin",
            f"kubectl label --overwrite namespace {names} {_ENFORCE}=privileged",
        )
    return ok(f"the labels of {', '.join(sorted(namespaces))} allow hostPath volumes")


def check_quota(cluster: ClusterFacts, _: MachineFacts, __: Subject) -> Verdict:
    quotas = cluster.items(QUOTAS)
    used_up = []
    for quota in quotas:
        hard, used = get(quota, "status.hard", {}), get(quota, "status.used", {})
        for name in sorted(hard):
            full = _amount(hard[name]) <= _amount(used.get(name, "0"))
            if name.removeprefix("requests.").endswith(_DEVICES) and full:
                used_up.append(f"{_name(quota)}: {name} {used.get(name)} of {hard[name]}")
    if used_up:
        return warn(f"used up: {several(used_up)}", "delete claims, or raise the ResourceQuota")
    critical = {each["metadata"]["namespace"] for each in quotas if _names_critical(each)}
    lacking = {
        each["metadata"]["namespace"]
        for each in _driver_sets(cluster)
        if get(each, "spec.template.spec.priorityClassName") in _CRITICAL
    } - critical
    if critical and lacking - {"kube-system"}:
        return warn(
            "the cluster may refuse Pods with a system-critical priority class in namespaces "
            f"without a quota for it: {several(sorted(lacking))}",
            "create a ResourceQuota for the PriorityClass there, as in kube-system",
        )
    return ok("no ResourceQuota for devices is used up")


def _amount(text: object) -> int:
    return Quantity.parse(str(text)).nanos


def _names_critical(quota: Raw) -> bool:
    """Return whether a quota is for Pods of a system-critical priority class."""
    expressions = get(quota, "spec.scopeSelector.matchExpressions", ())
    return any(
        each.get("scopeName") == "PriorityClass" and set(_CRITICAL) & set(get(each, "values", ()))
        for each in expressions
    )


def check_admin_access(cluster: ClusterFacts, _: MachineFacts, __: Subject) -> Verdict:
    labeled = {
        each["metadata"]["name"]
        for each in cluster.items(NAMESPACES)
        if get(each, "metadata.labels", {}).get(_ADMIN_ACCESS) == "true"
    }
    claims = [(each, get(each, "spec", {})) for each in cluster.items(CLAIMS)]
    claims += [(each, get(each, "spec.spec", {})) for each in cluster.items(TEMPLATES)]
    users = [each for each, spec in claims if _has_admin_access(spec)]
    if not users:
        return skip("no claim asks for adminAccess")
    refused = [each for each in users if each["metadata"]["namespace"] not in labeled]
    if refused:
        names = " ".join(sorted({each["metadata"]["namespace"] for each in refused}))
        objects = several([f"{each['kind']} {_name(each)}" for each in refused])
        return fail(
            f"adminAccess in a namespace without the label {_ADMIN_ACCESS}: {objects}",
            f"kubectl label namespace {names} {_ADMIN_ACCESS}=true",
        )
    return ok(f"the namespaces of {len(users)} claims and templates allow adminAccess")


def _has_admin_access(spec: Raw) -> bool:
    requests = get(spec, "devices.requests", ())
    return any(get(each, "exactly.adminAccess") for each in requests)


def check_managers(cluster: ClusterFacts, _: MachineFacts, __: Subject) -> Verdict:
    """Two programs that publish one pool undo the writes of each other."""
    managers: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for each in cluster.items(SLICES):
        place = get(each, "spec.nodeName") or f"pool {get(each, 'spec.pool.name', '')}"
        for entry in get(each, "metadata.managedFields", ()):
            if "f:spec" in get(entry, "fieldsV1", {}):
                managers[get(each, "spec.driver", ""), place].add(str(entry.get("manager", "")))
    shared = [
        f"driver {driver}, {place}: {', '.join(sorted(names))}"
        for (driver, place), names in sorted(managers.items())
        if len(names) > 1
    ]
    if shared:
        return warn(
            f"several programs write the ResourceSlices of one driver and node: {several(shared)}",
            "stop all but one of the programs",
        )
    return ok("one program writes the ResourceSlices of each driver and node")


def check_pools(cluster: ClusterFacts, _: MachineFacts, __: Subject) -> Verdict:
    pools: defaultdict[tuple[str, str], list[ResourceSlice]] = defaultdict(list)
    for raw in cluster.items(SLICES):
        each = decode(raw, ResourceSlice)
        pools[each.spec.driver, each.spec.pool.name].append(each)
    incomplete = []
    for (driver, pool), slices in sorted(pools.items()):
        newest = newest_generation(slices, lambda each: each.spec.pool)
        if not newest.is_complete:
            wanted = " or ".join(map(str, sorted(set(newest.counts))))
            incomplete.append(
                f"pool {driver}/{pool} has {len(newest.slices)} of {wanted} slices "
                f"of generation {newest.number}"
            )
    if incomplete:
        return fail(
            f"no claim gets devices of an incomplete pool: {several(incomplete)}",
            "restart the driver that publishes the pool, and see its log",
        )
    return ok(f"{len(pools)} pools are complete")


def check_leases(cluster: ClusterFacts, _: MachineFacts, __: Subject) -> Verdict:
    # The leases of nodes belong to the check of the nodes.
    leases = [
        each
        for each in cluster.items(LEASES)
        if each["metadata"]["namespace"] != "kube-node-lease"
        and each["metadata"]["name"] != "kube-scheduler"
    ]
    expired = [
        f"{_name(each)} of {each['spec']['holderIdentity']}, {age:.0f} s old"
        for each in leases
        if (age := expired_seconds(each, cluster)) is not None
    ]
    if expired:
        return warn(
            f"holders do not renew their leases: {several(expired)}",
            "start the program again, or delete the lease if it is no longer used",
        )
    return ok("all holders renew their leases")
