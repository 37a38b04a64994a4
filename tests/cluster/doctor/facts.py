"""Facts about a healthy cluster and a healthy node, for the tests of the checks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from dryrack.client.endpoints import NODES, SLICES
from dryrack.client.transport import User
from dryrack.cluster.doctor import ENGINES, ClusterFacts, MachineFacts
from dryrack.cluster.doctor.model import Attempt, CdiSpec, PluginSocket
from dryrack.cluster.doctor.server_checks import GATES

if TYPE_CHECKING:
    from dryrack.kinds.raw import Raw

NOW = 1_800_000_000.0
RENEWED = "2027-01-15T07:59:58.000000Z"
HOURS_AGO = "2027-01-15T05:00:00.000000Z"
DRIVER = "gpu.example.com"
_RESOURCE = "resource.k8s.io"


def named(name: str, namespace: str = "", **fields: Any) -> Raw:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"metadata": metadata | fields.pop("metadata", {}), **fields}


def node(
    name: str = "n1",
    *,
    kubelet: str = "v1.36.2",
    runtime: str = "containerd://2.1.0",
    kwok: bool = False,
    ready: str = "True",
) -> Raw:
    return named(
        name,
        metadata={"annotations": {"kwok.x-k8s.io/node": "fake"} if kwok else {}},
        status={
            "nodeInfo": {"kubeletVersion": kubelet, "containerRuntimeVersion": runtime},
            "conditions": [{"type": "Ready", "status": ready}],
        },
    )


def slice_(
    name: str = "s1",
    *,
    node_name: str = "n1",
    count: int = 1,
    manager: str = "dryrack-plugin",
    labels: dict[str, str] | None = None,
) -> Raw:
    pool = {"name": "n1", "generation": 1, "resourceSliceCount": count}
    return named(
        name,
        metadata={
            "labels": labels or {},
            "managedFields": [{"manager": manager, "fieldsV1": {"f:spec": {}}}],
        },
        spec={"driver": DRIVER, "nodeName": node_name, "pool": pool, "devices": [{"name": "d"}]},
    )


def lease(name: str, namespace: str, renewed: str = RENEWED) -> Raw:
    return named(
        name,
        namespace,
        spec={"holderIdentity": "pod-a", "renewTime": renewed, "leaseDurationSeconds": 15},
    )


def attempts(**changes: Attempt) -> dict[str, Attempt]:
    """Return the answers of a server with all gates, and the changed ones."""
    plain: Raw = {"spec": {"devices": [{"name": "device-0"}]}}
    gated: Raw = {"spec": {"devices": [{"name": "device-0", "field": 1}]}}
    return {"": Attempt(plain), **dict.fromkeys(GATES, Attempt(gated)), **changes}


def cluster(**changes: Any) -> ClusterFacts:
    """Return the facts about a healthy cluster with one real node; `lists` adds to its objects."""
    lists = {NODES: (node(),), SLICES: (slice_(),), **changes.pop("lists", {})}
    plurals = ("deviceclasses", "resourceslices", "resourceclaims", "resourceclaimtemplates")
    values: dict[str, Any] = {
        "server": "https://127.0.0.1:6443",
        "version": {"gitVersion": "v1.36.2"},
        "user": User("ann"),
        "server_time": NOW,
        "clock_skew_seconds": 0.4,
        "versions": {
            **{(_RESOURCE, plural): "v1" for plural in plurals},
            (_RESOURCE, "devicetaintrules"): "v1beta2",
            ("scheduling.k8s.io", "podgroups"): "v1alpha2",
        },
        "attempts": attempts(),
        "denied": dict.fromkeys(ENGINES, ()),
    }
    return ClusterFacts(**{**values, "lists": lists, **changes})


KUBELET = Path("/var/lib/kubelet")
SOCKET = f"{KUBELET}/plugins_registry/{DRIVER}-reg.sock"
SPEC = CdiSpec(f"/var/run/cdi/{DRIVER}-uid-1.json", DRIVER, "uid-1", "0.5.0")


def machine(**changes: Any) -> MachineFacts:
    """Return the facts about a machine with a kubelet, containerd 2, and dryrack plugin."""
    values: dict[str, Any] = {
        "state_directory": "/home/ann/.local/state/dryrack",
        "kubectl": "v1.36.0",
        "kubelet_roots": (str(KUBELET),),
        "kubelet_directory": KUBELET,
        "containerd": {"version": 3},
        "containerd_version": "2.1.0",
        "cdi_directory": Path("/var/run/cdi"),
        "sockets": (PluginSocket(SOCKET, True),),
        "drivers": (DRIVER,),
        "specs": (SPEC,),
        "prepared": {DRIVER: frozenset({"uid-1"})},
    }
    return MachineFacts(**{**values, **changes})
