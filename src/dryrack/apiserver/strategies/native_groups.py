"""PodGroups, CompositePodGroups and Workloads of Kubernetes 1.37 and later."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.apiserver.answer.status import Subject, forbidden
from dryrack.apiserver.strategies.pods.admission import priority_class
from dryrack.apiserver.strategies.small_kinds import PROTECTION
from dryrack.apiserver.strategy import Strategy, keep_status
from dryrack.kinds.paths import get, spec_of
from dryrack.kinds.rules.json_edit import with_metadata
from dryrack.kinds.rules.native_groups import NativeGroupRules, NativeWorkloadRules

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.apiserver.strategy import Write
    from dryrack.kinds.raw import Raw
    from dryrack.kinds.registry import Kind
    from dryrack.kinds.validation import FieldProblem


def group_strategy(kind: Kind) -> Strategy:
    """Return the strategy of a kind of native gangs in one version."""
    if kind.kind == "Workload":
        return NativeWorkloadStrategy(kind)
    return NativeGroupStrategy(kind)


class _VersionedStrategy(Strategy):
    """A kind whose versions have the same shape; updates need a resourceVersion."""

    updates_unconditionally = False

    def __init__(self, kind: Kind, rules: NativeGroupRules | NativeWorkloadRules) -> None:
        super().__init__(rules)
        self._kind = kind
        self._native_rules = rules

    def to_storage(self, obj: Raw) -> Raw:
        return {**obj, "apiVersion": f"{self._kind.group}/{self._kind.storage_version}"}

    def from_storage(self, obj: Raw) -> Raw:
        return {**obj, "apiVersion": self._kind.api_version}

    def prepare_create(self, obj: Raw, write: Write) -> Raw:
        return self._native_rules.drop_disabled(super().prepare_create(obj, write), None)

    def prepare_update(self, obj: Raw, old: Raw, write: Write) -> Raw:
        if write.subresource == "status":
            return super().prepare_update(obj, old, write)
        new = keep_status(obj, old) if self.has_status else obj
        return self._native_rules.drop_disabled(new, old)


class NativeWorkloadStrategy(_VersionedStrategy):
    """Workloads."""

    def __init__(self, kind: Kind) -> None:
        self._rules = NativeWorkloadRules()
        super().__init__(kind, self._rules)

    def change_problems(self, obj: Raw, old: Raw, write: Write) -> Sequence[FieldProblem]:
        return tuple(self._rules.update_problems(obj, old))


class NativeGroupStrategy(_VersionedStrategy):
    """
    PodGroups and CompositePodGroups.

    Each PodGroup gets a finalizer, which a controller removes when the group has no pods.
    """

    def __init__(self, kind: Kind) -> None:
        self._rules = NativeGroupRules(is_composite=kind.kind == "CompositePodGroup")
        super().__init__(kind, self._rules)

    def admit(self, obj: Raw, old: Raw | None, write: Write) -> Raw:
        if old is not None or write.subresource:
            return obj
        obj = self._with_priority(obj, write)
        finalizers = get(obj["metadata"], "finalizers", [])
        if self._rules.is_composite or PROTECTION in finalizers:
            return obj
        return with_metadata(obj, "finalizers", [*finalizers, PROTECTION])

    def _with_priority(self, group: Raw, write: Write) -> Raw:
        """Return the group with the priority of its class, or refuse another priority."""
        spec = spec_of(group)
        name = spec.get("priorityClassName") or ""
        chosen = priority_class(name, write)
        if chosen is None:
            raise self._refusal(group, f"no PriorityClass with name {name} was found")
        what = "composite pod group" if self._rules.is_composite else "pod group"
        value = chosen.get("value", 0)
        given = spec.get("priority")
        if given is not None and given != value:
            raise self._refusal(
                group,
                f"priority set in the {what} ({given}) must match the priority computed ({value}) "
                "based on the priority class set in the spec",
            )
        spec = {**spec, "priority": value}
        if chosen:
            spec["priorityClassName"] = chosen["metadata"]["name"]
        if self._rules.features.is_on("PodGroupPreemptionPolicy"):
            policy = chosen.get("preemptionPolicy") or "PreemptLowerPriority"
            given = spec.get("preemptionPolicy")
            if given is not None and given != policy:
                raise self._refusal(
                    group,
                    f"the string value of PreemptionPolicy ({given}) must not be provided in "
                    f"{what} spec; priority admission controller computed {policy} from the given "
                    "PriorityClass name",
                )
            spec["preemptionPolicy"] = policy
        return {**group, "spec": spec}

    def _refusal(self, group: Raw, detail: str) -> Exception:
        meta = group["metadata"]
        name = meta.get("name") or meta.get("generateName") or "Unknown"
        return forbidden(Subject(self._kind.group, self._kind.plural), name, detail)

    def change_problems(self, obj: Raw, old: Raw, write: Write) -> Sequence[FieldProblem]:
        if write.subresource == "status":
            return tuple(self._rules.status_problems(obj, old))
        return tuple(self._rules.update_problems(obj, old))
