"""Watch a table: redraw it on a terminal, or write a line for each change into a pipe."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from dryrack.cli.output import GAP, print_table, say, shown, stdout_console, table_of
from dryrack.cli.views.sources import on_cluster

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dryrack.cli.views.sheets import Sheet
    from dryrack.cli.views.sources import Source
    from dryrack.client.endpoints import Endpoint
    from dryrack.kinds.meta import KubernetesObject

GONE = "(deleted)"


def watch(
    source: Source,
    kinds: Sequence[Endpoint],
    sheet_of: Callable[[Sequence[KubernetesObject]], Sheet],
) -> None:
    """Show the table and its changes until a signal stops the process."""
    from dryrack.client.client import Selection
    from dryrack.cluster import follow_snapshots

    connection = source.connection()
    selection = Selection(namespace=source.namespace_in(connection))
    display = Live() if sys.stdout.isatty() else Lines()

    def show(objects: Sequence[KubernetesObject]) -> None:
        display.show(sheet_of(objects))

    try:
        on_cluster(connection, lambda client: follow_snapshots(client, kinds, selection, show))
    finally:
        display.end()


class Lines:
    """For a pipe: write the table, then each new, changed or deleted row."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[str, ...]] | None = None
        self._widths: list[int] = []

    def show(self, sheet: Sheet) -> None:
        rows = {row.key: row.cells for row in sheet.rows}
        if self._known is None:
            print_table(sheet.columns, list(rows.values()))
            lines = [sheet.columns, *rows.values()]
            self._widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        else:
            for key, cells in rows.items():
                if self._without_age(sheet, self._known.get(key)) != self._without_age(
                    sheet, cells
                ):
                    self._write(cells)
            for key in self._known.keys() - rows.keys():
                self._write((*self._known[key], GONE))
        self._known = rows
        sys.stdout.flush()

    @staticmethod
    def _without_age(sheet: Sheet, cells: tuple[str, ...] | None) -> object:
        if cells is None or "AGE" not in sheet.columns:
            return cells
        place = sheet.columns.index("AGE")
        return cells[:place], cells[place + 1 :]

    def _write(self, cells: tuple[str, ...]) -> None:
        padded = [
            shown(cell).ljust(width) for cell, width in zip(cells, [*self._widths, 0], strict=False)
        ]
        sys.stdout.write(GAP.join(padded).rstrip() + "\n")

    def end(self) -> None:
        """Do nothing."""


class Live:
    """For a terminal: draw the current table over the previous one."""

    def __init__(self) -> None:
        from rich.live import Live as RichLive

        self._live = RichLive(console=stdout_console(), auto_refresh=False)
        self._live.start()

    def show(self, sheet: Sheet) -> None:
        from rich.console import Group
        from rich.text import Text

        if not sheet.rows:
            self._live.update(Text(sheet.empty), refresh=True)
            return
        table = table_of(sheet.columns, [row.cells for row in sheet.rows])
        footer = [Text(shown(line)) for line in sheet.footer]
        self._live.update(Group(table, *footer), refresh=True)

    def end(self) -> None:
        self._live.stop()
        say("")
