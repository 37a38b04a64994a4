"""Pods by themselves: their defaults, and what is wrong with a new one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.kinds.paths import get, spec_of
from dryrack.kinds.rules.json_edit import update_at
from dryrack.kinds.rules.kind_rules import KindRules
from dryrack.kinds.rules.pods import pod_defaults, resource_amounts
from dryrack.kinds.rules.pods.containers import image_spaces
from dryrack.kinds.rules.pods.match_label_keys import following
from dryrack.kinds.rules.pods.spec_problems import spec_problems
from dryrack.kinds.validation.problems import forbidden

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dryrack.kinds.raw import Raw
    from dryrack.kinds.validation import FieldProblem


class PodRules(KindRules):
    """A pod that is not there yet."""

    def __init__(self) -> None:
        super().__init__(namespaced=True, has_status=True)

    def default(self, obj: Raw) -> Raw:
        return pod_defaults.pod(obj)

    def as_new(self, obj: Raw) -> Raw:
        return with_own_labels(super().as_new(obj))

    def problems(self, obj: Raw) -> Sequence[FieldProblem]:
        spec = spec_of(obj)
        return [*pod_problems(obj), *only_of_pods(spec), *_only_new(spec)]


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
    return {**pod, "spec": following(spec_of(pod), labels)}


def pod_problems(pod: Raw) -> Iterator[FieldProblem]:
    """Yield what is wrong with the spec of a pod, new or existing."""
    annotations = get(pod, "metadata.annotations", {})
    return spec_problems("spec", spec_of(pod), annotations)


def only_of_pods(spec: Raw) -> Iterator[FieldProblem]:
    """What templates are forgiven."""
    for key in ("containers", "initContainers"):
        for position, container in enumerate(spec.get(key) or ()):
            yield from image_spaces(f"spec.{key}[{position}]", container)


def _only_new(spec: Raw) -> Iterator[FieldProblem]:
    if spec.get("ephemeralContainers"):
        yield forbidden("spec.ephemeralContainers", "cannot be set on create")
    if spec.get("nodeName") and spec.get("schedulingGates"):
        detail = "cannot be set until all schedulingGates have been cleared"
        yield forbidden("spec.nodeName", detail)
