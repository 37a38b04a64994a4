"""Validating admission policies and their bindings, as objects; `apiserver.policies` enforces."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.apiserver.policies.compiled_policy import PolicyCompiler
from dryrack.apiserver.policies.policy_problems import binding_problems, policy_problems
from dryrack.apiserver.strategies.copies import at, completed
from dryrack.apiserver.strategies.extension.webhooks import with_matches
from dryrack.apiserver.strategies.validated_as_new import WholeStrategy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.apiserver.strategy import Write
    from dryrack.kinds.raw import Raw
    from dryrack.kinds.validation import FieldProblem


class PolicyStrategy(WholeStrategy):
    """
    A policy is refused if an expression does not compile.

    What a controller would note in its status is noted at once: which generation was looked at.
    """

    counts_generations = True

    def __init__(self) -> None:
        super().__init__(namespaced=False, has_status=True)

    def default(self, obj: Raw, write: Write) -> Raw:
        made = at(obj, "spec", lambda spec: completed(spec, {"failurePolicy": "Fail"}))
        return at(made, "spec.matchConstraints", with_matches)

    def prepare_create(self, obj: Raw, write: Write) -> Raw:
        return _observed(super().prepare_create(obj, write))

    def prepare_update(self, obj: Raw, old: Raw, write: Write) -> Raw:
        made = super().prepare_update(obj, old, write)
        return made if write.subresource else _observed(made)

    def problems(self, obj: Raw, write: Write) -> Sequence[FieldProblem]:
        spec = obj.get("spec") or {}
        compiler = PolicyCompiler(spec, obj["metadata"].get("name") or "")
        compiler.compile()
        return [*policy_problems(spec), *compiler.problems]


def _observed(obj: Raw) -> Raw:
    status = obj.get("status") or {}
    generation = obj["metadata"].get("generation") or 0
    return {
        **obj,
        "status": {"typeChecking": {}, **status, "observedGeneration": generation},
    }


class PolicyBindingStrategy(WholeStrategy):
    """Says where a policy holds; the policy may come later."""

    counts_generations = True

    def __init__(self) -> None:
        super().__init__(namespaced=False)

    def default(self, obj: Raw, write: Write) -> Raw:
        return at(obj, "spec.matchResources", with_matches)

    def problems(self, obj: Raw, write: Write) -> Sequence[FieldProblem]:
        return list(binding_problems(obj.get("spec") or {}))
