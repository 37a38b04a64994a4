"""The options of `dryrack dashboard`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from dryrack.cli.command import Context, Kubeconfig, SelectedCluster, option
from dryrack.cli.options import CatalogueFile  # noqa: TC001 - typer reads annotations


@dataclass(frozen=True, slots=True, kw_only=True)
class DashboardOptions:
    """
    Show the devices, claims, gangs and pending Pods of a cluster in the browser.

    By default, the dashboard listens only on this machine. It never writes to the cluster.
    Anyone who has the URL that the command prints can view the cluster: it contains a token.
    """

    kubeconfig: Kubeconfig = ""
    context: Context = ""
    cluster: SelectedCluster = ""
    port: Annotated[int, option(help="Port to listen on. 0 selects a free port.")] = 0
    host: Annotated[str, option(help="IP address to listen on.")] = "127.0.0.1"
    expose: Annotated[
        bool, option("--expose", help="Allow a --host that other machines can reach.")
    ] = False
    allow_host: Annotated[
        tuple[str, ...],
        option(
            metavar="NAME",
            help="Additional host name that requests through a proxy may use. Repeatable.",
        ),
    ] = ()
    token_file: Annotated[
        str,
        option(metavar="FILE", help="File with the token. Default: a new token, which is printed."),
    ] = ""
    scenario: Annotated[
        str,
        option(
            metavar="NAME|FILE",
            help="Run a scenario in virtual time and show it instead of a cluster.",
        ),
    ] = ""
    seed: Annotated[int, option(help="Seed of the random numbers of --scenario.")] = 0
    plan: Annotated[
        str,
        option(
            metavar="FILE",
            help="Show the nodes and Pods of a plan: the output of dryrack plan -o json.",
        ),
    ] = ""
    simulation: Annotated[
        tuple[str, ...],
        option(
            metavar="FILE",
            help="Compare runs: the output of dryrack simulate -o json. Repeatable.",
        ),
    ] = ()
    catalogue_file: CatalogueFile = ()
    print_rbac: Annotated[
        bool, option("--print-rbac", help="Print the RBAC manifest and exit.")
    ] = False
