"""Options of commands that work on a cluster, and the groups in which they are shown."""

from __future__ import annotations

from typing import Annotated

import typer

CLUSTER = "Which cluster"
RUN = "How it runs"
INSTEAD = "Instead of running"

Kubeconfig = Annotated[
    str,
    typer.Option(
        metavar="FILE",
        help="Which cluster; else as kubectl, else this pod's.",
        rich_help_panel=CLUSTER,
    ),
]
Context = Annotated[
    str, typer.Option(help="Which context of the kubeconfig.", rich_help_panel=CLUSTER)
]
MetricsAddress = Annotated[
    str,
    typer.Option(
        metavar="HOST:PORT", help="Where /metrics is; 0 for nowhere.", rich_help_panel=RUN
    ),
]
HealthAddress = Annotated[
    str,
    typer.Option(metavar="HOST:PORT", help="Where /healthz and /readyz are.", rich_help_panel=RUN),
]
LogFormat = Annotated[
    str, typer.Option(metavar="text|json", help="How log lines look.", rich_help_panel=RUN)
]
PrintRights = Annotated[
    bool,
    typer.Option(
        "--print-rbac",
        help="Print the rights that an account needs; end.",
        rich_help_panel=INSTEAD,
    ),
]
