"""
Manifests of the accounts and rights that programs need on a cluster.

`publisher` and `scheduler` replace the usual names by others. The module also has the definitions
of the kinds that the publisher reads beside the ConfigMap.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from dryrack.client.informer import Name

MANIFESTS = Path(__file__).parent / "manifests"
PUBLISHER = MANIFESTS / "publisher.yaml"
SCHEDULER = MANIFESTS / "scheduler.yaml"
PLUGIN = MANIFESTS / "plugin.yaml"
PLUGIN_STATES = MANIFESTS / "plugin_states.yaml"
DASHBOARD = MANIFESTS / "dashboard.yaml"
DOCTOR = MANIFESTS / "doctor.yaml"
# Those that every cluster has.
_OLD_NAMESPACES = ("default", "kube-system")
_NAMESPACE = "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: {}\n---\n"
DEFINITIONS = (MANIFESTS / "draconfigs.yaml", MANIFESTS / "nodeoverlays.yaml")
# What says which pods belong together, where Kubernetes itself does not.
POD_GROUPS = (MANIFESTS / "podgroups.yaml",)
ALLOCATION_STATES = (MANIFESTS / "nodeallocationstates.yaml",)
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
    """Return the manifests for a publisher, in YAML."""
    leases = ", ".join(where.lease_names)
    lines = {
        # The longer one first: it begins like the other.
        "namespace: karpenter-lease\n": f"namespace: {where.lease.namespace}\n",
        "namespace: karpenter\n": f"namespace: {where.config_map.namespace}\n",
        "resourceNames: [dra-kwok-configmap]\n": f"resourceNames: [{where.config_map.name}]\n",
        "resourceNames: [dryrack-publisher]\n": f"resourceNames: [{leases}]\n",
    }
    names = {where.config_map.namespace, where.lease.namespace}
    return _namespaces(names) + _filled_in(PUBLISHER, lines)


def scheduler(account: str, lease: Name) -> str:
    """Return the manifests for a scheduler, in YAML; the account is in the lease's namespace."""
    lines = {
        "namespace: kube-system\n": f"namespace: {lease.namespace}\n",
        "[dryrack-scheduler, dryrack-scheduler-gangs]\n": f"[{lease.name}, {lease.name}-gangs]\n",
        "name: dryrack-scheduler\n": f"name: {account}\n",
    }
    return _namespaces({lease.namespace}) + _filled_in(SCHEDULER, lines)


def plugin(state_namespace: str, drivers: Sequence[str] = ()) -> str:
    """
    Return the manifests for the kubelet plugin, in YAML.

    Allocation states are in a namespace; "" for no states. With `drivers`, the plugin may write
    only the devices of these drivers.
    """
    verb = "  verbs: ['associated-node:patch']\n"
    lines = {}
    if drivers:
        lines[verb] = f"  resourceNames: [{', '.join(sorted(drivers))}]\n{verb}"
    if not state_namespace:
        claims = "  resources: [resourceclaims]\n  verbs: [get, list"
        lines[f"{claims}, watch]\n"] = f"{claims}]\n"
        return _filled_in(PLUGIN, lines)
    namespace = {"namespace: fake-system\n": f"namespace: {state_namespace}\n"}
    parts = (_filled_in(PLUGIN, lines), _filled_in(PLUGIN_STATES, namespace))
    return _namespaces({state_namespace}) + "---\n".join(parts)


def dashboard() -> str:
    """Return the manifests for readers of the dashboard, in YAML: rights, and no account."""
    return DASHBOARD.read_text()


def doctor() -> str:
    """Return the manifest for users of `dryrack doctor`, in YAML: rights, and no account."""
    return DOCTOR.read_text()


def _filled_in(manifest: Path, lines: Mapping[str, str]) -> str:
    text = manifest.read_text()
    for usual, actual in lines.items():
        assert usual in text, f"{manifest.name} has lost the line {usual!r}"
        text = text.replace(usual, actual)
    return text


def _namespaces(names: Iterable[str]) -> str:
    """Return the namespaces, which come first because a new cluster lacks them."""
    lacking = sorted(set(names) - set(_OLD_NAMESPACES))
    return "".join(_NAMESPACE.format(name) for name in lacking)


def definitions(of: Iterable[Path] = DEFINITIONS) -> str:
    """Return the definitions of NodeOverlay and DRAConfig, or of other kinds, in YAML."""
    return "---\n".join(path.read_text() for path in of)
