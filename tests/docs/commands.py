"""The reference pages about the commands: one for each command or group, generated from typer."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import typer
from tests.docs.command_examples import EXAMPLES

from dryrack.cli.main import app

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FOLDER = "docs/reference/cli"
# An option that at least so many commands have with the same text is only on the first page.
COMMANDS_MIN = 3

_EXIT = re.compile(r"^Exit (?:status|code) (\d+): (.+)$", re.MULTILINE)
_EXITS = {"0": "success.", "1": "failure; the command prints the reason.", "2": "wrong usage."}
_GROUPS = ("Learn", "Answers from files", "Virtual clusters", "Virtual and real clusters", "More")
_ARGUMENTS = ["| Argument | Description |", "|---|---|"]
_OPTIONS = ["| Option | Values | Default | Description |", "|---|---|---|---|"]


@cache
def top() -> dict[str, Any]:
    """Return the commands and groups by name."""
    root: Any = typer.main.get_command(app)
    return dict(sorted(root.commands.items()))


def leaves(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    """Yield a command, or each command of a group, by its full name."""
    inner = getattr(command, "commands", {})
    if not inner:
        yield name, command
    for each in sorted(inner):
        yield from leaves(f"{name} {each}", inner[each])


def index() -> str:
    sections: list[str] = []
    for group in _GROUPS:
        members = [name for name, each in top().items() if each.rich_help_panel == group]
        rows = [f"| [`dryrack {name}`]({name}.md) | {_summary(top()[name])} |" for name in members]
        sections += [f"## {group}", "", "| Command | Description |", "|---|---|", *rows, ""]
    return "\n".join(
        [
            "# Commands",
            "",
            "`dryrack --help` and `dryrack COMMAND --help` print this information in the terminal.",
            "`dryrack --version` prints the version.",
            "",
            *sections,
            "## Common options",
            "",
            "Several commands have these options. The page of a command links to them.",
            "",
            *_OPTIONS,
            *sorted(_common_rows()),
            "",
        ]
    )


def page(name: str) -> str:
    command = top()[name]
    lines = [f"# dryrack {name}", ""]
    members = list(leaves(name, command))
    if members[0][0] != name:
        lines += [command.help, ""]
        for full, each in members:
            lines += [f"## dryrack {full}", "", *_body(full, each, "###")]
    else:
        lines += _body(name, command, "##")
    return "\n".join(lines)


def _body(name: str, command: Any, level: str) -> list[str]:
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    options = [each for each in command.params if each.param_type_name == "option"]
    own = [each for each in options if not _is_common(each)]
    common = sorted(_spelling(each) for each in options if _is_common(each))
    text = _EXIT.sub("", command.help).strip()
    synopsis = " ".join(["dryrack", name, *(["[OPTIONS]"] * bool(options))])
    synopsis = " ".join(
        [synopsis, *(each.metavar or each.human_readable_name for each in arguments)]
    )
    lines = [text, "", "```text", synopsis, "```", ""]
    if arguments:
        lines += [f"{level} Arguments", "", *_ARGUMENTS]
        lines += [f"| `{_cell(each.metavar)}` | {_cell(each.help)} |" for each in arguments] + [""]
    if options:
        lines += [f"{level} Options", ""]
    if own:
        lines += [*_OPTIONS, *map(_row, own), ""]
    if common:
        listed = ", ".join(f"`{each}`" for each in common)
        lines += [f"See also the [common options](index.md#common-options) {listed}.", ""]
    exits = {**_EXITS, **dict(_EXIT.findall(command.help))}
    lines += [f"{level} Exit status", "", "| Status | Meaning |", "|---|---|"]
    lines += [
        f"| {status} | {meaning[0].upper()}{meaning[1:]} |" for status, meaning in exits.items()
    ]
    shown = [f"# {each.reason}\n{each.call}" for each in EXAMPLES[name]]
    return [*lines, "", f"{level} Examples", "", "```sh", "\n\n".join(shown), "```", ""]


def _summary(command: Any) -> str:
    return str(command.help).partition("\n\n")[0]


def _row(option: Any) -> str:
    shown = _shown_default(option)
    return f"| `{_spelling(option)}` | {_values(option)} | {shown} | {_cell(option.help)} |"


def _spelling(option: Any) -> str:
    return ", ".join([*sorted(option.opts, key=len), *option.secondary_opts])


def _values(option: Any) -> str:
    choices = getattr(option.type, "choices", None)
    if choices:
        return ", ".join(f"`{each}`" for each in choices)
    if option.is_flag:
        return ""
    if option.metavar:
        return f"`{_cell(option.metavar)}`"
    return "number" if "int" in option.type.name else "text"


def _shown_default(option: Any) -> str:
    value = getattr(option.default, "value", option.default)
    if option.is_flag:
        return f"`{min(option.opts)}`" if value else ""
    return f"`{value}`" if value not in (None, "") else ""


def _cell(text: str | None) -> str:
    return (text or "").replace("|", "\\|")


@cache
def _common_rows() -> frozenset[str]:
    """Return the rows of the common options; an option with two common rows is not common."""
    counts = Counter(map(_row, _options_of_all()))
    spelling = {_row(each): _spelling(each) for each in _options_of_all()}
    often = [row for row, number in counts.items() if number >= COMMANDS_MIN]
    rows_by_spelling = Counter(spelling[row] for row in often)
    return frozenset(row for row in often if rows_by_spelling[spelling[row]] == 1)


def _options_of_all() -> Iterator[Any]:
    for name, command in top().items():
        for _, each in leaves(name, command):
            yield from (param for param in each.params if param.param_type_name == "option")


def _is_common(option: Any) -> bool:
    return _row(option) in _common_rows()


PAGES: dict[str, Callable[[], str]] = {
    f"{FOLDER}/index.md": index,
    **{f"{FOLDER}/{name}.md": partial(page, name) for name in top()},
}
