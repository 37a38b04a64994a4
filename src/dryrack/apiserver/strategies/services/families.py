"""
Which families of addresses a service has, on a cluster that has but one.

What was not said follows from the addresses that were, from what it had before, and else from the
cluster. Refusals here come before all others: without families there are no addresses to give.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.apiserver.answer.status import Subject
from dryrack.apiserver.answer.status import invalid as refused
from dryrack.kinds.rules.services import needs
from dryrack.kinds.rules.services.addresses import FAMILIES, family_of, related_problems
from dryrack.kinds.validation.problems import Token, invalid

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dryrack.kinds.raw import Raw
    from dryrack.kinds.validation import FieldProblem

SERVICE = Subject("", "Service")
FAMILY = "IPv4"
"""The one that the cluster has."""
_POLICY = "spec.ipFamilyPolicy"
_SINGLE = "SingleStack"


def with_families(spec: Raw, old: Raw | None, name: str) -> Raw:
    """The spec with families and their policy; raises what is refused."""
    if not needs.address(spec) or _stays_as_it_was(spec, old):
        return spec
    made = {**spec, "ipFamilyPolicy": spec.get("ipFamilyPolicy") or _policy(spec, old)}
    _refuse(name, list(related_problems(made, old)))
    made = _shrunk(made, old)
    _refuse(name, list(_contradictions(made, old)))
    made = _inferred(made)
    if _is_anybodys(made):
        return _for_anybody(made)
    _refuse(name, list(_beyond_the_cluster(made)))
    return {**made, "ipFamilies": made.get("ipFamilies") or [FAMILY]}


def _refuse(name: str, problems: Sequence[FieldProblem]) -> None:
    if problems:
        raise refused(SERVICE, name, problems)


def _stays_as_it_was(spec: Raw, old: Raw | None) -> bool:
    """One that would rather have two families keeps what it has until it says otherwise."""
    if old is None or spec.get("ipFamilyPolicy") != "PreferDualStack":
        return False
    kept = all(spec.get(key) == old.get(key) for key in ("type", "clusterIPs", "ipFamilies"))
    return kept and old.get("ipFamilyPolicy") in (None, "PreferDualStack")


def _policy(spec: Raw, old: Raw | None) -> str:
    known: str | None = (old or {}).get("ipFamilyPolicy")
    if known:
        return known
    return "RequireDualStack" if _is_anybodys(spec) else _SINGLE


def _is_anybodys(spec: Raw) -> bool:
    """Without a head and a selector nobody knows what is behind it."""
    return spec.get("clusterIP") == needs.NONE and not spec.get("selector")


def _shrunk(spec: Raw, old: Raw | None) -> Raw:
    """Who asks for one family and leaves two as they were, means the first of them."""
    if old is None or spec["ipFamilyPolicy"] != _SINGLE:
        return spec
    made = spec
    for key in ("clusterIPs", "ipFamilies"):
        if made.get(key) == old.get(key) and len(made.get(key) or ()) > 1:
            made = {**made, key: made[key][:1]}
    return made


def _contradictions(spec: Raw, old: Raw | None) -> Iterator[FieldProblem]:
    policy = Token(spec["ipFamilyPolicy"])
    named = (
        ("clusterIPs", "cluster IP", "cluster IPs"),
        ("ipFamilies", "IP family", "IP families"),
    )
    for key, one, many in named:
        count, before = len(spec.get(key) or ()), len((old or {}).get(key) or ())
        if policy != _SINGLE and 0 < count < before:
            yield invalid(_POLICY, policy, f"must be 'SingleStack' to release the secondary {one}")
        if policy == _SINGLE and count == len(FAMILIES):
            detail = f"must be 'RequireDualStack' or 'PreferDualStack' when multiple {many}"
            yield invalid(_POLICY, policy, f"{detail} are specified")
    addresses, families = spec.get("clusterIPs") or [], spec.get("ipFamilies") or []
    for position, text in enumerate(addresses):
        if text != needs.NONE and position >= len(families) and family_of(text) != FAMILY:
            detail = f"{family_of(text)} is not configured on this cluster"
            yield invalid(f"spec.clusterIPs[{position}]", addresses, detail)


def _inferred(spec: Raw) -> Raw:
    families = list(spec.get("ipFamilies") or ())
    addresses = [text for text in spec.get("clusterIPs") or () if text != needs.NONE]
    families += [family_of(text) for text in addresses[len(families) :]]
    return {**spec, "ipFamilies": families} if families else spec


def _for_anybody(spec: Raw) -> Raw:
    families = spec.get("ipFamilies") or [FAMILY]
    if len(families) == 1 and spec["ipFamilyPolicy"] != _SINGLE:
        families = [*families, *(each for each in FAMILIES if each not in families)]
    return {**spec, "ipFamilies": families}


def _beyond_the_cluster(spec: Raw) -> Iterator[FieldProblem]:
    if spec["ipFamilyPolicy"] == "RequireDualStack":
        detail = "this cluster is not configured for dual-stack services"
        yield invalid(_POLICY, Token("RequireDualStack"), detail)
    for position, family in enumerate(spec.get("ipFamilies") or ()):
        if family != FAMILY:
            detail = "not configured on this cluster"
            yield invalid(f"spec.ipFamilies[{position}]", Token(family), detail)
