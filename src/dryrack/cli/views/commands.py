"""The commands `devices`, `claims` and `gangs`."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from dryrack.cli.files import UsageError
from dryrack.cli.output import WideFormat, print_data, print_line, print_table, say, shown
from dryrack.cli.views.sources import Source

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dryrack.cli.options import ClaimsOptions, DevicesOptions, GangsOptions
    from dryrack.cli.views.sheets import Look, Sheet
    from dryrack.client.endpoints import Endpoint
    from dryrack.kinds.meta import KubernetesObject

    _SheetOf = Callable[[Sequence[KubernetesObject], Look], Sheet]


def devices(options: DevicesOptions) -> None:
    from dryrack.cli.views.sheets import device_sheet
    from dryrack.client.endpoints import CLAIMS, NODES, SLICES, TAINT_RULES

    source = Source(
        kubeconfig=options.kubeconfig,
        context=options.context,
        cluster=options.cluster,
        files=options.files,
        all_namespaces=True,
    )
    kinds = (SLICES, CLAIMS, TAINT_RULES, NODES)
    _run(source, kinds, device_sheet, options, node=options.node)


def claims(options: ClaimsOptions) -> None:
    from dryrack.cli.views.sheets import claim_sheet
    from dryrack.client.endpoints import CLAIMS, PODS

    _run(_source_of(options), (CLAIMS, PODS), claim_sheet, options)


def gangs(options: GangsOptions) -> None:
    from dryrack.cli.views.sheets import gang_sheet
    from dryrack.client.endpoints import PODS
    from dryrack.cluster import GROUP_KINDS

    _run(_source_of(options), (PODS, *GROUP_KINDS), gang_sheet, options)


def _source_of(options: ClaimsOptions) -> Source:
    return Source(
        kubeconfig=options.kubeconfig,
        context=options.context,
        cluster=options.cluster,
        files=options.files,
        namespace=options.namespace,
        all_namespaces=options.all_namespaces,
    )


def _run(
    source: Source,
    kinds: Sequence[Endpoint],
    sheet_of: _SheetOf,
    options: DevicesOptions | ClaimsOptions,
    *,
    node: str = "",
) -> None:
    from dryrack.cli.views.sheets import Look

    output = options.output

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

    if not options.watch:
        _print(sheet(source.objects(kinds)), output)
        return
    if source.files or output not in (WideFormat.TABLE, WideFormat.WIDE):
        fix = "leave out -f and -o json, yaml or name"
        raise UsageError(f"-w works only for a table of a cluster; {fix}")
    from dryrack.cli.views.watching import watch

    watch(source, kinds, sheet)


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
