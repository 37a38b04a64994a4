"""
From the content of files to findings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.linter.finding import Finding, field_path
from dryrack.linter.lines import line_of
from dryrack.linter.objects import read_world
from dryrack.linter.rules import RULES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dryrack.linter.finding import Problem
    from dryrack.linter.objects import OwnKindCheck
    from dryrack.linter.registry import Rule


def lint(
    files: Iterable[tuple[str, bytes]], check_own_kind: OwnKindCheck = lambda *_: ()
) -> tuple[Finding, ...]:
    """
    What is wrong in files, given as names and contents; by file, line and code.

    Whoever knows what documents of dryrack's own kinds may say brings `check_own_kind`.
    """
    world = read_world(files, check_own_kind)
    found = {_finding(rule, problem): None for rule in RULES for problem in rule.check(world)}
    return tuple(sorted(found, key=Finding.order))


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
