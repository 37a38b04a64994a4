"""Rows of kinds about traffic: ingresses, network policies, flow control."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dryrack.apiserver.tables.ages import age
from dryrack.apiserver.tables.columns import AGE, NAME, Shape, dig, name_of, plain
from dryrack.apiserver.tables.labels import NONE, selector_text
from dryrack.kinds.paths import get

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.apiserver.tables.columns import JsonObject

_DEFAULT_CLASS = "ingressclass.kubernetes.io/is-default-class"
_HOSTS_MAX = 3


def _hosts(rules: Sequence[JsonObject]) -> str:
    named = [rule["host"] for rule in rules if rule.get("host")]
    more = len(rules) - _HOSTS_MAX
    shown = ",".join(named[:_HOSTS_MAX]) or "*"
    return f"{shown} + {more} more..." if len(named) >= _HOSTS_MAX and more > 0 else shown


def _ingress(obj: JsonObject, now: float) -> list[Any]:
    spec = dig(obj, "spec", default={})
    points = dig(obj, "status", "loadBalancer", "ingress", default=())
    addresses = {entry.get("ip") or entry.get("hostname") or "" for entry in points} - {""}
    return [
        name_of(obj),
        spec.get("ingressClassName") or NONE,
        _hosts(get(spec, "rules", ())),
        ",".join(sorted(addresses)),
        "80, 443" if spec.get("tls") else "80",
        age(obj, now),
    ]


INGRESSES = Shape((NAME, *plain("Class", "Hosts", "Address", "Ports"), AGE), _ingress)


def _ingress_class(obj: JsonObject, now: float) -> list[Any]:
    notes = dig(obj, "metadata", "annotations", default={})
    parameters = dig(obj, "spec", "parameters", default={})
    kind = parameters.get("kind", "")
    group = parameters.get("apiGroup")
    named = f"{kind}.{group}" if group else kind
    return [
        name_of(obj) + (" (default)" if notes.get(_DEFAULT_CLASS) == "true" else ""),
        dig(obj, "spec", "controller", default=""),
        f"{named}/{parameters.get('name', '')}" if parameters else NONE,
        age(obj, now),
    ]


INGRESS_CLASSES = Shape((NAME, *plain("Controller", "Parameters"), AGE), _ingress_class)


def _network_policy(obj: JsonObject, now: float) -> list[Any]:
    selector = selector_text(dig(obj, "spec", "podSelector"))
    return [name_of(obj), selector or NONE, age(obj, now)]


NETWORK_POLICIES = Shape((NAME, *plain("Pod-Selector"), AGE), _network_policy)
