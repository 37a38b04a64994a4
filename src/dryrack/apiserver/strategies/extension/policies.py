"""Admission policies and their bindings, as objects; `apiserver.policies` applies them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.apiserver.strategies.validated_as_new import ValidatedAsNewStrategy
from dryrack.extension.policies import (
    MutatingPolicyBindingRules,
    MutatingPolicyRules,
    PolicyBindingRules,
    PolicyRules,
)
from dryrack.kinds.paths import status_of

if TYPE_CHECKING:
    from dryrack.apiserver.strategy import Write
    from dryrack.kinds.raw import Raw


class PolicyStrategy(ValidatedAsNewStrategy):
    """Set status.observedGeneration at once, as a controller of a real cluster does later."""

    counts_generations = True

    def __init__(self) -> None:
        super().__init__(PolicyRules())

    def prepare_create(self, obj: Raw, write: Write) -> Raw:
        return _with_observed_generation(super().prepare_create(obj, write))

    def prepare_update(self, obj: Raw, old: Raw, write: Write) -> Raw:
        made = super().prepare_update(obj, old, write)
        return made if write.subresource else _with_observed_generation(made)


def _with_observed_generation(obj: Raw) -> Raw:
    status = status_of(obj)
    generation = obj["metadata"].get("generation") or 0
    return {
        **obj,
        "status": {"typeChecking": {}, **status, "observedGeneration": generation},
    }


class PolicyBindingStrategy(ValidatedAsNewStrategy):
    """Says where a policy holds; the policy may come later."""

    counts_generations = True

    def __init__(self) -> None:
        super().__init__(PolicyBindingRules())


class MutatingPolicyStrategy(ValidatedAsNewStrategy):
    """The strategy of MutatingAdmissionPolicies."""

    counts_generations = True

    def __init__(self) -> None:
        super().__init__(MutatingPolicyRules())


class MutatingPolicyBindingStrategy(ValidatedAsNewStrategy):
    """The strategy of MutatingAdmissionPolicyBindings; the policy may come later."""

    counts_generations = True

    def __init__(self) -> None:
        super().__init__(MutatingPolicyBindingRules())
