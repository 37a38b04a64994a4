"""The options of `dryrack check`."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Annotated

from dryrack.cli.command import Context, Kubeconfig, SelectedCluster, option
from dryrack.cli.options import ViewedFiles  # noqa: TC001 - typer reads annotations


class CheckFormat(enum.StrEnum):
    TABLE = "table"
    JSON = "json"
    YAML = "yaml"
    JUNIT = "junit"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckOptions:
    """
    Check the invariants of a cluster: devices, claims, gangs, pools and what is left over.

    No device is in two exclusive allocations, counters and capacity are not exceeded, allocated
    devices exist and match the requests, claims are reserved for Pods that exist, gangs are bound
    as a whole, pools are complete, and no schedulable Pod stays pending.

    The command reads the whole cluster several times and reports only what persists. It writes
    nothing. An invariant that it cannot check, for example without permission, is "not checked".

    Exit status 0: no invariant is violated.
    Exit status 1: an invariant is violated, or none could be checked.
    Exit status 2: wrong usage.
    """

    kubeconfig: Kubeconfig = ""
    context: Context = ""
    cluster: SelectedCluster = ""
    files: ViewedFiles = ()
    wait: Annotated[
        str,
        option(
            "--wait",
            metavar="DURATION",
            help="How long a violation must persist. The command ends early if all of them end.",
        ),
    ] = "15s"
    kubelet_dir: Annotated[
        str,
        option(
            "--kubelet-dir",
            metavar="DIR",
            help="Root directory of the kubelet of this node, to compare the claims that "
            "dryrack plugin has prepared.",
        ),
    ] = ""
    node: Annotated[
        str,
        option(
            "--node",
            metavar="NAME",
            help="Node of --kubelet-dir. Default: $NODE_NAME, or the host name.",
        ),
    ] = ""
    output: Annotated[
        CheckFormat, option("-o", "--output", help="Output format; junit is for CI.")
    ] = CheckFormat.TABLE
