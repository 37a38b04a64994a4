"""Jobs and cron jobs as the server stores them: what it makes up, and what stays as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.apiserver.strategies.workloads.strategy import WorkloadStrategy, immutable_fields
from dryrack.apiserver.strategy import object_meta
from dryrack.kinds.paths import get, spec_of, status_of
from dryrack.kinds.rules.checks import changed_paths
from dryrack.kinds.rules.json_edit import null_if_empty, update_at, with_value
from dryrack.kinds.rules.workloads.cron_jobs import CronJobRules, cron_spec_problems
from dryrack.kinds.rules.workloads.jobs import JobRules, set_default_labels, with_own_pods
from dryrack.kinds.validation.meta import metadata, metadata_change
from dryrack.kinds.validation.problems import OMITTED, Token, invalid

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from dryrack.apiserver.strategy import Write
    from dryrack.kinds.raw import Raw
    from dryrack.kinds.validation import FieldProblem

_FIXED = "field is immutable"


class JobStrategy(WorkloadStrategy):
    """A deletion leaves the pods alone, unless it says otherwise: older clients count on it."""

    is_part_of_names = True
    orphans_by_default = True
    selectable_fields = ("status.successful",)
    field_refusal = 'field label "{label}" not supported for Job'

    def __init__(self) -> None:
        super().__init__(JobRules())

    def prepare_create(self, obj: Raw, write: Write) -> Raw:
        return with_own_pods(super().prepare_create(obj, write))

    def to_storage(self, obj: Raw) -> Raw:
        """Labels that the server itself gives to pods count for the job, but are not judged."""
        rules = "spec.podFailurePolicy"
        return update_at(
            set_default_labels(obj), rules, lambda policy: null_if_empty(policy, "rules")
        )

    def change_problems(self, obj: Raw, old: Raw, write: Write) -> Sequence[FieldProblem]:
        if write.subresource == "status":
            return ()
        meta = object_meta(obj)
        return [
            *metadata(meta, self.naming, namespaced=True, behaviour=self.rules.behaviour),
            *self.rules.problems(obj),
            *metadata_change(meta, object_meta(old), self.rules.behaviour),
            *JobRules().spec_problems(spec_of(obj)),
            *self.changes(obj, old),
        ]

    def changes(self, obj: Raw, old: Raw) -> Iterator[FieldProblem]:
        yield from _completions(spec_of(obj), spec_of(old))
        yield from immutable_fields(obj, old, "selector")
        # The template is immutable; until the first pod starts, its scheduling fields and
        # resources can change.
        spec = spec_of(obj)
        before = spec_of(old)
        status = status_of(old)
        template = get(spec, "template", {})
        kept = get(before, "template", {})
        at = "spec.template"
        if before.get("suspend") and not status.get("startTime"):
            at = f"{at}.spec"
            template = _without_scheduling_changes(template, kept)
            kept = spec_of(kept)
        changed = ", ".join(changed_paths(at, template, kept))
        if changed:
            yield invalid(at, OMITTED, f"{_FIXED}; changed: {changed}")
        mode = get(obj, "spec.completionMode")
        if mode != get(old, "spec.completionMode"):
            yield invalid("spec.completionMode", Token(mode or ""), "field is immutable")
        names = ("podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy")
        yield from immutable_fields(obj, old, *names)

    def fields(self, obj: Raw) -> Mapping[str, str]:
        return {"status.successful": str(status_of(obj).get("succeeded", 0))}


def _completions(spec: Raw, old: Raw) -> Iterator[FieldProblem]:
    now = spec.get("completions")
    before = old.get("completions")
    if now == before:
        return
    if spec.get("completionMode") != "Indexed":
        yield invalid("spec.completions", now, "field is immutable")
    elif now is not None and now != spec.get("parallelism"):
        detail = "can only be modified in tandem with spec.parallelism"
        yield invalid("spec.completions", now, detail)


def _without_scheduling_changes(template: Raw, old: Raw) -> Raw:
    """The spec of a template without the changes that may be."""
    pod = spec_of(template)
    before = spec_of(old)
    for key in ("nodeSelector", "tolerations", "schedulingGates"):
        pod = with_value(pod, key, before.get(key))
    affinity = with_value(get(pod, "affinity", {}), "nodeAffinity", None)
    wish = get(before, "affinity.nodeAffinity")
    pod = with_value(pod, "affinity", with_value(affinity, "nodeAffinity", wish) or None)
    for key in ("containers", "initContainers"):
        now = pod.get(key) or ()
        then = before.get(key) or ()
        if len(now) == len(then):
            pairs = zip(now, then, strict=True)
            same = [with_value(one, "resources", other.get("resources")) for one, other in pairs]
            pod = with_value(pod, key, same or None)
    return pod


class CronJobStrategy(WorkloadStrategy):
    """Any part of it may change; what a schedule said of zones may stay."""

    is_part_of_names = True
    template_path = "spec.jobTemplate.spec.template"

    def __init__(self) -> None:
        super().__init__(CronJobRules())

    def change_problems(self, obj: Raw, old: Raw, write: Write) -> Sequence[FieldProblem]:
        if write.subresource == "status":
            return ()
        return list(cron_spec_problems(spec_of(obj), spec_of(old)))
