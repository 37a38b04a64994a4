"""What deployments, sets and jobs have in common: a spec that is counted, a template, a status."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.apiserver.strategies.pods.warnings import warnings_of
from dryrack.apiserver.strategies.validated_as_new import WholeStrategy
from dryrack.apiserver.strategies.workloads.templates import completed, in_spec
from dryrack.kinds.validation.names import label
from dryrack.kinds.validation.problems import invalid

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dryrack.apiserver.strategy import Write
    from dryrack.kinds.raw import Raw
    from dryrack.kinds.validation import FieldProblem
    from dryrack.kinds.validation.meta import Naming


class WorkloadStrategy(WholeStrategy):
    """For others to derive from: `defaults` completes a spec, `spec_problems` judges one."""

    counts_generations = True
    is_part_of_names = False
    """Whether pods are called after it, and people are told if that will look odd."""

    def __init__(self, naming: Naming | None = None) -> None:
        if naming is None:
            super().__init__(namespaced=True, has_status=True)
        else:
            super().__init__(namespaced=True, has_status=True, naming=naming)

    def default(self, obj: Raw, write: Write) -> Raw:
        return in_spec(obj, lambda spec: self.defaults(completed(spec)))

    def defaults(self, spec: Raw) -> Raw:
        return spec

    def validate_create(self, obj: Raw, write: Write) -> Sequence[FieldProblem]:
        found = super().validate_create(obj, write)
        if not found:
            self._warn(obj, write)
        return found

    def validate_update(self, obj: Raw, old: Raw, write: Write) -> Sequence[FieldProblem]:
        found = super().validate_update(obj, old, write)
        is_same = obj["metadata"].get("generation") == old["metadata"].get("generation")
        if not found and not is_same:
            self._warn_of_template(obj, write)
        return found

    def _warn(self, obj: Raw, write: Write) -> None:
        complaints = label(obj["metadata"].get("name") or "") if self.is_part_of_names else ()
        if complaints:
            write.warn(
                "metadata.name: this is used in Pod names and hostnames, which can result in "
                f"surprising behavior; a DNS label is recommended: [{' '.join(complaints)}]"
            )
        self._warn_of_template(obj, write)

    @staticmethod
    def _warn_of_template(obj: Raw, write: Write) -> None:
        template = (obj.get("spec") or {}).get("template") or {}
        for warning in warnings_of("spec.template", template):
            write.warn(warning)

    def problems(self, obj: Raw, write: Write) -> Sequence[FieldProblem]:
        return list(self.spec_problems(obj.get("spec") or {}))

    def spec_problems(self, spec: Raw) -> Iterator[FieldProblem]:
        yield from ()

    def change_problems(self, obj: Raw, old: Raw, write: Write) -> Sequence[FieldProblem]:
        if write.subresource == "status":
            return list(self.status_changes(obj, old))
        return [*self.problems(obj, write), *self.changes(obj, old)]

    def changes(self, obj: Raw, old: Raw) -> Iterator[FieldProblem]:
        yield from fixed(obj, old, "selector")


def fixed(obj: Raw, old: Raw, *names: str) -> Iterator[FieldProblem]:
    """Parts of the spec that stay as they are."""
    spec, before = obj.get("spec") or {}, old.get("spec") or {}
    for name in names:
        if spec.get(name) != before.get(name):
            yield invalid(f"spec.{name}", spec.get(name), "field is immutable")
