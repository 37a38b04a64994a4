"""Build objects with claims, and dumps of clusters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from pathlib import Path

    from dryrack.testing import Cluster

CLASS = "fake.3-shake.com"


def claim(name: str, count: int, kind: str = "ResourceClaim") -> dict[str, Any]:
    exactly = {"deviceClassName": CLASS, "count": count}
    spec = {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": spec if kind == "ResourceClaim" else {"spec": spec},
    }


def pod_spec(**claim: str) -> dict[str, Any]:
    uses = {"claims": [{"name": "gpu"}]}
    return {
        "containers": [{"name": "c", "image": "i", "resources": uses}],
        "resourceClaims": [{"name": "gpu", **claim}],
    }


def pod(name: str, **claim: str) -> dict[str, Any]:
    meta = {"name": name}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": pod_spec(**claim)}


def dump(cluster: Cluster, kinds: list[str], path: Path) -> None:
    """Write the output of `kubectl get KINDS -A -o yaml` to a file."""
    items = [each for kind in kinds for each in cluster.list(kind)]
    listing = {
        "apiVersion": "v1",
        "items": items,
        "kind": "List",
        "metadata": {"resourceVersion": ""},
    }
    path.write_text(yaml.safe_dump(listing))
