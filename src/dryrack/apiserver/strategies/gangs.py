"""
PodGroups and Workloads.

Each PodGroup gets a finalizer, which a controller removes when the group has no pods.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.apiserver.strategy import Strategy
from dryrack.kinds.paths import get, spec_of
from dryrack.kinds.rules.gangs import PodGroupRules, WorkloadObjectRules
from dryrack.kinds.rules.json_edit import with_metadata
from dryrack.kinds.validation.problems import invalid

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.apiserver.strategy import Write
    from dryrack.kinds.raw import Raw
    from dryrack.kinds.validation import FieldProblem


PROTECTION = "scheduling.k8s.io/podgroup-protection"
_FIXED = "field is immutable"


class PodGroupStrategy(Strategy):
    """PodGroups. The spec cannot change."""

    def __init__(self) -> None:
        super().__init__(PodGroupRules())

    def admit(self, obj: Raw, old: Raw | None, write: Write) -> Raw:
        finalizers = get(obj["metadata"], "finalizers", [])
        if old is not None or PROTECTION in finalizers:
            return obj
        return with_metadata(obj, "finalizers", [*finalizers, PROTECTION])

    def change_problems(self, obj: Raw, old: Raw, write: Write) -> Sequence[FieldProblem]:
        if write.subresource == "status":
            return ()
        spec = spec_of(obj)
        before = spec_of(old)
        names = sorted({*spec, *before})
        return [
            invalid(f"spec.{name}", None, _FIXED)
            for name in names
            if spec.get(name) != before.get(name)
        ]


class WorkloadObjectStrategy(Strategy):
    """Workloads. Their controller and templates cannot change."""

    def __init__(self) -> None:
        super().__init__(WorkloadObjectRules())

    def change_problems(self, obj: Raw, old: Raw, write: Write) -> Sequence[FieldProblem]:
        spec = spec_of(obj)
        before = spec_of(old)
        return [
            invalid(f"spec.{name}", None, _FIXED)
            for name in ("controllerRef", "podGroupTemplates")
            if spec.get(name) != before.get(name)
        ]
