"""
The rules, each with what a reader of its code needs.

A rule is a function from the world to the problems it sees there. `rule` gives it a code,
which never changes its meaning once released, and an example: a file that has the fault,
and the change that heals it. The reference page and the tests are made from the examples,
so a rule whose example does not show it cannot exist.
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
class Example:
    """A file with the fault, and the same file without."""

    bad: str
    fixed: str


@dataclass(frozen=True, slots=True)
class Rule:
    code: str
    slug: str
    severity: Severity
    summary: str
    why: str
    example: Example
    check: Check


def broken(sound: str, *edits: tuple[str, str]) -> Example:
    """The example that has its fault from replacing text in a sound file."""
    bad = sound
    for old, new in edits:
        if bad.count(old) != 1:
            raise InternalError(f"the example has {bad.count(old)} places with {old!r}, not one")
        bad = bad.replace(old, new)
    return Example(bad, sound)


class Registry:
    """Collects the rules of one module; codes and slugs are unique in `merged`."""

    def __init__(self) -> None:
        self._rules: list[Rule] = []

    def rule(
        self, code: str, slug: str, severity: Severity, *, summary: str, example: Example
    ) -> Callable[[Check], Check]:
        """Registers the decorated check; its docstring says why the rule exists."""

        def register(check: Check) -> Check:
            why = inspect.getdoc(check) or ""
            self._rules.append(Rule(code, slug, severity, summary, why, example, check))
            return check

        return register

    def __iter__(self) -> Iterator[Rule]:
        return iter(self._rules)


def merged(registries: Sequence[Iterable[Rule]]) -> tuple[Rule, ...]:
    """All rules by code; two rules with one code or slug are a bug."""
    rules = sorted((rule for each in registries for rule in each), key=lambda rule: rule.code)
    for name in ("code", "slug"):
        seen = [getattr(rule, name) for rule in rules]
        if len(set(seen)) != len(seen):
            raise InternalError(f"two lint rules share a {name}: {seen}")
    return tuple(rules)
