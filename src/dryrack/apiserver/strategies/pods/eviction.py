"""Evictions: deletions that ask the disruption budgets first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.apiserver.answer.status import (
    Cause,
    Status,
    StatusError,
    Subject,
    bad_request,
    forbidden,
    not_found,
)
from dryrack.apiserver.decode.review_bodies import admit_posted, read_posted
from dryrack.apiserver.extension_points import Reply
from dryrack.apiserver.http.queries import write_options
from dryrack.apiserver.metadata import timestamp
from dryrack.apiserver.strategies.pods.binding import created_status, with_condition
from dryrack.apiserver.verbs.deletion import DeleteOptions
from dryrack.apiserver.verbs.writing import Order
from dryrack.kinds.decode import decode
from dryrack.kinds.meta import LabelSelector
from dryrack.kinds.paths import get, status_of
from dryrack.kinds.selectors import matches_labels

if TYPE_CHECKING:
    from dryrack.apiserver.extension_points import Answer, Call
    from dryrack.kinds.raw import Raw

_BUDGETS = "poddisruptionbudgets.policy"
_EVICTED = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "EvictionByEvictionAPI",
    "message": "Eviction API: evicting",
}


async def evict(call: Call) -> Answer:
    options = write_options(call.parameters, "CreateOptions")
    eviction = read_posted(call)
    namespace = call.target.namespace
    name = call.target.name
    if get(eviction, "metadata.name") != name:
        raise bad_request("name in URL does not match name in Eviction object")
    eviction = admit_posted(call, eviction, options)
    pod = call.server.lookup.get("pods", namespace, name)
    if pod is None:
        raise not_found(Subject("", "pods"), name)
    given = get(eviction, "deleteOptions", {})
    preconditions = get(given, "preconditions", {})
    deletion = DeleteOptions(
        grace_seconds=given.get("gracePeriodSeconds"),
        uid=preconditions.get("uid"),
        revision=preconditions.get("resourceVersion"),
        policy=given.get("propagationPolicy"),
        dry_run=options.dry_run or bool(given.get("dryRun")),
    )
    if not _is_free(pod):
        _ask_budget(call, pod, dry_run=deletion.dry_run)
        _mark(call, dry_run=deletion.dry_run)
    order = Order(call.target.resource, namespace, name, call.request.user, subresource="eviction")
    call.server.verbs.deleter.delete(order, deletion)
    return Reply(created_status(), 201)


def _is_free(pod: Raw) -> bool:
    """Return whether no budget applies: the pod does not run, or it is being deleted."""
    phase = get(pod, "status.phase")
    return phase in ("Succeeded", "Failed", "Pending") or "deletionTimestamp" in pod["metadata"]


def _mark(call: Call, *, dry_run: bool) -> None:
    if dry_run:
        return
    now = timestamp(call.server.clock.now())

    def marked(pod: Raw) -> Raw:
        status = status_of(pod)
        conditions = with_condition(get(status, "conditions", []), _EVICTED, now)
        return {**pod, "status": {**status, "conditions": conditions}}

    target = call.target
    call.server.modify(target.resource, target.namespace, target.name, marked)


def _ask_budget(call: Call, pod: Raw, *, dry_run: bool) -> None:
    labels = get(pod["metadata"], "labels", {})
    found = [
        budget
        for budget in call.server.lookup.list(_BUDGETS, call.target.namespace)
        if _covers(budget, labels)
    ]
    if len(found) > 1:
        raise StatusError(
            Status(
                500,
                "InternalError",
                "Internal error occurred: This pod has more than one PodDisruptionBudget, which "
                "the eviction subresource does not support.",
            )
        )
    if not found or _may_go_unhealthy(pod, found[0]):
        return
    _check(found[0])
    if not dry_run:
        _take(call, found[0])


def _covers(budget: Raw, labels: Raw) -> bool:
    selector = get(budget, "spec.selector")
    return selector is not None and matches_labels(decode(selector, LabelSelector), labels)


def _may_go_unhealthy(pod: Raw, budget: Raw) -> bool:
    """A pod that is not ready costs nothing while there are enough that are."""
    conditions = get(pod, "status.conditions", ())
    if any(each.get("type") == "Ready" and each.get("status") == "True" for each in conditions):
        return False
    if get(budget, "spec.unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status = status_of(budget)
    healthy: int = status.get("currentHealthy", 0)
    desired: int = status.get("desiredHealthy", 0)
    return healthy >= desired > 0


def _check(budget: Raw) -> None:
    meta = budget["metadata"]
    status = status_of(budget)
    name = meta["name"]
    allowed = status.get("disruptionsAllowed", 0)
    if status.get("observedGeneration", 0) < meta.get("generation", 0):
        detail = f"The disruption budget {name} is still being processed by the server."
        raise _too_early(detail)
    if allowed < 0:
        subject = Subject("policy", "poddisruptionbudget")
        raise forbidden(subject, name, "pdb disruptions allowed is negative")
    if allowed == 0:
        raise _too_early(
            f"The disruption budget {name} needs {status.get('desiredHealthy', 0)} healthy pods "
            f"and has {status.get('currentHealthy', 0)} currently",
            seconds=0,
        )


def _too_early(detail: str, seconds: int = 10) -> StatusError:
    message = "Cannot evict pod as it would violate the pod's disruption budget."
    cause = Cause("DisruptionBudget", detail).to_raw()
    details: Raw = {"causes": [cause]}
    if seconds:
        details["retryAfterSeconds"] = seconds
    return StatusError(
        Status(429, "TooManyRequests", message, details, retry_after_seconds=seconds)
    )


def _take(call: Call, budget: Raw) -> None:
    """Subtract one allowed disruption; the disruption controller recomputes the number later."""
    budgets = call.server.registry.recognised("policy", "v1", "poddisruptionbudgets")
    assert budgets is not None, "budgets are built in"
    now = timestamp(call.server.clock.now())
    target = call.target

    def taken(stored: Raw) -> Raw:
        status = status_of(stored)
        disrupted = {**get(status, "disruptedPods", {}), target.name: now}
        left = status.get("disruptionsAllowed", 0) - 1
        status = {**status, "disruptedPods": disrupted, "disruptionsAllowed": left}
        return {**stored, "status": status}

    name = budget["metadata"]["name"]
    call.server.modify(budgets, target.namespace, name, taken)
