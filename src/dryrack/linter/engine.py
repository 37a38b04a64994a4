"""
From the content of files to findings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.kinds.releases import DEFAULT_RELEASE, Release
from dryrack.linter.finding import Finding, field_path
from dryrack.linter.lines import line_of
from dryrack.linter.objects import read_world
from dryrack.linter.rules import RULES

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from dryrack.linter.finding import Problem
    from dryrack.linter.objects import OwnKindCheck
    from dryrack.linter.registry import Rule

# What an API server refuses or drops before it validates an object. These findings have no reason
# from the API, and one that drops a field can be the cause of a refusal.
_READING = frozenset(
    {"DR001", "DR002", "DR003", "DR004", "DR005", "DR008", "DR009", "DR010", "DR011", "DR121"}
)


def lint(
    files: Iterable[tuple[str, bytes]],
    check_own_kind: OwnKindCheck = lambda *_: (),
    release: Release = DEFAULT_RELEASE,
) -> tuple[Finding, ...]:
    """
    Return the findings in files, given as names and contents, by file, line and code.

    `check_own_kind` checks documents of dryrack's own kinds. `release` is that of the cluster
    which the files are for.
    """
    world = read_world(files, check_own_kind, release)
    found = {_finding(rule, problem): None for rule in RULES for problem in rule.check(world)}
    return tuple(sorted(_without_contradictions(found), key=Finding.order))


def _without_contradictions(findings: Collection[Finding]) -> Iterator[Finding]:
    """
    Yield the findings without advice about what an API server refuses.

    Advice supposes that a cluster has the object as it is. On one line with a refusal of the same
    field its fix would be a second, other one.
    """
    refused: dict[tuple[str, int], list[str]] = {}
    for each in findings:
        if each.reason:
            refused.setdefault((each.file, each.line), []).append(each.field)
    for each in findings:
        fields = refused.get((each.file, each.line), ())
        is_advice = not each.reason and each.code not in _READING
        if not is_advice or not any(_is_within(each.field, field) for field in fields):
            yield each


def _is_within(field: str, other: str) -> bool:
    """Return whether the fields are one, or one is a part of the other."""
    shorter, longer = sorted((field, other), key=len)
    return longer == shorter or longer.startswith((f"{shorter}.", f"{shorter}["))


def _finding(rule: Rule, problem: Problem) -> Finding:
    document = problem.entry.document
    name = "/".join(part for part in (document.namespace, document.name) if part)
    return Finding(
        file=document.file,
        line=problem.line or line_of(document, problem.path),
        code=rule.code,
        slug=rule.slug,
        severity=rule.severity,
        object=f"{document.kind} {name}".strip(),
        field=field_path(problem.path),
        what=problem.what,
        fix=problem.fix,
        reason=problem.reason,
    )
