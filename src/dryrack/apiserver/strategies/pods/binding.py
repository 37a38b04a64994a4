"""
Bindings, which assign pods to nodes.

A binding sets spec.nodeName in one write; no update of a pod can do that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.apiserver.answer.status import (
    Status,
    StatusError,
    Subject,
    bad_request,
    conflict,
    not_found,
)
from dryrack.apiserver.decode.review_bodies import admit_posted, read_posted
from dryrack.apiserver.extension_points import Reply
from dryrack.apiserver.http.queries import write_options
from dryrack.apiserver.metadata import registry_path, timestamp
from dryrack.kinds.paths import get, spec_of, status_of
from dryrack.kinds.rules.json_edit import with_value
from dryrack.kinds.text.quoting import quoted
from dryrack.kinds.validation.problems import not_supported, required
from dryrack.store import Key

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dryrack.apiserver.extension_points import Answer, Call
    from dryrack.apiserver.registry import Resource
    from dryrack.kinds.raw import Raw
    from dryrack.store import Stored

_PODS = Subject("", "pods")
_BINDINGS = Subject("", "pods/binding")
# What a pod can know of where its node is.
_TOPOLOGY = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")


async def bind(call: Call) -> Answer:
    """Both paths: a part of the pod, and the older collection of bindings."""
    options = write_options(call.parameters, "CreateOptions")
    binding = read_posted(call)
    name = get(binding, "metadata.name") or ""
    if call.target.name and call.target.name != name:
        raise bad_request("name in URL does not match name in Binding object")
    problems = tuple(_problems(get(binding, "target", {})))
    if problems:
        # The real server does not take these for refusals of its own either.
        shown = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
        raise StatusError(Status(500, "", shown))
    binding = admit_posted(call, binding, options)
    pods = call.server.registry.recognised("", "v1", "pods")
    assert pods is not None, "pods are built in"
    stored = call.server.store.get(Key("pods", call.target.namespace, name))
    if stored is None:
        raise not_found(_PODS, name)
    _check_preconditions(pods, stored, binding["metadata"])
    _check_free(stored.object)
    labels = _topology(call, binding["target"]["name"])
    now = timestamp(call.server.clock.now())
    if not options.dry_run:
        call.server.modify(
            pods, call.target.namespace, name, lambda pod: _bind_to_node(pod, binding, labels, now)
        )
    return Reply(created_status(), 201)


def created_status() -> Raw:
    """Return the Status that answers a successful Binding or Eviction."""
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


def _problems(target: Raw) -> Iterator[str]:
    kind = target.get("kind") or ""
    if kind not in ("", "Node"):
        yield str(not_supported("target.kind", kind, ("Node", "<empty>")))
    if not target.get("name"):
        yield str(required("target.name"))


def _check_preconditions(pods: Resource, stored: Stored, meta: Raw) -> None:
    uid = meta.get("uid")
    known = stored.object["metadata"].get("uid", "")
    detail = f"UID in precondition: {uid}, UID in object meta: {known}"
    if not uid or uid == known:
        revision = meta.get("resourceVersion")
        if not revision or revision == str(stored.revision):
            return
        detail = (
            f"ResourceVersion in precondition: {revision}, "
            f"ResourceVersion in object meta: {stored.revision}"
        )
    path = registry_path(pods, stored.key.namespace, stored.key.name)
    raise conflict(
        _PODS,
        stored.key.name,
        f"StorageError: invalid object, Code: 4, Key: {path}, ResourceVersion: 0, "
        f"AdditionalErrorMsg: Precondition failed: {detail}",
    )


def _check_free(pod: Raw) -> None:
    name = pod["metadata"]["name"]
    spec = spec_of(pod)
    if "deletionTimestamp" in pod["metadata"]:
        detail = f"pod {name} is being deleted, cannot be assigned to a host"
        raise conflict(_BINDINGS, name, detail)
    if spec.get("nodeName"):
        detail = f"pod {name} is already assigned to node {quoted(spec['nodeName'])}"
        raise conflict(_BINDINGS, name, detail)
    if spec.get("schedulingGates"):
        raise conflict(_BINDINGS, name, f"pod {name} has non-empty .spec.schedulingGates")


def _topology(call: Call, node: str) -> Raw:
    found = call.server.lookup.get("nodes", "", node) or {}
    labels = get(found, "metadata.labels", {})
    return {key: labels[key] for key in _TOPOLOGY if key in labels}


def _bind_to_node(pod: Raw, binding: Raw, labels: Raw, now: str) -> Raw:
    meta = pod["metadata"]
    given = binding["metadata"]
    for key, added in (
        ("annotations", get(given, "annotations", {})),
        ("labels", {**get(given, "labels", {}), **labels}),
    ):
        if added:
            meta = {**meta, key: {**(meta.get(key) or {}), **added}}
    status = with_value(status_of(pod), "nominatedNodeName", None)
    spec = {**pod["spec"], "nodeName": binding["target"]["name"]}
    return {**pod, "metadata": meta, "spec": spec, "status": _scheduled_condition(status, now)}


def _scheduled_condition(status: Raw, now: str) -> Raw:
    condition = {"type": "PodScheduled", "status": "True"}
    return {**status, "conditions": with_condition(get(status, "conditions", []), condition, now)}


def with_condition(conditions: list[Raw], condition: Raw, now: str) -> list[Raw]:
    """A condition set; its time is that of the last change of its status."""
    made = {**condition, "lastProbeTime": None, "lastTransitionTime": now}
    for position, old in enumerate(conditions):
        if old.get("type") == condition["type"]:
            if old.get("status") == condition["status"]:
                made["lastTransitionTime"] = old.get("lastTransitionTime")
            return [*conditions[:position], made, *conditions[position + 1 :]]
    return [*conditions, made]
