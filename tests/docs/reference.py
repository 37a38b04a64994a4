"""
Writes the reference pages that follow from the code.

    python -m tests.docs.reference
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from tests.apiserver.replay import SCRIPTS, by_http, known_differences

from dryrack.allocation.glossary import MEANINGS
from dryrack.apiserver.builtin import BUILTINS
from dryrack.cli.main import app

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dryrack.apiserver.builtin import Builtin

ROOT = Path(__file__).parents[2]


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
    """A command, or each command of a group."""
    inner = getattr(command, "commands", {})
    if inner:
        return [line for each in sorted(inner) for line in _command(f"{name} {each}", inner[each])]
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    options = [p for p in command.params if p.param_type_name == "option"]
    words = " ".join(["dryrack", name, *(p.metavar for p in arguments)])
    lines = [f"## `{words}`", "", command.help, ""]
    lines += ["| option | meaning | default |", "|---|---|---|"] if options else []
    lines += [f"| `{', '.join(p.opts)}` | {p.help} | {_default(p.default)} |" for p in options]
    return [*lines, ""] if options else lines


def _default(value: Any) -> str:
    return f"`{value}`" if value not in (None, "", False) else ""


def coverage() -> str:
    known = known_differences()
    asked = {script.name: len(by_http(script).steps) for script in SCRIPTS}
    equal = sum(asked.values()) - sum(len(steps) for steps in known.values())
    return "\n".join(
        [
            "# Coverage",
            "",
            "What the embedded control plane serves, and where it answers otherwise than a real",
            "API server of Kubernetes 1.36.",
            "The page follows from the code and from the recordings in `tests/parity`:",
            f"of {sum(asked.values())} recorded requests, {equal} are answered alike.",
            "",
            "## Kinds",
            "",
            "Full: defaults, validation and behaviour.",
            "Stored: kept and served, with the machinery that all kinds share, and nothing more.",
            "",
            "| kind | version | depth | subresources |",
            "|---|---|---|---|",
            *(_kind(each) for each in BUILTINS),
            "",
            "CustomResourceDefinitions add their own.",
            "",
            "## Differences",
            "",
            *(line for name in sorted(known) if known[name] for line in _known(name, known[name])),
            "## Not there",
            "",
            "Protobuf, `exec`, `attach` and `port-forward`, admission webhooks, aggregated API",
            "servers, and kinds that are not in the table.",
            "",
        ]
    )


def _kind(kind: Builtin) -> str:
    version = f"{kind.group}/{kind.version}" if kind.group else kind.version
    parts = ", ".join(part.name for part in kind.parts)
    return f"| {kind.kind} | {version} | {kind.depth.value} | {parts} |"


def _known(script: str, steps: Mapping[str, str]) -> list[str]:
    rows = [f"- {step}: {reason}" for step, reason in sorted(steps.items())]
    return [f"### `tests/parity/scripts/{script}.yaml`", "", *rows, ""]


PAGES = {
    "docs/reference/reasons.md": reasons,
    "docs/reference/commands.md": commands,
    "COVERAGE.md": coverage,
}


if __name__ == "__main__":
    for page, write in PAGES.items():
        (ROOT / page).write_text(write())
