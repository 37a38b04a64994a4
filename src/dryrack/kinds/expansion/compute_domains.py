"""
ComputeDomains of NVIDIA's driver, and the ResourceClaimTemplate that the driver creates for each.

A ComputeDomain names the template from which the pods of a multi-node workload get their IMEX
channel. NVIDIA's controller creates the template; a what-if on files and the control plane create
the same one.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from dryrack.kinds.documents import Document
from dryrack.kinds.paths import get
from dryrack.kinds.raw import Raw
from dryrack.kinds.shape import Path

DRIVER = "compute-domain.nvidia.com"
GROUP_VERSION = "resource.nvidia.com/v1beta1"
KIND = "ComputeDomain"
DOMAIN_LABEL = "resource.nvidia.com/computeDomain"
_TARGET_LABEL = "resource.nvidia.com/computeDomainTarget"
_CHANNEL_CLASS = "compute-domain-default-channel.nvidia.com"
_REQUEST = "channel"
_TEMPLATE_NAME: Path = ("spec", "channel", "resourceClaimTemplate", "name")


def is_compute_domain(document: Document) -> bool:
    """Return whether a document is a ComputeDomain."""
    return (document.api_version, document.kind) == (GROUP_VERSION, KIND)


class DomainFault(NamedTuple):
    """A reason for the API server to refuse a ComputeDomain: field, message and fix."""

    path: Path
    what: str
    fix: str


def faults(domain: Raw) -> Iterator[DomainFault]:
    """Yield what the definition of the kind does not allow in the spec of a ComputeDomain."""
    spec = domain.get("spec")
    if not isinstance(spec, dict):
        if "spec" in domain:
            yield DomainFault(("spec",), "expected an object", "write numNodes and channel")
        return
    nodes = spec.get("numNodes")
    is_whole = isinstance(nodes, int | float) and not isinstance(nodes, bool) and nodes % 1 == 0
    if not is_whole:
        what = "Required value" if nodes is None else f"expected an integer, got {nodes!r}"
        yield DomainFault(("spec", "numNodes"), what, "write a number of nodes, without quotes")
    channel = spec.get("channel")
    if not isinstance(channel, dict):
        fix = "write resourceClaimTemplate: {name: ...} under it"
        yield DomainFault(("spec", "channel"), "Required value", fix)
        return
    mode = channel.get("allocationMode", "Single")
    if mode not in ("All", "Single"):
        at: Path = ("spec", "channel", "allocationMode")
        yield DomainFault(at, f"Unsupported value: {mode!r}", "write Single or All")
    if not template_name(domain):
        fix = "name the ResourceClaimTemplate that the pods of the domain use"
        yield DomainFault(_TEMPLATE_NAME, "Required value", fix)


def template_name(domain: Raw) -> str:
    """Return the name of the template of a ComputeDomain; empty if it names none."""
    found: Any = domain
    for step in _TEMPLATE_NAME:
        found = found.get(step) if isinstance(found, dict) else None
    return found if isinstance(found, str) else ""


def workload_template(domain: Raw) -> Raw:
    """Return the template for the pods of a ComputeDomain that names one."""
    metadata = domain["metadata"]
    uid = str(metadata.get("uid") or "")
    parameters = {
        "apiVersion": GROUP_VERSION,
        "kind": "ComputeDomainChannelConfig",
        "domainID": uid,
        "allocationMode": domain["spec"]["channel"].get("allocationMode") or "Single",
    }
    channel = {"deviceClassName": _CHANNEL_CLASS, "allocationMode": "ExactCount", "count": 1}
    devices = {
        "requests": [{"name": _REQUEST, "exactly": channel}],
        "config": [
            {"requests": [_REQUEST], "opaque": {"driver": DRIVER, "parameters": parameters}}
        ],
    }
    made: Raw = {"name": template_name(domain), "labels": {_TARGET_LABEL: "Workload"}}
    if metadata.get("namespace"):
        made["namespace"] = metadata["namespace"]
    if uid:
        made["labels"] = {DOMAIN_LABEL: uid, **made["labels"]}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": made,
        "spec": {"spec": {"devices": devices}},
    }


def domain_of_claim(claim: Raw) -> str:
    """Return the UID of the ComputeDomain whose channel a claim asks for; empty if none."""
    devices = get(claim, "spec.devices", {})
    for each in get(devices, "config", ()):
        opaque = get(each, "opaque", {})
        parameters = opaque.get("parameters")
        if opaque.get("driver") == DRIVER and isinstance(parameters, dict):
            return str(parameters.get("domainID") or "")
    return ""
