"""Options of commands that work on a cluster, and the groups in which they are shown."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Callable


def panel(title: str) -> Callable[..., Any]:
    """`typer.Option` for those that the help of a command shows together, below a title."""
    return partial(typer.Option, rich_help_panel=title)


cluster_option = panel("Which cluster")
run_option = panel("How it runs")
instead_option = panel("Instead of running")

Kubeconfig = Annotated[
    str, cluster_option(metavar="FILE", help="Which cluster; else as kubectl, else this pod's.")
]
Context = Annotated[str, cluster_option(help="Which context of the kubeconfig.")]
MetricsAddress = Annotated[
    str, run_option(metavar="HOST:PORT", help="Where /metrics is; 0 for nowhere.")
]
HealthAddress = Annotated[
    str, run_option(metavar="HOST:PORT", help="Where /healthz and /readyz are.")
]
LogFormat = Annotated[str, run_option(metavar="text|json", help="How log lines look.")]
PrintRights = Annotated[
    bool, instead_option("--print-rbac", help="Print the rights that an account needs; end.")
]
