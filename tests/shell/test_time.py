"""Scripts take the time that they say, and react to signals."""

from __future__ import annotations

import math

import pytest
from tests.shell.processes import Container, output_of, run

from dryrack.shell.process import Process


@pytest.mark.parametrize(
    ("script", "seconds"),
    [
        ("sleep 6", 6.0),
        ("sleep 1.5; sleep 2m", 121.5),
        ("for i in 1 2 3; do sleep 10; done", 30.0),
        ("sleep 5 & sleep 3; wait", 5.0),
        ("sleep 100 & true", 0.0),
        ("i=0; until [ $i -ge 3 ]; do i=$((i+1)); sleep 1; done", 3.0),
        ("timeout 4 sleep 10; sleep 1", 5.0),
        ("sleep 2 | cat; sleep 1", 3.0),
        ("nvidia-smi; sleep 1", 6.0),
    ],
)
def test_a_script_ends_when_its_commands_have_ended(script: str, seconds: float) -> None:
    """Time passes only in `sleep`, and in programs that dryrack does not know."""
    assert run(script).ended_at == seconds


@pytest.mark.parametrize(
    "script",
    ["sleep infinity", "tail -f /dev/null", "while true; do sleep 5; done", "sleep inf & wait"],
)
def test_a_script_without_an_end_runs_on(script: str) -> None:
    """A program that never ends has no exit code."""
    assert run(script).exit_code is None


def test_output_has_the_time_at_which_it_was_written() -> None:
    """`kubectl logs --timestamps` and `-f` show when a line was written."""
    process = run("echo hello; sleep 6; echo bye")

    assert [(each.at, each.data) for each in process.output] == [(0.0, b"hello\n"), (6.0, b"bye\n")]


def test_a_loop_that_never_sleeps_takes_time() -> None:
    """A busy loop neither blocks dryrack nor stops the clock of the container."""
    process = run("i=0; while [ $(date +%s) -lt 3 ]; do i=$((i+1)); done; echo end", until=10.0)

    assert (process.exit_code, output_of(process)) == (0, "end\n")


def test_a_loop_that_only_a_signal_ends_needs_no_wake() -> None:
    """The kubelet does not wake for a program that cannot end by itself."""
    endless = run("while true; do date; sleep 5; done", until=20.0)
    ends = run("while true; do date; sleep 5; [ -f /tmp/x ] && exit; done", until=20.0)

    assert (endless.is_endless, ends.is_endless) == (True, False)


@pytest.mark.parametrize(
    ("script", "ended_at", "code", "last"),
    [
        ("trap 'echo bye; exit 7' TERM; sleep 9999 & wait", 10.0, 7, "bye\n"),
        # A foreground command ends before the trap runs, as in every shell.
        ("trap 'echo bye; exit 0' TERM; while true; do sleep 4; done", 12.0, 0, "bye\n"),
        ("trap 'stop=1' TERM; while [ -z $stop ]; do sleep 4; done; echo out", 12.0, 0, "out\n"),
    ],
)
def test_a_trap_handles_sigterm(script: str, ended_at: float, code: int, last: str) -> None:
    """A script with a trap ends as the trap says."""
    process = Container().start(script)
    process.run(10.0)
    process.signal("TERM")
    process.run(1000.0)

    assert (process.ended_at, process.exit_code) == (ended_at, code)
    assert output_of(process).endswith(last)


def test_without_a_trap_a_signal_does_nothing() -> None:
    """The first process of a container ignores signals that it does not handle."""
    process = Container().start("sleep 20")
    process.run(10.0)
    process.signal("TERM")
    process.run(1000.0)

    assert (process.handles_signals, process.ended_at) == (False, 20.0)


def test_containers_share_a_volume() -> None:
    """A file in an emptyDir that one container writes ends the loop of another."""
    container = Container()
    waiting = container.start("until [ -f /data/ready ]; do sleep 1; done; cat /data/ready")
    writing = container.start("sleep 3; echo yes > /data/ready")
    for second in range(10):
        writing.run(float(second))
        waiting.run(float(second))

    assert (waiting.ended_at, output_of(waiting)) == (3.0, "yes\n")


def test_a_program_that_nobody_watched_is_not_repeated_for_hours() -> None:
    """After a very long time a loop goes on from the present, and its log says so."""
    process = run("while true; do echo x; sleep 0.001; done", until=3600.0)

    assert "left out" in output_of(process)
    assert process.wakes_at < math.inf


def test_the_output_of_a_process_has_a_bound() -> None:
    """The oldest output goes first."""
    process = Process(0.0)
    for number in range(3):
        process.write(1, bytes((number,)) * (1 << 20))

    assert [each.data[:1] for each in process.output] == [b"\x02"]
    assert process.dropped_bytes == 2 << 20


def test_the_same_script_gives_the_same_output() -> None:
    """A process can be computed again from its start, for example after a restart."""
    script = "for i in 1 2 3; do echo $i $(date +%s); sleep $i; done | grep -v 2"

    assert run(script).output == run(script).output


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ("while true; do :; done", None),
        ("x=a; while true; do x=$x$x; done", None),
        ("seq 1000000000 | wc -l", 0),
        ("echo {1..999999999} | wc -w", 0),
        ("f() { f; }; f", 2),
        # A mistake that a command does not expect ends the container, and nothing else.
        ("head -n x < /dev/null", 2),
    ],
)
def test_no_script_takes_time_or_memory_without_bound(script: str, code: int | None) -> None:
    """Each call runs a bounded number of steps, also after an hour without a reader."""
    process = run(script, until=3600.0)

    assert process.exit_code == code
    assert code is not None or process.wakes_at > 3600.0
