"""Results as JUnit XML: a suite for each scenario, a case for each step."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree as Xml

from dryrack.base.escaping import visible, visible_lines, xml_lines
from dryrack.scenario import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dryrack.scenario import Outcome


def junit_xml(outcomes: Iterable[Outcome]) -> str:
    """Return the whole document; times are those of the scenarios."""
    suites = Xml.Element("testsuites", name="dryrack scenario")
    for outcome in outcomes:
        suites.append(_suite(outcome))
    Xml.indent(suites)
    return xml_lines(Xml.tostring(suites, encoding="unicode", xml_declaration=True)) + "\n"


def _suite(outcome: Outcome) -> Xml.Element:
    verdicts = [each.verdict for each in outcome.steps]
    if outcome.fidelity is not None:
        verdicts.append(Verdict.FAILED if outcome.lost else Verdict.HELD)
    suite = Xml.Element(
        "testsuite",
        name=visible(outcome.name),
        tests=str(len(verdicts)),
        failures=str(verdicts.count(Verdict.FAILED)),
        skipped=str(verdicts.count(Verdict.SKIPPED)),
        errors="1" if outcome.problem else "0",
        time=f"{outcome.seconds:.3f}",
    )
    for step in outcome.steps:
        took = f"{step.ended - step.began:.3f}"
        names = {"classname": visible(outcome.name), "name": visible(step.title)}
        case = Xml.SubElement(suite, "testcase", names, time=took)
        if step.verdict is Verdict.FAILED:
            failure = Xml.SubElement(case, "failure", message=visible(step.failures[0]))
            failure.text = visible_lines("\n".join(step.failures))
        elif step.verdict is Verdict.SKIPPED:
            Xml.SubElement(case, "skipped")
    if outcome.fidelity is not None:
        case = Xml.SubElement(
            suite,
            "testcase",
            classname=outcome.name,
            name="pods scheduled as recorded",
            time="0.000",
        )
        Xml.SubElement(case, "system-out").text = outcome.fidelity.summary
        if outcome.lost:
            failure = Xml.Element("failure", message=f"not scheduled now: {outcome.lost[0]}")
            failure.text = "\n".join(outcome.lost)
            case.insert(0, failure)
    if outcome.waiting and not outcome.held:
        Xml.SubElement(suite, "system-out").text = visible_lines("\n".join(outcome.waiting))
    if outcome.problem:
        Xml.SubElement(suite, "system-err").text = visible_lines(outcome.problem)
    return suite
