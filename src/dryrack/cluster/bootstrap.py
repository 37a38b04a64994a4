"""
Create the objects that every cluster has from the start.

They are written directly into the store, as kube-apiserver does for itself, if they do not exist: a
restart keeps what the last run left, and an object that a user changed stays changed. Only the
endpoints of the API server follow its address.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

from dryrack.client.timekeeping import timestamp
from dryrack.store import Key

if TYPE_CHECKING:
    from dryrack.base.ports import Chance, Clock
    from dryrack.kinds.raw import Raw
    from dryrack.kinds.releases import Release
    from dryrack.store import Store

NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
_PRIORITIES = (
    ("system-cluster-critical", 2_000_000_000, "The cluster needs it, on whichever node."),
    ("system-node-critical", 2_000_001_000, "The node that it is on needs it."),
)


class Bootstrap:
    """Creates objects in a store that lacks them."""

    def __init__(self, store: Store, clock: Clock, chance: Chance) -> None:
        self._store = store
        self._now = timestamp(clock.now())
        self._chance = chance

    def essentials(self) -> None:
        for name in NAMESPACES:
            self.ensure(
                "namespaces",
                {
                    "kind": "Namespace",
                    "apiVersion": "v1",
                    "metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name}},
                    "spec": {"finalizers": ["kubernetes"]},
                    "status": {"phase": "Active"},
                },
            )
        for name, value, description in _PRIORITIES:
            priority = {
                "kind": "PriorityClass",
                "apiVersion": "scheduling.k8s.io/v1",
                "metadata": {"name": name, "generation": 1},
                "value": value,
                "description": description,
                "preemptionPolicy": "PreemptLowerPriority",
            }
            self.ensure("priorityclasses.scheduling.k8s.io", priority)
        self.ensure("services", _own_service())
        self.ensure("servicecidrs.networking.k8s.io", _service_range(self._now))

    def authentication(self, authority: str) -> None:
        """Create the ConfigMap with which extension API servers verify clients."""
        self.ensure("configmaps", _authentication(authority))

    def own_endpoints(self, host: str, port: int) -> None:
        """Write the address and port of the API server to the endpoints of `kubernetes`."""
        named: Raw = {"name": "https", "port": port, "protocol": "TCP"}
        metadata = {"name": "kubernetes", "namespace": "default"}
        unmirrored = {"endpointslice.kubernetes.io/skip-mirror": "true"}
        self._replace(
            "endpoints",
            {
                "kind": "Endpoints",
                "apiVersion": "v1",
                "metadata": metadata | {"labels": unmirrored},
                "subsets": [{"addresses": [{"ip": host}], "ports": [named]}],
            },
        )
        self._replace(
            "endpointslices.discovery.k8s.io",
            {
                "kind": "EndpointSlice",
                "apiVersion": "discovery.k8s.io/v1",
                "metadata": metadata | {"labels": {"kubernetes.io/service-name": "kubernetes"}},
                "addressType": "IPv6" if ":" in host else "IPv4",
                "endpoints": [{"addresses": [host], "conditions": {"ready": True}}],
                "ports": [named],
            },
        )

    def _replace(self, resource: str, obj: Raw) -> None:
        """Store an object; an existing one keeps its metadata, and is not written if it is so."""
        self.ensure(resource, obj)
        stored = self._store.get(Key(resource, "default", obj["metadata"]["name"]))
        assert stored is not None, "the object exists"
        new = {**obj, "metadata": stored.object["metadata"]}
        if new != stored.object:
            self._store.put(stored.key, copy.deepcopy(new), expected=None)

    def roles(self, release: Release) -> None:
        """Create the roles that a server with RBAC needs."""
        from dryrack.apiserver import default_roles

        for role in default_roles(release):
            self.ensure(f"{role['kind'].lower()}s.rbac.authorization.k8s.io", role)

    def ensure(self, resource: str, obj: Raw) -> None:
        """Store an object with server-set metadata if it does not exist."""
        key = Key(resource, obj["metadata"].get("namespace", ""), obj["metadata"]["name"])
        if self._store.get(key) is None:
            system = {"uid": self._chance.uuid(), "creationTimestamp": self._now}
            stored = {**obj, "metadata": {**obj["metadata"], **system}}
            self._store.put(key, stored, expected=0)


def _own_service() -> Raw:
    """Return the Service of the API server, with the first address of the service range."""
    address = "10.200.0.1"
    port = {"name": "https", "protocol": "TCP", "port": 443, "targetPort": 6443}
    labels = {"component": "apiserver", "provider": "kubernetes"}
    return {
        "kind": "Service",
        "apiVersion": "v1",
        "metadata": {"name": "kubernetes", "namespace": "default", "labels": labels},
        "spec": {
            "ports": [port],
            "clusterIP": address,
            "clusterIPs": [address],
            "type": "ClusterIP",
            "sessionAffinity": "None",
            "ipFamilies": ["IPv4"],
            "ipFamilyPolicy": "SingleStack",
            "internalTrafficPolicy": "Cluster",
        },
        "status": {"loadBalancer": {}},
    }


def _service_range(now: str) -> Raw:
    """Return the ServiceCIDR from which services get their addresses."""
    ready = {
        "type": "Ready",
        "status": "True",
        "lastTransitionTime": now,
        "reason": "",
        "message": "Kubernetes Service CIDR is ready",
    }
    return {
        "kind": "ServiceCIDR",
        "apiVersion": "networking.k8s.io/v1",
        "metadata": {"name": "kubernetes"},
        "spec": {"cidrs": ["10.200.0.0/16"]},
        "status": {"conditions": [ready]},
    }


def _authentication(authority: str) -> Raw:
    data = {
        "client-ca-file": authority,
        "requestheader-allowed-names": '["front-proxy-client"]',
        "requestheader-client-ca-file": authority,
        "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
        "requestheader-group-headers": '["X-Remote-Group"]',
        "requestheader-username-headers": '["X-Remote-User"]',
    }
    name = "extension-apiserver-authentication"
    return {
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {"name": name, "namespace": "kube-system"},
        "data": data,
    }
