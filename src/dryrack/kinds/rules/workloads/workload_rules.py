"""What deployments, sets and jobs have in common: a spec with a template of pods."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.kinds.paths import spec_of
from dryrack.kinds.rules.kind_rules import KindRules
from dryrack.kinds.rules.workloads.templates import completed, in_spec
from dryrack.kinds.validation.meta import SUBDOMAIN

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dryrack.kinds.raw import Raw
    from dryrack.kinds.validation import FieldProblem
    from dryrack.kinds.validation.meta import Naming


class WorkloadRules(KindRules):
    """For others to derive from: `defaults` completes a spec, `spec_problems` judges one."""

    def __init__(self, naming: Naming = SUBDOMAIN) -> None:
        super().__init__(namespaced=True, naming=naming, has_status=True)

    def default(self, obj: Raw) -> Raw:
        return in_spec(obj, lambda spec: self.defaults(completed(spec)))

    def defaults(self, spec: Raw) -> Raw:
        return spec

    def problems(self, obj: Raw) -> Sequence[FieldProblem]:
        return list(self.spec_problems(spec_of(obj)))

    def spec_problems(self, spec: Raw) -> Iterator[FieldProblem]:
        yield from ()
