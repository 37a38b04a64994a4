"""Pod templates and selectors of workloads, and the base of their rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dryrack.kinds.decode import decode
from dryrack.kinds.meta import LabelSelector
from dryrack.kinds.paths import get, metadata_of, spec_of
from dryrack.kinds.rules import checks
from dryrack.kinds.rules.json_edit import update_at
from dryrack.kinds.rules.kind_rules import KindRules
from dryrack.kinds.rules.pods import pod_defaults as defaults
from dryrack.kinds.rules.pods.spec_problems import spec_problems
from dryrack.kinds.selectors import SelectorError, matches_labels
from dryrack.kinds.validation.meta import SUBDOMAIN
from dryrack.kinds.validation.meta import annotations as annotation_problems
from dryrack.kinds.validation.problems import forbidden, invalid, not_supported, required

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dryrack.kinds.raw import Raw
    from dryrack.kinds.validation import FieldProblem
    from dryrack.kinds.validation.meta import Naming


TEMPLATE = "spec.template"
_NO_MATCH = "`selector` does not match template `labels`"


def set_template_defaults(spec: Raw) -> Raw:
    """Return the spec of a workload with the defaults of its pod template."""
    given = get(spec, "template", {})
    template = {**given, "spec": defaults.spec(spec_of(given))}
    return {**spec, "template": template}


def labels_of(spec: Raw) -> Raw | None:
    """Return the labels of the template, or None."""
    template = get(spec, "template", {})
    return get(template, "metadata.labels") or None


def is_selector(selector: Raw | None) -> bool:
    """Return whether a selector is valid; None is."""
    try:
        selects(selector, {})
    except SelectorError:
        return False
    return True


def selects(selector: Raw | None, labels: Raw) -> bool:
    """Return whether a selector matches; None matches nothing; may raise `SelectorError`."""
    return selector is not None and matches_labels(decode(selector, LabelSelector), labels)


def mismatch(spec: Raw) -> Iterator[FieldProblem]:
    """Check that the selector matches the labels of the template."""
    labels = labels_of(spec)
    if is_selector(spec.get("selector")) and not selects(spec.get("selector"), labels or {}):
        yield invalid(f"{TEMPLATE}.metadata.labels", labels, _NO_MATCH)


def selector_needed(spec: Raw, owner: str) -> Iterator[FieldProblem]:
    """Check a required selector that is not empty."""
    selector = spec.get("selector")
    if selector is None:
        yield required("spec.selector")
        return
    yield from checks.selector_problems("spec.selector", selector)
    if not selector.get("matchLabels") and not selector.get("matchExpressions"):
        yield invalid("spec.selector", selector, f"empty selector is invalid for {owner}")


def template_problems(spec: Raw) -> Iterator[FieldProblem]:
    """Yield the problems of a pod template that hold for every workload."""
    template = get(spec, "template", {})
    yield from metadata_problems(spec)
    pod = spec_of(template)
    meta = metadata_of(template)
    yield from spec_problems(f"{TEMPLATE}.spec", pod, meta.get("annotations"))
    if pod.get("ephemeralContainers"):
        detail = "ephemeral containers not allowed in pod template"
        yield forbidden(f"{TEMPLATE}.spec.ephemeralContainers", detail)


def metadata_problems(spec: Raw) -> Iterator[FieldProblem]:
    """Check the labels and annotations of a template."""
    meta = get(spec, "template.metadata", {})
    yield from checks.labels_of(f"{TEMPLATE}.labels", meta.get("labels"))
    yield from annotation_problems(f"{TEMPLATE}.annotations", get(meta, "annotations", {}))


def endless(spec: Raw, kind: str) -> Iterator[FieldProblem]:
    """Check that the pods of a template restart and have no deadline."""
    pod = get(spec, "template.spec", {})
    policy = pod.get("restartPolicy") or ""
    if policy != "Always":
        yield not_supported(f"{TEMPLATE}.spec.restartPolicy", policy, ("Always",))
    if pod.get("activeDeadlineSeconds") is not None:
        detail = f"activeDeadlineSeconds in {kind} is not Supported"
        yield forbidden(f"{TEMPLATE}.spec.activeDeadlineSeconds", detail)


def in_spec(obj: Raw, change: Any) -> Raw:
    """Return the object with a changed spec; a missing spec counts as empty."""
    return update_at({**obj, "spec": spec_of(obj)}, "spec", change)


class WorkloadRules(KindRules):
    """The base of workload rules: `defaults` and `spec_problems` are those of a spec."""

    def __init__(self, naming: Naming = SUBDOMAIN) -> None:
        super().__init__(namespaced=True, naming=naming, has_status=True)

    def default(self, obj: Raw) -> Raw:
        return in_spec(obj, lambda spec: self.defaults(set_template_defaults(spec)))

    def defaults(self, spec: Raw) -> Raw:
        return spec

    def problems(self, obj: Raw) -> Iterable[FieldProblem]:
        return self.spec_problems(spec_of(obj))

    def spec_problems(self, spec: Raw) -> Iterator[FieldProblem]:
        yield from ()
