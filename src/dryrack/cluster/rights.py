"""
Manifests of the accounts and rights that programs need on a cluster.

They are the RBAC templates of the Helm chart, without the labels of a release. The module also has
the CustomResourceDefinitions of the chart.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dryrack.cluster.chart import CHART, Release, render_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from dryrack.client.informer import Name

MANIFESTS = CHART / "files" / "crds"
DOCTOR = Path(__file__).parent / "doctor" / "role.yaml"
KUBELET = Path(__file__).parent / "process" / "kubelet_role.yaml"
# Those that every cluster has.
_OLD_NAMESPACES = ("default", "kube-system")
_NAMESPACE = "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: {}\n---\n"
DEFINITIONS = (MANIFESTS / "draconfigs.yaml", MANIFESTS / "nodeoverlays.yaml")
# The groups of Pods of scheduling.x-k8s.io.
POD_GROUPS = (MANIFESTS / "podgroups.yaml",)
ALLOCATION_STATES = (MANIFESTS / "nodeallocationstates.yaml",)
NODE_POOLS = (MANIFESTS / "nodepools.yaml",)
COMPUTE_DOMAINS = (MANIFESTS / "computedomains.yaml",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Publisher:
    """The ConfigMap and the lease of the publisher."""

    config_map: Name
    lease: Name
    """Of a publisher with shards: the part of the names before the index."""
    shards: int = 0
    """The number of shards; 0: the publisher has one lease, without an index."""

    @property
    def lease_names(self) -> tuple[str, ...]:
        """The names of the leases, in the order of the shards."""
        if not self.shards:
            return (self.lease.name,)
        return tuple(shard_lease(self.lease.name, index) for index in range(self.shards))


def shard_lease(name: str, index: int) -> str:
    """Return the name of the lease of a shard; it does not depend on the number of shards."""
    return f"{name}-{index}"


def publisher(where: Publisher) -> str:
    """Return the manifests for a publisher whose account is next to the ConfigMap, in YAML."""
    config_map = {"namespace": where.config_map.namespace, "name": where.config_map.name}
    # The role has the names as a list in one line.
    election = {"namespace": where.lease.namespace, "name": ", ".join(where.lease_names)}
    values = {"configMap": config_map, "leaderElection": election}
    names = {where.config_map.namespace, where.lease.namespace}
    return _rights("publisher", where.config_map.namespace, values, names)


def scheduler(account: str, lease: Name) -> str:
    """Return the manifests for a scheduler, in YAML; the account is in the lease's namespace."""
    values = {"name": account, "leaderElection": {"name": lease.name}}
    return _rights("scheduler", lease.namespace, values, {lease.namespace})


def provisioner(config_map: Name, lease: Name, *, karpenter: bool = False) -> str:
    """
    Return the manifests for a provisioner, in YAML; the account is in the lease's namespace.

    With Karpenter, it creates pods, and no nodes.
    """
    values = {
        "karpenter": karpenter,
        "name": lease.name,
        "configMap": {"namespace": config_map.namespace, "name": config_map.name},
        "leaderElection": {"enabled": True, "name": lease.name},
    }
    names = {config_map.namespace, lease.namespace}
    return _rights("provisioner", lease.namespace, values, names)


def plugin(state_namespace: str, drivers: Sequence[str] = ()) -> str:
    """
    Return the manifests for the kubelet plugin, in YAML.

    Allocation states are in a namespace; "" for no states. With `drivers`, the plugin may write
    only the devices of these drivers.
    """
    states = {"enabled": bool(state_namespace), "namespace": state_namespace}
    values = {"drivers": list(drivers), "allocationStates": states}
    return _rights("plugin", "kube-system", values, {state_namespace} - {""})


def dashboard() -> str:
    """Return the manifests for readers of the dashboard, in YAML: rights, and no account."""
    return _rights("dashboard", "kube-system", {}, ())


def doctor() -> str:
    """Return the manifest for users of `dryrack doctor`, in YAML: rights, and no account."""
    return DOCTOR.read_text()


def _rights(part: str, namespace: str, values: Mapping[str, Any], namespaces: Iterable[str]) -> str:
    """Return the RBAC template of a part, after the namespaces that a new cluster lacks."""
    release = Release("dryrack", namespace, service="")
    text = render_file(f"{part}/rbac.yaml", release, {part: {"enabled": True, **values}})
    lacking = sorted(set(namespaces) - set(_OLD_NAMESPACES))
    return "".join(map(_NAMESPACE.format, lacking)) + re.sub(r"\n\s*\n", "\n", text).lstrip()


def definitions(of: Iterable[Path] = DEFINITIONS) -> str:
    """Return the definitions of NodeOverlay and DRAConfig, or of other kinds, in YAML."""
    return "---\n".join(path.read_text() for path in of)
