"""The options of `dryrack simulate`."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Annotated

from dryrack.cli.command import Context, Kubeconfig, SelectedCluster, argument, option, panel
from dryrack.cli.options import CatalogueFile, Release  # noqa: TC001 - typer reads annotations
from dryrack.kinds.releases import DEFAULT_RELEASE


class SimulateFormat(enum.StrEnum):
    """The formats of results."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


_input_option = panel("Trace and fleet")
_policy_option = panel("Policies")
_fault_option = panel("Time and failures")
_sweep_option = panel("Sweep")


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulateOptions:
    """
    Run a trace of jobs on a fleet, and compare scheduling policies.

    Each decision is made by the code that schedules pods in a cluster. The same
    trace, fleet, policy, and seed always give the same result.

    Exit status 0: all runs ended.
    Exit status 1: a run failed, or a file has an error.
    Exit status 2: wrong usage.
    """

    trace: Annotated[
        str, argument(metavar="TRACE", help="File with the jobs, or - for standard input.")
    ]
    format: Annotated[
        str,
        _input_option(
            "--format",
            help="Format of TRACE: dryrack, openb, spot2026, sacct, philly, recording, or"
            " manifests.",
        ),
    ] = "dryrack"
    nodes: Annotated[
        tuple[str, ...],
        _input_option(
            "--nodes",
            metavar="FILE",
            help="List of nodes of a trace, or manifests with Nodes and ResourceSlices."
            " Repeatable, to compare.",
        ),
    ] = ()
    fleet: Annotated[
        tuple[str, ...],
        _input_option(
            "--fleet",
            metavar="TYPE:N,...",
            help='Nodes of instance types, such as p5.48xlarge:4, or "cluster" for the nodes of a'
            " cluster. Repeatable, to compare.",
        ),
    ] = ()
    catalogue_file: CatalogueFile = ()
    prices: Annotated[
        tuple[str, ...],
        _input_option(
            "--prices", metavar="FILE", help="PriceList that replaces packaged prices. Repeatable."
        ),
    ] = ()
    kubeconfig: Kubeconfig = ""
    context: Context = ""
    cluster: SelectedCluster = ""
    inflate: Annotated[
        float | None,
        _input_option(
            metavar="RATIO",
            help="Ignore times; let pods arrive until they ask for this many times the devices.",
        ),
    ] = None
    rate: Annotated[
        float, _input_option(help="Arrivals per hour of manifests, at random times.")
    ] = 60.0
    arrivals: Annotated[int, _input_option(help="Number of arrivals of manifests.")] = 100
    mean_duration: Annotated[
        str,
        _input_option(
            metavar="DURATION", help="Mean running time of pods of manifests. Default: no end."
        ),
    ] = ""
    release: Release = DEFAULT_RELEASE.value
    policy: Annotated[
        tuple[str, ...],
        _policy_option(
            "--policy",
            metavar="NAME,...",
            help="random, dot-product, gpu-clustering, gpu-packing, best-fit, fgd, kubernetes, or a"
            " scoring plugin. Default: kubernetes.",
        ),
    ] = ()
    ties: Annotated[
        str,
        _policy_option(
            metavar="RULE",
            help="Node to choose among equals: fewest-pods, name, fixed, or random. Default: by"
            " policy.",
        ),
    ] = ""
    retry: Annotated[
        bool, _policy_option("--retry/--no-retry", help="Let pods that do not fit wait.")
    ] = True
    preemption: Annotated[
        bool,
        _policy_option("--preemption/--no-preemption", help="Preempt pods of lower priority."),
    ] = True
    until: Annotated[
        str, _fault_option(metavar="DURATION", help="Stop after this time of the trace.")
    ] = ""
    device_mtbf: Annotated[
        str,
        _fault_option(metavar="DURATION", help="Mean time until a device fails. Default: never."),
    ] = ""
    device_repair: Annotated[
        str, _fault_option(metavar="DURATION", help="Mean time until a device is repaired.")
    ] = "1h"
    node_mtbf: Annotated[
        str,
        _fault_option(metavar="DURATION", help="Mean time until a node fails. Default: never."),
    ] = ""
    node_repair: Annotated[
        str, _fault_option(metavar="DURATION", help="Mean time until a node comes back.")
    ] = "1h"
    changes: Annotated[
        str,
        _fault_option(
            metavar="FILE",
            help="CSV with time, event (fail or repair), node, and device: nodes without a device"
            " go and come back.",
        ),
    ] = ""
    seed: Annotated[int, _sweep_option(help="First seed.")] = 42
    seeds: Annotated[int, _sweep_option(help="Number of seeds, from --seed on.")] = 1
    jobs: Annotated[
        int | None, _sweep_option("-j", "--jobs", help="Processes to use. Default: one per CPU.")
    ] = None
    dask: Annotated[
        str,
        _sweep_option(
            "--dask", metavar="ADDRESS", help="Run on Dask, such as tcp://scheduler:8786."
        ),
    ] = ""
    shard: Annotated[
        str,
        _sweep_option(
            "--shard", metavar="I/N", help="Run every Nth run from I on; for the Pods of a Job."
        ),
    ] = ""
    merge: Annotated[
        tuple[str, ...],
        _sweep_option(
            "--merge", metavar="FILE", help="Output of all shards, to merge. Repeatable."
        ),
    ] = ()
    output: Annotated[SimulateFormat, option("-o", "--output", help="Output format.")] = (
        SimulateFormat.TABLE
    )
