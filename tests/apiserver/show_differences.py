"""Prints how the embedded server's answers differ from the recorded ones."""

from __future__ import annotations

import difflib
import json
import sys
from typing import TYPE_CHECKING, Any

from tests.apiserver.replay import compared, replayed
from tests.parity.script import load_all

if TYPE_CHECKING:
    from tests.parity.script import Script

_LINES_MAX = 40


def main(names: list[str]) -> None:
    for script in load_all(names):
        _show(script)


def _show(script: Script) -> None:
    answers, count = replayed(script), 0
    for step, recorded, answered in compared(script, answers):
        if recorded != answered:
            count += 1
            sys.stdout.write(f"{script.name}: {step}:\n{diff(recorded, answered)}\n\n")
    sys.stdout.write(f"{script.name}: {count} of {len(answers)} differ\n")


def diff(recorded: dict[str, Any], answered: dict[str, Any]) -> str:
    before, after = (
        json.dumps(value, indent=1, sort_keys=True).splitlines() for value in (recorded, answered)
    )
    lines = list(difflib.unified_diff(before, after, "recorded", "answered", lineterm="", n=2))
    return "\n".join(lines[:_LINES_MAX])


if __name__ == "__main__":
    main(sys.argv[1:])
