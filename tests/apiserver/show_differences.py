"""Prints how the embedded server's answers differ from the recorded ones."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from tests.apiserver.replay import compared, replayed
from tests.parity.recording import diff
from tests.parity.script import load_all

if TYPE_CHECKING:
    from tests.parity.script import Script


def main(names: list[str]) -> None:
    for script in load_all(names):
        _show(script)


def _show(script: Script) -> None:
    answers = replayed(script)
    count = 0
    for step, recorded, answered in compared(script, answers):
        if recorded != answered:
            count += 1
            sys.stdout.write(f"{script.name}: {step}:\n{diff(recorded, answered)}\n\n")
    sys.stdout.write(f"{script.name}: {count} of {len(answers)} differ\n")


if __name__ == "__main__":
    main(sys.argv[1:])
