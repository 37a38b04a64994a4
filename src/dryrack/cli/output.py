"""
Print text for people and data for programs.

Data goes to standard output in the requested format; messages go to standard error. A table has
colors and borders only on a terminal; in a pipe it is plain columns that `awk` understands. A table
never breaks a name, because people copy names; it is wider than the terminal if it must be. With
`NO_COLOR` nothing is colored, bold or dim.
"""

from __future__ import annotations

import enum
import json
import os
import sys
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, TextIO

from dryrack.base.escaping import json_text, visible, yaml_lines, yaml_needs_escapes
from dryrack.cli.streams import trusted_style, unfiltered

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rich.console import Console
    from rich.table import Table

# Two spaces never occur inside a cell, so a program can split the columns.
GAP = "   "
# Drawing borders around more rows takes seconds.
_TABLE_ROWS_MAX = 500


class Format(enum.StrEnum):
    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


class NamedFormat(enum.StrEnum):
    """The formats of answers about objects; `name` prints their names as kubectl does."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"


class LintFormat(enum.StrEnum):
    """The formats of findings; the last three are for CI."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"
    SARIF = "sarif"
    GITHUB = "github"
    JUNIT = "junit"


class DataFormat(enum.StrEnum):
    """The formats of manifests."""

    YAML = "yaml"
    JSON = "json"


class ApiTarget(enum.StrEnum):
    """The versions of resource.k8s.io that manifests can be converted to."""

    V1 = "v1"
    V1BETA2 = "v1beta2"
    V1BETA1 = "v1beta1"


class GangFormat(enum.StrEnum):
    """The formats of gangs; native is the PodGroup of Kubernetes."""

    NATIVE = "native"
    SIGS = "sigs"
    KUBENEXUS = "kubenexus"
    COSCHEDULING = "coscheduling"
    VOLCANO = "volcano"
    KUEUE = "kueue"


class PublisherFormat(enum.StrEnum):
    """The formats of device configuration."""

    CONFIG_MAP = "configmap"
    CONFIG_MAP_SHORT = "configmap-short"
    NODE_OVERLAY = "nodeoverlay"
    DRA_CONFIG = "draconfig"
    NODE_DEVICES = "nodedevices"


class WideFormat(enum.StrEnum):
    """The formats of tables of objects, as in kubectl."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"


def print_names(resource: str, names: Iterable[str]) -> None:
    """Print `pod/web-0` for "pod" and "team/web-0": the names of kubectl have no namespace."""
    for name in names:
        sys.stdout.write(shown(f"{resource}/{name.rpartition('/')[2]}") + "\n")


def print_data(value: Any, form: Format | NamedFormat | DataFormat | WideFormat) -> None:
    """Print plain data; `form` is JSON or YAML."""
    text = json_text(value, indent=2) if form == Format.JSON else yaml_text(value).rstrip("\n")
    sys.stdout.write(text + "\n")


def yaml_text(value: Any) -> str:
    """Return plain data as YAML that is safe to print and that kubectl reads back as it was."""
    import yaml

    class Dumper(yaml.SafeDumper):
        """Quote text that needs escapes, and the letters that Go reads as true and false."""

        def represent_text(self, text: str) -> yaml.ScalarNode:
            style = "'" if text in ("y", "Y", "n", "N") else None
            style = '"' if yaml_needs_escapes(text) else style
            return self.represent_scalar("tag:yaml.org,2002:str", text, style=style)

        def write_double_quoted(self, text: str, split: bool = True) -> None:
            # A line that is broken after an escape could begin with a command to a runner.
            super().write_double_quoted(text, split=False)

    Dumper.add_representer(str, Dumper.represent_text)
    text: str = yaml.dump(value, Dumper=Dumper, sort_keys=False, allow_unicode=True)
    return yaml_lines(text)


def print_json_lists(lists: Mapping[str, Iterable[Any]]) -> None:
    """Print an object of lists as `print_data` does, but hold one entry at a time."""
    sys.stdout.write("{")
    for place, (key, entries) in enumerate(lists.items()):
        sys.stdout.write(f"{',' if place else ''}\n  {json.dumps(key)}: [")
        empty = True
        for entry in entries:
            text = json_text(entry, indent=2).replace("\n", "\n    ")
            sys.stdout.write(f"{'' if empty else ','}\n    {text}")
            empty = False
        sys.stdout.write("]" if empty else "\n  ]")
    sys.stdout.write("\n}\n")


def print_line(text: str = "") -> None:
    """Print a line of text."""
    sys.stdout.write(text + "\n")


def print_commands(text: str) -> None:
    """Print workflow commands for a GitHub runner; their parts are escaped already."""
    unfiltered(sys.stdout).write(text + "\n")


def erase_line() -> None:
    """Move to the beginning of the line of the terminal and clear the line."""
    unfiltered(sys.stdout).write("\r\x1b[K")


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    lines = [[shown(cell) for cell in line] for line in (columns, *rows)]
    is_long = len(lines) > _TABLE_ROWS_MAX
    if sys.stdout.isatty() and not is_long and _fit_columns(lines, stdout_console().width):
        stdout_console().print(table_of(columns, rows))
    else:
        _print_plain(lines)


def shown(text: str) -> str:
    """
    Return the text as one line with visible control characters.

    Names come from files of other people: a line end in a name would look like output of dryrack.
    The streams escape control characters in text that was not passed through this function.
    """
    return visible(text)


def say(text: str) -> None:
    """Print a message to standard error."""
    sys.stderr.write(text + "\n")


def show_progress(text: str) -> None:
    """Print progress on a terminal, in place of the previous progress."""
    if sys.stderr.isatty():
        sys.stderr.write(f"{text}\x1b[K\r")
        sys.stderr.flush()


def many(count: int, what: str) -> str:
    """Return a count with its noun, such as "3 nodes"."""
    return f"{count} {what}{'' if count == 1 else 's'}"


def paint(text: str, style: str) -> str:
    """Return the text in a style if standard output is a terminal that shows it."""
    console = stdout_console()
    if not console.is_terminal or console.no_color:
        return text
    with console.capture() as capture:
        console.print(text, style=style, end="", highlight=False, markup=False, soft_wrap=True)
    return trusted_style(capture.get())


def stdout_console() -> Console:
    """Return the console of the present standard output."""
    return _console(sys.stdout)


# Inspecting a terminal and its environment takes longer than writing a line to it.
@lru_cache(maxsize=1)
def _console(stream: TextIO) -> Console:
    from rich.console import Console

    # rich itself would still print bold text.
    color_system: Literal["auto"] | None = None if os.environ.get("NO_COLOR") else "auto"
    return Console(file=unfiltered(stream), color_system=color_system)


def table_of(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """Return the table for a terminal."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    lines = [[shown(cell) for cell in line] for line in (columns, *rows)]
    widths: Sequence[int | None] = _fit_columns(lines, stdout_console().width) or [None] * len(
        columns
    )
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column, width in zip(columns, widths, strict=True):
        table.add_column(column, overflow="fold", width=width)
    for line in lines[1:]:
        table.add_row(*map(Text, line))
    return table


def _fit_columns(lines: Sequence[Sequence[str]], width: int) -> list[int] | None:
    """Return column widths that fit into `width` and break no word, or None."""
    columns = list(zip(*lines, strict=True))
    widths = [max(map(len, column)) for column in columns]
    longest_words = [
        max((len(word) for cell in column for word in cell.split()), default=0)
        for column in columns
    ]
    spare = [wide - word for wide, word in zip(widths, longest_words, strict=True)]
    # Between columns there is a gap, and around them a space.
    excess = sum(widths) + len(GAP) * (len(widths) - 1) + 2 - width
    if excess > sum(spare):
        return None
    for _ in range(excess):
        widest = spare.index(max(spare))
        widths[widest] -= 1
        spare[widest] -= 1
    return widths


def _print_plain(lines: Sequence[Sequence[str]]) -> None:
    head, *_ = lines
    widths = [max(len(line[index]) for line in lines) for index in range(len(head))]
    for line in lines:
        cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        text = GAP.join(cells).rstrip()
        sys.stdout.write((paint(text, "bold") if line is head else text) + "\n")
