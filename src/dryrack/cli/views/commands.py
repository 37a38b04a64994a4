"""The commands `devices`, `claims` and `gangs`."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Annotated

import typer

from dryrack.cli.files import UsageError
from dryrack.cli.output import WideFormat, print_data, print_line, print_table, say, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dryrack.cli.views.sheets import Look, Sheet
    from dryrack.cli.views.sources import Source
    from dryrack.client.endpoints import Endpoint
    from dryrack.kinds.meta import KubernetesObject

    _SheetOf = Callable[[Sequence[KubernetesObject], Look], Sheet]

Files = Annotated[
    list[str] | None,
    typer.Option(
        "-f", "--filename", metavar="FILE", help="Read the objects from files, not from a cluster."
    ),
]
Kubeconfig = Annotated[
    str,
    typer.Option(
        metavar="FILE", help="Kubeconfig file. Default: as kubectl, or the Pod's ServiceAccount."
    ),
]
Context = Annotated[
    str, typer.Option(help="Context in the kubeconfig. Default: the current context.")
]
Namespace = Annotated[
    str, typer.Option("-n", "--namespace", help="Namespace to show. Default: from the context.")
]
AllNamespaces = Annotated[bool, typer.Option("-A", "--all-namespaces", help="Show all namespaces.")]
Output = Annotated[WideFormat, typer.Option("-o", "--output", help="Output format.")]
Watch = Annotated[bool, typer.Option("-w", "--watch", help="Watch for changes and print them.")]
Node = Annotated[str, typer.Option(help="Show only the devices of this node.")]


def devices(
    kubeconfig: Kubeconfig = "",
    context: Context = "",
    files: Files = None,
    node: Node = "",
    output: Output = WideFormat.TABLE,
    watch: Watch = False,
) -> None:
    """Show all devices: node, model, state, holder, and free devices by model."""
    from dryrack.cli.views.sheets import device_sheet
    from dryrack.cli.views.sources import Source
    from dryrack.client.endpoints import CLAIMS, NODES, SLICES, TAINT_RULES

    source = Source(
        kubeconfig=kubeconfig, context=context, files=tuple(files or ()), all_namespaces=True
    )
    _run(source, (SLICES, CLAIMS, TAINT_RULES, NODES), device_sheet, output, watch=watch, node=node)


def claims(
    kubeconfig: Kubeconfig = "",
    context: Context = "",
    namespace: Namespace = "",
    all_namespaces: AllNamespaces = False,
    files: Files = None,
    output: Output = WideFormat.TABLE,
    watch: Watch = False,
) -> None:
    """Show claims: state, devices, node and Pods."""
    from dryrack.cli.views.sheets import claim_sheet
    from dryrack.cli.views.sources import Source
    from dryrack.client.endpoints import CLAIMS, PODS

    source = Source(
        kubeconfig=kubeconfig,
        context=context,
        files=tuple(files or ()),
        namespace=namespace,
        all_namespaces=all_namespaces,
    )
    _run(source, (CLAIMS, PODS), claim_sheet, output, watch=watch)


def gangs(
    kubeconfig: Kubeconfig = "",
    context: Context = "",
    namespace: Namespace = "",
    all_namespaces: AllNamespaces = False,
    files: Files = None,
    output: Output = WideFormat.TABLE,
    watch: Watch = False,
) -> None:
    """Show gangs: required, bound and pending Pods, and why they are pending."""
    from dryrack.cli.views.sheets import gang_sheet
    from dryrack.cli.views.sources import Source
    from dryrack.client.endpoints import PODS
    from dryrack.cluster import GROUP_KINDS

    source = Source(
        kubeconfig=kubeconfig,
        context=context,
        files=tuple(files or ()),
        namespace=namespace,
        all_namespaces=all_namespaces,
    )
    _run(source, (PODS, *GROUP_KINDS), gang_sheet, output, watch=watch)


def _run(
    source: Source,
    kinds: Sequence[Endpoint],
    sheet_of: _SheetOf,
    output: WideFormat,
    *,
    watch: bool,
    node: str = "",
) -> None:
    from dryrack.cli.views.sheets import Look

    def sheet(objects: Sequence[KubernetesObject]) -> Sheet:
        return sheet_of(
            objects,
            Look(
                now=time.time(),
                is_wide=output is WideFormat.WIDE,
                namespaces=source.shows_namespaces,
                node=node,
            ),
        )

    if not watch:
        _print(sheet(source.objects(kinds)), output)
        return
    if source.files or output not in (WideFormat.TABLE, WideFormat.WIDE):
        fix = "leave out -f and -o json, yaml or name"
        raise UsageError(f"-w works only for a table of a cluster; {fix}")
    from dryrack.cli.views.watching import watch as follow

    follow(source, kinds, sheet)


def _print(sheet: Sheet, output: WideFormat) -> None:
    if output is WideFormat.NAME:
        sys.stdout.writelines(f"{shown(name)}\n" for name in sheet.names)
    elif output in (WideFormat.JSON, WideFormat.YAML):
        print_data(sheet.document(), output)
    elif not sheet.rows:
        say(sheet.empty)
    else:
        print_table(sheet.columns, [row.cells for row in sheet.rows])
        if sheet.footer:
            print_line()
        for line in sheet.footer:
            print_line(shown(line))
