"""Services by themselves: their defaults, and what is wrong with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.kinds.rules.copies import filled, with_value
from dryrack.kinds.rules.kind_rules import KindRules
from dryrack.kinds.rules.namespaces import LABEL
from dryrack.kinds.rules.services import needs, service_defaults
from dryrack.kinds.rules.services.addresses import FAMILIES
from dryrack.kinds.rules.services.service_problems import problems

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.kinds.raw import Raw
    from dryrack.kinds.validation import FieldProblem

# Any port will do for one that a cluster would give.
_GIVEN_PORT = 30000


class ServiceRules(KindRules):
    """Which addresses and ports are free only a cluster knows; all else is judged here."""

    def __init__(self) -> None:
        super().__init__(namespaced=True, has_status=True, naming=LABEL)

    def default(self, obj: Raw) -> Raw:
        return service_defaults.service(obj)

    def as_new(self, obj: Raw) -> Raw:
        spec = in_step(obj["spec"])
        if needs.health_check(spec) and not spec.get("healthCheckNodePort"):
            spec = {**spec, "healthCheckNodePort": _GIVEN_PORT}
        return {**super().as_new(obj), "spec": spec}

    def problems(self, obj: Raw) -> Sequence[FieldProblem]:
        return list(problems(obj))


def in_step(spec: Raw, old: Raw | None = None) -> Raw:
    """The list of addresses follows the first of them, for those who do not know the list."""
    first, given = spec.get("clusterIP") or "", spec.get("clusterIPs") or []
    if old is None:
        return {**spec, "clusterIPs": [first]} if first and not given else spec
    before, known = old.get("clusterIP") or "", old.get("clusterIPs") or []
    if not given and first == before:
        return with_value(spec, "clusterIPs", known or None)
    if first == before or given != known:
        return spec
    return with_value(spec, "clusterIPs", [first] if first else None)


def with_families(spec: Raw) -> Raw:
    """With the one family that a cluster here has, where nothing else is said."""
    if not needs.address(spec):
        return spec
    is_anybodys = spec.get("clusterIP") == needs.NONE and not spec.get("selector")
    policy = "RequireDualStack" if is_anybodys else "SingleStack"
    families = list(FAMILIES) if is_anybodys else [FAMILIES[0]]
    return filled(
        {**spec, "ipFamilies": spec.get("ipFamilies") or families}, {"ipFamilyPolicy": policy}
    )
