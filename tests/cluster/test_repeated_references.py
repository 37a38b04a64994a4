"""Objects that name another object more than once, as manifests that people publish do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dryrack.testing import Cluster

if TYPE_CHECKING:
    from dryrack.kinds.raw import Raw

_CLASS = "gpu.example.com"
_REQUEST: Raw = {"deviceClassName": _CLASS}
_SHARED_REQUEST = _REQUEST | {"capacity": {"requests": {"memory": "1Gi", "compute": "10"}}}


def _template(*requests: Raw) -> Raw:
    named = [{"name": f"r{number}", "exactly": each} for number, each in enumerate(requests)]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "template"},
        "spec": {"spec": {"devices": {"requests": named}}},
    }


def _pod(**spec: object) -> Raw:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "busybox"}], **spec},
    }


def _from_template(*names: str) -> list[dict[str, str]]:
    return [{"name": name, "resourceClaimTemplateName": "template"} for name in names]


_VOLUME_CLAIM = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "disk"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}
_CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}}
_TERM = {
    "labelSelector": {"matchLabels": {"app": "x"}},
    "topologyKey": "kubernetes.io/hostname",
    "namespaces": ["default", "default"],
}
_CASES = {
    "one template twice": (_template(_REQUEST), _pod(resourceClaims=_from_template("a", "b"))),
    "two requests on one shared device": (
        _template(_SHARED_REQUEST, _SHARED_REQUEST),
        _pod(resourceClaims=_from_template("a")),
    ),
    "one volume claim twice": (
        _VOLUME_CLAIM,
        _pod(
            volumes=[
                {"name": name, "persistentVolumeClaim": {"claimName": "disk"}} for name in "ab"
            ]
        ),
    ),
    "one ConfigMap twice": (
        _CONFIG_MAP,
        _pod(volumes=[{"name": name, "configMap": {"name": "settings"}} for name in "ab"]),
    ),
    "one namespace and one term twice": (
        _pod(
            affinity={
                "podAntiAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": [_TERM, _TERM]
                }
            },
        ),
    ),
}


@pytest.mark.parametrize("objects", _CASES.values(), ids=_CASES.keys())
def test_a_pod_with_repeated_references_runs_and_is_deleted(
    objects: tuple[Raw, ...],
) -> None:
    """Its deletion frees all devices, and another pod gets them."""
    with Cluster() as cluster:
        cluster.add_nodes(name="node", count=1, devices="gpu:2,shared=true")
        cluster.apply(objects)
        cluster.expect_scheduled("p")

        cluster.delete("pods", "p")
        cluster.advance("60s")

        assert cluster.list("pods") == []
        assert cluster.list("resourceclaims") == []
        cluster.apply(
            [each for each in objects if each["kind"] in ("Pod", "ResourceClaimTemplate")]
        )
        cluster.expect_scheduled("p")
