"""Traces of other systems: each format in a small made-up file."""

from __future__ import annotations

import gzip
import json
import re

import pytest
from tests.simulation.made_up import inputs, nodes, run, text_of

from dryrack.simulation import (
    Arrivals,
    Change,
    Experiment,
    FailedRun,
    Input,
    Settings,
    Trace,
    TraceError,
    read_input_fleet,
    read_input_trace,
    run_one,
)

SPOT_COLUMNS = (
    *("job_name", "organization", "gpu_model", "cpu_request", "gpu_request", "worker_num"),
    *("submit_time", "duration", "job_type"),
)


def read(form: str, *lines: str, arrivals: Arrivals | None = None) -> Trace:
    return read_input_trace(Input("trace", form, text_of(lines), arrivals))


def test_a_native_trace_is_csv_or_json_lines() -> None:
    """Both have the same columns and the same result."""
    table = read(
        "dryrack",
        "name,arrival,duration,workers,gang,min_workers,cpu,devices,share,queue",
        "a,5,10,3,true,2,500m,gpu:1,milli=300,q",
        "b,1,,,,,2,gpu:2;nic:1,,",
    )
    lines = read(
        "dryrack",
        '{"name": "a", "arrival": 5, "duration": 10, "workers": 3, "gang": true, "min_workers": 2,'
        ' "cpu": "500m", "devices": "gpu:1", "share": "milli=300", "queue": "q"}',
        '{"name": "b", "arrival": 1, "cpu": "2", "devices": "gpu:2;nic:1"}',
    )

    for trace in (table, lines):
        first, second = trace.jobs
        assert (first.name, first.arrival, first.duration, first.shape.devices) == ("b", 1, None, 3)
        assert (second.workers, second.gang, second.queue) == (3, 2, "q")
        assert second.shape.demand == 300
        assert trace.check.censored == 1


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("x,-1,,,", "trace:2: column arrival: '-1' is not a number from 0 to 100000000000"),
        ("x,1,,gpu,", "trace:2: column devices: 'gpu' is not CLASS:COUNT"),
        ("x,1,,,maybe", "trace:2: column gang: 'maybe' is neither true nor false"),
        ("x,1,,", "trace:2: 4 fields; the header has 5"),
        ("x,1e300,,,", "trace:2: column arrival: '1e300' is not a number from 0 to"),
        ("x,1,nan,,", "trace:2: column duration: 'nan' is not a number from 0 to 100000000000"),
    ],
)
def test_a_wrong_value_is_reported_with_its_line(line: str, problem: str) -> None:
    """The error names the column and what it expects."""
    with pytest.raises(TraceError, match=re.escape(problem)):
        read("dryrack", "name,arrival,duration,devices,gang", line)


OPENB = "name,cpu_milli,memory_mib,num_gpu,gpu_milli"
SACCT = "JobIDRaw|Submit|Start|End|State|Partition|NNodes|ReqTRES|AllocTRES"
TIMES = "2026-01-01T00:00:00|2026-01-01T00:10:00|2026-01-01T01:10:00"


@pytest.mark.parametrize(
    ("form", "lines", "problem"),
    [
        ("dryrack", ["name,arrival", "", ""], "trace: the trace has no jobs"),
        ("dryrack", ["name;arrival", "a;0"], "separated by ';'; separate them by ','"),
        ("dryrack", ["arrival,arrival", "0,0"], "trace:1: column 'arrival' occurs twice"),
        ("dryrack", ["arrival,workers", "0,1000000"], "a whole number from 1 to 100000"),
        ("dryrack", ["arrival,cpu", "0,-1"], "column cpu: '-1' is not a quantity of 0 or more"),
        ("dryrack", ["arrival,share", "0,milli=x"], "column share: 'milli=x' is not CAPACITY="),
        ("dryrack", ['{"arrival": 0, "workers": 2.5}'], "column workers: '2.5' is not a whole"),
        ("openb", [OPENB, "a,-1,1,0,0"], "column cpu_milli: '-1' is not a whole number from 0"),
        ("openb", [OPENB, "a,1,1,1,0"], "column gpu_milli: 1 GPUs of 0 thousandths"),
        ("sacct", [SACCT, f"1|{TIMES}|COMPLETED|p|1|cpu=nan|"], "an amount is negative or too"),
        ("sacct", [SACCT, f"1|{TIMES}|COMPLETED|p|x|cpu=1|"], "column NNodes: 'x' is not a whole"),
        ("sacct", [SACCT.replace("|", ",")], "separated by ','; separate them by '|'"),
        ("philly", ["[1]"], "trace: expected a list of jobs"),
        (
            "philly",
            ['[{"submitted_time": "2017-10-07 01:00:00", "attempts": [1]}]'],
            "trace: job 1: attempts is not a list of objects",
        ),
        ("recording", ["steps: 5"], "trace: steps: expected a list of objects"),
        ("manifests", ["kind: List", "items: 3"], "trace:2: items: expected a list"),
        (
            "manifests",
            ["apiVersion: apps/v1", "kind: Deployment", "spec: {replicas: -1}"],
            "spec.replicas: -1 is not a whole number from 0 to 100000",
        ),
    ],
)
def test_a_wrong_file_is_a_clear_error(form: str, lines: list[str], problem: str) -> None:
    """The error names the file and what is wrong with it."""
    with pytest.raises(TraceError, match=re.escape(problem)):
        read(form, *lines)


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        (["n,1,1,-1,A"], "column gpu: '-1' is not a whole number from 0 to 128"),
        (["n,1,1,1,A", "n,1,1,1,A"], "two nodes have the name 'n'"),
        ([",1,1,1,A"], "a node has no name"),
        ([], "the fleet has no nodes"),
    ],
)
def test_a_wrong_list_of_nodes_is_a_clear_error(rows: list[str], problem: str) -> None:
    """The error names the file and what is wrong with it."""
    with pytest.raises(TraceError, match=re.escape(problem)):
        read_input_fleet(Input("nodes", "list", text_of([nodes()[0], *rows])))


def test_files_of_spreadsheets_are_read_and_compressed_files_are_not() -> None:
    """A byte order mark and Windows line ends are no part of the text."""
    text = b'\xef\xbb\xbf"name","arrival"\r\n"a",5\r\n'

    [job] = read_input_trace(Input("trace", "dryrack", text)).jobs

    assert (job.name, job.arrival) == ("a", 5)
    with pytest.raises(TraceError, match="the file is compressed; decompress it"):
        read_input_trace(Input("trace", "dryrack", gzip.compress(text)))


def test_jobs_of_one_name_are_different_jobs() -> None:
    """Each has its own claims: together they have all four devices."""
    result = run([OPENB, "a,1,1,2,1000", "a,1,1,2,1000"], nodes(1), form="openb")

    assert (result.placed, result.allocation_ratio) == (2, 1)


def test_a_change_of_an_unknown_device_is_an_error() -> None:
    """A typing mistake does not simulate a fleet without failures."""
    for change in (Change(1, False, "n9"), Change(1, False, "n0", "gpu-9")):
        source = inputs(["name,arrival", "a,0"], nodes(1))
        result = run_one(source, Experiment("kubernetes", 0, Settings(changes=(change,))))

        assert isinstance(result, FailedRun)
        assert "n9" in result.error or "gpu-9" in result.error


def test_openb_times_and_models() -> None:
    """A pod runs from its scheduling to its deletion; repeated models count once."""
    trace = read(
        "openb",
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,"
        "deletion_time,scheduled_time",
        "p1,1000,1024,1,470,V100M16|V100M32|V100M32,LS,Running,100,900,150",
        "p2,1000,1024,2,1000,,BE,Pending,50,1000,",
    )

    pending, running = trace.jobs
    assert (pending.arrival, pending.duration) == (0, 950)
    assert (running.arrival, running.duration, running.queue) == (50, 750, "LS")
    [claim] = running.shape.claims
    [request] = claim.spec.devices.requests
    assert request.exactly is not None
    assert request.exactly.selectors[0].cel is not None
    assert request.exactly.selectors[0].cel.expression.endswith('in ["V100M16", "V100M32"]')
    assert trace.check.censored == 1


def test_sacct_resources_are_those_of_one_node() -> None:
    """Totals are divided by the nodes; typed GPUs are not added to their sum."""
    trace = read(
        "sacct",
        "JobIDRaw|Submit|Start|End|State|Partition|NNodes|ReqTRES|AllocTRES",
        "1|2026-01-01T00:00:00|2026-01-01T00:10:00|2026-01-01T01:10:00|COMPLETED|big|2|"
        "cpu=32,mem=256G,node=2,gres/gpu=16,gres/gpu:a100=16|",
        "1.batch|2026-01-01T00:00:00|2026-01-01T00:10:00|2026-01-01T01:10:00|COMPLETED|big|2|cpu=1|",
        "2|2026-01-01T00:01:00|Unknown|2026-01-01T00:02:00|CANCELLED by 7|big|1|cpu=1|",
        "3|2026-01-01T00:02:00|2026-01-01T00:02:00|Unknown|RUNNING|small|1|cpu=3,mem=5000M|",
    )

    gang, single = trace.jobs
    assert (gang.workers, gang.gang, gang.duration, gang.queue) == (2, 2, 3600, "big")
    assert (gang.shape.cpu, gang.shape.devices) == (16_000, 8)
    assert gang.shape.constraints.amounts["memory"] == 128 * 2**30 * 10**9
    assert (single.arrival, single.duration, single.shape.devices) == (120, None, 0)
    assert trace.check.dropped == {
        "the row is a step of a job": 1,
        "the job ended before it started": 1,
    }


def test_philly_jobs_have_the_gpus_of_their_last_attempt() -> None:
    """A job on two machines is a gang; one without an attempt is left out."""
    attempt = {
        "start_time": "2017-10-07 01:00:00",
        "end_time": "2017-10-07 02:00:00",
        "detail": [{"ip": "m1", "gpus": ["g0", "g1"]}, {"ip": "m2", "gpus": ["g0", "g1"]}],
    }
    jobs = [
        {"jobid": "a", "vc": "v", "submitted_time": "2017-10-07 00:50:00", "attempts": [attempt]},
        {"jobid": "b", "vc": "v", "submitted_time": "2017-10-07 00:51:00", "attempts": []},
    ]

    trace = read("philly", json.dumps(jobs))

    [job] = trace.jobs
    assert (job.workers, job.gang, job.duration, job.shape.devices) == (2, 2, 3600, 2)
    assert trace.check.dropped == {"the job never had a GPU, so its request is unknown": 1}
    machines = ["machineId, number of GPUs, single GPU mem", "m1, 2, 12GB", "m2, 2, 24GB"]
    fleet = read_input_fleet(Input("machines", "list", text_of(machines)))
    assert [len(each.spec.devices) for each in fleet.slices] == [2, 2]


def test_spot_jobs_have_two_priorities() -> None:
    """The node list has no memory; jobs name the model of their GPUs."""
    jobs = [
        ",".join(SPOT_COLUMNS),
        "a,org,A10,4,1,2,0,100,HP",
        "b,org,H800,4,0.5,1,10,100,Spot",
    ]
    fleet = ["gpu_model,gpu_capacity_num,cpu_num,node_name", "A10,2,64,n1", "H800,1,64,n2"]

    trace = read("spot2026", *jobs)
    result = run(jobs, fleet, form="spot2026")

    assert [(job.priority, job.workers, job.shape.demand) for job in trace.jobs] == [
        (100, 2, 1000),
        (0, 1, 500),
    ]
    assert (result.placed, result.failed) == (3, 0)
    assert sorted(result.utilisation.by_model) == ["A10", "H800"]


MANIFESTS = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: one}
spec: {spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu, count: 1}}]}}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: train}
spec:
  parallelism: 2
  template:
    spec:
      containers: [{name: c, image: i, resources: {requests: {cpu: 1}}}]
      resourceClaims: [{name: r, resourceClaimTemplateName: one}]
"""


def test_manifests_arrive_at_a_rate() -> None:
    """A workload has the pods of its parallelism, each with a claim of the template."""
    arrivals = Arrivals(per_hour=60, number=50, duration=600)

    trace = read("manifests", *MANIFESTS.splitlines(), arrivals=arrivals)

    assert [job.workers for job in trace.jobs] == [2] * 50
    assert {job.shape.devices for job in trace.jobs} == {1}
    assert 30 * 60 < trace.jobs[-1].arrival < 75 * 60


def test_a_manifest_without_its_template_is_an_error() -> None:
    """The error names the pod and the missing object."""
    document = MANIFESTS.partition("---")[2]

    with pytest.raises(TraceError, match="the file has no claim or template 'one'"):
        read("manifests", *document.splitlines())


RECORDING = """
apiVersion: dryrack.dev/v1alpha1
kind: Scenario
fleet:
  nodes:
    - name: n0
      labels: {zone: a}
      taints: [{key: k, effect: NoSchedule}]
      capacity: {cpu: "8", pods: "10"}
objects:
  - {kind: DeviceClass, metadata: {name: gpu}}
  - kind: ResourceSlice
    metadata: {name: s}
    spec:
      driver: gpu.example.com
      nodeName: n0
      pool: {name: n0, generation: 1, resourceSliceCount: 1}
      devices: [{name: d0}, {name: d1}]
  - kind: ResourceClaimTemplate
    metadata: {name: one, namespace: default}
    spec: {spec: {devices: {requests: [{name: r, exactly:
      {deviceClassName: gpu, count: 1, allocationMode: ExactCount}}]}}}
steps:
  - at: 10s
    apply:
      - kind: Pod
        metadata: {name: a, namespace: default}
        spec:
          containers: [{name: c}]
          resourceClaims: [{name: r, resourceClaimTemplateName: one}]
"""


def test_a_recording_has_the_pods_and_the_fleet() -> None:
    """The times are those of the steps; pods never end."""
    source = Input("recording.yaml", "recording", RECORDING.encode())

    trace = read_input_trace(source)
    fleet = read_input_fleet(source)

    assert [(job.arrival, job.duration, job.shape.devices) for job in trace.jobs] == [(10, None, 1)]
    [node] = fleet.nodes
    assert (node.metadata.name, node.metadata.labels) == ("n0", {"zone": "a"})
    assert str(node.status.allocatable["cpu"]) == "8"
    assert node.spec.taints[0].key == "k"


def test_a_list_of_nodes_is_known_by_its_columns() -> None:
    """Any list can be used with any trace."""
    fleet = read_input_fleet(Input("nodes.csv", "list", text_of(nodes(3))))

    assert len(fleet.nodes) == 3
    with pytest.raises(TraceError, match="no column of a known list of nodes"):
        read_input_fleet(Input("nodes.csv", "list", b"name,gpus\n"))
