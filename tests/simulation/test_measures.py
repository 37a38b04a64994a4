"""Values of results, beside values that were computed by hand for small traces."""

from __future__ import annotations

import json

import pytest
from tests.simulation.made_up import PODS, inputs, nodes, run, text_of

from dryrack.cli.hardware import load
from dryrack.simulation import (
    Experiment,
    Input,
    Settings,
    catalogue_fleet,
    document,
    measure_peak,
    read_input_fleet,
    read_input_trace,
    run_one,
)
from dryrack.simulation.engine import simulate
from dryrack.simulation.results import Waits

HEADER = "name,arrival,duration,workers,gang,min_workers,priority,queue,cpu,devices"
# b waits for an hour, and then runs for half an hour on half of the devices.
TWO_QUEUES = [HEADER, "a,0,3600,1,,,0,x,1,gpu:4", "b,0,1800,1,,,0,y,1,gpu:2"]


def test_allocation_and_waits() -> None:
    """4 devices for 3600 s and 2 for 1800 s are 18,000 of 21,600 device seconds."""
    result = run(TWO_QUEUES, nodes(1))

    assert result.allocation_ratio == pytest.approx(18_000 / 21_600, abs=1e-6)
    assert result.utilisation.by_model == {"A": result.allocation_ratio}
    assert result.duration == 5400
    waits = result.waits
    assert (waits.all.count, waits.all.mean, waits.all.max) == (2, 1800, 3600)
    assert {queue: each.mean for queue, each in waits.by_queue.items()} == {"x": 0, "y": 3600}
    assert {number: each.mean for number, each in waits.by_devices.items()} == {"2": 3600, "4": 0}


def test_the_curve_has_the_mean_of_each_part_of_the_time() -> None:
    """Its mean is that of the run; a pod waits in the first two thirds of the time."""
    curve = run(TWO_QUEUES, nodes(1)).curve

    assert [point.time for point in curve[:3]] == [0, 27, 54]
    assert sorted({point.allocated for point in curve}) == [
        50,
        pytest.approx(200 / 3, abs=1e-3),
        100,
    ]
    mean = sum(point.allocated for point in curve) / len(curve)
    assert mean == pytest.approx(100 * 18_000 / 21_600, abs=1e-3)
    assert sum(point.waiting for point in curve) == -(-len(curve) * 2 // 3)


def test_cost_is_that_of_nodes_and_of_idle_devices() -> None:
    """1.5 hours at 4 USD; all devices are idle for 0 hours, and half of them for 0.5 hours."""
    fleet = catalogue_fleet("g6.12xlarge:1", load(()), prices={"g6.12xlarge": 4.0}, currency="USD")
    trace = read_input_trace(Input("trace", "dryrack", text_of(TWO_QUEUES)))

    cost = simulate(trace, fleet, "kubernetes", Settings()).cost

    assert cost is not None
    assert (cost.total, cost.idle, cost.currency) == (6.0, 1.0, "USD")


def test_fairness_compares_the_time_that_queues_run() -> None:
    """x runs all the time, y a third of it: (1 + 1/3)² / (2 · (1 + 1/9)) = 0.8."""
    assert run(TWO_QUEUES, nodes(1)).fairness == 0.8
    assert run(TWO_QUEUES, nodes(2)).fairness == 1
    assert run(TWO_QUEUES[:2], nodes(1)).fairness is None


def test_fairness_counts_pods_that_run_or_wait_at_the_end() -> None:
    """At 50 s, x has run and y has waited: 1² / (2 · 1) = 0.5."""
    assert run(TWO_QUEUES, nodes(1), settings=Settings(until=50)).fairness == 0.5


def test_the_delay_of_a_gang_ends_with_its_first_start() -> None:
    """A gang that is preempted and starts again has waited once, for 40 seconds."""
    trace = [
        HEADER,
        "a,0,50,1,,,0,,1,gpu:4",
        "gang,10,100,2,true,2,0,,1,gpu:4",
        "high,60,10,1,,,5,,1,gpu:4",
    ]

    result = run(trace, nodes(2))

    assert (result.gang_delay.count, result.gang_delay.mean) == (1, 40)
    # The gang starts again at 70 seconds.
    assert (result.preemptions, result.duration) == (2, 170)


def test_pods_that_never_ran_have_the_reason_of_the_scheduler() -> None:
    """Reasons are counted; the most frequent comes first, with an example."""
    trace = [
        HEADER,
        "big,0,10,1,,,0,,1,gpu:5",
        "cpu,0,10,3,,,0,,64,",
        "class,0,10,1,,,0,,1,tpu:1",
        "fits,0,10,1,,,0,,1,gpu:1",
    ]

    result = run(trace, nodes(2))

    assert (result.pods, result.placed, result.failed) == (6, 1, 5)
    assert [each.count for each in result.unplaced] == [3, 1, 1]
    cpu, *others = (each.example for each in result.unplaced)
    assert cpu == "cpu-0: 0/2 nodes are available: 2 Insufficient cpu."
    assert any("device class tpu does not exist" in each for each in others)
    assert any("cannot allocate all claims" in each for each in others)


def test_every_pod_ran_or_never_ran() -> None:
    """The third worker of a gang of at least two has no node until the gang ends."""
    result = run([HEADER, "g,0,10,3,true,2,0,,1,gpu:4"], nodes(2))

    assert (result.pods, result.placed, result.failed) == (3, 2, 1)
    assert result.unplaced[0].reason == "its gang ended before the pod had a node"


def test_without_time_the_result_is_the_state_at_the_end() -> None:
    """All pods arrive at once and never end: 3 of 8 devices are in use."""
    result = run([PODS, "p0,1,1,1,1000,", "p1,1,1,2,1000,"], nodes(2), form="openb")

    assert (result.allocation_ratio, result.duration) == (0.375, 0)
    assert [point.allocated for point in result.curve] == [37.5]


def test_percentiles_are_of_the_nearest_rank() -> None:
    """Of the numbers from 1 to 100, 95 are at most 95."""
    waits = Waits.of([float(number) for number in range(1, 101)])

    assert (waits.p50, waits.p95, waits.p99, waits.max) == (50, 95, 99, 100)
    assert Waits.of([7.0]).p50 == 7


def test_the_check_counts_unknown_ends_and_the_greatest_demand() -> None:
    """A pod with the last deletion time may run on; one without never ends. 6 of 8 devices."""
    header = f"{PODS},qos,pod_phase,creation_time,deletion_time,scheduled_time"
    rows = [
        "p0,1,1,4,1000,,LS,Running,0,100,0",
        "p1,1,1,2,1000,,LS,Running,50,150,60",
        "p2,1,1,2,1000,,LS,Running,120,200,120",
        "p3,1,1,1,500,,LS,Running,130,,130",
    ]
    trace = read_input_trace(Input("trace", "openb", text_of([header, *rows])))
    fleet = read_input_fleet(Input("nodes", "list", text_of(nodes(2))))

    measure_peak(trace, [fleet], Settings().release)

    assert (trace.check.rows, trace.check.censored, trace.check.endless) == (4, 2, 1)
    assert (trace.check.peak_devices, trace.check.peak_demand) == (6, {"nodes": 0.75})


def test_the_document_has_the_fields_of_the_guide() -> None:
    """Programs read these names; a ratio is from 0 to 1."""
    source = inputs(TWO_QUEUES, nodes(1))
    results = [run_one(source, Experiment("fgd", 0, Settings(seed=7)))]
    trace = read_input_trace(source.trace)

    built = json.loads(json.dumps(document(trace.check, results)))

    [entry] = built["runs"]
    assert (entry["policy"], entry["seed"], entry["ties"]) == ("fgd", 7, "fixed")
    assert entry["allocationRatio"] == pytest.approx(0.8333, abs=1e-4)
    assert set(entry["curve"][0]) == {"time", "allocated", "fragmented", "waiting"}
    assert entry["waits"]["byQueue"]["y"]["p95"] == 3600
    assert built["summary"][0]["mean"] == entry["allocationRatio"]
