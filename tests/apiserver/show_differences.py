"""Prints how the embedded server's answers differ from the recorded ones."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from tests.apiserver.replay import compared, replayed
from tests.parity.recording import diff
from tests.parity.script import load_all

from dryrack.kinds.releases import DEFAULT_RELEASE, Release

if TYPE_CHECKING:
    from tests.parity.script import Script


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="a script; default: all scripts")
    parser.add_argument("--release", default=DEFAULT_RELEASE.value, help="default: %(default)s")
    given = parser.parse_args()
    for script in load_all(given.names):
        _show(script, Release(given.release))


def _show(script: Script, release: Release) -> None:
    answers = replayed(script, release)
    count = 0
    for step, recorded, answered in compared(script, answers, release):
        if recorded != answered:
            count += 1
            sys.stdout.write(f"{script.name}: {step}:\n{diff(recorded, answered)}\n\n")
    sys.stdout.write(f"{script.name}: {count} of {len(answers)} differ\n")


if __name__ == "__main__":
    main()
