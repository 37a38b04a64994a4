"""Validation of affinity, topology spread constraints and scheduling gates."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dryrack.kinds.core import NodeSelector
from dryrack.kinds.decode import decode
from dryrack.kinds.paths import get
from dryrack.kinds.rules import checks
from dryrack.kinds.validation.names import checked, label
from dryrack.kinds.validation.parts import node_selector
from dryrack.kinds.validation.problems import (
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dryrack.kinds.raw import Raw
    from dryrack.kinds.validation import FieldProblem

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_WEIGHT_MAX = 100
_ACTIONS = ("DoNotSchedule", "ScheduleAnyway")
_POSITIVE = "must be greater than zero"


def affinity(at: str, given: Raw) -> Iterator[FieldProblem]:
    """Check node affinity, pod affinity and pod anti-affinity."""
    yield from _nodes(f"{at}.nodeAffinity", get(given, "nodeAffinity", {}))
    for key in ("podAffinity", "podAntiAffinity"):
        yield from _pods(f"{at}.{key}", given.get(key) or {})


def _nodes(at: str, given: Raw) -> Iterator[FieldProblem]:
    needed = given.get(_REQUIRED)
    if needed is not None:
        yield from node_selector(f"{at}.{_REQUIRED}", decode(needed, NodeSelector))
    for position, term in enumerate(given.get(_PREFERRED) or ()):
        path = f"{at}.{_PREFERRED}[{position}]"
        yield from _weight(path, term)
        yield from _preference(f"{path}.preference", get(term, "preference", {}))


def _weight(at: str, term: Raw) -> Iterator[FieldProblem]:
    weight = term.get("weight", 0)
    if not 1 <= weight <= _WEIGHT_MAX:
        yield invalid(f"{at}.weight", weight, f"must be in the range 1-{_WEIGHT_MAX}")


def _preference(at: str, term: Raw) -> Iterator[FieldProblem]:
    """Check a preferred term; its values may be invalid labels."""
    for problem in node_selector("", decode({"nodeSelectorTerms": [term]}, NodeSelector)):
        path = problem.field.removeprefix(".nodeSelectorTerms[0]")
        if not (path.startswith(".matchExpressions") and ".values[" in path):
            yield replace(problem, field=f"{at}{path}")


def _pods(at: str, given: Raw) -> Iterator[FieldProblem]:
    for position, term in enumerate(given.get(_REQUIRED) or ()):
        yield from _term(f"{at}.{_REQUIRED}[{position}]", term)
    for position, wish in enumerate(given.get(_PREFERRED) or ()):
        path = f"{at}.{_PREFERRED}[{position}]"
        yield from _weight(path, wish)
        yield from _term(f"{path}.podAffinityTerm", get(wish, "podAffinityTerm", {}))


def _term(at: str, term: Raw) -> Iterator[FieldProblem]:
    for key in ("labelSelector", "namespaceSelector"):
        yield from checks.selector_problems(f"{at}.{key}", term.get(key))
    for name in get(term, "namespaces", ()):
        yield from checked(f"{at}.namespace", name, label)
    yield from _label_keys(at, term)
    key = term.get("topologyKey") or ""
    if not key:
        yield required(f"{at}.topologyKey", "can not be empty")
    yield from checks.qualified_name(f"{at}.topologyKey", key)


def spread(at: str, given: Sequence[Raw]) -> Iterator[FieldProblem]:
    """Check topology spread constraints."""
    kinds = [(each.get("topologyKey") or "", each.get("whenUnsatisfiable") or "") for each in given]
    for position, constraint in enumerate(given):
        path, (key, action) = f"{at}[{position}]", kinds[position]
        skew = constraint.get("maxSkew", 0)
        if skew <= 0:
            yield invalid(f"{path}.maxSkew", skew, _POSITIVE)
        if not key:
            yield required(f"{path}.topologyKey", "can not be empty")
        if action not in _ACTIONS:
            yield not_supported(f"{path}.whenUnsatisfiable", action, _ACTIONS)
        if (key, action) in kinds[position + 1 :]:
            yield duplicate(f"{path}.{{topologyKey, whenUnsatisfiable}}", f"{{{key}, {action}}}")
        yield from _domains(f"{path}.minDomains", constraint.get("minDomains"), action)
        for name in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            if constraint.get(name) not in (None, "Honor", "Ignore"):
                yield not_supported(f"{path}.{name}", constraint[name], ("Honor", "Ignore"))
        yield from _label_keys(path, constraint)
        yield from checks.selector_problems(
            f"{path}.labelSelector", constraint.get("labelSelector")
        )


def _label_keys(at: str, term: Raw) -> Iterator[FieldProblem]:
    """
    Check `matchLabelKeys` and `mismatchLabelKeys`.

    They are already merged into the selector, so a key that occurs twice there was in the selector
    before.
    """
    selector = term.get("labelSelector")
    alike = get(term, "matchLabelKeys", [])
    unlike = get(term, "mismatchLabelKeys", [])
    for name, keys in (("matchLabelKeys", alike), ("mismatchLabelKeys", unlike)):
        if keys and selector is None:
            detail = "must not be specified when labelSelector is not set"
            yield forbidden(f"{at}.{name}", detail)
            continue
        for position, key in enumerate(keys):
            yield from checks.qualified_name(f"{at}.{name}[{position}]", key)
    last = {key: position for position, key in enumerate(alike)}
    seen = set(get(selector or {}, "matchLabels", ()))
    for expression in get(selector or {}, "matchExpressions", ()):
        key = expression.get("key") or ""
        if key in last and key in seen:
            yield invalid(
                f"{at}[{last[key]}]", key, "exists in both matchLabelKeys and labelSelector"
            )
        seen.add(key)
    for position, key in enumerate(alike):
        if key in unlike:
            detail = "exists in both matchLabelKeys and mismatchLabelKeys"
            yield invalid(f"{at}.matchLabelKeys[{position}]", key, detail)


def _domains(at: str, given: int | None, action: str) -> Iterator[FieldProblem]:
    if given is None:
        return
    if given <= 0:
        yield invalid(at, given, _POSITIVE)
    if action != "DoNotSchedule":
        detail = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
        yield invalid(at, given, detail)


def gates(at: str, given: Sequence[Raw]) -> Iterator[FieldProblem]:
    """Check the scheduling gates."""
    seen: set[str] = set()
    for position, gate in enumerate(given):
        path = f"{at}[{position}]"
        name = gate.get("name") or ""
        yield from checks.qualified_name(path, name)
        if name in seen:
            yield duplicate(path, name)
        seen.add(name)
