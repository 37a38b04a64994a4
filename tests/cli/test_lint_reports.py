"""The findings of `dryrack lint` in the formats for CI."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import jsonschema_rs
import pytest
from tests.cli.lint_files import REFUSED, WARNED, run, write
from tests.linter.examples import SLICE

from dryrack.base.version import __version__
from dryrack.cli.lint.reports import github, junit, sarif
from dryrack.linter import RULES, Finding, Severity

if TYPE_CHECKING:
    from pathlib import Path


def _object(required: str, **properties: Any) -> dict[str, Any]:
    """SARIF allows no other properties anywhere."""
    return {
        "type": "object",
        "additionalProperties": False,
        "required": required.split(),
        "properties": properties,
    }


def _list(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


TEXT = {"type": "string"}
LEVEL = {"enum": ["none", "note", "warning", "error"]}
MESSAGE = _object("text", text=TEXT)
RULE = _object(
    "id",
    id=TEXT,
    name=TEXT,
    shortDescription=MESSAGE,
    fullDescription=MESSAGE,
    defaultConfiguration=_object("", level=LEVEL),
)
LOCATION = _object(
    "",
    physicalLocation=_object(
        "artifactLocation",
        artifactLocation=_object("", uri={"type": "string", "format": "uri-reference"}),
        region=_object("", startLine={"type": "integer", "minimum": 1}),
    ),
    logicalLocations=_list(_object("", fullyQualifiedName=TEXT)),
)
RESULT = _object(
    "message",
    ruleId=TEXT,
    ruleIndex={"type": "integer", "minimum": -1},
    level=LEVEL,
    message=MESSAGE,
    locations=_list(LOCATION),
)
RUN = _object(
    "tool",
    tool=_object(
        "driver", driver=_object("name", name=TEXT, semanticVersion=TEXT, rules=_list(RULE))
    ),
    columnKind={"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
    results=_list(RESULT),
)
# The part of SARIF 2.1.0's schema that is about what is written here.
SARIF = _object("version runs", version={"enum": ["2.1.0"]}, runs=_list(RUN)) | {
    "$schema": "http://json-schema.org/draft-07/schema#"
}
SARIF["properties"] |= {"$schema": {"type": "string", "format": "uri"}}


def finding(severity: Severity = Severity.ERROR, **parts: Any) -> Finding:
    usual: dict[str, Any] = {
        "file": "a.yaml",
        "line": 6,
        "code": RULES[0].code,
        "slug": RULES[0].slug,
        "object": "Pod p",
        "field": "spec",
        "what": "is wrong",
        "fix": "mend it",
    }
    return Finding(severity=severity, **(usual | parts))


def test_sarif_says_what_where_and_by_which_rule(tmp_path: Path) -> None:
    """It is valid, each result names its rule, and levels are those of the rules."""
    refused = write(tmp_path, REFUSED)
    warned = write(tmp_path, WARNED, "b.yaml")
    code, out, talk = run(refused, warned, "-o", "sarif")
    log = json.loads(out)

    jsonschema_rs.validate(SARIF, log, validate_formats=True)
    (inside,) = log["runs"]
    driver = inside["tool"]["driver"]
    results = inside["results"]
    assert (code, talk, driver["semanticVersion"]) == (1, "", __version__)
    for result in results:
        rule = driver["rules"][result["ruleIndex"]]
        assert (rule["id"], rule["defaultConfiguration"]["level"]) == (
            result["ruleId"],
            result["level"],
        )
    first = next(each for each in results if each["ruleId"] == "DR111")
    place = first["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == f"file://{refused}"
    assert place["region"] == {"startLine": 6}
    assert "ResourceSlice rack-1-gpus, spec.driver: Invalid value" in first["message"]["text"]


def test_sarif_of_nothing_is_a_run_without_results(tmp_path: Path) -> None:
    """Code scanning closes what was found before."""
    log = json.loads(run(write(tmp_path, SLICE), "-o", "sarif")[1])

    jsonschema_rs.validate(SARIF, log)
    assert log["runs"][0]["results"] == []


def test_paths_are_uris() -> None:
    """Also with spaces, and of standard input; a finding without a line is at the first."""
    text = sarif([finding(file="my files/a#1.yaml", line=0), finding(file="<stdin>")], ())
    log = json.loads(text)
    jsonschema_rs.validate(SARIF, log, validate_formats=True)
    places = [each["locations"][0]["physicalLocation"] for each in log["runs"][0]["results"]]

    assert [each["artifactLocation"]["uri"] for each in places] == [
        "my%20files/a%231.yaml",
        "stdin",
    ]
    assert places[0]["region"]["startLine"] == 1


def test_github_notes_stand_beside_their_lines(tmp_path: Path) -> None:
    """One command for each finding, nothing else on standard output; the tally is talk."""
    file = write(tmp_path, REFUSED)
    code, out, talk = run(file, "-o", "github")

    assert code == 1
    assert out.startswith(
        f"::error file={file},line=6,title=DR111 driver-name::ResourceSlice rack-1"
    )
    assert out.count("\n") == 1
    assert talk == "1 error in 1 file\n"
    assert run(write(tmp_path, SLICE), "-o", "github")[:2] == (0, "")


def test_github_commands_cannot_be_broken_by_what_they_tell() -> None:
    """Line ends, percent signs and what ends a property are escaped."""
    told = github([finding(Severity.INFO, file="a,b:c.yaml", what="100 %\n::error::x")], ())

    assert told.startswith("::notice file=a%2Cb%3Ac.yaml,line=6,")
    assert "\n" not in told
    assert "100 %25%0A::error::x; mend it" in told


def test_junit_has_a_failure_for_each_error(tmp_path: Path) -> None:
    """A warning passes; a file without findings is a passed test."""
    files = [write(tmp_path, REFUSED), write(tmp_path, WARNED, "b.yaml")]
    files.append(write(tmp_path, SLICE.replace("rack-1", "rack-9"), "c.yaml"))
    code, out, _ = run(*files, "-o", "junit")
    suites = ElementTree.fromstring(out)
    cases = {(case.get("classname"), case.get("name")): case for case in suites.iter("testcase")}

    assert code == 1
    assert (suites.get("tests"), suites.get("failures")) == (str(len(cases)), "1")
    failure = cases[files[0], "DR111 driver-name, line 6"].find("failure")
    assert failure is not None
    assert failure.get("type") == "DR111"
    assert f"{files[0]}:6: ResourceSlice rack-1-gpus" in (failure.text or "")
    (warned,) = [case for (file, _), case in cases.items() if file == files[1]]
    assert warned.find("failure") is None
    assert warned.findtext("system-out")
    assert len(cases[files[2], "lint"]) == 0


@pytest.mark.parametrize("what", ["a \x1b[31m<red> & \x00", 'quotes " and ]]>'])
def test_junit_is_xml_whatever_is_told(what: str) -> None:
    """Characters that XML cannot hold are replaced."""
    text = junit([finding(what=what)], ["a.yaml"])

    assert ElementTree.fromstring(text).find(".//failure") is not None
