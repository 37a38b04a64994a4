"""The commands `dryrack scenario` and `dryrack demo`, with their options."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Annotated

import typer

from dryrack.cli.command import argument, command, option, panel
from dryrack.cli.output import Format
from dryrack.kinds.releases import RELEASES

app = typer.Typer(
    help="Run tests from YAML files: nodes, objects, steps and expected results.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)

_where_option = panel("Control plane or cluster")
_change_option = panel("Changes")
_result_option = panel("Results")
_input_option = panel("Your manifests")

Name = Annotated[
    str, argument(metavar="NAME", help="Name of a scenario from: dryrack scenario list.")
]
Seed = Annotated[int, _where_option(help="Seed of the random numbers.")]
Kubeconfig = Annotated[
    str,
    _where_option(
        metavar="FILE",
        help="Run on this cluster, in real time, with dryrack's components attached.",
    ),
]
Context = Annotated[
    str, _where_option(help="Run on the cluster of this context in the kubeconfig.")
]
Without = Annotated[
    tuple[str, ...],
    _where_option(
        metavar="ENGINE,...",
        help="Do not attach these to the cluster: kubelet (if KWOK runs), slices, plugin.",
    ),
]
Keep = Annotated[
    bool,
    _where_option(
        "--keep", help="Run in real time on a virtual cluster that keeps running for kubectl."
    ),
]
Replace = Annotated[
    tuple[str, ...],
    _change_option(
        metavar="FILE",
        help="File with objects that replace those of the same kind and name. Repeatable.",
    ),
]
Fleet = Annotated[
    str, _change_option("--fleet", metavar="FILE", help="Scenario file whose nodes are used.")
]
SchedulerConfig = Annotated[
    str, _change_option(metavar="FILE", help="KubeSchedulerConfiguration of the scheduler.")
]
Release = Annotated[
    str,
    _where_option(help=f"Kubernetes release: {RELEASES}. Default: as in the scenario."),
]
Output = Annotated[Format, _result_option("-o", "--output", help="Output format.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """
    Run scenarios, each on a new control plane in this process.

    Exit status 0: all scenarios pass.
    Exit status 1: a scenario fails, or a file is invalid.
    Exit status 2: wrong usage.
    """

    names: Annotated[
        tuple[str, ...],
        argument(
            metavar="FILE|NAME...", help="Scenario files, or names from: dryrack scenario list."
        ),
    ]
    seed: Seed = 0
    real_time: Annotated[
        bool, _where_option("--real-time", help="Run in real time instead of virtual time.")
    ] = False
    kubeconfig: Kubeconfig = ""
    context: Context = ""
    without: Without = ()
    keep: Keep = False
    replace: Replace = ()
    fleet: Fleet = ""
    scheduler_config: SchedulerConfig = ""
    release: Release = ""
    junit: Annotated[
        str, _result_option(metavar="FILE", help="File for the results as JUnit XML.")
    ] = ""
    output: Output = Format.TABLE


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffOptions:
    """
    Compare the Pods of two scenario runs. Options change B.

    Exit status 0: no difference.
    Exit status 1: a Pod differs, or a file is invalid.
    Exit status 2: wrong usage.
    """

    before: Annotated[
        str, argument(metavar="A", help="Scenario, or a file from: scenario run -o json.")
    ]
    after: Annotated[
        str, argument(metavar="[B]", help="Scenario or file to compare with A. Default: A.")
    ] = ""
    seed: Seed = 0
    replace: Replace = ()
    fleet: Fleet = ""
    scheduler_config: SchedulerConfig = ""
    release: Release = ""
    output: Output = Format.TABLE


@dataclass(frozen=True, slots=True, kw_only=True)
class FuzzOptions:
    """
    Run random scenarios with faults and check all invariants.

    The seed determines nodes, devices, Pods, gangs and faults. If a scenario fails, the command
    writes the smallest scenario that also fails, and prints the command that runs it again.

    With -f, the nodes, slices, classes and workloads are those of your manifests. The seed
    determines faults, and when workloads are created, scaled and deleted.

    Exit status 0: all scenarios pass.
    Exit status 1: a scenario fails.
    Exit status 2: wrong usage.
    """

    seeds: Annotated[int, option(help="Number of random scenarios.", min=1)] = 20
    first: Annotated[int, option(help="Seed of the first scenario.", min=0)] = 0
    faults: Annotated[int, option(help="Number of faults per scenario.", min=1)] = 50
    jobs: Annotated[int, option(help="Number of scenarios to run in parallel.", min=1)] = 1
    keep_in: Annotated[
        str, option("--keep-in", metavar="DIR", help="Directory for scenarios that fail.")
    ] = "."
    files: Annotated[
        tuple[str, ...],
        _input_option(
            "-f",
            "--filename",
            metavar="FILE",
            help="Use these manifests instead of random nodes and workloads: a YAML or JSON file, "
            "or a directory; - is standard input. Repeatable.",
        ),
    ] = ()
    nodes: Annotated[
        int | None, _input_option(help="Number of nodes, if -f has no Node. Default: 3.", min=1)
    ] = None
    devices: Annotated[
        tuple[str, ...],
        _input_option(metavar="KIND:COUNT", help="Devices of each node, as with dryrack up."),
    ] = ()
    instance_type: Annotated[
        str,
        _input_option(metavar="TYPE", help="Instance type of the nodes, if -f has no Node."),
    ] = ""
    scheduler_config: Annotated[
        str, _input_option(metavar="FILE", help="Scheduler configuration whose profiles to use.")
    ] = ""
    output: Output = Format.TABLE


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoOptions:
    """
    Run the demo scenarios, which show what dryrack does.

    Exit status 0: all scenarios pass.
    Exit status 1: a scenario fails.
    Exit status 2: wrong usage.
    """

    names: Annotated[
        tuple[str, ...],
        argument(metavar="[NAME]...", help="Names of scenarios. Default: the whole demo."),
    ] = ()
    keep: Keep = False
    kubeconfig: Kubeconfig = ""
    context: Context = ""
    without: Without = ()
    release: Release = ""


app.command("run")(command(RunOptions, "dryrack.cli.scenarios.running:run"))
app.command("diff")(command(DiffOptions, "dryrack.cli.scenarios.diff:run"))


@app.command("list")
def list_command(output: Output = Format.TABLE) -> None:
    """List the scenarios that come with dryrack."""
    from dryrack.cli.scenarios import packages

    packages.print_list(output)


@app.command()
def show(name: Name) -> None:
    """Print a scenario that comes with dryrack, with the files that it uses."""
    from dryrack.cli.scenarios import packages

    packages.print_scenario(name)


@app.command()
def init(
    file: Annotated[
        str, argument(metavar="[FILE]", help="File to write. It must not exist.")
    ] = "scenario.yaml",
) -> None:
    """Write a first scenario that you can change and run."""
    from dryrack.cli.scenarios import packages

    packages.write_first(file)


app.command("fuzz")(command(FuzzOptions, "dryrack.cli.scenarios.fuzzing:run"))


@app.command()
def schema() -> None:
    """Print the JSON schema of scenario files, for editors."""
    from dryrack.scenario import SCHEMA

    sys.stdout.write(SCHEMA.read_text())
