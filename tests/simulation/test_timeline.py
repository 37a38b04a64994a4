"""Pods arrive, wait, run, end, are preempted, and lose their devices."""

from __future__ import annotations

import msgspec
import pytest
from tests.simulation.made_up import inputs, nodes, run

from dryrack.simulation import Change, Experiment, Run, Settings, run_one

HEADER = "name,arrival,duration,workers,gang,priority,queue,cpu,devices"


def test_a_pod_waits_until_devices_are_free() -> None:
    """The wait is the time from the arrival to the start, and the mean ends at the last arrival."""
    trace = [HEADER, "a,0,100,1,,0,x,1,gpu:4", "b,10,50,1,,0,y,1,gpu:4", "c,200,10,1,,0,x,1,gpu:2"]

    result = run(trace, nodes(1))

    assert (result.pods, result.placed, result.failed) == (3, 3, 0)
    assert result.waits.all.max == 90
    assert result.waits.by_queue["y"].mean == 90
    assert result.waits.by_devices["2"].mean == 0
    # From 0 to 150 seconds of 200 all devices are in use.
    assert result.allocation_ratio == 0.75
    assert result.duration == 210


def test_pods_that_came_first_are_tried_first() -> None:
    """Among pods with equal requests and priority the order is that of arrivals."""
    trace = [HEADER, "a,0,100,1,,0,,1,gpu:4", *(f"b{n},{n},10,1,,0,,1,gpu:4" for n in range(1, 4))]

    result = run(trace, nodes(1))

    assert result.waits.all.p50 == 99
    assert result.duration == 130


def test_a_gang_starts_with_all_its_workers() -> None:
    """Three workers of four devices need three nodes, and wait for the third."""
    trace = [HEADER, "a,0,100,1,,0,,1,gpu:4", "g,10,10,3,true,0,,1,gpu:4"]

    result = run(trace, nodes(3))

    assert result.gang_delay.mean == 90
    assert (result.placed, result.failed) == (4, 0)


def test_a_gang_that_fits_on_no_fleet_never_runs() -> None:
    """None of its workers runs, and the reason is that of the decider."""
    trace = [HEADER, "a,0,100,1,,0,,1,gpu:1", "g,10,10,3,true,0,,1,gpu:4"]

    result = run(trace, nodes(2))

    assert (result.placed, result.failed) == (1, 3)
    assert "2 of 3 pods fit" in result.unplaced[0].example


def test_a_pod_of_higher_priority_preempts() -> None:
    """The victim starts again when the device is free, and runs for its whole duration."""
    trace = [HEADER, "low,0,100,1,,0,,1,gpu:4", "high,50,10,1,,5,,1,gpu:4"]

    result = run(trace, nodes(1))

    assert (result.preemptions, result.placed) == (1, 2)
    assert result.duration == 160
    assert run(trace, nodes(1), settings=Settings(preempt=False)).duration == 110


def test_a_gang_is_preempted_as_a_whole() -> None:
    """No worker of a gang goes on alone."""
    trace = [HEADER, "g,0,100,2,true,0,,1,gpu:4", "high,50,10,1,,5,,1,gpu:4"]

    result = run(trace, nodes(2))

    assert result.preemptions == 2
    assert result.duration == 160


def test_a_gang_preempts_as_many_pods_as_it_needs() -> None:
    """Both nodes are needed, so both pods make way."""
    trace = [
        HEADER,
        *("a,0,100,1,,0,,1,gpu:4", "b,0,100,1,,0,,1,gpu:4"),
        "g,50,10,2,true,5,,1,gpu:4",
    ]

    result = run(trace, nodes(2))

    assert result.preemptions == 2
    assert result.gang_delay.max == 0


def test_a_device_that_fails_interrupts_its_pod() -> None:
    """The pod goes to another node; a later pod waits until the device is repaired."""
    trace = [HEADER, "a,0,100,1,,0,,1,gpu:4", "b,20,10,1,,0,,1,gpu:4"]
    changes = (Change(10, False, "n0", "gpu-2"), Change(500, True, "n0", "gpu-2"))

    result = run(trace, nodes(1), settings=Settings(changes=changes))

    assert result.interrupted == 1
    assert (result.placed, result.duration) == (2, 610)


def test_a_node_goes_and_comes_back() -> None:
    """Its pods start again, on another node or when it is back."""
    trace = [HEADER, "a,0,100,1,,0,,1,gpu:4"]
    changes = (Change(10, False, "n0"), Change(50, True, "n0"))

    result = run(trace, nodes(1), settings=Settings(changes=changes))

    assert (result.interrupted, result.duration) == (1, 150)


@pytest.mark.parametrize("policy", ["kubernetes", "random", "fgd"])
def test_one_seed_has_one_result(policy: str) -> None:
    """A run with random failures is the same again, and another seed is another run."""
    trace = [
        HEADER,
        *(f"j{n},{n * 7 % 50},{20 + n},1,,{n % 2},,1,gpu:{n % 4 + 1}" for n in range(60)),
    ]
    settings = Settings(device_mtbf=2000, device_repair=50, node_mtbf=500, node_repair=20)
    source = inputs(trace, nodes(3))

    first = run_one(source, Experiment(policy, 0, settings))
    again = run_one(source, Experiment(policy, 0, settings))
    other = run_one(source, Experiment(policy, 0, msgspec.structs.replace(settings, seed=7)))

    assert isinstance(first, Run)
    assert first.interrupted > 0
    assert (first.placed, first.failed) == (60, 0)
    assert msgspec.json.encode(first) == msgspec.json.encode(again)
    assert msgspec.json.encode(first) != msgspec.json.encode(other)


def test_failures_that_leave_no_time_to_run_end_with_an_error() -> None:
    """The error names the options that help."""
    trace = [HEADER, "a,0,100000,1,,0,,1,gpu:1"]
    settings = Settings(node_mtbf=10, node_repair=1)

    result = run_one(inputs(trace, nodes(2)), Experiment("kubernetes", 0, settings))

    assert "interrupted faster than they end" in getattr(result, "error", "")


def test_a_run_stops_at_the_given_time() -> None:
    """Pods that wait by then count as never run."""
    trace = [HEADER, "a,0,100,1,,0,,1,gpu:4", "b,10,50,1,,0,,1,gpu:4"]

    result = run(trace, nodes(1), settings=Settings(until=50))

    assert (result.placed, result.failed, result.duration) == (1, 1, 50)
