"""
The admission chain: what objects are held against that are valid in themselves.

Each part is loaded when there is something to hold them against: the first policy that is bound,
the first webhook that is registered, the first quota.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from dryrack.apiserver import (
        Approval,
        Authorization,
        DeletionApproval,
        PolicyAdmission,
        Registry,
        Resource,
        ReviewRequest,
        Shapes,
        WebhookAdmission,
        WebhookAnswer,
        Write,
        Writer,
    )
    from dryrack.base.ports import Chance
    from dryrack.kinds.raw import Raw
    from dryrack.store import Store

# What is held against the labels of its namespace: pods and what makes them, and those labels.
_SECURED = frozenset(
    (
        *("namespaces", "pods", "podtemplates", "replicationcontrollers", "cronjobs.batch"),
        *("daemonsets.apps", "deployments.apps", "replicasets.apps", "statefulsets.apps"),
        "jobs.batch",
    )
)

_POLICY_BINDINGS = "validatingadmissionpolicybindings.admissionregistration.k8s.io"


@dataclass(frozen=True)
class AdmissionPolicies:
    """Admission policies, loaded when the first of them is bound."""

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


_WEBHOOKS = (
    "mutatingwebhookconfigurations.admissionregistration.k8s.io",
    "validatingwebhookconfigurations.admissionregistration.k8s.io",
)


@dataclass(frozen=True)
class AdmissionWebhooks:
    """Admission webhooks, loaded when the first of them is registered."""

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

    async def ask(self, question: ReviewRequest) -> WebhookAnswer:
        from dryrack.apiserver import ask_webhook

        return await ask_webhook(question, self.chance.uuid())

    def mutated(self, resource: Resource, new: Raw, *, old: Raw | None, write: Write) -> Raw:
        if write.reviews is None:
            return new
        from dryrack.apiserver import Attempt

        changed = self._admission.mutated(Attempt(resource, new, old, write))
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
            self._admission.mutated(attempt)
            self._admission.validate(attempt)


@dataclass(frozen=True)
class PostedAdmission:
    """Holds what is posted to parts of objects against webhooks and admission policies."""

    policies: AdmissionPolicies
    webhooks: AdmissionWebhooks

    def is_needed(self) -> bool:
        return self.policies.are_bound() or self.webhooks.are_there()

    def admitted(self, resource: Resource, posted: Raw, write: Write) -> Raw:
        made = self.webhooks.mutated(resource, posted, old=None, write=write)
        self.policies.check(resource, made, old=None, write=write)
        self.webhooks.validate(resource, made, old=None, write=write)
        return made


def deletion(policies: AdmissionPolicies, webhooks: AdmissionWebhooks) -> DeletionApproval:
    """Holds deletions against admission policies and webhooks."""

    def check(resource: Resource, old: Raw, write: Write) -> None:
        policies.check(resource, None, old=old, write=write)
        webhooks.check_deletion(resource, old, write)

    return check


def approval(
    registry: Registry, policies: AdmissionPolicies, webhooks: AdmissionWebhooks
) -> Approval:
    """
    Holds writes against the labels of their namespace, admission policies, webhooks, and quotas.

    Each where there are any; the order is the real server's.
    """

    def approve(
        resource: Resource, new: Raw, *, old: Raw | None, write: Write
    ) -> Callable[[Writer], None] | None:
        if resource.storage in _SECURED:
            from dryrack.apiserver import check_pod_security

            check_pod_security(resource, new, old=old, write=write)
        seen, before = new, old
        if write.shown is not None:
            seen, before = write.shown(new), old and write.shown(old)
        policies.check(resource, seen, old=before, write=write)
        webhooks.validate(resource, seen, old=before, write=write)
        if not write.lookup.list("resourcequotas", write.namespace):
            return None
        from dryrack.apiserver import QuotaAdmission

        return QuotaAdmission(registry)(resource, new, old=old, write=write)

    return approve
