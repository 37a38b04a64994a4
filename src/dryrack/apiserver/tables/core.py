"""Rows of the core kinds other than pods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dryrack.apiserver.tables.ages import age, since
from dryrack.apiserver.tables.columns import AGE, NAME, Column, Shape, dig, name_of, plain, wide
from dryrack.apiserver.tables.labels import NONE
from dryrack.kinds.quantity import Quantity

if TYPE_CHECKING:
    from dryrack.apiserver.tables.columns import JsonObject

_ROLE_PREFIX = "node-role.kubernetes.io/"
_ROLE_LABEL = "kubernetes.io/role"
_UNKNOWN = "<unknown>"


def _node_status(node: JsonObject) -> str:
    conditions = dig(node, "status", "conditions", default=())
    # The last one of its type counts, should it be there twice.
    ready = [entry for entry in conditions if entry.get("type") == "Ready"][-1:]
    words = ["Ready" if entry.get("status") == "True" else "NotReady" for entry in ready]
    words = words or ["Unknown"]
    if dig(node, "spec", "unschedulable"):
        words.append("SchedulingDisabled")
    return ",".join(words)


def _roles(node: JsonObject) -> str:
    labels = dig(node, "metadata", "labels", default={})
    found = {key.removeprefix(_ROLE_PREFIX) for key in labels if key.startswith(_ROLE_PREFIX)}
    found.add(labels.get(_ROLE_LABEL, ""))
    return ",".join(sorted(found - {""})) or NONE


def _address(node: JsonObject, kind: str) -> str:
    addresses = dig(node, "status", "addresses", default=())
    return next((entry["address"] for entry in addresses if entry.get("type") == kind), NONE)


def _node(node: JsonObject, now: float) -> list[Any]:
    info = dig(node, "status", "nodeInfo", default={})
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
    size = len(dig(obj, "data", default={})) + len(dig(obj, "binaryData", default={}))
    return [name_of(obj), size, age(obj, now)]


CONFIG_MAPS = Shape((NAME, *plain("Data"), AGE), _config_map)


def _secret(obj: JsonObject, now: float) -> list[Any]:
    return [name_of(obj), obj.get("type") or "", len(dig(obj, "data", default={})), age(obj, now)]


SECRETS = Shape((NAME, *plain("Type", "Data"), AGE), _secret)


def _namespace(obj: JsonObject, now: float) -> list[Any]:
    return [name_of(obj), dig(obj, "status", "phase", default=""), age(obj, now)]


NAMESPACES = Shape((NAME, *plain("Status"), AGE), _namespace)


def _name_cells(obj: JsonObject, now: float) -> list[Any]:
    return [name_of(obj), age(obj, now)]


# A kind whose only columns are the name and the age.
NAMED = Shape((NAME, AGE), _name_cells)


def _creation_cells(obj: JsonObject, now: float) -> list[Any]:
    del now
    return [name_of(obj), dig(obj, "metadata", "creationTimestamp")]


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
    return [name_of(obj), dig(obj, "spec", "holderIdentity", default=""), age(obj, now)]


LEASES = Shape((NAME, *plain("Holder"), AGE), _lease)


def _sum_usage(obj: JsonObject, resource: str) -> str:
    """Return the total usage of a pod's containers, or the usage of a node."""
    parts = obj.get("containers") or (obj,)
    amounts = [Quantity.parse(dig(each, "usage", resource, default="0")) for each in parts]
    return str(sum(amounts[1:], amounts[0]))


def _usage(obj: JsonObject, now: float) -> list[Any]:
    return [name_of(obj), _sum_usage(obj, "cpu"), _sum_usage(obj, "memory"), obj.get("window", "")]


USAGE = Shape((NAME, *plain("cpu", "memory", "Window")), _usage)
