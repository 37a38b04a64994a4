"""Jobs: pods that come to an end. Which pods are theirs the server makes up from their uid."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from dryrack.apiserver.strategies.checks import (
    INT32_MAX,
    changed_paths,
    non_negative,
    selector_problems,
)
from dryrack.apiserver.strategies.copies import at, filled, forgetting, with_value
from dryrack.apiserver.strategies.workloads import job_policies
from dryrack.apiserver.strategies.workloads.strategy import WorkloadStrategy, fixed
from dryrack.apiserver.strategies.workloads.templates import (
    TEMPLATE,
    is_selector,
    labels_of,
    mismatch,
    selects,
    template_problems,
)
from dryrack.apiserver.strategy import object_meta
from dryrack.kinds.validation.meta import metadata, metadata_change
from dryrack.kinds.validation.names import checked, label, subdomain
from dryrack.kinds.validation.problems import (
    OMITTED,
    Token,
    invalid,
    not_supported,
    required,
    too_long,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from dryrack.apiserver.strategy import Write
    from dryrack.kinds.raw import Raw
    from dryrack.kinds.validation import FieldProblem

_UID, _NAME = "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name"
_OLD_UID, _OLD_NAME = "controller-uid", "job-name"
_COUNTS = (
    "parallelism",
    "completions",
    "activeDeadlineSeconds",
    "backoffLimit",
    "ttlSecondsAfterFinished",
    "backoffLimitPerIndex",
    "maxFailedIndexes",
)
_CHOICES = ("completionMode", "podReplacementPolicy")
_REPLACEMENTS = ("Failed", "TerminatingOrFailed")
_MODES = ("NonIndexed", "Indexed")
_PARALLELISM_MAX = 100_000
_FAILED_MAX = 100_000
_MANY, _OF_MANY_MAX = 100_000, 10_000
_BACKOFF_LIMIT = 6
_FIXED = "field is immutable"
_MANAGED_BY_BYTES_MAX = 63
_PATH_SYNTAX = r"Invalid path (regex used for validation is '[A-Za-z0-9/\-._~%!$&'()*+,;=:]+')"
_PATH = re.compile(r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+").fullmatch


class JobStrategy(WorkloadStrategy):
    """A deletion leaves the pods alone, unless it says otherwise: older clients count on it."""

    is_part_of_names = True
    orphans_by_default = True
    selectable_fields = ("status.successful",)
    field_refusal = 'field label "{label}" not supported for Job'

    def defaults(self, spec: Raw) -> Raw:
        made = job_policies.completed(spec)
        if spec.get("completions") is None and spec.get("parallelism") is None:
            made = {**made, "completions": 1}
        backoff = _BACKOFF_LIMIT if spec.get("backoffLimitPerIndex") is None else INT32_MAX
        replacement = "TerminatingOrFailed" if spec.get("podFailurePolicy") is None else "Failed"
        # An empty choice is a bad one, not none.
        chosen = {key: spec[key] for key in _CHOICES if spec.get(key) is not None}
        completed = filled(
            made,
            {
                "parallelism": 1,
                "backoffLimit": backoff,
                "completionMode": "NonIndexed",
                "suspend": False,
                "podReplacementPolicy": replacement,
                "manualSelector": False,
            },
        )
        return {**completed, **chosen}

    def default(self, obj: Raw, write: Write) -> Raw:
        return _labelled(super().default(obj, write))

    def prepare_create(self, obj: Raw, write: Write) -> Raw:
        made = super().prepare_create(obj, write)
        if made["spec"].get("manualSelector"):
            return made
        labels = obj["metadata"].get("labels")
        made = {**made, "spec": _selecting(made)}
        if not labels or labels != labels_of(obj["spec"]):
            return made
        meta = {**made["metadata"], "labels": labels_of(made["spec"])}
        return {**made, "metadata": meta}

    def to_storage(self, obj: Raw) -> Raw:
        """Labels that the server itself gives to pods count for the job, but are not judged."""
        rules = "spec.podFailurePolicy"
        return at(_labelled(obj), rules, lambda policy: forgetting(policy, "rules"))

    def problems(self, obj: Raw, write: Write) -> Sequence[FieldProblem]:
        spec = obj.get("spec") or {}
        return [*_own_pods(obj), *self.spec_problems(spec), *_host_names(obj, spec)]

    def spec_problems(self, spec: Raw) -> Iterator[FieldProblem]:
        yield from _numbers(spec)
        yield from job_policies.failure_problems(spec)
        yield from job_policies.success_problems(spec)
        policies = _REPLACEMENTS if spec.get("podFailurePolicy") is None else ("Failed",)
        policy = spec.get("podReplacementPolicy") or ""
        if policy not in policies:
            yield not_supported("spec.podReplacementPolicy", policy, policies)
        yield from template_problems(spec)
        yield from _restarts(spec)
        if spec.get("selector") is None:
            yield required("spec.selector")
        else:
            yield from selector_problems("spec.selector", spec["selector"])
        yield from mismatch(spec)

    def change_problems(self, obj: Raw, old: Raw, write: Write) -> Sequence[FieldProblem]:
        if write.subresource == "status":
            return []
        meta = object_meta(obj)
        return [
            *metadata(meta, self.naming, namespaced=True),
            *self.problems(obj, write),
            *metadata_change(meta, object_meta(old)),
            *self.spec_problems(obj.get("spec") or {}),
            *self.changes(obj, old),
        ]

    def changes(self, obj: Raw, old: Raw) -> Iterator[FieldProblem]:
        yield from _completions(obj.get("spec") or {}, old.get("spec") or {})
        yield from fixed(obj, old, "selector")
        yield from _template(obj.get("spec") or {}, old)
        mode = (obj.get("spec") or {}).get("completionMode")
        if mode != (old.get("spec") or {}).get("completionMode"):
            yield invalid("spec.completionMode", Token(mode or ""), "field is immutable")
        names = ("podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy")
        yield from fixed(obj, old, *names)

    def fields(self, obj: Raw) -> Mapping[str, str]:
        return {"status.successful": str((obj.get("status") or {}).get("succeeded", 0))}


def _labelled(obj: Raw) -> Raw:
    """A job without labels is labelled as its pods."""
    labels = labels_of(obj["spec"])
    if not labels or obj["metadata"].get("labels"):
        return obj
    return {**obj, "metadata": {**obj["metadata"], "labels": labels}}


def _selecting(job: Raw) -> Raw:
    """The spec with labels and a selector that no other job has."""
    spec, meta = job["spec"], job["metadata"]
    name, uid = meta.get("name") or "", meta["uid"]
    own = {_OLD_NAME: name, _NAME: name, _OLD_UID: uid, _UID: uid}
    template = spec.get("template") or {}
    inner = template.get("metadata") or {}
    labels = dict(sorted({**own, **(inner.get("labels") or {})}.items()))
    selector = spec.get("selector") or {}
    matched = {_UID: uid, **(selector.get("matchLabels") or {})}
    return {
        **spec,
        "selector": {**selector, "matchLabels": dict(sorted(matched.items()))},
        "template": {**template, "metadata": {**inner, "labels": labels}},
    }


def _own_pods(job: Raw) -> Iterator[FieldProblem]:
    """That the made-up labels are there and as they were made."""
    spec, meta = job.get("spec") or {}, job["metadata"]
    selector = spec.get("selector")
    if spec.get("manualSelector") or selector is None:
        return
    name, uid = meta.get("name") or "", meta.get("uid") or ""
    expected = {_OLD_UID: uid, _OLD_NAME: name, _UID: uid, _NAME: name}
    labels = labels_of(spec) or {}
    for key, value in expected.items():
        at = f"{TEMPLATE}.metadata.labels"
        if key not in labels:
            yield required(f"{at}[{key}]", f"must be '{value}'")
        elif labels[key] != value:
            yield invalid(f"{at}[{key}]", labels, f"must be '{value}'")
    if is_selector(selector) and not selects(selector, expected):
        yield invalid("spec.selector", selector, "`selector` not auto-generated")


def _host_names(job: Raw, spec: Raw) -> Iterator[FieldProblem]:
    """Pods with an index are called after it, to the last."""
    name, completions = job["metadata"].get("name") or "", spec.get("completions") or 0
    last = f"{name}-{completions - 1}"
    if spec.get("completionMode") == "Indexed" and completions > 0 and label(last):
        detail = f"will not able to create pod with invalid DNS label: {last}"
        yield invalid("metadata.name", name, detail)


def _managed_by(at: str, name: str) -> Iterator[FieldProblem]:
    """The controller of a job, if it is not the usual one."""
    host, slash, path = name.partition("/")
    if not name:
        yield required(at)
    elif not slash or not host or not path:
        yield invalid(at, name, 'must be a domain-prefixed path (such as "acme.io/foo")')
    else:
        yield from checked(at, host, subdomain)
        if not _PATH(path):
            yield invalid(at, path, _PATH_SYNTAX)
    if len(name) > _MANAGED_BY_BYTES_MAX:
        yield too_long(at, _MANAGED_BY_BYTES_MAX)


def _numbers(spec: Raw) -> Iterator[FieldProblem]:
    for key in _COUNTS:
        yield from non_negative(f"spec.{key}", spec.get(key))
    if spec.get("maxFailedIndexes") is not None and spec.get("backoffLimitPerIndex") is None:
        yield required("spec.backoffLimitPerIndex", "when maxFailedIndexes is specified")
    if spec.get("managedBy") is not None:
        yield from _managed_by("spec.managedBy", spec["managedBy"])
    mode = spec.get("completionMode") or ""
    if mode not in _MODES:
        yield not_supported("spec.completionMode", mode, _MODES)
    if mode == "Indexed":
        yield from _indexed(spec)
    elif mode == "NonIndexed":
        yield from _not_indexed(spec)


def _indexed(spec: Raw) -> Iterator[FieldProblem]:
    completions, parallelism = spec.get("completions"), spec.get("parallelism")
    if completions is None:
        yield required("spec.completions", "when completion mode is Indexed")
    if parallelism is not None and parallelism > _PARALLELISM_MAX:
        detail = f"must be less than or equal to {_PARALLELISM_MAX} when completion mode is Indexed"
        yield invalid("spec.parallelism", parallelism, detail)
    failed = spec.get("maxFailedIndexes")
    if failed is not None and completions is not None and failed > completions:
        detail = "must be less than or equal to completions"
        yield invalid("spec.maxFailedIndexes", failed, detail)
    if failed is not None and failed > _FAILED_MAX:
        yield invalid(
            "spec.maxFailedIndexes", failed, f"must be less than or equal to {_FAILED_MAX}"
        )
    if (completions or 0) > _MANY and spec.get("backoffLimitPerIndex") is not None:
        yield from _of_many(spec)


def _of_many(spec: Raw) -> Iterator[FieldProblem]:
    """What keeps the lists of indexes in a status short."""
    if spec.get("maxFailedIndexes") is None:
        detail = f"must be specified when completions is above {_MANY}"
        yield required("spec.maxFailedIndexes", detail)
    for key in ("parallelism", "maxFailedIndexes"):
        value = spec.get(key)
        if value is not None and value > _OF_MANY_MAX:
            detail = (
                f"must be less than or equal to {_OF_MANY_MAX} when completions are above {_MANY} "
                "and used with backoff limit per index"
            )
            yield invalid(f"spec.{key}", value, detail)


def _not_indexed(spec: Raw) -> Iterator[FieldProblem]:
    for key in ("backoffLimitPerIndex", "maxFailedIndexes"):
        if spec.get(key) is not None:
            yield invalid(f"spec.{key}", spec[key], "requires indexed completion mode")


def _restarts(spec: Raw) -> Iterator[FieldProblem]:
    policy = ((spec.get("template") or {}).get("spec") or {}).get("restartPolicy") or ""
    at = f"{TEMPLATE}.spec.restartPolicy"
    if policy in ("", "Always"):
        yield required(at, 'valid values: "OnFailure", "Never"')
    elif policy not in ("OnFailure", "Never"):
        yield not_supported(at, policy, ("OnFailure", "Never"))
    elif spec.get("podFailurePolicy") is not None and policy != "Never":
        detail = 'only "Never" is supported when podFailurePolicy is specified'
        yield invalid(at, Token(policy), detail)


def _completions(spec: Raw, old: Raw) -> Iterator[FieldProblem]:
    now, before = spec.get("completions"), old.get("completions")
    if now == before:
        return
    if spec.get("completionMode") != "Indexed":
        yield invalid("spec.completions", now, "field is immutable")
    elif now is not None and now != spec.get("parallelism"):
        detail = "can only be modified in tandem with spec.parallelism"
        yield invalid("spec.completions", now, detail)


def _template(spec: Raw, old: Raw) -> Iterator[FieldProblem]:
    """Fixed, but for where pods go and what they take as long as none has started."""
    before, status = old.get("spec") or {}, old.get("status") or {}
    template, kept = spec.get("template") or {}, before.get("template") or {}
    at = "spec.template"
    if before.get("suspend") and not status.get("startTime"):
        at, template, kept = f"{at}.spec", _unmoved(template, kept), kept.get("spec") or {}
    changed = ", ".join(changed_paths(at, template, kept))
    if changed:
        yield invalid(at, OMITTED, f"{_FIXED}; changed: {changed}")


def _unmoved(template: Raw, old: Raw) -> Raw:
    """The spec of a template without the changes that may be."""
    pod, before = template.get("spec") or {}, old.get("spec") or {}
    for key in ("nodeSelector", "tolerations", "schedulingGates"):
        pod = with_value(pod, key, before.get(key))
    affinity = with_value(pod.get("affinity") or {}, "nodeAffinity", None)
    wish = (before.get("affinity") or {}).get("nodeAffinity")
    pod = with_value(pod, "affinity", with_value(affinity, "nodeAffinity", wish) or None)
    for key in ("containers", "initContainers"):
        now, then = pod.get(key) or (), before.get(key) or ()
        if len(now) == len(then):
            pairs = zip(now, then, strict=True)
            same = [with_value(one, "resources", other.get("resources")) for one, other in pairs]
            pod = with_value(pod, key, same or None)
    return pod
