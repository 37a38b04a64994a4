"""Defaults and validation of pods."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.kinds.paths import get, spec_of
from dryrack.kinds.rules.json_edit import map_items, update_at
from dryrack.kinds.rules.kind_rules import KindRules
from dryrack.kinds.rules.pods import pod_defaults, resource_amounts
from dryrack.kinds.rules.pods.containers import image_spaces
from dryrack.kinds.rules.pods.spec_problems import spec_problems
from dryrack.kinds.validation.problems import forbidden

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dryrack.kinds.raw import Raw
    from dryrack.kinds.validation import FieldProblem


_TERMS = "requiredDuringSchedulingIgnoredDuringExecution"
_WISHES = "preferredDuringSchedulingIgnoredDuringExecution"
_KEYS = (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn"))


class PodRules(KindRules):
    """Pod."""

    def __init__(self) -> None:
        super().__init__(namespaced=True, has_status=True)

    def default(self, obj: Raw) -> Raw:
        made = pod_defaults.pod(obj)
        return made if self.behaviour.completes_pods_at_creation else _complete_requests(made)

    def as_new(self, obj: Raw) -> Raw:
        return self.complete(with_own_labels(super().as_new(obj)))

    def complete(self, obj: Raw) -> Raw:
        """Return a new pod with the requests of the pod, which has its defaults."""
        return _complete_requests(obj) if self.behaviour.completes_pods_at_creation else obj

    def problems(self, obj: Raw) -> Sequence[FieldProblem]:
        spec = spec_of(obj)
        return [*pod_problems(obj), *only_of_pods(spec), *_only_new(spec)]


def _complete_requests(pod: Raw) -> Raw:
    return update_at(pod, "spec", pod_defaults.with_requests_of_pod)


def as_stored(pod: Raw) -> Raw:
    """Return a pod with selectors that follow its labels, and with a request for each limit."""
    made = with_own_labels(pod) if "metadata" in pod else pod
    return update_at(made, "spec", pod_defaults.with_requests)


def resource_problems(spec: Raw) -> Iterator[FieldProblem]:
    """Yield what is wrong with the requests and limits of a pod and of its containers."""
    for key in ("initContainers", "containers"):
        for number, container in enumerate(spec.get(key) or ()):
            given = get(container, "resources", {})
            yield from resource_amounts.of_container(f"spec.{key}[{number}].resources", given)
    yield from resource_amounts.of_pod("spec.resources", spec)


def with_own_labels(pod: Raw) -> Raw:
    """Return a new pod with `matchLabelKeys` merged into its selectors."""
    labels = get(pod, "metadata.labels", {})
    return {**pod, "spec": merge_label_keys(spec_of(pod), labels)}


def pod_problems(pod: Raw) -> Iterator[FieldProblem]:
    """Yield what is wrong with the spec of a pod, new or existing."""
    annotations = get(pod, "metadata.annotations", {})
    return spec_problems("spec", spec_of(pod), annotations)


def only_of_pods(spec: Raw) -> Iterator[FieldProblem]:
    """Check the rules that templates may break."""
    for key in ("containers", "initContainers"):
        for position, container in enumerate(spec.get(key) or ()):
            yield from image_spaces(f"spec.{key}[{position}]", container)


def _only_new(spec: Raw) -> Iterator[FieldProblem]:
    if spec.get("ephemeralContainers"):
        yield forbidden("spec.ephemeralContainers", "cannot be set on create")
    if spec.get("nodeName") and spec.get("schedulingGates"):
        detail = "cannot be set until all schedulingGates have been cleared"
        yield forbidden("spec.nodeName", detail)


def merge_label_keys(spec: Raw, labels: Raw) -> Raw:
    """
    Return the spec of a new pod with match label keys merged into its selectors.

    The values of these labels of the pod become requirements of the label selectors beside them.
    """

    def term(given: Raw) -> Raw:
        return update_at(
            given, "labelSelector", lambda selector: _add_requirements(selector, given, labels)
        )

    def terms(affinity: Raw) -> Raw:
        affinity = map_items(affinity, _TERMS, term)
        return map_items(affinity, _WISHES, lambda wish: update_at(wish, "podAffinityTerm", term))

    def affinity(given: Raw) -> Raw:
        return update_at(update_at(given, "podAffinity", terms), "podAntiAffinity", terms)

    return update_at(map_items(spec, "topologySpreadConstraints", term), "affinity", affinity)


def _add_requirements(selector: Raw, term: Raw, labels: Raw) -> Raw:
    added = [
        {"key": key, "operator": operator, "values": [labels[key]]}
        for name, operator in _KEYS
        for key in term.get(name) or ()
        if key in labels
    ]
    if not added:
        return selector
    return {**selector, "matchExpressions": [*get(selector, "matchExpressions", ()), *added]}
