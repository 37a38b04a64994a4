"""Rows of the core kinds other than pods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dryrack.apiserver.tables.columns import (
    AGE,
    NAME,
    NONE,
    Column,
    Shape,
    age,
    labels_text,
    name_of,
    plain,
    since,
    wide,
)
from dryrack.base.ages import human
from dryrack.kinds.paths import get
from dryrack.kinds.quantity import Quantity

if TYPE_CHECKING:
    from dryrack.apiserver.tables.columns import JsonObject

_ROLE_PREFIX = "node-role.kubernetes.io/"
_ROLE_LABEL = "kubernetes.io/role"
_UNKNOWN = "<unknown>"


def _node_status(node: JsonObject) -> str:
    conditions = get(node, "status.conditions", ())
    # The last one of its type counts, should it be there twice.
    ready = [entry for entry in conditions if entry.get("type") == "Ready"][-1:]
    words = ["Ready" if entry.get("status") == "True" else "NotReady" for entry in ready]
    words = words or ["Unknown"]
    if get(node, "spec.unschedulable"):
        words.append("SchedulingDisabled")
    return ",".join(words)


def _roles(node: JsonObject) -> str:
    labels = get(node, "metadata.labels", {})
    found = {key.removeprefix(_ROLE_PREFIX) for key in labels if key.startswith(_ROLE_PREFIX)}
    found.add(labels.get(_ROLE_LABEL, ""))
    return ",".join(sorted(found - {""})) or NONE


def _address(node: JsonObject, kind: str) -> str:
    addresses = get(node, "status.addresses", ())
    return next((entry["address"] for entry in addresses if entry.get("type") == kind), NONE)


def _node(node: JsonObject, now: float) -> list[Any]:
    info = get(node, "status.nodeInfo", {})
    kernel = info.get("kernelVersion") or _UNKNOWN
    if architecture := info.get("architecture"):
        kernel += f" ({architecture})"
    return [
        name_of(node),
        _node_status(node),
        _roles(node),
        age(node, now),
        info.get("kubeletVersion") or "",
        _address(node, "InternalIP"),
        _address(node, "ExternalIP"),
        info.get("osImage") or _UNKNOWN,
        kernel,
        info.get("containerRuntimeVersion") or _UNKNOWN,
    ]


NODES = Shape(
    (
        NAME,
        *plain("Status", "Roles"),
        AGE,
        *plain("Version"),
        *wide("Internal-IP", "External-IP", "OS-Image", "Kernel-Version", "Container-Runtime"),
    ),
    _node,
)


def _config_map(obj: JsonObject, now: float) -> list[Any]:
    size = len(get(obj, "data", {})) + len(get(obj, "binaryData", {}))
    return [name_of(obj), size, age(obj, now)]


CONFIG_MAPS = Shape((NAME, *plain("Data"), AGE), _config_map)


def _secret(obj: JsonObject, now: float) -> list[Any]:
    return [name_of(obj), obj.get("type") or "", len(get(obj, "data", {})), age(obj, now)]


SECRETS = Shape((NAME, *plain("Type", "Data"), AGE), _secret)


def _namespace(obj: JsonObject, now: float) -> list[Any]:
    return [name_of(obj), get(obj, "status.phase", ""), age(obj, now)]


NAMESPACES = Shape((NAME, *plain("Status"), AGE), _namespace)


def _name_cells(obj: JsonObject, now: float) -> list[Any]:
    return [name_of(obj), age(obj, now)]


# A kind whose only columns are the name and the age.
NAMED = Shape((NAME, AGE), _name_cells)


def _creation_cells(obj: JsonObject, now: float) -> list[Any]:
    del now
    return [name_of(obj), get(obj, "metadata.creationTimestamp")]


# What the server prints for kinds that no one has written columns for.
CREATED = Shape((NAME, Column("Created At", "date")), _creation_cells)


def _event_source(event: JsonObject) -> str:
    source = event.get("source") or event.get("deprecatedSource") or {}
    component = (
        source.get("component")
        or event.get("reportingController")
        or event.get("reportingComponent")
    )
    instance = source.get("host") or event.get("reportingInstance") or ""
    return f"{component or ''}, {instance}" if instance else component or ""


def _first(event: JsonObject, *names: str) -> Any:
    return next((event[name] for name in names if event.get(name)), None)


def _event_times(event: JsonObject, now: float) -> tuple[str, str, int]:
    """When it was last seen, when first, and how often."""
    first = since(_first(event, "firstTimestamp", "deprecatedFirstTimestamp", "eventTime"), now)
    last_seen = _first(event, "lastTimestamp", "deprecatedLastTimestamp")
    last = since(last_seen, now) if last_seen else first
    if series := event.get("series"):
        return since(series.get("lastObservedTime"), now), first, series.get("count") or 0
    return last, first, _first(event, "count", "deprecatedCount") or 1


def _event(event: JsonObject, now: float) -> list[Any]:
    last, first, count = _event_times(event, now)
    about = event.get("involvedObject") or event.get("regarding") or {}
    kind = (about.get("kind") or "").lower()
    return [
        last,
        event.get("type") or "",
        event.get("reason") or "",
        f"{kind}/{about['name']}" if about.get("name") else kind,
        about.get("fieldPath") or "",
        _event_source(event),
        (event.get("message") or event.get("note") or "").strip(),
        first,
        count,
        name_of(event),
    ]


EVENTS = Shape(
    (
        *plain("Last Seen", "Type", "Reason", "Object"),
        *wide("Subobject", "Source"),
        *plain("Message"),
        *wide("First Seen", "Count"),
        Column("Name", format="name", priority=1),
    ),
    _event,
)


def _lease(obj: JsonObject, now: float) -> list[Any]:
    return [name_of(obj), get(obj, "spec.holderIdentity", ""), age(obj, now)]


LEASES = Shape((NAME, *plain("Holder"), AGE), _lease)


def _sum_usage(obj: JsonObject, resource: str) -> str:
    """Return the total usage of a pod's containers, or the usage of a node."""
    parts = obj.get("containers") or (obj,)
    amounts = [Quantity.parse(get(each, f"usage.{resource}", "0")) for each in parts]
    return str(sum(amounts[1:], amounts[0]))


def _usage(obj: JsonObject, now: float) -> list[Any]:
    return [name_of(obj), _sum_usage(obj, "cpu"), _sum_usage(obj, "memory"), obj.get("window", "")]


USAGE = Shape((NAME, *plain("cpu", "memory", "Window")), _usage)


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
    hard = get(obj, "status.hard", {})
    used = get(obj, "status.used", {})
    texts = {name: f"{name}: {_amount(used, name)}/{_amount(hard, name)}" for name in sorted(hard)}
    limits = [text for name, text in texts.items() if name.startswith("limits.")]
    requests = [text for name, text in texts.items() if not name.startswith("limits.")]
    return [name_of(obj), ", ".join(requests), ", ".join(limits), age(obj, now)]


def _amount(amounts: JsonObject, name: str) -> str:
    return str(Quantity.parse(str(amounts.get(name) or "0")))


QUOTAS = Shape((NAME, *plain("Request", "Limit"), AGE), _quota)


def _certificate_request(obj: JsonObject, now: float) -> list[Any]:
    spec = get(obj, "spec", {})
    expiration = spec.get("expirationSeconds")
    duration = NONE if expiration is None else human(expiration)
    signer = spec.get("signerName") or NONE
    requestor = spec.get("username") or ""
    return [name_of(obj), age(obj, now), signer, requestor, duration, _decision(obj)]


def _decision(request: JsonObject) -> str:
    kinds = {each.get("type") for each in get(request, "status.conditions", ())}
    decided = next((kind for kind in ("Denied", "Approved") if kind in kinds), "Pending")
    words = [decided, *(["Failed"] if "Failed" in kinds else ())]
    words += ["Issued"] if get(request, "status.certificate") else ()
    return ",".join(words)


CERTIFICATE_REQUESTS = Shape(
    (NAME, AGE, *plain("SignerName", "Requestor", "RequestedDuration", "Condition")),
    _certificate_request,
)


def _trust_bundle(obj: JsonObject, now: float) -> list[Any]:
    return [name_of(obj), get(obj, "spec.signerName", "") or NONE]


TRUST_BUNDLES = Shape((NAME, *plain("SignerName")), _trust_bundle)


def _pod_certificate_request(obj: JsonObject, now: float) -> list[Any]:
    state = "Pending"
    for condition in get(obj, "status.conditions", ()):
        if condition.get("type") in ("Issued", "Denied", "Failed"):
            state = condition["type"]
    names = ("podName", "serviceAccountName", "nodeName", "signerName")
    notes = get(obj, "spec.unverifiedUserAnnotations", {})
    cells = [get(obj, f"spec.{name}", "") for name in names]
    return [name_of(obj), *cells, state, labels_text(notes)]


POD_CERTIFICATE_REQUESTS = Shape(
    (
        NAME,
        *plain("PodName", "ServiceAccountName", "NodeName", "SignerName", "State"),
        *plain("UnverifiedUserAnnotations"),
    ),
    _pod_certificate_request,
)
