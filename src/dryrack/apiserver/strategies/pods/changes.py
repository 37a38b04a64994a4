"""
The changes of a pod's spec that an update can make.

These are images, a shorter deadline, more tolerations, fewer scheduling gates, and, while the pod
is gated, a narrower choice of nodes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dryrack.kinds.paths import get, status_of
from dryrack.kinds.rules import checks
from dryrack.kinds.rules.json_edit import with_value
from dryrack.kinds.rules.pods.spec_problems import tolerations
from dryrack.kinds.validation.names import checked, subdomain
from dryrack.kinds.validation.problems import duplicate, forbidden, invalid, required

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dryrack.kinds.raw import Raw
    from dryrack.kinds.validation import FieldProblem

_MAY_CHANGE = (
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
    "`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
_SYSTEM_CONDITIONS = ("PodScheduled", "Ready", "Initialized")


def spec_changes(spec: Raw, old: Raw) -> Iterator[FieldProblem]:
    """Changes of the spec by anybody but the binding."""
    for key in ("containers", "initContainers"):
        now = spec.get(key) or ()
        before = old.get(key) or ()
        if len(now) != len(before):
            yield forbidden(f"spec.{key}", "pod updates may not add or remove containers")
            return
        yield from _images(f"spec.{key}", now)
    yield from _deadline(spec.get("activeDeadlineSeconds"), old.get("activeDeadlineSeconds"))
    yield from _tolerations(get(spec, "tolerations", ()), get(old, "tolerations", ()))
    yield from _gates(get(spec, "schedulingGates", ()), get(old, "schedulingGates", ()))
    if spec == old:
        return
    if old.get("schedulingGates"):
        yield from _selector_problems(get(spec, "nodeSelector", {}), get(old, "nodeSelector", {}))
    left = _forgiven(spec, old)
    if left != old:
        changed = ", ".join(checks.changed_paths("spec", left, old))
        detail = f"pod updates may not change fields other than {_MAY_CHANGE}; changed: {changed}"
        yield forbidden("spec", detail)


def _images(at: str, given: Sequence[Raw]) -> Iterator[FieldProblem]:
    for position, container in enumerate(given):
        image = container.get("image") or ""
        if not image:
            yield required(f"{at}[{position}].image")
        if image.strip() != image:
            detail = "must not have leading or trailing whitespace"
            yield invalid(f"{at}[{position}].image", image, detail)


def _deadline(now: int | None, before: int | None) -> Iterator[FieldProblem]:
    at = "spec.activeDeadlineSeconds"
    if now is None and before is not None:
        yield invalid(at, None, "must not update from a positive integer to nil value")
    elif now is not None and before is not None and now > before:
        yield invalid(at, now, "must be less than or equal to previous value")


def _tolerations(now: Sequence[Raw], before: Sequence[Raw]) -> Iterator[FieldProblem]:
    kept = {_whatever_the_seconds(each) for each in now}
    if any(_whatever_the_seconds(each) not in kept for each in before):
        detail = "existing toleration can not be modified except its tolerationSeconds"
        yield forbidden("spec.tolerations", detail)
        return
    yield from tolerations("spec.tolerations", now)


def _whatever_the_seconds(toleration: Raw) -> tuple[tuple[str, Any], ...]:
    return tuple(sorted(each for each in toleration.items() if each[0] != "tolerationSeconds"))


def _gates(now: Sequence[Raw], before: Sequence[Raw]) -> Iterator[FieldProblem]:
    known = {each.get("name") for each in before}
    for position, gate in enumerate(now):
        name = gate.get("name")
        if name not in known:
            detail = f"only deletion is allowed, but found new scheduling gate '{name}'"
            yield forbidden(f"spec.schedulingGates[{position}].name", detail)


def _forgiven(spec: Raw, old: Raw) -> Raw:
    """The spec without the changes that may be."""
    # A negative grace period is stored as 1.
    grace = spec.get("terminationGracePeriodSeconds")
    made = spec if grace is None or grace >= 0 else {**spec, "terminationGracePeriodSeconds": 1}
    for key in ("activeDeadlineSeconds", "schedulingGates", "tolerations"):
        made = with_value(made, key, old.get(key))
    for key in ("containers", "initContainers"):
        pairs = zip(spec.get(key) or (), old.get(key) or (), strict=True)
        kept = [with_value(now, "image", before.get("image")) for now, before in pairs]
        made = with_value(made, key, kept or None)
    if old.get("terminationGracePeriodSeconds", 0) < 0 and (
        spec.get("terminationGracePeriodSeconds") == 1
    ):
        made = {
            **made,
            "terminationGracePeriodSeconds": old["terminationGracePeriodSeconds"],
        }
    if old.get("schedulingGates"):
        made = _free_while_gated(made, old)
    return made


def _free_while_gated(spec: Raw, old: Raw) -> Raw:
    """Return the spec without the changes of the node selection that a gated pod allows."""
    spec = with_value(spec, "nodeSelector", old.get("nodeSelector"))
    affinity = get(spec, "affinity", {})
    was = get(old, "affinity", {})
    if not was.get("nodeAffinity") and affinity.get("nodeAffinity"):
        kept = with_value(affinity, "nodeAffinity", None)
        spec = with_value(spec, "affinity", kept or old.get("affinity"))
    return spec


def _selector_problems(selector: Raw, old: Raw) -> Iterator[FieldProblem]:
    if not old.items() <= selector.items():
        detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
        yield invalid("spec.nodeSelector", selector, detail)


def status_changes(pod: Raw, old: Raw) -> Iterator[FieldProblem]:
    """Changes of the status by its subresource."""
    status = status_of(pod)
    before = status_of(old)
    for position, condition in enumerate(get(status, "conditions", ())):
        if condition.get("type") not in _SYSTEM_CONDITIONS:
            at = f"status.conditions[{position}].Type"
            yield from checks.qualified_name(at, condition.get("type") or "")
    nominated = status.get("nominatedNodeName") or ""
    if nominated and nominated != before.get("nominatedNodeName"):
        yield from checked("status.nominatedNodeName", nominated, subdomain)
        if get(old, "spec.nodeName"):
            detail = "may not be set on pods that are already bound to a node"
            yield forbidden("status.nominatedNodeName", detail)
    quality = status.get("qosClass") or ""
    if quality != (before.get("qosClass") or ""):
        yield invalid("status.qosClass", quality, "field is immutable")
    yield from _claim_statuses(get(status, "resourceClaimStatuses", ()), pod)


def _claim_statuses(given: Sequence[Raw], pod: Raw) -> Iterator[FieldProblem]:
    known = {each.get("name") for each in get(pod, "spec.resourceClaims", ())}
    seen: set[str] = set()
    for position, status in enumerate(given):
        at = f"status.resourceClaimStatuses[{position}]"
        name = status.get("name") or ""
        if name not in known:
            detail = "must match the name of an entry in `spec.resourceClaims`"
            yield invalid(f"{at}.name", name, detail)
        if name in seen:
            yield duplicate(f"{at}.name", name)
        seen.add(name)
        claim = status.get("resourceClaimName")
        if claim is not None:
            yield from checked(f"{at}.resourceClaimName", claim, subdomain)
