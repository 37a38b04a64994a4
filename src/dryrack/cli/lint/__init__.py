"""
`dryrack lint`: print the findings of the linter.

The table has one line per finding, in the form that editors and `grep` read. The other formats
are for programs and pipelines. Findings go to standard output, their number to standard error.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from dryrack.cli.files import parse_release, read_sources, without_pauses
from dryrack.cli.output import (
    Format,
    LintFormat,
    paint,
    print_commands,
    print_data,
    print_line,
    say,
    shown,
)
from dryrack.linter import Finding, Severity, lint

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.cli.options import LintOptions
    from dryrack.kinds.documents import Document, Problem

_STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "yellow", Severity.INFO: "cyan"}


def run(options: LintOptions) -> bool:
    """Print the findings; return whether none of them is an error."""
    form = options.output
    release = parse_release(options.release)
    sources = read_sources([*options.files, *options.more])
    with without_pauses():
        files = [(each.name, each.content) for each in sources]
        findings = lint(files, _own_problems, release)
    if form is LintFormat.TABLE:
        for finding in findings:
            sys.stdout.write(_line(finding) + "\n")
        say(_tally(findings, len(sources)))
    elif form in (LintFormat.JSON, LintFormat.YAML):
        print_data({"findings": [_data(finding) for finding in findings]}, Format(form.value))
    else:
        _report(findings, [source.name for source in sources], form)
    return not any(finding.severity is Severity.ERROR for finding in findings)


def _own_problems(document: Document, content: bytes) -> Sequence[Problem]:
    # The readers of scenarios are loaded only if a file contains one.
    from dryrack.scenario import own_problems

    return own_problems(document, content)


def _report(findings: Sequence[Finding], files: Sequence[str], form: LintFormat) -> None:
    from dryrack.cli.lint.reports import REPORTS

    text = REPORTS[form](findings, files)
    if form is not LintFormat.GITHUB:
        print_line(text)
        return
    if text:
        print_commands(text)
    say(_tally(findings, len(files)))


def _line(finding: Finding) -> str:
    severity = paint(finding.severity.value, _STYLES[finding.severity])
    where = shown(", ".join(part for part in (finding.object, finding.field) if part))
    # A compiler's message goes on with a picture of the expression; one line is one finding.
    first, *_ = finding.what.splitlines()
    what = shown(f"{first}; {finding.fix}")
    place = f"{shown(finding.file)}:{finding.line}: {severity} {finding.code}"
    return f"{place} {where}: {what}" if where else f"{place} {what}"


def _data(finding: Finding) -> dict[str, Any]:
    data: dict[str, Any] = {
        "code": finding.code,
        "name": finding.slug,
        "severity": finding.severity.value,
        "file": finding.file,
        "line": finding.line,
        "object": finding.object,
        "field": finding.field,
        "message": finding.message,
        "fix": finding.fix,
    }
    return {**data, "reason": finding.reason} if finding.reason else data


def _tally(findings: Sequence[Finding], file_count: int) -> str:
    files = f"{file_count} file{'s' if file_count > 1 else ''}"
    counts = [
        f"{count} {severity.value}{'s' if count > 1 else ''}"
        for severity in Severity
        if (count := sum(finding.severity is severity for finding in findings))
    ]
    return f"{', '.join(counts) or 'no findings'} in {files}"
