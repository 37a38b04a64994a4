"""`dryrack scenario` and `dryrack demo`: worlds that files describe, run and judged."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from dryrack.cli.cluster_options import joined, panel
from dryrack.cli.output import Format

app = typer.Typer(
    help="Run described worlds: a fleet, objects, steps, and what must come of them.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)

_where_option = panel("Where it runs")
_outcome_option = panel("What is printed and kept")

Names = Annotated[
    list[str],
    typer.Argument(metavar="FILE|NAME...", help="Files, or names of: dryrack scenario list."),
]
Name = Annotated[str, typer.Argument(metavar="NAME", help="One of: dryrack scenario list.")]
Demos = Annotated[
    list[str] | None,
    typer.Argument(metavar="[NAME]...", help="Which; all of the demo if none is named."),
]
Seed = Annotated[int, _where_option(help="What chance decides by.")]
RealTime = Annotated[
    bool, _where_option("--real-time", help="In the machine's time, not in virtual time.")
]
Kubeconfig = Annotated[
    str,
    _where_option(metavar="FILE", help="On this cluster, in real time, with our engines attached."),
]
Context = Annotated[str, _where_option(help="On the cluster of this context.")]
Without = Annotated[
    list[str] | None,
    _where_option(
        metavar="ENGINE,...",
        help="On a cluster: leave out kubelet (where KWOK runs), slices or plugin.",
    ),
]
Keep = Annotated[
    bool, _where_option("--keep", help="In real time, on a control plane that stays for kubectl.")
]
_change_option = panel("What is to be different")
Replace = Annotated[
    list[str] | None,
    _change_option(
        metavar="FILE",
        help="Objects that take the place of those of their name, as another DeviceClass.",
    ),
]
OtherFleet = Annotated[
    str, _change_option("--fleet", metavar="FILE", help="A scenario whose fleet it is to run on.")
]
SchedulerConfig = Annotated[
    str, _change_option(metavar="FILE", help="A KubeSchedulerConfiguration to schedule by.")
]
Junit = Annotated[str, _outcome_option(metavar="FILE", help="Write the outcome as JUnit XML.")]
Output = Annotated[Format, _outcome_option("-o", "--output", help="How to print the outcome.")]


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
    Run scenarios, each on a fresh control plane in this process, and judge them.

    Exit code 0: everything came as expected.
    Exit code 1: something did not, or a file is wrong.
    Exit code 2: called wrongly.
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
        str, typer.Argument(metavar="A", help="A scenario, or what run -o json printed.")
    ],
    after: Annotated[
        str, typer.Argument(metavar="[B]", help="What to compare; without it A with changes.")
    ] = "",
    seed: Seed = 0,
    replace: Replace = None,
    fleet: OtherFleet = "",
    scheduler_config: SchedulerConfig = "",
    output: Output = Format.TABLE,
) -> None:
    """
    Tell what went elsewhere, later or not at all in B; changes are made to B.

    Exit code 0: every pod fared alike.
    Exit code 1: one did not, or a file is wrong.
    Exit code 2: called wrongly.
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
    """Print a scenario that comes with dryrack, with the files that it names."""
    from dryrack.cli.scenarios import packages

    packages.print_scenario(name)


@app.command()
def init(
    file: Annotated[
        str, typer.Argument(metavar="[FILE]", help="Where to; it must not be there.")
    ] = "scenario.yaml",
) -> None:
    """Write a first scenario, to change and run."""
    from dryrack.cli.scenarios import packages

    packages.write_first(file)


@app.command("fuzz")
def fuzz_command(
    seeds: Annotated[int, typer.Option(help="How many random worlds.", min=1)] = 20,
    first: Annotated[int, typer.Option(help="The seed of the first.", min=0)] = 0,
    faults: Annotated[int, typer.Option(help="How many faults each has.", min=1)] = 50,
    jobs: Annotated[int, typer.Option(help="How many at a time.", min=1)] = 1,
    keep_in: Annotated[
        str, typer.Option("--keep-in", metavar="DIR", help="Where what breaks is written.")
    ] = ".",
    output: Output = Format.TABLE,
) -> None:
    """
    Let random worlds fail in every way, and see that all invariants hold.

    Each has nodes, devices, pods, gangs and faults that its seed decides. What breaks is written as
    the smallest scenario that shows it, to be run again by `dryrack scenario run`.

    Exit code 0: nothing broke.
    Exit code 1: something did.
    Exit code 2: called wrongly.
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
        typer.Option("-f", "--file", metavar="FILE", help="A dump of: kubectl get -A -o yaml."),
    ] = None,
    output: Annotated[
        str, typer.Option("-o", "--output", metavar="FILE", help="Where to; - for the terminal.")
    ] = "-",
    kubeconfig: Annotated[
        str, typer.Option(metavar="FILE", help="Of the cluster; kubectl's if it is not said.")
    ] = "",
    context: Annotated[str, typer.Option(help="Which context of the kubeconfig.")] = "",
    anonymize: Annotated[
        bool, typer.Option("--anonymize", help="Other names for whatever people named.")
    ] = False,
) -> None:
    """
    Make a scenario of a cluster, to run again with another class, fleet or scheduler.

    Only what a scheduler looks at is recorded: no Secrets, environment, commands or annotations.

    Exit code 0: recorded.
    Exit code 1: the cluster cannot be read, or has nothing to record.
    Exit code 2: called wrongly.
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
    Show what dryrack does: run the demo's scenarios, and judge each.

    Exit code 0: all of them hold.
    Exit code 1: one does not.
    Exit code 2: called wrongly.
    """
    from dryrack.cli.scenarios import running
    from dryrack.scenario import DEMOS

    wish = running.Wish(keep=keep, kubeconfig=kubeconfig, context=context, without=joined(without))
    raise typer.Exit(0 if running.run(names or DEMOS, wish) else 1)
