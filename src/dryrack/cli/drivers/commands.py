"""
`dryrack driver`: test DRA drivers without a node.

Only the options are here, so that `dryrack --help` loads no suite.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

import typer

from dryrack.cli.command import argument, command, option, panel

app = typer.Typer(
    help="Test DRA drivers: the calls of a kubelet, and what a driver must answer.",
    no_args_is_help=True,
)
driver_option = panel("Driver")
choice_option = panel("Requirements")
result_option = panel("Results")


class ReportFormat(StrEnum):
    """Formats of the results."""

    TABLE = "table"
    JSON = "json"
    JUNIT = "junit"


@dataclass(frozen=True, slots=True, kw_only=True)
class TestOptions:
    """
    Start a driver program on a virtual node, and check it against the contract of Kubernetes.

    In PROGRAM, ARG, and COMMAND, {node}, {kubeconfig}, {kubelet}, {plugins}, {registry}, {cdi}, and
    {work} stand for the name of the node, the kubeconfig, and directories. {uid} stands for the UID
    of the driver's pod, which differs for two instances in a rolling update. The program also gets
    NODE_NAME and KUBECONFIG. Nothing needs root.

    Exit status 0: the driver meets all requirements that apply to it.
    Exit status 1: it does not, or it does not start.
    Exit status 2: wrong usage.
    """

    program: Annotated[
        tuple[str, ...],
        argument(metavar="[-- PROGRAM [ARG]...]", help="The kubelet plugin of the driver."),
    ] = ()
    attach: Annotated[
        bool,
        driver_option(
            "--attach",
            help="Print the directories and the kubeconfig, and wait until you start the driver. "
            "Requirements that restart the driver are skipped.",
        ),
    ] = False
    filename: Annotated[
        tuple[str, ...],
        driver_option(
            "-f",
            "--filename",
            metavar="FILE",
            help="Objects that the driver needs, for example the Node node-1 with labels, or a "
            "DeviceClass. Repeatable.",
        ),
    ] = ()
    device_class: Annotated[
        str,
        driver_option(
            "--class",
            metavar="NAME",
            help="DeviceClass of the claims. Default: a class with all devices of the driver.",
        ),
    ] = ""
    config: Annotated[
        str,
        driver_option(
            "--config", metavar="FILE", help="Opaque parameters of each claim, as YAML or JSON."
        ),
    ] = ""
    change: Annotated[
        str,
        driver_option(
            "--change",
            metavar="COMMAND",
            help="Shell command that changes devices of the driver while it runs.",
        ),
    ] = ""
    patience: Annotated[
        float,
        driver_option(
            "--timeout",
            metavar="SECONDS",
            help="Time for the driver to register and to publish its devices.",
        ),
    ] = 30.0
    focus: Annotated[
        str,
        choice_option("--focus", metavar="REGEX", help="Check only requirements that match."),
    ] = ""
    seed: Annotated[
        int,
        choice_option(
            "--seed",
            help="Seed of random sequences and of the order of requirements. 0 keeps the order.",
        ),
    ] = 0
    sequences: Annotated[
        int,
        choice_option("--sequences", metavar="COUNT", help="Number of random sequences.", min=1),
    ] = 3
    replay: Annotated[
        str,
        choice_option(
            "--replay", metavar="FILE", help="Run a sequence that failed, with one step per line."
        ),
    ] = ""
    list_only: Annotated[bool, choice_option("--list", help="List the requirements and exit.")] = (
        False
    )
    keep: Annotated[
        str,
        result_option(
            "--keep", metavar="DIRECTORY", help="Keep the log and the files of the driver."
        ),
    ] = ""
    output: Annotated[ReportFormat, option("-o", "--output", help="Output format.")] = (
        ReportFormat.TABLE
    )


app.command("test")(command(TestOptions, "dryrack.cli.drivers.testing:run"))
