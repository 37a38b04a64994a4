"""Prints how the embedded server's answers differ from the recorded ones."""

from __future__ import annotations

import sys

from tests.apiserver.replay import replayed
from tests.parity.recording import differences
from tests.parity.script import load_all


def main(names: list[str]) -> None:
    for script in load_all(names):
        answers = replayed(script)
        found = list(differences(script, answers))
        for each in found:
            print(each, end="\n\n")  # noqa: T201 - this is what the program is for
        print(f"{script.name}: {len(found)} of {len(answers)} differ")  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1:])
