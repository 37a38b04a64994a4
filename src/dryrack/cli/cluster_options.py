"""
Define the options of commands that work on a cluster, and their groups in the help.

An option with one value can be given once; click alone would silently keep the last value. The
values of an option with a list add up.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from dryrack.cli.files import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class StrictCommand(TyperCommand):
    """A command that refuses an option with one value if it is given twice."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not ctx.resilient_parsing:
            _, _, given = self.make_parser(ctx).parse_args(args=list(args))
            for option, count in Counter(map(id, given)).items():
                parameter = next(each for each in given if id(each) == option)
                if count > 1 and _has_one_value(parameter):
                    name = max(parameter.opts, key=len)
                    raise UsageError(f"{name}: given {count} times; give it once")
        return super().parse_args(ctx, args)


def _has_one_value(parameter: Any) -> bool:
    """Return whether repeating the parameter would drop a value."""
    if parameter.param_type_name != "option" or parameter.multiple:
        return False
    # A flag has the same meaning twice, unless it has an opposite.
    return not parameter.is_flag or bool(parameter.secondary_opts)


def joined(lists: Sequence[str] | None) -> str:
    """Return the values of an option that takes a comma-separated list and may be repeated."""
    return ",".join(each for each in lists or () if each)


def panel(title: str) -> Callable[..., Any]:
    """Return `typer.Option` for options that the help shows together, below a title."""
    return partial(typer.Option, rich_help_panel=title)


cluster_option = panel("Cluster")
run_option = panel("Operation")
instead_option = panel("Print and exit")

Kubeconfig = Annotated[
    str,
    cluster_option(
        metavar="FILE",
        help="Kubeconfig file. Default: as kubectl, or the Pod's ServiceAccount.",
    ),
]
Context = Annotated[
    str, cluster_option(help="Context in the kubeconfig. Default: the current context.")
]
MetricsAddress = Annotated[
    str, run_option(metavar="HOST:PORT", help="Address of /metrics; 0 switches it off.")
]
HealthAddress = Annotated[
    str, run_option(metavar="HOST:PORT", help="Address of /healthz and /readyz.")
]
LogFormat = Annotated[str, run_option(metavar="text|json", help="Format of log lines.")]
PrintRights = Annotated[
    bool, instead_option("--print-rbac", help="Print the RBAC manifest and exit.")
]
