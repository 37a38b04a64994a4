"""
`dryrack driver`: test DRA drivers without a node.

Only the options are here, so that `dryrack --help` loads no suite.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

import typer

from dryrack.cli.command import argument, command, option

app = typer.Typer(
    help="Test DRA drivers: the calls of a kubelet, and what a driver must answer.",
    no_args_is_help=True,
)


class ReportFormat(StrEnum):
    """Formats of the results."""

    TABLE = "table"
    JSON = "json"
    JUNIT = "junit"


@dataclass(frozen=True, slots=True, kw_only=True)
class TestOptions:
    """
    Start a driver program on a virtual node, and check it against the contract of Kubernetes.

    In PROGRAM and ARG, {node}, {plugins}, {registry}, {cdi}, {kubelet}, and {kubeconfig} stand for
    the name and the directories of the node, and the kubeconfig. The program also gets NODE_NAME
    and KUBECONFIG. Nothing needs root.

    Exit status 0: the driver meets all requirements that apply to it.
    Exit status 1: it does not, or it does not start.
    Exit status 2: wrong usage.
    """

    program: Annotated[
        tuple[str, ...],
        argument(metavar="[-- PROGRAM [ARG]...]", help="The kubelet plugin of the driver."),
    ] = ()
    focus: Annotated[
        str,
        option("--focus", metavar="REGEX", help="Check only requirements whose name matches."),
    ] = ""
    seed: Annotated[
        int, option("--seed", help="Seed of the order of the requirements; 0 keeps their order.")
    ] = 0
    patience: Annotated[
        float,
        option(
            "--timeout",
            metavar="SECONDS",
            help="Time for the driver to register and to publish its devices.",
        ),
    ] = 30.0
    keep: Annotated[
        str,
        option("--keep", metavar="DIRECTORY", help="Keep the log and the files of the driver."),
    ] = ""
    list_only: Annotated[bool, option("--list", help="List the requirements and exit.")] = False
    output: Annotated[ReportFormat, option("-o", "--output", help="Output format.")] = (
        ReportFormat.TABLE
    )


app.command("test")(command(TestOptions, "dryrack.cli.drivers.testing:run"))
