"""
Options of commands that work on a cluster, the groups in which they are shown, and repetition.

An option that takes one value may be given once: click would keep the last value and drop the
others without a word. An option whose value is a list adds up.
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
    """A command that refuses an option with one value that is given twice."""

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
    # A flag says the same twice, unless it has an opposite.
    return not parameter.is_flag or bool(parameter.secondary_opts)


def joined(lists: Sequence[str] | None) -> str:
    """Return the values of an option that takes a comma-separated list and may be repeated."""
    return ",".join(each for each in lists or () if each)


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
