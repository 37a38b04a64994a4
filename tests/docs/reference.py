"""
Writes the reference pages that follow from the code.

    python -m tests.docs.reference
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from dryrack.allocation.glossary import MEANINGS
from dryrack.cli.main import app

DOCS = Path(__file__).parents[2] / "docs" / "reference"


def reasons() -> str:
    rows = [f"| `{code.text}` | {meaning} |" for code, meaning in sorted(MEANINGS.items())]
    return "\n".join(
        [
            "# Reasons",
            "",
            "Why a device is not given, or a claim gets none: the `reason` in the output of",
            "`dryrack allocate` and `dryrack explain`.",
            "Codes never change their meaning; messages may.",
            "",
            "| reason | what it means |",
            "|---|---|",
            *rows,
            "",
        ]
    )


def commands() -> str:
    group: Any = typer.main.get_command(app)
    parts = ["# Commands", ""]
    for name in sorted(group.commands):
        parts += _command(name, group.commands[name])
    return "\n".join(parts)


def _command(name: str, command: Any) -> list[str]:
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    options = [p for p in command.params if p.param_type_name == "option"]
    words = " ".join(["dryrack", name, *(p.metavar for p in arguments)])
    lines = [f"## `{words}`", "", command.help, ""]
    lines += ["| option | meaning | default |", "|---|---|---|"] if options else []
    lines += [f"| `{', '.join(p.opts)}` | {p.help} | {_default(p.default)} |" for p in options]
    return [*lines, ""] if options else lines


def _default(value: Any) -> str:
    return f"`{value}`" if value not in (None, "", False) else ""


PAGES = {"reasons.md": reasons, "commands.md": commands}


if __name__ == "__main__":
    for page, write in PAGES.items():
        (DOCS / page).write_text(write())
