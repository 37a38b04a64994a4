"""Build pods, templates and clusters for the tests of `dryrack explain`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dryrack.kinds.raw import Raw
    from dryrack.testing import Cluster


def template(name: str, count: int = 1, select: str = "", of: str = "gpu.nvidia.com") -> Raw:
    exactly: Raw = {"deviceClassName": of, "count": count}
    if select:
        exactly["selectors"] = [{"cel": {"expression": select}}]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name},
        "spec": {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}},
    }


def pod(name: str, uses: str = "", *, cpu: str = "", labels: Raw | None = None, **spec: Any) -> Raw:
    resources: Raw = {"requests": {"cpu": cpu}} if cpu else {}
    if uses:
        spec["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": uses}]
        resources["claims"] = [{"name": "gpu"}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {"containers": [{"name": "c", "image": "i", "resources": resources}], **spec},
    }


def quota(cluster: Cluster) -> None:
    cluster.add_nodes("p5.48xlarge", count=2)
    hard = {"gpu.nvidia.com.deviceclass.resource.k8s.io/devices": "4"}
    limits = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "gpus", "namespace": "default"},
        "spec": {"hard": hard},
    }
    cluster.apply([limits, template("t", 8), pod("p", "t")])
