"""Print the progress of a run: steps with their results, and the tables that they show."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from dryrack.cli.output import (
    erase_line,
    paint,
    print_line,
    print_table,
    shown,
    stdout_console,
)
from dryrack.cli.views.sheets import Look, claim_sheet, device_sheet, gang_sheet
from dryrack.cli.views.slice_table import SLICE_COLUMNS, slice_rows
from dryrack.client.endpoints import (
    CLAIMS,
    COSCHEDULING_POD_GROUPS,
    NODES,
    POD_GROUPS,
    POD_GROUPS_V1BETA1,
    PODS,
    SLICES,
    WORKLOADS_V1ALPHA1,
)
from dryrack.kinds.core import Node, Pod
from dryrack.kinds.decode import decode
from dryrack.kinds.paths import get, status_of
from dryrack.kinds.resource import ResourceClaim, ResourceSlice
from dryrack.kinds.scheduling import (
    CoschedulingPodGroup,
    PodGroup,
    PodGroupV1Beta1,
    WorkloadV1Alpha1,
)
from dryrack.scenario import Verdict, title_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from dryrack.cli.views.sheets import Sheet
    from dryrack.client.endpoints import Endpoint
    from dryrack.kinds.meta import KubernetesObject
    from dryrack.kinds.raw import Raw
    from dryrack.scenario import Fidelity, LoadedScenario, Outcome, Step, StepOutcome, StepOutput

_MARKS = {Verdict.HELD: ("✓", "green"), Verdict.FAILED: ("✗", "bold red")}
# Maximum number of rows of a table during a run.
_ROWS_MAX = 12
# How many pods are named that wait, or that differ from a recording.
_WAITING_MAX = 10
_INDENT = "    "

_MODELS: Mapping[Endpoint, type[KubernetesObject]] = {
    CLAIMS: ResourceClaim,
    PODS: Pod,
    SLICES: ResourceSlice,
    NODES: Node,
    POD_GROUPS: PodGroup,
    POD_GROUPS_V1BETA1: PodGroupV1Beta1,
    WORKLOADS_V1ALPHA1: WorkloadV1Alpha1,
    COSCHEDULING_POD_GROUPS: CoschedulingPodGroup,
}
_SHEETS: Mapping[str, Callable[[Sequence[KubernetesObject], Look], Sheet]] = {
    "claims": claim_sheet,
    "devices": device_sheet,
    "gangs": gang_sheet,
}


class Narrator:
    """Print the steps of a run; on a terminal, a changing line shows the pending expectation."""

    def __init__(self, loaded: LoadedScenario) -> None:
        self._is_live = sys.stdout.isatty()
        self._title = ""
        title = loaded.scenario.title
        name = paint(shown(loaded.name), "bold cyan")
        print_line(f"{name}  {paint(shown(title), 'bold')}" if title else name)
        sys.stdout.flush()

    def began(self, step: Step, at: float) -> None:
        self._title = shown(title_of(step))
        self._change(f"… {self._title}")

    def waits(self, at: float, lacking: Sequence[str]) -> None:
        self._change(f"… {self._title} ({at:.1f} s): {shown(lacking[0])}")

    def ended(self, outcome: StepOutcome) -> None:
        mark, style = _MARKS[outcome.verdict]
        self._clear()
        took = paint(f"({outcome.ended - outcome.began:.1f} s)", "dim")
        print_line(f"  {paint(mark, style)} {shown(outcome.title)} {took}")
        for failure in outcome.failures:
            print_line(paint(f"{_INDENT}{shown(failure)}", "red"))
        sys.stdout.flush()

    def shown(self, output: StepOutput) -> None:
        self._clear()
        print_exhibit(output)
        sys.stdout.flush()

    def _change(self, text: str) -> None:
        if self._is_live:
            width = stdout_console().width
            erase_line()
            sys.stdout.write(f"  {text[: width - 3]}")
            sys.stdout.flush()

    def _clear(self) -> None:
        if self._is_live:
            erase_line()


def print_verdict(outcome: Outcome, real_seconds: float) -> None:
    """Print whether a run passed, the pods that differ from a recording, and why pods wait."""
    mark, style = _MARKS[Verdict.HELD if outcome.held else Verdict.FAILED]
    word = "passed" if outcome.held else "failed"
    text = paint(f"{mark} {shown(outcome.name)} {word}:", f"bold {style}")
    took = f"{real_seconds:.1f}s real"
    if outcome.hash:
        # Only a run in virtual time can be repeated, and has a hash.
        took = f"{outcome.seconds:.1f}s virtual, {took}, run ID {outcome.hash[:12]}"
    print_line(f"{text} {paint(took, 'dim')}")
    if outcome.problem:
        print_line(paint(f"{_INDENT}{shown(outcome.problem)}", "red"))
    if outcome.fidelity is not None:
        print_fidelity(outcome.fidelity, print_line)
    # The reasons of lost pods are printed already.
    waiting = () if outcome.held or outcome.lost else outcome.waiting
    _print_first(waiting, print_line)
    print_line()


def print_fidelity(fidelity: Fidelity, print_text: Callable[[str], None]) -> None:
    """Print how many pods were placed in a recording and now, and which pods differ."""
    print_text(f"{_INDENT}{fidelity.summary}")
    _print_first([f"recorded, not scheduled now: {each}" for each in fidelity.lost], print_text)
    _print_first([f"scheduled now, not recorded: {each}" for each in fidelity.gained], print_text)


def _print_first(lines: Sequence[str], print_text: Callable[[str], None]) -> None:
    for each in lines[:_WAITING_MAX]:
        print_text(f"{_INDENT}{shown(each)}")
    if len(lines) > _WAITING_MAX:
        print_text(f"{_INDENT}and {len(lines) - _WAITING_MAX} more; to print all, use -o json")


def print_exhibit(output: StepOutput) -> None:
    """Print a table or lines."""
    if output.what in _SHEETS:
        _print_sheet(output)
    elif output.what == "slices":
        _print_rows(SLICE_COLUMNS, slice_rows(output.objects[SLICES]))
    elif output.lines:
        for line in output.lines:
            print_line(shown(f"{_INDENT}{line}"))
    elif not output.objects:
        print_line(f"{_INDENT}none")
    else:
        [objects] = output.objects.values()
        columns, rows = _ROWS[output.what]
        _print_rows(columns, [rows(each) for each in objects])


def _print_sheet(output: StepOutput) -> None:
    typed = [
        decode(each, _MODELS[kind]) for kind, found in output.objects.items() for each in found
    ]
    sheet = _SHEETS[output.what](typed, Look(now=output.now, namespaces=True))
    if not sheet.rows:
        print_line(f"{_INDENT}{sheet.empty}")
        return
    if len(sheet.rows) <= _ROWS_MAX or not sheet.footer:
        _print_rows(sheet.columns, [row.cells for row in sheet.rows])
    for line in sheet.footer:
        print_line(shown(f"{_INDENT}{line}"))


def _print_rows(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    print_table(columns, rows[:_ROWS_MAX])
    if len(rows) > _ROWS_MAX:
        print_line(f"… and {len(rows) - _ROWS_MAX} more")


def _node_row(node: Raw) -> tuple[str, ...]:
    conditions = get(node, "status.conditions", ())
    ready = any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
    return node["metadata"]["name"], "Ready" if ready else "NotReady"


def _pod_row(pod: Raw) -> tuple[str, ...]:
    metadata = pod["metadata"]
    status = status_of(pod).get("phase", "")
    node = pod["spec"].get("nodeName", "-")
    return metadata["namespace"], metadata["name"], status, node


def _event_row(event: Raw) -> tuple[str, ...]:
    about = event["involvedObject"]
    subject = f"{about.get('kind', '')}/{about.get('name', '')}"
    return subject, event.get("reason") or "", event.get("message") or ""


_ROWS: Mapping[str, tuple[Sequence[str], Callable[[Raw], Sequence[str]]]] = {
    "nodes": (("NODE", "STATUS"), _node_row),
    "pods": (("NAMESPACE", "NAME", "STATUS", "NODE"), _pod_row),
    "events": (("OBJECT", "REASON", "MESSAGE"), _event_row),
}


def print_summary(outcomes: Iterable[Outcome]) -> None:
    """Print the failed runs and the number of runs that passed."""
    runs = list(outcomes)
    held = sum(each.held for each in runs)
    for each in runs:
        if not each.held:
            print_line(paint(shown(f"✗ {each.name}: {each.failures[0]}"), "bold red"))
    style = "bold green" if held == len(runs) else "bold red"
    print_line(paint(f"{held} of {len(runs)} scenarios passed", style))
