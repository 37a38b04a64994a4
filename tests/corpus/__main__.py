"""Run the check on a folder: `python -m tests.corpus FOLDER [--rounds N] [--seed N]`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.corpus.check import check, manifests_below


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.corpus", description=__doc__)
    parser.add_argument("folder", type=Path, help="the folder that has the manifests")
    parser.add_argument("--rounds", type=int, default=3, help="how often all are applied")
    parser.add_argument("--seed", type=int, default=0, help="decides every random order")
    parser.add_argument("--refused", action="store_true", help="list the objects refused")
    asked = parser.parse_args()
    files = manifests_below(asked.folder)
    if not files:
        parser.error(f"{asked.folder}: no .yaml, .yml or .json file")
    report = check(
        files,
        rounds=asked.rounds,
        seed=asked.seed,
        progress=lambda text: print(text, file=sys.stderr),  # noqa: T201 - for people
    )
    lines = [f"{report.files} files, {report.applied} objects stored in each round"]
    for command, counts in report.exits.items():
        codes = ", ".join(f"{count} × exit code {code}" for code, count in sorted(counts.items()))
        lines.append(f"dryrack {command}: {codes}")
    lines.append(f"{len(report.refused)} files with an object that the API server refused")
    if asked.refused:
        lines += [f"  {file}: {text}" for file, text in sorted(report.refused.items())]
    lines += [f"problem: {each}" for each in report.problems]
    lines.append(f"{len(report.problems)} problems")
    sys.stdout.write("\n".join(lines) + "\n")
    return 1 if report.problems else 0


if __name__ == "__main__":
    sys.exit(main())
