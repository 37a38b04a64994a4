"""Probes run only when their result can change."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dryrack.controllers.containers.probes import ProbeResult, Probes

if TYPE_CHECKING:
    from collections.abc import Sequence

READY = {"name": "c", "readinessProbe": {"exec": {"command": ["check"]}, "periodSeconds": 5}}
START = 100.0


def probes() -> Probes:
    return Probes(READY, START, None)


class Script:
    """Results of a command, one after another; the last one repeats."""

    def __init__(self, *messages: str | None, reads_clock: bool = False) -> None:
        self.messages = list(messages)
        self.reads_clock = reads_clock
        self.times: list[float] = []

    def run(self, words: Sequence[str], at: float, seconds: float) -> ProbeResult:
        self.times.append(at)
        message = self.messages.pop(0) if len(self.messages) > 1 else self.messages[0]
        return ProbeResult(message, reads_clock=self.reads_clock)


def test_a_probe_that_passed_waits_for_a_change() -> None:
    """A settled probe is not due until something changes, and then at its next period."""
    subject, script = probes(), Script(None)
    subject.run(START, 0, script.run)

    assert subject.health.is_ready
    assert subject.due_at(0, START, math.inf) == math.inf
    assert subject.due_at(0, START, START + 12) == START + 15
    assert subject.due_at(1, START + 3601, math.inf) == START + 3605


def test_a_probe_that_counts_failures_runs_every_period() -> None:
    """One failure of three does not count yet, so the probe runs again."""
    subject, script = probes(), Script(None, "no")
    subject.run(START, 0, script.run)
    subject.run(START + 5, 1, script.run)

    states = [(subject.health.is_ready, subject.health.changed_at)]
    assert subject.due_at(1, START + 5, math.inf) == START + 10
    subject.run(START + 10, 1, script.run)
    subject.run(START + 15, 1, script.run)
    states.append((subject.health.is_ready, subject.health.changed_at))
    assert states == [(True, START), (False, START + 15)]
    assert subject.due_at(1, START + 15, math.inf) == math.inf


def test_a_probe_that_reads_the_clock_runs_every_period() -> None:
    """Its result can change although no file does."""
    subject, script = probes(), Script(None, reads_clock=True)
    subject.run(START, 0, script.run)

    assert subject.due_at(0, START, math.inf) == START + 5


def test_a_probe_that_writes_files_runs_again() -> None:
    """A probe that counts its own runs in a file sees another file next time."""
    subject, script = probes(), Script("first run")
    subject.run(START, 7, script.run)

    assert subject.due_at(8, START, math.inf) == START + 5
