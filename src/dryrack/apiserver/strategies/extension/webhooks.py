"""
Configurations of admission webhooks.

Webhooks behind a Service with virtual pods are stored, because charts ship them and programs write
their certificates into them. They do not change or refuse a write here, and a warning says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dryrack.apiserver.strategies.validated_as_new import ValidatedAsNewStrategy
from dryrack.apiserver.webhooks.admission_reviews import ADDRESS, endpoint_of
from dryrack.extension.policies import WebhookRules, with_scopes
from dryrack.kinds.paths import get
from dryrack.kinds.rules.json_edit import map_items, set_missing, update_at

if TYPE_CHECKING:
    from dryrack.apiserver.strategy import Write
    from dryrack.kinds.raw import Raw

_WEBHOOK = {
    "failurePolicy": "Fail",
    "matchPolicy": "Equivalent",
    "namespaceSelector": {},
    "objectSelector": {},
    "timeoutSeconds": 10,
}


class WebhookStrategy(ValidatedAsNewStrategy):
    """A list of webhooks."""

    counts_generations = True

    def __init__(self, *, mutates: bool) -> None:
        super().__init__(WebhookRules())
        self._defaults = _WEBHOOK | ({"reinvocationPolicy": "Never"} if mutates else {})

    def default(self, obj: Raw, write: Write) -> Raw:
        return map_items(obj, "webhooks", self._webhook)

    def _webhook(self, webhook: Raw) -> Raw:
        made = update_at(
            webhook, "clientConfig.service", lambda found: set_missing(found, {"port": 443})
        )
        return set_missing(with_scopes(made, "rules"), self._defaults)

    def approve(self, obj: Raw, old: Raw | None, write: Write) -> None:
        webhooks = get(obj, "webhooks", ())
        configs = [one["clientConfig"] for one in webhooks]
        services = [one["service"] for one in configs if not endpoint_of(one, write.lookup)]
        for name in dict.fromkeys(f"{one['namespace']}/{one['name']}" for one in services):
            write.warn(
                f"dryrack does not call webhooks of the Service {name}: no program runs in its "
                f"pods; run it elsewhere, and annotate the Service with {ADDRESS}=HOST:PORT"
            )

    def counted_part(self, obj: Raw) -> Any:
        return obj.get("webhooks")
