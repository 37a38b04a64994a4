"""
Words for people, data for programs.

Data goes to standard output in the format that was asked for; talk goes to standard error. A
table has colours and borders only on a terminal; in a pipe it is plain columns that `awk`
understands. `NO_COLOR` is honoured by rich itself.
"""

from __future__ import annotations

import enum
import json
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console
    from rich.table import Table

# Two spaces never occur inside a cell, so columns can be told apart in a pipe.
GAP = "   "


class Format(enum.StrEnum):
    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


def print_data(value: Any, form: Format) -> None:
    """Prints plain data; `form` is JSON or YAML."""
    if form is Format.JSON:
        text = json.dumps(value, indent=2, ensure_ascii=False)
    else:
        import yaml

        text = yaml.safe_dump(value, sort_keys=False, allow_unicode=True).rstrip("\n")
    sys.stdout.write(text + "\n")


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    if sys.stdout.isatty():
        stdout_console().print(table_of(columns, rows))
    else:
        _print_plain(columns, rows)


def say(text: str) -> None:
    """Tells the person something that is not data."""
    sys.stderr.write(text + "\n")


def many(count: int, what: str) -> str:
    """A number of things, in words."""
    return f"{count} {what}{'' if count == 1 else 's'}"


def paint(text: str, style: str) -> str:
    """`text` in a style where standard output is a terminal that shows it."""
    console = stdout_console()
    if not console.is_terminal or console.no_color:
        return text
    with console.capture() as capture:
        console.print(text, style=style, end="", highlight=False, markup=False, soft_wrap=True)
    return capture.get()


def stdout_console() -> Console:
    from rich.console import Console

    return Console(file=sys.stdout)


def table_of(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """The table that a terminal shows."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    return table


def _print_plain(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    lines = [columns, *rows]
    widths = [max(len(line[index]) for line in lines) for index in range(len(columns))]
    for line in lines:
        cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        sys.stdout.write(GAP.join(cells).rstrip() + "\n")
