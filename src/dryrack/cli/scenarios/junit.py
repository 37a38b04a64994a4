"""Outcomes as JUnit's XML: a suite for each scenario, a case for each step."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree as Xml

from dryrack.scenario import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dryrack.scenario import Outcome


def junit_xml(outcomes: Iterable[Outcome]) -> str:
    """The whole document; times are the scenarios' own."""
    suites = Xml.Element("testsuites", name="dryrack scenario")
    for outcome in outcomes:
        suites.append(_suite(outcome))
    Xml.indent(suites)
    return Xml.tostring(suites, encoding="unicode", xml_declaration=True) + "\n"


def _suite(outcome: Outcome) -> Xml.Element:
    verdicts = [each.verdict for each in outcome.steps]
    suite = Xml.Element(
        "testsuite",
        name=outcome.name,
        tests=str(len(verdicts)),
        failures=str(verdicts.count(Verdict.FAILED)),
        skipped=str(verdicts.count(Verdict.SKIPPED)),
        errors="1" if outcome.problem else "0",
        time=f"{outcome.seconds:.3f}",
    )
    for step in outcome.steps:
        took = f"{step.ended - step.began:.3f}"
        case = Xml.SubElement(suite, "testcase", classname=outcome.name, name=step.title, time=took)
        if step.verdict is Verdict.FAILED:
            failure = Xml.SubElement(case, "failure", message=step.failures[0])
            failure.text = "\n".join(step.failures)
        elif step.verdict is Verdict.SKIPPED:
            Xml.SubElement(case, "skipped")
    if outcome.waiting and not outcome.held:
        Xml.SubElement(suite, "system-out").text = "\n".join(outcome.waiting)
    if outcome.problem:
        Xml.SubElement(suite, "system-err").text = outcome.problem
    return suite
