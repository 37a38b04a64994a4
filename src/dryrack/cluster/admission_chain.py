"""
The admission chain: checks of valid objects against policies, webhooks and quotas.

Each part is loaded when it is first needed: with the first policy that is bound, the first webhook
that is registered, the first quota.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from dryrack.kinds.registry import KINDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from dryrack.apiserver import (
        Approval,
        Authorization,
        DeletionApproval,
        Mutation,
        PolicyAdmission,
        PolicyMutation,
        Registry,
        Resource,
        SchemaSource,
        Shapes,
        Unanswered,
        WebhookAdmission,
        WebhookRequest,
        Write,
        Writer,
    )
    from dryrack.base.ports import Chance
    from dryrack.kinds.raw import Raw
    from dryrack.store import Store

T = TypeVar("T")

# Pod security judges pods, what creates them, and the labels of namespaces.
_SECURED = frozenset(
    kind.storage for kind in KINDS if kind.pod_template or kind.storage in ("namespaces", "pods")
)

_POLICY_BINDINGS = "validatingadmissionpolicybindings.admissionregistration.k8s.io"


@dataclass(frozen=True)
class AdmissionPolicies:
    """Validating admission policies, loaded when the first one is bound."""

    registry: Registry
    store: Store
    authorization: Authorization

    @cached_property
    def _admission(self) -> PolicyAdmission:
        from dryrack.apiserver import PolicyAdmission

        return PolicyAdmission(self.registry, self.authorization)

    def are_bound(self) -> bool:
        return self.store.count(_POLICY_BINDINGS) > 0

    def check(self, resource: Resource, new: Raw | None, *, old: Raw | None, write: Write) -> None:
        if not self.are_bound():
            return
        from dryrack.apiserver import Attempt

        self._admission.check(Attempt(resource, new, old, write))


_MUTATING_BINDINGS = "mutatingadmissionpolicybindings.admissionregistration.k8s.io"


@dataclass(frozen=True)
class MutatingPolicies:
    """Mutating admission policies, loaded when the first one is bound."""

    registry: Registry
    store: Store
    authorization: Authorization
    shapes: Shapes
    schemas: Callable[[], SchemaSource]

    @cached_property
    def mutation(self) -> PolicyMutation:
        from dryrack.apiserver import PolicyMutation

        return PolicyMutation(self.registry, self.authorization, self.shapes, self.schemas())

    def are_bound(self) -> bool:
        return self.store.count(_MUTATING_BINDINGS) > 0


_WEBHOOKS = (
    "mutatingwebhookconfigurations.admissionregistration.k8s.io",
    "validatingwebhookconfigurations.admissionregistration.k8s.io",
)


@dataclass(frozen=True)
class AdmissionWebhooks:
    """Admission webhooks, loaded when the first one is registered."""

    registry: Registry
    store: Store
    authorization: Authorization
    shapes: Shapes
    chance: Chance

    @cached_property
    def _admission(self) -> WebhookAdmission:
        from dryrack.apiserver import WebhookAdmission

        return WebhookAdmission(self.registry, self.authorization, self.shapes)

    def are_there(self) -> bool:
        return any(map(self.store.count, _WEBHOOKS))

    async def ask(self, question: WebhookRequest[T]) -> T | Unanswered:
        from dryrack.apiserver import ask_webhook

        return await ask_webhook(question, self.chance.uuid())

    def mutate(self, resource: Resource, new: Raw, *, old: Raw | None, write: Write) -> Raw:
        if write.reviews is None:
            return new
        from dryrack.apiserver import Attempt

        changed = self._admission.mutate(Attempt(resource, new, old, write))
        assert changed is not None, "nothing is deleted"
        return changed

    def validate(self, resource: Resource, new: Raw, *, old: Raw | None, write: Write) -> None:
        if write.reviews is not None:
            from dryrack.apiserver import Attempt

            self._admission.validate(Attempt(resource, new, old, write))

    def check_deletion(self, resource: Resource, old: Raw, write: Write) -> None:
        if write.reviews is not None:
            from dryrack.apiserver import Attempt

            attempt = Attempt(resource, None, old, write)
            self._admission.mutate(attempt)
            self._admission.validate(attempt)


@dataclass(frozen=True)
class PostedAdmission:
    """Checks requests to subresources with webhooks and admission policies."""

    policies: AdmissionPolicies
    webhooks: AdmissionWebhooks
    mutating: MutatingPolicies

    def is_needed(self) -> bool:
        bound = self.policies.are_bound() or self.mutating.are_bound()
        return bound or self.webhooks.are_there()

    def admit(self, resource: Resource, posted: Raw, write: Write) -> Raw:
        made = mutation(self.mutating, self.webhooks)(resource, posted, old=None, write=write)
        self.policies.check(resource, made, old=None, write=write)
        self.webhooks.validate(resource, made, old=None, write=write)
        return made


def mutation(policies: MutatingPolicies, webhooks: AdmissionWebhooks) -> Mutation:
    """
    Return the step that lets mutating policies and then webhooks change objects.

    If one of them changes an object, the plugins of the server check it again, and so do the
    policies with a reinvocation policy. A webhook is called once.
    """

    def mutate(resource: Resource, new: Raw, *, old: Raw | None, write: Write) -> Raw:
        if not policies.are_bound():
            changed = webhooks.mutate(resource, new, old=old, write=write)
            return changed if changed == new else _admitted_again(resource, changed, old, write)
        from dryrack.apiserver import Attempt

        attempt, again = policies.mutation.mutate(Attempt(resource, new, old, write))
        assert attempt.new is not None, "nothing is deleted"
        changed = webhooks.mutate(resource, attempt.new, old=old, write=write)
        if changed == new:
            return changed
        changed = _admitted_again(resource, changed, old, write)
        attempt, _ = policies.mutation.mutate(Attempt(resource, changed, old, write), again)
        assert attempt.new is not None, "nothing is deleted"
        return attempt.new

    return mutate


def _admitted_again(resource: Resource, changed: Raw, old: Raw | None, write: Write) -> Raw:
    """Return an object as the server's plugins leave it; parts have kinds of their own."""
    if resource.spoken(write.subresource) is not resource:
        return changed
    return resource.strategy.admit(changed, old, write)


def deletion(policies: AdmissionPolicies, webhooks: AdmissionWebhooks) -> DeletionApproval:
    """Return the step that checks deletions with admission policies and webhooks."""

    def check(resource: Resource, old: Raw, write: Write) -> None:
        policies.check(resource, None, old=old, write=write)
        webhooks.check_deletion(resource, old, write)

    return check


def approval(
    registry: Registry, policies: AdmissionPolicies, webhooks: AdmissionWebhooks
) -> Approval:
    """
    Return the step that checks writes with pod security, policies, webhooks, and quotas.

    The order is that of kube-apiserver.
    """

    def approve(
        resource: Resource, new: Raw, *, old: Raw | None, write: Write
    ) -> Callable[[Writer], None] | None:
        if resource.storage in _SECURED:
            from dryrack.apiserver import check_pod_security

            check_pod_security(resource, new, old=old, write=write)
        seen = new
        before = old
        if write.shown is not None:
            seen = write.shown(new)
            before = old and write.shown(old)
        policies.check(resource, seen, old=before, write=write)
        webhooks.validate(resource, seen, old=before, write=write)
        if not write.lookup.list("resourcequotas", write.namespace):
            return None
        from dryrack.apiserver import QuotaAdmission

        return QuotaAdmission(registry)(resource, new, old=old, write=write)

    return approve
