"""Templates of pods, and the selectors by which a workload knows its pods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dryrack.kinds.decode import decode
from dryrack.kinds.meta import LabelSelector
from dryrack.kinds.paths import get, metadata_of, spec_of
from dryrack.kinds.rules import checks
from dryrack.kinds.rules.json_edit import update_at
from dryrack.kinds.rules.pods import pod_defaults as defaults
from dryrack.kinds.rules.pods.spec_problems import spec_problems
from dryrack.kinds.selectors import SelectorError, matches_labels
from dryrack.kinds.validation.meta import annotations as annotation_problems
from dryrack.kinds.validation.problems import forbidden, invalid, not_supported, required

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dryrack.kinds.raw import Raw
    from dryrack.kinds.validation import FieldProblem

TEMPLATE = "spec.template"
_NO_MATCH = "`selector` does not match template `labels`"


def completed(spec: Raw) -> Raw:
    """The spec of a workload with its template completed."""
    given = get(spec, "template", {})
    template = {**given, "spec": defaults.spec(spec_of(given))}
    return {**spec, "template": template}


def labels_of(spec: Raw) -> Raw | None:
    """Those of the template; None if there are none."""
    template = get(spec, "template", {})
    return get(template, "metadata.labels") or None


def is_selector(selector: Raw | None) -> bool:
    """Whether a selector makes sense; none does."""
    try:
        selects(selector, {})
    except SelectorError:
        return False
    return True


def selects(selector: Raw | None, labels: Raw) -> bool:
    """No selector selects nothing; raises `SelectorError`."""
    return selector is not None and matches_labels(decode(selector, LabelSelector), labels)


def mismatch(spec: Raw) -> Iterator[FieldProblem]:
    """A workload has to know its own pods."""
    labels = labels_of(spec)
    if is_selector(spec.get("selector")) and not selects(spec.get("selector"), labels or {}):
        yield invalid(f"{TEMPLATE}.metadata.labels", labels, _NO_MATCH)


def selector_needed(spec: Raw, owner: str) -> Iterator[FieldProblem]:
    """A selector that is there and selects something in particular."""
    selector = spec.get("selector")
    if selector is None:
        yield required("spec.selector")
        return
    yield from checks.selector_problems("spec.selector", selector)
    if not selector.get("matchLabels") and not selector.get("matchExpressions"):
        yield invalid("spec.selector", selector, f"empty selector is invalid for {owner}")


def template_problems(spec: Raw) -> Iterator[FieldProblem]:
    """What is wrong with a template of any workload."""
    template = get(spec, "template", {})
    yield from metadata_problems(spec)
    pod = spec_of(template)
    meta = metadata_of(template)
    yield from spec_problems(f"{TEMPLATE}.spec", pod, meta.get("annotations"))
    if pod.get("ephemeralContainers"):
        detail = "ephemeral containers not allowed in pod template"
        yield forbidden(f"{TEMPLATE}.spec.ephemeralContainers", detail)


def metadata_problems(spec: Raw) -> Iterator[FieldProblem]:
    """Labels and annotations that the pods of a template cannot have."""
    meta = get(spec, "template.metadata", {})
    yield from checks.labels_of(f"{TEMPLATE}.labels", meta.get("labels"))
    yield from annotation_problems(f"{TEMPLATE}.annotations", get(meta, "annotations", {}))


def endless(spec: Raw, kind: str) -> Iterator[FieldProblem]:
    """Pods that are meant to run on and on."""
    pod = get(spec, "template.spec", {})
    policy = pod.get("restartPolicy") or ""
    if policy != "Always":
        yield not_supported(f"{TEMPLATE}.spec.restartPolicy", policy, ("Always",))
    if pod.get("activeDeadlineSeconds") is not None:
        detail = f"activeDeadlineSeconds in {kind} is not Supported"
        yield forbidden(f"{TEMPLATE}.spec.activeDeadlineSeconds", detail)


def in_spec(obj: Raw, change: Any) -> Raw:
    """With the spec changed, also if there is none to begin with."""
    return update_at({**obj, "spec": spec_of(obj)}, "spec", change)
