"""`dryrack examples` and its subcommands: `list`, `show` and `copy`."""

from __future__ import annotations

import enum
from typing import Annotated

import typer

from dryrack.cli.command import argument, option

app = typer.Typer(
    help="List, print, and copy the examples that come with dryrack.",
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)


class ListFormat(enum.StrEnum):
    TABLE = "table"
    JSON = "json"
    NAME = "name"


class ShowFormat(enum.StrEnum):
    TEXT = "text"
    YAML = "yaml"


@app.callback()
def list_if_no_command(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        list_()


@app.command("list")
def list_(
    group: Annotated[str, option(help="Only this group, for example dra.")] = "",
    output: Annotated[ListFormat, option("-o", "--output", help="Output format.")] = (
        ListFormat.TABLE
    ),
) -> None:
    """List the examples: what each shows, and the options of `dryrack up` that it needs."""
    from dryrack.cli.examples import packaged

    packaged.print_list(group, output)


@app.command()
def show(
    name: Annotated[str, argument(metavar="NAME", help="Name from: dryrack examples list.")],
    output: Annotated[
        ShowFormat,
        option(
            "-o", "--output", help="text is the page and all files; yaml is the first manifest."
        ),
    ] = ShowFormat.TEXT,
) -> None:
    """
    Print an example.

    To apply it without a copy: dryrack examples show NAME -o yaml | kubectl apply -f -
    """
    from dryrack.cli.examples import packaged

    if output is ShowFormat.YAML:
        packaged.print_manifests(name)
    else:
        packaged.print_example(name)


@app.command()
def copy(
    name: Annotated[str, argument(metavar="[NAME]", help="Name from: dryrack examples list.")] = "",
    directory: Annotated[
        str,
        argument(metavar="[DIR]", help="Directory for the files. Default: NAME in this directory."),
    ] = "",
    all_: Annotated[
        bool, option("--all", help="Copy all examples, each into its own directory.")
    ] = False,
    force: Annotated[bool, option("--force", help="Overwrite files that exist.")] = False,
) -> None:
    """
    Copy an example into a directory, and print the next two commands.

    With --all, the first argument is the directory for all examples. Default: this directory.
    """
    from dryrack.cli.examples import packaged

    if all_:
        packaged.copy_all(name, directory, force=force)
    else:
        packaged.copy_one(name, directory, force=force)
