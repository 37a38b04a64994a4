"""Jobs; the server generates the selector from the uid of the job."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from dryrack.kinds.paths import get, metadata_of, spec_of
from dryrack.kinds.rules.checks import (
    INT32_MAX,
    non_negative,
    selector_problems,
)
from dryrack.kinds.rules.json_edit import set_defaults
from dryrack.kinds.rules.workloads import job_policies
from dryrack.kinds.rules.workloads.templates import (
    TEMPLATE,
    WorkloadRules,
    is_selector,
    labels_of,
    mismatch,
    selects,
    template_problems,
)
from dryrack.kinds.validation.names import checked, label, subdomain
from dryrack.kinds.validation.problems import (
    Token,
    invalid,
    not_supported,
    required,
    too_long,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dryrack.kinds.raw import Raw
    from dryrack.kinds.validation import FieldProblem

_UID = "batch.kubernetes.io/controller-uid"
_NAME = "batch.kubernetes.io/job-name"
_OLD_UID = "controller-uid"
_OLD_NAME = "job-name"
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
_MANY = 100_000
_OF_MANY_MAX = 10_000
_BACKOFF_LIMIT = 6
_MANAGED_BY_BYTES_MAX = 63
_PATH_SYNTAX = r"Invalid path (regex used for validation is '[A-Za-z0-9/\-._~%!$&'()*+,;=:]+')"
_PATH = re.compile(r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+").fullmatch


class JobRules(WorkloadRules):
    """Job."""

    def defaults(self, spec: Raw) -> Raw:
        made = job_policies.set_defaults_of_failure_policy(spec)
        if spec.get("completions") is None and spec.get("parallelism") is None:
            made = {**made, "completions": 1}
        backoff = _BACKOFF_LIMIT if spec.get("backoffLimitPerIndex") is None else INT32_MAX
        replacement = "TerminatingOrFailed" if spec.get("podFailurePolicy") is None else "Failed"
        # An empty choice is invalid, and gets no default.
        chosen = {key: spec[key] for key in _CHOICES if spec.get(key) is not None}
        completed = set_defaults(
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

    def default(self, obj: Raw) -> Raw:
        return set_default_labels(super().default(obj))

    def as_new(self, obj: Raw) -> Raw:
        return with_own_pods(super().as_new(obj))

    def problems(self, obj: Raw) -> Sequence[FieldProblem]:
        spec = spec_of(obj)
        return [*_own_pods(obj), *self.spec_problems(spec), *_host_names(obj, spec)]

    def spec_problems(self, spec: Raw) -> Iterator[FieldProblem]:
        yield from own_spec_problems(spec)
        if spec.get("selector") is None:
            yield required("spec.selector")
        else:
            yield from selector_problems("spec.selector", spec["selector"])
        yield from mismatch(spec)


def own_spec_problems(spec: Raw) -> Iterator[FieldProblem]:
    """Yield all problems but those of the selector, which the template of a cron job lacks."""
    yield from _numbers(spec)
    yield from job_policies.failure_problems(spec)
    yield from job_policies.success_problems(spec)
    policies = _REPLACEMENTS if spec.get("podFailurePolicy") is None else ("Failed",)
    policy = spec.get("podReplacementPolicy") or ""
    if policy not in policies:
        yield not_supported("spec.podReplacementPolicy", policy, policies)
    yield from template_problems(spec)
    yield from _restarts(spec)


def with_own_pods(job: Raw) -> Raw:
    """Return a new job with generated labels and selector."""
    if job["spec"].get("manualSelector"):
        return job
    labels = job["metadata"].get("labels")
    made = {**job, "spec": _with_selector(job)}
    if not labels or labels != labels_of(job["spec"]):
        return made
    return {**made, "metadata": {**job["metadata"], "labels": labels_of(made["spec"])}}


def set_default_labels(obj: Raw) -> Raw:
    """Return the job; without labels, it gets those of its pod template."""
    labels = labels_of(obj["spec"])
    if not labels or obj["metadata"].get("labels"):
        return obj
    return {**obj, "metadata": {**obj["metadata"], "labels": labels}}


def _with_selector(job: Raw) -> Raw:
    """Return the spec with generated labels and a selector, which no other job has."""
    spec = job["spec"]
    meta = job["metadata"]
    name = meta.get("name") or ""
    uid = meta["uid"]
    own = {_OLD_NAME: name, _NAME: name, _OLD_UID: uid, _UID: uid}
    template = get(spec, "template", {})
    inner = metadata_of(template)
    labels = dict(sorted({**own, **get(inner, "labels", {})}.items()))
    selector = get(spec, "selector", {})
    matched = {_UID: uid, **get(selector, "matchLabels", {})}
    return {
        **spec,
        "selector": {**selector, "matchLabels": dict(sorted(matched.items()))},
        "template": {**template, "metadata": {**inner, "labels": labels}},
    }


def _own_pods(job: Raw) -> Iterator[FieldProblem]:
    """Check that the generated labels are present and unchanged."""
    spec = spec_of(job)
    meta = job["metadata"]
    selector = spec.get("selector")
    if spec.get("manualSelector") or selector is None:
        return
    name = meta.get("name") or ""
    uid = meta.get("uid") or ""
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
    """Check that the name of the last indexed pod is a valid host name."""
    name = job["metadata"].get("name") or ""
    completions = spec.get("completions") or 0
    last = f"{name}-{completions - 1}"
    if spec.get("completionMode") == "Indexed" and completions > 0 and label(last):
        detail = f"will not able to create pod with invalid DNS label: {last}"
        yield invalid("metadata.name", name, detail)


def _numbers(spec: Raw) -> Iterator[FieldProblem]:
    for key in _COUNTS:
        yield from non_negative(f"spec.{key}", spec.get(key))
    if spec.get("maxFailedIndexes") is not None and spec.get("backoffLimitPerIndex") is None:
        yield required("spec.backoffLimitPerIndex", "when maxFailedIndexes is specified")
    if spec.get("managedBy") is not None:
        name = spec["managedBy"]
        host, slash, path = name.partition("/")
        if not name:
            yield required("spec.managedBy")
        elif not slash or not host or not path:
            yield invalid(
                "spec.managedBy", name, 'must be a domain-prefixed path (such as "acme.io/foo")'
            )
        else:
            yield from checked("spec.managedBy", host, subdomain)
            if not _PATH(path):
                yield invalid("spec.managedBy", path, _PATH_SYNTAX)
        if len(name) > _MANAGED_BY_BYTES_MAX:
            yield too_long("spec.managedBy", _MANAGED_BY_BYTES_MAX)
    mode = spec.get("completionMode") or ""
    if mode not in _MODES:
        yield not_supported("spec.completionMode", mode, _MODES)
    if mode == "Indexed":
        yield from _indexed_problems(spec)
    elif mode == "NonIndexed":
        for key in ("backoffLimitPerIndex", "maxFailedIndexes"):
            if spec.get(key) is not None:
                yield invalid(f"spec.{key}", spec[key], "requires indexed completion mode")


def _indexed_problems(spec: Raw) -> Iterator[FieldProblem]:
    completions = spec.get("completions")
    parallelism = spec.get("parallelism")
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
    if (completions or 0) <= _MANY or spec.get("backoffLimitPerIndex") is None:
        return
    # These limits keep the lists of indexes in a status short.
    if failed is None:
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


def _restarts(spec: Raw) -> Iterator[FieldProblem]:
    policy = get(spec, "template.spec.restartPolicy") or ""
    at = f"{TEMPLATE}.spec.restartPolicy"
    if policy in ("", "Always"):
        yield required(at, 'valid values: "OnFailure", "Never"')
    elif policy not in ("OnFailure", "Never"):
        yield not_supported(at, policy, ("OnFailure", "Never"))
    elif spec.get("podFailurePolicy") is not None and policy != "Never":
        detail = 'only "Never" is supported when podFailurePolicy is specified'
        yield invalid(at, Token(policy), detail)
