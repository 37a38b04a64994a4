"""A change of each value of the chart, on top of values that use all parts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from dryrack.cluster.chart import CHART

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

DIGEST = "sha256:" + "0" * 64
# Values with which each other value matters.
ALL: dict[str, Any] = {
    "crds": {"fakeClaimParameters": True},
    "networkPolicy": {"enabled": True},
    "serviceMonitor": {"enabled": True},
    "publisher": {
        "replicas": 2,
        "driver": "gpu.example.com",
        "configMap": {"namespace": "config", "content": "driver: gpu.example.com"},
        "policy": {"nodes": "pattern", "pattern": "^kwok-"},
    },
    "scheduler": {"replicas": 2, "configMap": {"content": "kind: KubeSchedulerConfiguration"}},
    "provisioner": {"enabled": True, "replicas": 2},
    "plugin": {
        "enabled": True,
        "devices": ["fake:8"],
        "allocationStates": {"enabled": True},
        "drivers": ["x.example.com"],
        "config": "kind: NodeDevices",
    },
    "dashboard": {
        "replicas": 2,
        "tokenSecret": {"name": "token"},
        "ingress": {"enabled": True, "host": "dryrack.example.com"},
    },
    "simulation": {"enabled": True, "configMap": "trace", "args": ["jobs.csv", "--nodes", "n.csv"]},
    "namespace": {"create": True},
}
_OF_PODS: dict[str, Any] = {
    "labels": {"app": "x"},
    "podAnnotations": {"a": "b"},
    "priorityClassName": "other",
    "resources": {"limits": {"memory": "1Gi"}},
    "nodeSelector": {"a": "b"},
    "tolerations": [{"key": "a", "operator": "Exists"}],
    "affinity": {"podAntiAffinity": {}},
    "extraArgs": ["--context=x"],
}
_OF_DEPLOYMENTS: dict[str, Any] = {
    **_OF_PODS,
    "enabled": False,
    "name": "other",
    "replicas": 3,
    "podDisruptionBudget": {"enabled": False, "minAvailable": 2},
}
# The new values, nested as in values.yaml.
NEW: dict[str, Any] = {
    "nameOverride": "other",
    "fullnameOverride": "other",
    "allowDefaultNamespace": True,
    "commonLabels": {"team": "a"},
    "logFormat": "json",
    "avoidVirtualNodes": False,
    "aggregateToView": True,
    "imagePullSecrets": [{"name": "registry"}],
    "image": {
        "registry": "registry.example.com",
        "repository": "other",
        "tag": "1",
        "digest": DIGEST,
        "pullPolicy": "Always",
    },
    "namespace": {"create": False, "podSecurity": "privileged"},
    "crds": {
        "enabled": False,
        "keep": False,
        "nodeAllocationStates": False,
        "fakeClaimParameters": False,
        "draConfigs": False,
        "nodeOverlays": True,
        "podGroups": True,
        "computeDomains": True,
        "nodePools": True,
    },
    "deviceClasses": {"enabled": False, "drivers": {"gpu.nvidia.com": "gpu.nvidia.com"}},
    "networkPolicy": {"enabled": False, "from": [{"podSelector": {}}]},
    "serviceMonitor": {"enabled": False, "interval": "10s", "labels": {"release": "x"}},
    "resourceQuota": {"enabled": True},
    "publisher": {
        **_OF_DEPLOYMENTS,
        "leaderElection": {"enabled": False, "namespace": "leases", "name": "other"},
        "configMap": {
            "namespace": "other",
            "createNamespace": True,
            "name": "other",
            "key": "other.yaml",
            "content": "driver: other.example.com",
        },
        "driver": "other.example.com",
        "shard": "0/4",
        "catalog": True,
        "nodes": {"selector": "type=kwok", "all": True, "real": True},
        "resync": "1m",
        "removeSlices": False,
        "policy": {
            "enabled": False,
            "nodes": "off",
            "pattern": "^other-",
            "drivers": ["other.example.com"],
        },
    },
    "scheduler": {
        **_OF_DEPLOYMENTS,
        "leaderElection": {"enabled": False, "name": "other"},
        "schedulerNames": ["other"],
        "configMap": {"name": "other", "mountPath": "/etc/other", "content": "kind: Other"},
    },
    "provisioner": {
        **_OF_DEPLOYMENTS,
        "leaderElection": {"enabled": False, "name": "other"},
        "configMap": {"namespace": "other", "name": "other"},
        "ignoreDraRequests": True,
        "karpenter": True,
    },
    "plugin": {
        **_OF_PODS,
        "enabled": False,
        "name": "other",
        "devices": ["gpu:2"],
        "config": "kind: Other",
        "drivers": ["other.example.com"],
        "kubeletDir": "/other",
        "cdiDir": "/other",
        "hostDirectories": ["/other"],
        "allocationStates": {"enabled": False, "namespace": "other"},
        "deviceMetadata": True,
        "removeSlices": True,
        "maxSurge": 2,
        "maxUnavailable": 2,
        "policy": {"enabled": False},
        "openshift": True,
        "seLinuxOptions": {"type": "spc_t"},
    },
    "simulation": {
        **_OF_PODS,
        "enabled": False,
        "name": "other",
        "pods": 2,
        "configMap": "other",
        "args": ["other.csv"],
    },
    "dashboard": {
        **_OF_DEPLOYMENTS,
        "allowedHosts": ["other.example.com"],
        "tokenSecret": {"name": "other", "key": "other"},
        "ingress": {
            "enabled": False,
            "className": "nginx",
            "host": "other.example.com",
            "tlsSecret": "tls",
            "annotations": {"a": "b"},
        },
    },
}
# What the change of a value needs in addition, or instead of ALL.
ALSO: dict[str, dict[str, Any]] = {
    "publisher.leaderElection.enabled": {"publisher": {"replicas": 1}},
    "provisioner.leaderElection.enabled": {"provisioner": {"replicas": 1}},
    "scheduler.leaderElection.enabled": {"scheduler": {"replicas": 1}},
    "scheduler.schedulerNames": {"scheduler": {"configMap": {"content": ""}}},
    "plugin.maxUnavailable": {"plugin": {"maxSurge": 0, "maxUnavailable": 1}},
}
# These only permit what the chart otherwise refuses, are for a parent chart, or are about a hook,
# which only Helm runs.
WITHOUT_EFFECT = {"allowDefaultNamespace", "global", "publisher.removeSlices"}


def schema() -> dict[str, Any]:
    """The JSON schema of the values."""
    found: dict[str, Any] = json.loads((CHART / "values.schema.json").read_text())
    return found


def leaves(
    node: Mapping[str, Any] | None = None, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Mapping[str, Any]]]:
    """Each value of the schema that contains no other value, with its schema."""
    root = schema()
    node = root if node is None else node
    if reference := node.get("$ref"):
        node = root["definitions"][reference.rpartition("/")[2]]
    if "properties" not in node:
        yield path, node
    for key, child in node.get("properties", {}).items():
        yield from leaves(child, (*path, key))


def nested(path: tuple[str, ...], value: Any) -> dict[str, Any]:
    """The values in which only this one is set."""
    for key in reversed(path):
        value = {key: value}
    return dict(value)


def at(values: Any, path: tuple[str, ...]) -> Any:
    """The value at a path."""
    for key in path:
        values = values[key]
    return values
