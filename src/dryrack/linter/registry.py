"""
The rules, each with what a reader of its code needs.

A rule is a function from the world to the problems it sees there. `rule` gives it a code,
which never changes its meaning once released. An example of each, from which the reference page
is made, is with the tests.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from dryrack.base.errors import InternalError
from dryrack.linter.finding import Problem, Severity
from dryrack.linter.world import World

Check: TypeAlias = Callable[[World], Iterable[Problem]]


@dataclass(frozen=True, slots=True)
class Rule:
    code: str
    slug: str
    severity: Severity
    summary: str
    why: str
    check: Check


class Registry:
    """Collects the rules of one module; codes and slugs are unique in `merge_rules`."""

    def __init__(self) -> None:
        self._rules: list[Rule] = []

    def rule(
        self, code: str, slug: str, severity: Severity, *, summary: str
    ) -> Callable[[Check], Check]:
        """Registers the decorated check; its docstring says why the rule exists."""

        def register(check: Check) -> Check:
            why = inspect.getdoc(check) or ""
            self._rules.append(Rule(code, slug, severity, summary, why, check))
            return check

        return register

    def __iter__(self) -> Iterator[Rule]:
        return iter(self._rules)


def merge_rules(registries: Sequence[Iterable[Rule]]) -> tuple[Rule, ...]:
    """All rules by code; two rules with one code or slug are a bug."""
    rules = sorted((rule for each in registries for rule in each), key=lambda rule: rule.code)
    for name in ("code", "slug"):
        seen = [getattr(rule, name) for rule in rules]
        if len(set(seen)) != len(seen):
            raise InternalError(f"two lint rules share a {name}: {seen}")
    return tuple(rules)
