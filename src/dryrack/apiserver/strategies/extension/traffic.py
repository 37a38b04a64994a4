"""Kinds about traffic: completed and kept, with their changes counted; nothing acts on them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.apiserver.strategies.validated_as_new import ValidatedAsNewStrategy
from dryrack.kinds.rules.json_edit import map_items, set_missing, update_at
from dryrack.kinds.rules.kind_rules import KindRules

if TYPE_CHECKING:
    from collections.abc import Callable

    from dryrack.apiserver.strategy import Write
    from dryrack.kinds.raw import Raw

_QUEUING = {"queues": 64, "handSize": 8, "queueLengthLimit": 50}


class TrafficStrategy(ValidatedAsNewStrategy):
    """A spec of which only the defaults are known."""

    counts_generations = True

    def __init__(
        self,
        complete: Callable[[Raw], Raw] = lambda obj: obj,
        *,
        namespaced: bool,
        has_status: bool = False,
    ) -> None:
        super().__init__(KindRules(namespaced=namespaced, has_status=has_status))
        self._complete = complete

    def default(self, obj: Raw, write: Write) -> Raw:
        return self._complete(obj)


def ingress_class(obj: Raw) -> Raw:
    return update_at(obj, "spec.parameters", lambda found: set_missing(found, {"scope": "Cluster"}))


def network_policy(obj: Raw) -> Raw:
    return update_at(obj, "spec", _network_policy)


def _network_policy(spec: Raw) -> Raw:
    for key in ("ingress", "egress"):
        spec = map_items(spec, key, _with_protocols)
    if spec.get("policyTypes"):
        return spec
    return {**spec, "policyTypes": ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]}


def _with_protocols(rule: Raw) -> Raw:
    return map_items(rule, "ports", lambda port: set_missing(port, {"protocol": "TCP"}))


def flow_schema(obj: Raw) -> Raw:
    return update_at(obj, "spec", lambda spec: _unless_zero(spec, {"matchingPrecedence": 1000}))


def priority_level(obj: Raw) -> Raw:
    shares = {"nominalConcurrencyShares": 30, "lendablePercent": 0}
    made = update_at(obj, "spec.limited", lambda limited: set_missing(limited, shares))
    exempt = {"nominalConcurrencyShares": 0, "lendablePercent": 0}
    made = update_at(made, "spec.exempt", lambda found: set_missing(found, exempt))
    return update_at(
        made, "spec.limited.limitResponse.queuing", lambda found: _unless_zero(found, _QUEUING)
    )


def _unless_zero(holder: Raw, defaults: Raw) -> Raw:
    """Zero is as good as nothing."""
    return {**holder, **{key: holder.get(key) or value for key, value in defaults.items()}}
