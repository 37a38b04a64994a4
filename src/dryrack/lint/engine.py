"""
From the content of files to findings.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dryrack.lint.finding import Finding, field_path
from dryrack.lint.lines import line_of
from dryrack.lint.objects import read_world
from dryrack.lint.rules import RULES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dryrack.lint.finding import Problem
    from dryrack.lint.refusals import Judge
    from dryrack.lint.registry import Rule


def lint(files: Iterable[tuple[str, bytes]], judge: Judge | None = None) -> tuple[Finding, ...]:
    """
    What is wrong in files, given as names and contents; by file, line and code.

    `judge` is somebody who knows what a server has against kinds that are not about devices.
    """
    world = replace(read_world(files), judge=judge)
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
