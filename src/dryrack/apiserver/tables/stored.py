"""Rows of kinds that are kept for other programs: network, storage, roles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dryrack.apiserver.tables.ages import age, human
from dryrack.apiserver.tables.columns import (
    AGE,
    NAME,
    Shape,
    dig,
    name_of,
    plain,
    wide,
)
from dryrack.apiserver.tables.labels import NONE, labels_text
from dryrack.kinds.paths import get
from dryrack.kinds.quantity import Quantity

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dryrack.apiserver.tables.columns import JsonObject

_UNSET = "<unset>"
_DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
_DEFAULT_CLASS_BETA = "storageclass.beta.kubernetes.io/is-default-class"
_LISTED_MAX = 3
_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def _external(service: JsonObject) -> str:
    spec = dig(service, "spec", default={})
    external = list(get(spec, "externalIPs", ()))
    match spec.get("type"):
        case "ClusterIP" | "NodePort":
            return ",".join(external) or NONE
        case "LoadBalancer":
            return ",".join([*_balancers(service), *external]) or "<pending>"
        case "ExternalName":
            return str(spec.get("externalName") or "")
        case _:
            return "<unknown>"


def _balancers(service: JsonObject) -> list[str]:
    entries = dig(service, "status", "loadBalancer", "ingress", default=())
    return sorted({entry.get("ip") or entry.get("hostname") or "" for entry in entries} - {""})


def _port(port: JsonObject) -> str:
    node = port.get("nodePort")
    number = f"{port['port']}:{node}" if node else port["port"]
    return f"{number}/{port.get('protocol') or ''}"


def _service(obj: JsonObject, now: float) -> list[Any]:
    addresses = dig(obj, "spec", "clusterIPs", default=())
    ports = ",".join(_port(port) for port in dig(obj, "spec", "ports", default=()))
    return [
        name_of(obj),
        dig(obj, "spec", "type", default=""),
        addresses[0] if addresses else NONE,
        _external(obj),
        ports or NONE,
        age(obj, now),
        labels_text(dig(obj, "spec", "selector")),
    ]


SERVICES = Shape(
    (
        NAME,
        *plain("Type", "Cluster-IP", "External-IP", "Port(s)"),
        AGE,
        *wide("Selector"),
    ),
    _service,
)


def _join(words: Sequence[str], *, none: str) -> str:
    shown = ",".join(words[:_LISTED_MAX])
    more = len(words) - _LISTED_MAX
    return f"{shown} + {more} more..." if more > 0 else shown or none


def _subset(subset: JsonObject) -> Iterator[str]:
    addresses = [entry["ip"] for entry in get(subset, "addresses", ())]
    ports = get(subset, "ports", ())
    if not ports:
        yield from addresses
    for port in ports:
        for address in addresses:
            host = f"[{address}]" if ":" in address else address
            yield f"{host}:{port['port']}"


def _endpoints(obj: JsonObject, now: float) -> list[Any]:
    found = [text for subset in dig(obj, "subsets", default=()) for text in _subset(subset)]
    return [name_of(obj), _join(found, none=NONE), age(obj, now)]


ENDPOINTS = Shape((NAME, *plain("Endpoints"), AGE), _endpoints)


def _endpoint_slice(obj: JsonObject, now: float) -> list[Any]:
    ports = [str(port.get("port") or port.get("name") or "*") for port in get(obj, "ports", ())]
    addresses = [a for entry in get(obj, "endpoints", ()) for a in get(entry, "addresses", ())]
    return [
        name_of(obj),
        obj.get("addressType") or "",
        _join(ports, none=_UNSET),
        _join(addresses, none=_UNSET),
        age(obj, now),
    ]


ENDPOINT_SLICES = Shape((NAME, *plain("AddressType", "Ports", "Endpoints"), AGE), _endpoint_slice)


def _storage(amounts: JsonObject) -> str:
    return str(Quantity.parse(amounts.get("storage") or "0"))


def _modes(modes: Sequence[str]) -> str:
    return ",".join(_MODES[mode] for mode in _MODES if mode in modes)


def _phase(obj: JsonObject) -> str:
    if dig(obj, "metadata", "deletionTimestamp"):
        return "Terminating"
    return str(dig(obj, "status", "phase", default=""))


def _volume(obj: JsonObject, now: float) -> list[Any]:
    spec = dig(obj, "spec", default={})
    claim = spec.get("claimRef")
    return [
        name_of(obj),
        _storage(get(spec, "capacity", {})),
        _modes(get(spec, "accessModes", ())),
        spec.get("persistentVolumeReclaimPolicy") or "",
        _phase(obj),
        f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else "",
        spec.get("storageClassName") or "",
        spec.get("volumeAttributesClassName") or _UNSET,
        dig(obj, "status", "reason", default=""),
        age(obj, now),
        spec.get("volumeMode") or _UNSET,
    ]


VOLUMES = Shape(
    (
        NAME,
        *plain("Capacity", "Access Modes", "Reclaim Policy", "Status", "Claim", "StorageClass"),
        *plain("VolumeAttributesClass", "Reason"),
        AGE,
        *wide("VolumeMode"),
    ),
    _volume,
)


def _volume_claim(obj: JsonObject, now: float) -> list[Any]:
    spec = dig(obj, "spec", default={})
    is_bound = bool(spec.get("volumeName"))
    return [
        name_of(obj),
        _phase(obj),
        spec.get("volumeName") or "",
        _storage(dig(obj, "status", "capacity", default={})) if is_bound else "",
        _modes(dig(obj, "status", "accessModes", default=())) if is_bound else "",
        spec.get("storageClassName") or "",
        spec.get("volumeAttributesClassName") or _UNSET,
        age(obj, now),
        spec.get("volumeMode") or _UNSET,
    ]


VOLUME_CLAIMS = Shape(
    (
        NAME,
        *plain("Status", "Volume", "Capacity", "Access Modes", "StorageClass"),
        *plain("VolumeAttributesClass"),
        AGE,
        *wide("VolumeMode"),
    ),
    _volume_claim,
)


def _storage_class(obj: JsonObject, now: float) -> list[Any]:
    notes = dig(obj, "metadata", "annotations", default={})
    is_default = "true" in (notes.get(_DEFAULT_CLASS), notes.get(_DEFAULT_CLASS_BETA))
    return [
        f"{name_of(obj)} (default)" if is_default else name_of(obj),
        obj.get("provisioner") or "",
        obj.get("reclaimPolicy") or "Delete",
        obj.get("volumeBindingMode") or "Immediate",
        bool(obj.get("allowVolumeExpansion")),
        age(obj, now),
    ]


STORAGE_CLASSES = Shape(
    (
        NAME,
        *plain("Provisioner", "ReclaimPolicy", "VolumeBindingMode", "AllowVolumeExpansion"),
        AGE,
    ),
    _storage_class,
)


def _runtime_class(obj: JsonObject, now: float) -> list[Any]:
    return [name_of(obj), obj.get("handler") or "", age(obj, now)]


RUNTIME_CLASSES = Shape((NAME, *plain("Handler"), AGE), _runtime_class)


def _binding_cells(obj: JsonObject, now: float) -> list[Any]:
    role = get(obj, "roleRef", {})
    subjects = get(obj, "subjects", ())
    accounts = [
        f"{s.get('namespace', '')}/{s['name']}" for s in subjects if s["kind"] == "ServiceAccount"
    ]
    users, groups = (
        ", ".join(s["name"] for s in subjects if s["kind"] == kind) for kind in ("User", "Group")
    )
    named = f"{role.get('kind', '')}/{role.get('name', '')}"
    return [name_of(obj), named, age(obj, now), users, groups, ", ".join(accounts)]


ROLE_BINDINGS = Shape(
    (NAME, *plain("Role"), AGE, *wide("Users", "Groups", "ServiceAccounts")), _binding_cells
)


def _quota(obj: JsonObject, now: float) -> list[Any]:
    hard = dig(obj, "status", "hard", default={})
    used = dig(obj, "status", "used", default={})
    texts = {name: f"{name}: {_amount(used, name)}/{_amount(hard, name)}" for name in sorted(hard)}
    limits = [text for name, text in texts.items() if name.startswith("limits.")]
    requests = [text for name, text in texts.items() if not name.startswith("limits.")]
    return [name_of(obj), ", ".join(requests), ", ".join(limits), age(obj, now)]


def _amount(amounts: JsonObject, name: str) -> str:
    return str(Quantity.parse(str(amounts.get(name) or "0")))


QUOTAS = Shape((NAME, *plain("Request", "Limit"), AGE), _quota)


def _certificate_request(obj: JsonObject, now: float) -> list[Any]:
    spec = dig(obj, "spec", default={})
    expiration = spec.get("expirationSeconds")
    duration = NONE if expiration is None else human(expiration)
    signer = spec.get("signerName") or NONE
    requestor = spec.get("username") or ""
    return [name_of(obj), age(obj, now), signer, requestor, duration, _decision(obj)]


def _decision(request: JsonObject) -> str:
    kinds = {each.get("type") for each in dig(request, "status", "conditions", default=())}
    decided = next((kind for kind in ("Denied", "Approved") if kind in kinds), "Pending")
    words = [decided, *(["Failed"] if "Failed" in kinds else ())]
    words += ["Issued"] if dig(request, "status", "certificate") else ()
    return ",".join(words)


CERTIFICATE_REQUESTS = Shape(
    (NAME, AGE, *plain("SignerName", "Requestor", "RequestedDuration", "Condition")),
    _certificate_request,
)
