"""Generations, warnings and immutable fields of deployments, sets and jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dryrack.apiserver.strategies.pods.warnings import warnings_of
from dryrack.apiserver.strategies.validated_as_new import ValidatedAsNewStrategy
from dryrack.base.numbers import read_int64
from dryrack.kinds.paths import get, spec_of
from dryrack.kinds.rules.json_edit import with_value
from dryrack.kinds.rules.workloads.replicated import (
    DeploymentRules,
    ReplicaSetRules,
    ReplicationControllerRules,
)
from dryrack.kinds.rules.workloads.sets import (
    TEMPLATE_GENERATION,
    DaemonSetRules,
    StatefulSetRules,
)
from dryrack.kinds.validation.names import label
from dryrack.kinds.validation.problems import forbidden, invalid

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dryrack.apiserver.strategy import Write
    from dryrack.kinds.raw import Raw
    from dryrack.kinds.validation import FieldProblem

# In the order in which Kubernetes 1.37 compares them.
_STATEFUL_SET_FIELDS = ("selector", "volumeClaimTemplates", "serviceName", "podManagementPolicy")
_MAY_CHANGE = (
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
)


class WorkloadStrategy(ValidatedAsNewStrategy):
    """For others to derive from."""

    counts_generations = True
    is_part_of_names = False
    """Whether pods are called after it, and people are told if that will look odd."""
    template_path = "spec.template"

    def warnings(self, obj: Raw) -> Iterator[str]:
        complaints = label(obj["metadata"].get("name") or "") if self.is_part_of_names else ()
        if complaints:
            yield (
                "metadata.name: this is used in Pod names and hostnames, which can result in "
                f"surprising behavior; a DNS label is recommended: [{' '.join(complaints)}]"
            )
        yield from self._template_warnings(obj)

    def validate_update(self, obj: Raw, old: Raw, write: Write) -> Sequence[FieldProblem]:
        found = super().validate_update(obj, old, write)
        is_same = obj["metadata"].get("generation") == old["metadata"].get("generation")
        for warning in self._template_warnings(obj) if not found and not is_same else ():
            write.warn(warning)
        return found

    def _template_warnings(self, obj: Raw) -> Iterator[str]:
        template = obj
        for key in self.template_path.split("."):
            template = template.get(key) or {}
        return warnings_of(self.template_path, template)

    def change_problems(self, obj: Raw, old: Raw, write: Write) -> Sequence[FieldProblem]:
        if write.subresource == "status":
            return ()
        return [*self.rules.problems(obj), *self.changes(obj, old)]

    def changes(self, obj: Raw, old: Raw) -> Iterator[FieldProblem]:
        yield from immutable_fields(obj, old, "selector")


def immutable_fields(obj: Raw, old: Raw, *names: str) -> Iterator[FieldProblem]:
    """Parts of the spec that stay as they are."""
    spec = spec_of(obj)
    before = spec_of(old)
    for name in names:
        if spec.get(name) != before.get(name):
            yield invalid(f"spec.{name}", spec.get(name), "field is immutable")


class ReplicaSetStrategy(WorkloadStrategy):
    """So many pods."""

    is_part_of_names = True

    def __init__(self) -> None:
        super().__init__(ReplicaSetRules())


class ReplicationControllerStrategy(WorkloadStrategy):
    """A ReplicationController, whose selector may change; a deletion leaves its pods alone."""

    is_part_of_names = True
    orphans_by_default = True

    def __init__(self) -> None:
        super().__init__(ReplicationControllerRules())

    def changes(self, obj: Raw, old: Raw) -> Iterator[FieldProblem]:
        yield from ()


class DeploymentStrategy(WorkloadStrategy):
    """So many pods, replaced by and by when their template changes."""

    is_part_of_names = True

    def __init__(self) -> None:
        super().__init__(DeploymentRules())

    def counted_part(self, obj: Raw) -> Any:
        """Annotations count: replica sets get them from their deployment."""
        return obj.get("spec"), get(obj["metadata"], "annotations", {})


class StatefulSetStrategy(WorkloadStrategy):
    """Pods in a row, each with its own volumes."""

    def __init__(self) -> None:
        super().__init__(StatefulSetRules())

    def changes(self, obj: Raw, old: Raw) -> Iterator[FieldProblem]:
        spec = spec_of(obj)
        before = spec_of(old)
        if self.rules.behaviour.names_immutable_fields_of_stateful_sets:
            for name in _STATEFUL_SET_FIELDS:
                if spec.get(name) != before.get(name):
                    yield invalid(f"spec.{name}", spec.get(name), "field is immutable")
            return
        for name in _MAY_CHANGE:
            spec = with_value(spec, name, before.get(name))
        if spec != before:
            *most, last = (f"'{name}'" for name in _MAY_CHANGE)
            detail = (
                f"updates to statefulset spec for fields other than {', '.join(most)} and {last} "
                "are forbidden"
            )
            yield forbidden("spec", detail)


class DaemonSetStrategy(WorkloadStrategy):
    """A pod on every node."""

    def __init__(self) -> None:
        super().__init__(DaemonSetRules())

    def prepare_create(self, obj: Raw, write: Write) -> Raw:
        made = super().prepare_create(obj, write)
        return _count_generation(made, max(1, _generation(made)))

    def prepare_update(self, obj: Raw, old: Raw, write: Write) -> Raw:
        made = super().prepare_update(obj, old, write)
        count = _generation(old)
        before = get(old, "spec.template")
        is_same = get(made, "spec.template") == before
        return _count_generation(made, count if is_same else count + 1)


def _generation(obj: Raw) -> int:
    text = get(obj["metadata"], "annotations", {}).get(TEMPLATE_GENERATION) or ""
    return max(0, read_int64(text) or 0)


def _count_generation(obj: Raw, count: int) -> Raw:
    meta = obj["metadata"]
    annotations = {**get(meta, "annotations", {}), TEMPLATE_GENERATION: str(count)}
    return {**obj, "metadata": {**meta, "annotations": annotations}}
