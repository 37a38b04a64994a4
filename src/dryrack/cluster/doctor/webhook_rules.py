"""Rules of admission webhooks and policies: the resources that they match."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.client.endpoints import Endpoint
from dryrack.kinds.paths import get

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dryrack.kinds.raw import Raw

_GROUP = "admissionregistration.k8s.io"
VALIDATING_WEBHOOKS = Endpoint(
    *(_GROUP, "v1", "validatingwebhookconfigurations", "ValidatingWebhookConfiguration"),
    is_namespaced=False,
)
MUTATING_WEBHOOKS = Endpoint(
    *(_GROUP, "v1", "mutatingwebhookconfigurations", "MutatingWebhookConfiguration"),
    is_namespaced=False,
)
POLICIES = Endpoint(
    *(_GROUP, "v1", "validatingadmissionpolicies", "ValidatingAdmissionPolicy"),
    is_namespaced=False,
)
POLICY_BINDINGS = Endpoint(
    *(_GROUP, "v1", "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding"),
    is_namespaced=False,
)
_WATCHED = (
    ("", "pods"),
    ("resource.k8s.io", "resourceclaims"),
    ("resource.k8s.io", "resourceclaimtemplates"),
    ("resource.k8s.io", "resourceslices"),
    ("resource.k8s.io", "deviceclasses"),
)


def applies_to(rule: Raw, group: str, plural: str) -> bool:
    """Return whether a rule matches writes of a resource."""
    groups, resources = get(rule, "apiGroups", ()), get(rule, "resources", ())
    return bool({"*", group} & set(groups) and {"*", "*/*", plural} & set(resources))


def blocking_services(configurations: Iterable[Raw]) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield webhooks whose failure blocks Pods or claims, each with the Service that it calls."""
    for configuration in configurations:
        for webhook in get(configuration, "webhooks", ()):
            service = get(webhook, "clientConfig.service", {})
            is_strict = webhook.get("failurePolicy", "Fail") == "Fail"
            rules = get(webhook, "rules", ())
            if service and is_strict and any(applies_to(r, *w) for r in rules for w in _WATCHED):
                yield webhook["name"], (service["namespace"], service["name"])
