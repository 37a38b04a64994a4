"""The options of `dryrack simulate`."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Annotated

from dryrack.cli.command import argument, option, panel
from dryrack.cli.options import CatalogueFile, Release  # noqa: TC001 - typer reads annotations
from dryrack.kinds.releases import DEFAULT_RELEASE


class SimulateFormat(enum.StrEnum):
    """The formats of results."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


_input_option = panel("Trace and fleet")
_policy_option = panel("Policies")
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

    trace: Annotated[str, argument(metavar="TRACE", help="File with the jobs, or - for stdin.")]
    format: Annotated[
        str, _input_option("--format", help="Format of TRACE: dryrack, or openb.")
    ] = "dryrack"
    nodes: Annotated[
        tuple[str, ...],
        _input_option(
            "--nodes",
            metavar="FILE",
            help="File with the nodes, in the format of TRACE. Repeatable.",
        ),
    ] = ()
    fleet: Annotated[
        tuple[str, ...],
        _input_option(
            "--fleet",
            metavar="TYPE:N,...",
            help="Nodes of instance types, such as p5.48xlarge:4. Repeatable, to compare.",
        ),
    ] = ()
    catalogue_file: CatalogueFile = ()
    inflate: Annotated[
        float | None,
        _input_option(
            metavar="RATIO",
            help="Ignore times; let pods arrive until they ask for this many times the devices.",
        ),
    ] = None
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
    seed: Annotated[int, _sweep_option(help="First seed.")] = 42
    seeds: Annotated[int, _sweep_option(help="Number of seeds, from --seed on.")] = 1
    jobs: Annotated[
        int | None, _sweep_option("-j", "--jobs", help="Processes to use. Default: one per CPU.")
    ] = None
    output: Annotated[SimulateFormat, option("-o", "--output", help="Output format.")] = (
        SimulateFormat.TABLE
    )
