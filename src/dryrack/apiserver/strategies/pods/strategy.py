"""Pods as the server stores them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.apiserver.strategies import limit_ranges
from dryrack.apiserver.strategies.pods import subresources
from dryrack.apiserver.strategies.pods.admission import (
    apply_admission_plugins,
    with_default_tolerations,
)
from dryrack.apiserver.strategies.pods.binding import with_condition
from dryrack.apiserver.strategies.pods.changes import spec_changes, status_changes
from dryrack.apiserver.strategies.pods.qos_class import quality
from dryrack.apiserver.strategies.pods.warnings import warnings_of
from dryrack.apiserver.strategy import (
    Strategy,
    field_text,
    keep_status,
    object_meta,
    part_only,
)
from dryrack.kinds.paths import get, spec_of, status_of
from dryrack.kinds.rules.json_edit import with_metadata, with_value
from dryrack.kinds.rules.pods.pod_rules import (
    PodRules,
    only_of_pods,
    pod_problems,
    with_own_labels,
)
from dryrack.kinds.validation.meta import metadata
from dryrack.kinds.validation.names import label

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from dryrack.apiserver.strategy import Write
    from dryrack.kinds.raw import Raw
    from dryrack.kinds.releases import ValidationBehaviour
    from dryrack.kinds.validation import FieldProblem

_GATED = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
}


class PodStrategy(Strategy):
    """Defaults, admission, validation and the end of pods."""

    selectable_fields = (
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.podIPs",
        "status.nominatedNodeName",
    )
    field_refusal = "field label not supported: {label}"

    def __init__(self) -> None:
        rules = PodRules()
        super().__init__(rules)
        self._complete = rules.complete

    def admit(self, obj: Raw, old: Raw | None, write: Write) -> Raw:
        if write.subresource == "resize":
            return limit_ranges.set_limit_range_defaults(obj, write)
        if write.subresource:
            return obj
        if old is None:
            return apply_admission_plugins(limit_ranges.set_limit_range_defaults(obj, write), write)
        return {**obj, "spec": with_default_tolerations(_priority_kept(spec_of(obj), old["spec"]))}

    def prepare_create(self, obj: Raw, write: Write) -> Raw:
        obj = self._complete(obj)
        spec = spec_of(obj)
        status: Raw = {"phase": "Pending"}
        if spec.get("schedulingGates"):
            status["conditions"] = with_condition([], _GATED, write.now)
        status["qosClass"] = quality(spec)
        return with_metadata({**with_own_labels(obj), "status": status}, "generation", 1)

    def warnings(self, obj: Raw) -> Iterator[str]:
        complaints = label(obj["metadata"].get("name") or "")
        if complaints:
            yield (
                "metadata.name: this is used in the Pod's hostname, which can result in surprising "
                f"behavior; a DNS label is recommended: [{' '.join(complaints)}]"
            )
        yield from warnings_of("", obj)

    def prepare_update(self, obj: Raw, old: Raw, write: Write) -> Raw:
        if write.subresource == "status":
            # A status update writes the status and the metadata, but not owners and spec.
            made = with_metadata(obj, "ownerReferences", old["metadata"].get("ownerReferences"))
            status = dict(status_of(obj))
            before = status_of(old)
            for key in ("qosClass", "observedGeneration"):
                if not status.get(key) and before.get(key):
                    status[key] = before[key]
            for key in self.rules.behaviour.kept_pod_statuses:
                # An older client leaves out a field that it does not know; [] removes it.
                if status.get(key) is None and before.get(key) is not None:
                    status[key] = before[key]
            if status.get("conditions"):
                # Clients that do not send observedGeneration do not reset it.
                conditions = status["conditions"]
                known = {
                    each["type"]: each["observedGeneration"]
                    for each in reversed(get(before, "conditions", ()))
                    if each.get("observedGeneration")
                }
                status["conditions"] = [
                    each
                    if each.get("observedGeneration") or each.get("type") not in known
                    else {**each, "observedGeneration": known[each["type"]]}
                    for each in conditions
                ]
            return {**with_value(made, "spec", old.get("spec")), "status": status}
        kept = _part_update(obj, old, write.subresource)
        if kept.get("spec") == old.get("spec"):
            return kept
        return with_metadata(kept, "generation", old["metadata"].get("generation", 0) + 1)

    def change_problems(self, obj: Raw, old: Raw, write: Write) -> Sequence[FieldProblem]:
        if write.subresource == "status":
            return list(status_changes(obj, old))
        found = [*metadata(object_meta(obj), self.naming, namespaced=True), *pod_problems(obj)]
        return [*found, *_changes(obj, old, write.subresource, self.rules.behaviour)]

    def approve(self, obj: Raw, old: Raw | None, write: Write) -> None:
        if old is None or write.subresource == "resize":
            limit_ranges.check(obj, write)
        if write.subresource == "resize" and old is not None:
            subresources.check_node_capacity(obj, old, write)

    def to_storage(self, obj: Raw) -> Raw:
        """Less than no grace is as little as there is."""
        spec = spec_of(obj)
        if (spec.get("terminationGracePeriodSeconds") or 0) >= 0:
            return obj
        return {**obj, "spec": {**spec, "terminationGracePeriodSeconds": 1}}

    def fields(self, obj: Raw) -> Mapping[str, str]:
        found = {path: field_text(obj, path) for path in self.selectable_fields}
        found["spec.hostNetwork"] = found["spec.hostNetwork"] or "false"
        addresses = get(obj, "status.podIPs", ())
        found["status.podIPs"] = ",".join(each.get("ip", "") for each in addresses)
        return found

    def grace_seconds(self, obj: Raw, requested: int | None) -> int:
        """Return the grace period; 0 if no kubelet confirms the deletion."""
        spec = spec_of(obj)
        phase = get(obj, "status.phase")
        if not spec.get("nodeName") or phase in ("Failed", "Succeeded"):
            return 0
        seconds: int = (
            spec.get("terminationGracePeriodSeconds", 0) if requested is None else requested
        )
        return 1 if seconds < 0 else seconds


def _part_update(obj: Raw, old: Raw, part: str) -> Raw:
    """Return the update with the fields that it, or the subresource, can write."""
    spec = spec_of(obj)
    before = spec_of(old)
    match part:
        case "resize":
            return {**part_only(obj, old), "spec": subresources.apply_resize(spec, before)}
        case "ephemeralcontainers":
            return {
                **part_only(obj, old),
                "spec": subresources.apply_debug_containers(spec, before),
            }
        case _:
            return keep_status(obj, old)


def _changes(
    obj: Raw, old: Raw, part: str, behaviour: ValidationBehaviour
) -> Iterator[FieldProblem]:
    spec = spec_of(obj)
    before = spec_of(old)
    match part:
        case "resize":
            yield from only_of_pods(spec)
            yield from subresources.resize_problems(obj, old, behaviour)
        case "ephemeralcontainers":
            yield from only_of_pods(spec)
            yield from subresources.debugger_problems(spec, before)
        case _:
            yield from spec_changes(spec, before)


def _priority_kept(spec: Raw, old: Raw) -> Raw:
    """Return the spec with the stored priority and preemption policy if they are missing."""
    made = spec
    for key in ("priority", "preemptionPolicy"):
        if key not in made and key in old:
            made = {**made, key: old[key]}
    return made
