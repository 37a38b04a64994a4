"""Print the results of a conformance run."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING
from xml.etree import ElementTree as Xml

from dryrack.base.escaping import visible, visible_lines, xml_lines
from dryrack.cli.drivers.commands import ReportFormat
from dryrack.cli.output import Format, print_data, print_line, print_table, say, shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.kubelet import Result

_OUTCOMES = ("passed", "failed", "skipped")


def print_results(results: Sequence[Result], form: ReportFormat, driver: str) -> None:
    """Print the results; `driver` is the name of the driver."""
    counts = {name: sum(each.outcome == name for each in results) for name in _OUTCOMES}
    if form is ReportFormat.JSON:
        requirements = [each.document() for each in results]
        print_data({"driver": driver, "requirements": requirements, "counts": counts}, Format.JSON)
        return
    if form is ReportFormat.JUNIT:
        print_line(junit_xml(results, driver, datetime.now(UTC)))
        return
    print_table(
        ("REQUIREMENT", "OUTCOME", "SECONDS", "REASON"),
        [(e.name, str(e.outcome), f"{e.seconds:.2f}", shown(e.reason) or "-") for e in results],
    )
    for each in results:
        if each.outcome == "failed":
            _explain(each)
    say("\n" + ", ".join(f"{count} {name}" for name, count in counts.items()))


def _explain(result: Result) -> None:
    say(f"\n{result.name}: {result.contract}\n  sent: {shown(result.sent)}")
    say("\n".join(f"  got:  {shown(line)}" for line in result.got.splitlines()))
    if result.steps:
        say(
            "  run it again: save these lines as FILE, and run: "
            "dryrack driver test --replay FILE -- PROGRAM ..."
        )
        say("\n".join(f"    {each}" for each in result.steps))
        return
    say(f"  run it again: dryrack driver test --focus '^{result.name}$' -- PROGRAM ...")


def junit_xml(results: Sequence[Result], driver: str, now: datetime) -> str:
    """Return the results as JUnit XML."""
    counts = {
        "tests": str(len(results)),
        "failures": str(sum(each.outcome == "failed" for each in results)),
        "errors": "0",
        "skipped": str(sum(each.outcome == "skipped" for each in results)),
        "time": f"{sum(each.seconds for each in results):.3f}",
    }
    suites = Xml.Element("testsuites", {"name": "dryrack driver test", **counts})
    stamp = now.replace(tzinfo=None).isoformat(timespec="seconds")
    suite = Xml.SubElement(suites, "testsuite", {"name": driver, "timestamp": stamp, **counts})
    for each in results:
        case = Xml.SubElement(
            suite, "testcase", classname=driver, name=each.name, time=f"{each.seconds:.3f}"
        )
        if each.outcome == "failed":
            failure = Xml.SubElement(
                case, "failure", type="requirement", message=visible(each.contract)
            )
            steps = "".join(f"\n{step}" for step in each.steps)
            failure.text = visible_lines(f"sent: {each.sent}\ngot: {each.got}{steps}")
        elif each.outcome == "skipped":
            Xml.SubElement(case, "skipped", message=visible(each.reason))
    Xml.indent(suites)
    return xml_lines(Xml.tostring(suites, encoding="unicode", xml_declaration=True))
