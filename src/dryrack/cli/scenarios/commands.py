"""`dryrack scenario`: run worlds that files describe, and look at those that come with dryrack."""

from __future__ import annotations

from typing import Annotated

import typer

from dryrack.cli.output import Format

app = typer.Typer(
    help="Run described worlds: fleets, objects, steps, faults and what must come of them.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Names = Annotated[
    list[str], typer.Argument(metavar="FILE|NAME...", help="Files, or names of packaged ones.")
]
Seed = Annotated[int, typer.Option(help="What chance decides by.")]
RealTime = Annotated[
    bool, typer.Option("--real-time", help="In the machine's time, not in virtual time.")
]
Output = Annotated[Format, typer.Option("-o", "--output", help="How to print the outcome.")]


@app.command("run")
def run_command(
    names: Names,
    seed: Seed = 0,
    real_time: RealTime = False,
    output: Output = Format.TABLE,
) -> None:
    """
    Run scenarios, each on a fresh control plane in this process, and judge them.

    Exit code 0: everything came as expected.
    Exit code 1: something did not, or a file is wrong.
    Exit code 2: called wrongly.
    """
    from dryrack.cli.scenarios import running

    how = running.Wish(seed=seed, real_time=real_time, output=output)
    raise typer.Exit(0 if running.run(names, how) else 1)
