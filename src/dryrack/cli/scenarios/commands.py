"""The commands `dryrack scenario`, `dryrack record` and `dryrack demo`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from dryrack.cli.cluster_options import joined, panel
from dryrack.cli.output import Format

app = typer.Typer(
    help="Run tests from YAML files: nodes, objects, steps and expected results.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)

_where_option = panel("Control plane or cluster")
_outcome_option = panel("Results")

Names = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE|NAME...", help="Scenario files, or names from: dryrack scenario list."
    ),
]
Name = Annotated[
    str, typer.Argument(metavar="NAME", help="Name of a scenario from: dryrack scenario list.")
]
Demos = Annotated[
    list[str] | None,
    typer.Argument(metavar="[NAME]...", help="Names of scenarios. Default: the whole demo."),
]
Seed = Annotated[int, _where_option(help="Seed of the random numbers.")]
RealTime = Annotated[
    bool, _where_option("--real-time", help="Run in real time instead of virtual time.")
]
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
    list[str] | None,
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
_change_option = panel("Changes")
Replace = Annotated[
    list[str] | None,
    _change_option(
        metavar="FILE",
        help="File with objects that replace those of the same kind and name. Repeatable.",
    ),
]
OtherFleet = Annotated[
    str, _change_option("--fleet", metavar="FILE", help="Scenario file whose nodes are used.")
]
SchedulerConfig = Annotated[
    str, _change_option(metavar="FILE", help="KubeSchedulerConfiguration of the scheduler.")
]
Junit = Annotated[str, _outcome_option(metavar="FILE", help="File for the results as JUnit XML.")]
Output = Annotated[Format, _outcome_option("-o", "--output", help="Output format.")]


@app.command("run")
def run_command(
    names: Names,
    seed: Seed = 0,
    real_time: RealTime = False,
    kubeconfig: Kubeconfig = "",
    context: Context = "",
    without: Without = None,
    keep: Keep = False,
    replace: Replace = None,
    fleet: OtherFleet = "",
    scheduler_config: SchedulerConfig = "",
    junit: Junit = "",
    output: Output = Format.TABLE,
) -> None:
    """
    Run scenarios, each on a new control plane in this process.

    Exit status 0: all scenarios pass.
    Exit status 1: a scenario fails, or a file is invalid.
    Exit status 2: wrong usage.
    """
    from dryrack.cli.scenarios import running
    from dryrack.cli.scenarios.changes import Changes

    wish = running.Wish(
        changes=Changes(tuple(replace or ()), fleet, scheduler_config),
        seed=seed,
        real_time=real_time,
        keep=keep,
        kubeconfig=kubeconfig,
        context=context,
        without=joined(without),
        junit=junit,
        output=output,
    )
    raise typer.Exit(0 if running.run(names, wish) else 1)


@app.command()
def diff(
    before: Annotated[
        str, typer.Argument(metavar="A", help="Scenario, or a file from: scenario run -o json.")
    ],
    after: Annotated[
        str,
        typer.Argument(metavar="[B]", help="Scenario or file to compare with A. Default: A."),
    ] = "",
    seed: Seed = 0,
    replace: Replace = None,
    fleet: OtherFleet = "",
    scheduler_config: SchedulerConfig = "",
    output: Output = Format.TABLE,
) -> None:
    """
    Compare the Pods of two scenario runs. Options change B.

    Exit status 0: no difference.
    Exit status 1: a Pod differs, or a file is invalid.
    Exit status 2: wrong usage.
    """
    from dryrack.cli.scenarios import diff as command
    from dryrack.cli.scenarios.changes import Changes

    changes = Changes(tuple(replace or ()), fleet, scheduler_config)
    raise typer.Exit(0 if command.run(before, after, changes, seed=seed, form=output) else 1)


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
        str, typer.Argument(metavar="[FILE]", help="File to write. It must not exist.")
    ] = "scenario.yaml",
) -> None:
    """Write a first scenario that you can change and run."""
    from dryrack.cli.scenarios import packages

    packages.write_first(file)


@app.command("fuzz")
def fuzz_command(
    seeds: Annotated[int, typer.Option(help="Number of random scenarios.", min=1)] = 20,
    first: Annotated[int, typer.Option(help="Seed of the first scenario.", min=0)] = 0,
    faults: Annotated[int, typer.Option(help="Number of faults per scenario.", min=1)] = 50,
    jobs: Annotated[int, typer.Option(help="Number of scenarios to run in parallel.", min=1)] = 1,
    keep_in: Annotated[
        str, typer.Option("--keep-in", metavar="DIR", help="Directory for scenarios that fail.")
    ] = ".",
    output: Output = Format.TABLE,
) -> None:
    """
    Run random scenarios with faults and check all invariants.

    The seed determines nodes, devices, Pods, gangs and faults. If a scenario fails, the command
    writes the smallest scenario that also fails; run it with: dryrack scenario run.

    Exit status 0: all scenarios pass.
    Exit status 1: a scenario fails.
    Exit status 2: wrong usage.
    """
    from dryrack.cli.scenarios import fuzzing

    wish = fuzzing.Wish(range(first, first + seeds), faults, jobs, keep_in, output)
    raise typer.Exit(0 if fuzzing.run(wish) else 1)


@app.command()
def schema() -> None:
    """Print the JSON schema of scenario files, for editors."""
    from dryrack.scenario import SCHEMA

    sys.stdout.write(SCHEMA.read_text())


def record(
    files: Annotated[
        list[str] | None,
        typer.Option(
            "-f", "--file", metavar="FILE", help="Output of: kubectl get -A -o yaml. Repeatable."
        ),
    ] = None,
    output: Annotated[
        str,
        typer.Option("-o", "--output", metavar="FILE", help="Output file. - is standard output."),
    ] = "-",
    kubeconfig: Annotated[
        str,
        typer.Option(
            metavar="FILE",
            help="Kubeconfig file. Default: as kubectl, or the Pod's ServiceAccount.",
        ),
    ] = "",
    context: Annotated[
        str, typer.Option(help="Context in the kubeconfig. Default: the current context.")
    ] = "",
    anonymize: Annotated[
        bool,
        typer.Option(
            "--anonymize", help="Replace the names of namespaces, nodes, Pods, claims and labels."
        ),
    ] = False,
) -> None:
    """
    Record a cluster as a scenario.

    You can then run it with other classes, nodes or scheduler settings. The scenario contains only
    what the scheduler uses: no Secrets, environment variables, commands or annotations.

    Exit status 0: recorded.
    Exit status 1: dryrack cannot read the cluster, or it has nothing to record.
    Exit status 2: wrong usage.
    """
    from dryrack.cli.scenarios import record as command

    source = command.Source(files=tuple(files or ()), kubeconfig=kubeconfig, context=context)
    command.run(source, output, anonymizes=anonymize)


def demo(
    names: Demos = None,
    keep: Keep = False,
    kubeconfig: Kubeconfig = "",
    context: Context = "",
    without: Without = None,
) -> None:
    """
    Run the demo scenarios, which show what dryrack does.

    Exit status 0: all scenarios pass.
    Exit status 1: a scenario fails.
    Exit status 2: wrong usage.
    """
    from dryrack.cli.scenarios import running
    from dryrack.scenario import DEMOS

    wish = running.Wish(keep=keep, kubeconfig=kubeconfig, context=context, without=joined(without))
    raise typer.Exit(0 if running.run(names or DEMOS, wish) else 1)
