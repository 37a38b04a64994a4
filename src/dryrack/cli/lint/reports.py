"""
Reports of findings for CI: SARIF 2.1.0, workflow commands of GitHub, and JUnit XML.

File names are relative to the working directory, as editors and code reviews show them.
"""

from __future__ import annotations

import os
from pathlib import PurePath
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from dryrack.base.escaping import (
    github_property,
    github_text,
    json_text,
    visible,
    visible_lines,
    xml_lines,
)
from dryrack.base.version import __version__
from dryrack.linter import RULES, Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from xml.etree.ElementTree import Element

_SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_SARIF_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
_GITHUB_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}


def sarif(findings: Sequence[Finding], _: Sequence[str]) -> str:
    """Return SARIF for code scanning; it describes the rules that have findings."""
    codes = {finding.code for finding in findings}
    rules = [rule for rule in RULES if rule.code in codes]
    places = {rule.code: index for index, rule in enumerate(rules)}
    driver = {
        "name": "dryrack",
        "semanticVersion": __version__,
        "rules": [
            {
                "id": rule.code,
                "name": rule.slug,
                "shortDescription": {"text": rule.summary},
                "fullDescription": {"text": rule.why or rule.summary},
                "defaultConfiguration": {"level": _SARIF_LEVELS[rule.severity]},
            }
            for rule in rules
        ],
    }
    results = [_sarif_result(each, places[each.code]) for each in findings]
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    log = {"$schema": _SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}
    return json_text(log, indent=2)


def _sarif_result(finding: Finding, rule: int) -> dict[str, Any]:
    place: dict[str, Any] = {
        "physicalLocation": {
            "artifactLocation": {"uri": _uri(finding.file)},
            "region": {"startLine": max(finding.line, 1)},
        }
    }
    what = "/".join(part for part in (finding.object, finding.field) if part)
    if what:
        place["logicalLocations"] = [{"fullyQualifiedName": what}]
    return {
        "ruleId": finding.code,
        "ruleIndex": rule,
        "level": _SARIF_LEVELS[finding.severity],
        "message": {"text": _text_of(finding)},
        "locations": [place],
    }


def _uri(file: str) -> str:
    path = PurePath(file)
    if path.is_absolute():
        return path.as_uri()
    # A file name may contain bytes that are not UTF-8.
    return quote(os.fsencode(path.as_posix().strip("<>")))


def github(findings: Sequence[Finding], _: Sequence[str]) -> str:
    """Return workflow commands; GitHub shows each finding beside its line."""
    return "\n".join(map(_github_command, findings))


def _github_command(finding: Finding) -> str:
    about = {
        "file": finding.file,
        "line": str(max(finding.line, 1)),
        "title": f"{finding.code} {finding.slug}",
    }
    properties = ",".join(f"{name}={github_property(value)}" for name, value in about.items())
    return f"::{_GITHUB_COMMANDS[finding.severity]} {properties}::{github_text(_text_of(finding))}"


def junit(findings: Sequence[Finding], files: Sequence[str]) -> str:
    """Return JUnit XML: an error is a failure, a file without findings a test that passed."""
    from xml.etree import ElementTree

    failures = sum(finding.severity is Severity.ERROR for finding in findings)
    cases = [case for file in files for case in _cases(file, findings)]
    counts = {"tests": str(len(cases)), "failures": str(failures), "errors": "0"}
    suites = ElementTree.Element("testsuites", counts)
    suite = ElementTree.SubElement(suites, "testsuite", {"name": "dryrack lint", **counts})
    suite.extend(cases)
    ElementTree.indent(suites)
    return xml_lines(ElementTree.tostring(suites, encoding="unicode", xml_declaration=True))


def _cases(file: str, findings: Sequence[Finding]) -> Iterator[Element]:
    from xml.etree import ElementTree

    own = [finding for finding in findings if finding.file == file]
    for finding in own:
        name = f"{finding.code} {finding.slug}, line {finding.line}"
        case = ElementTree.Element("testcase", _xml({"classname": file, "name": name}))
        if finding.severity is Severity.ERROR:
            attributes = _xml(
                {"type": finding.code, "message": _text_of(finding).partition("\n")[0]}
            )
            element = ElementTree.SubElement(case, "failure", attributes)
        else:
            element = ElementTree.SubElement(case, "system-out")
        element.text = visible_lines(f"{file}:{finding.line}: {_text_of(finding)}")
        yield case
    if not own:
        yield ElementTree.Element("testcase", _xml({"classname": file, "name": "lint"}))


def _xml(attributes: Mapping[str, str]) -> dict[str, str]:
    return {name: visible(value) for name, value in attributes.items()}


def _text_of(finding: Finding) -> str:
    where = ", ".join(part for part in (finding.object, finding.field) if part)
    return f"{where}: {finding.message}" if where else finding.message


REPORTS: Mapping[str, Callable[[Sequence[Finding], Sequence[str]], str]] = {
    "sarif": sarif,
    "github": github,
    "junit": junit,
}
