"""`dryrack scenario fuzz`: run random scenarios and write those that fail to files."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from dryrack.cli.files import UsageError
from dryrack.cli.output import Format, many, paint, print_data, print_line, say, shown
from dryrack.cli.scenarios.running import quiet
from dryrack.scenario import fuzz

if TYPE_CHECKING:
    from dryrack.cli.scenarios.commands import FuzzOptions
    from dryrack.scenario import SeedOutcome


def run(options: FuzzOptions) -> bool:
    """Run the scenarios; return whether all of them pass."""
    folder = Path(options.keep_in)
    if not folder.is_dir():
        raise UsageError(f"--keep-in {options.keep_in}: no such directory; create it first")
    seeds = range(options.first, options.first + options.seeds)
    outcomes: list[SeedOutcome] = []
    with quiet():
        for each in fuzz(seeds, options.faults, jobs=options.jobs):
            outcomes.append(each)
            if each.problem:
                file = folder / f"seed-{each.seed}.yaml"
                file.write_text(each.scenario)
                say(f"seed {each.seed}: wrote the smallest scenario that fails to {file}")
            if options.output is Format.TABLE:
                _print(each)
    if options.output is not Format.TABLE:
        print_data({"seeds": [asdict(each) for each in outcomes]}, options.output)
    failed_count = sum(bool(each.problem) for each in outcomes)
    faults = len(outcomes) * options.faults
    writes = sum(each.writes for each in outcomes)
    count = many(len(outcomes), "scenario")
    say(f"{count}, {faults} faults, {writes} writes: {failed_count} failed")
    return not failed_count


def _print(each: SeedOutcome) -> None:
    seed = f"seed {each.seed}"
    if not each.problem:
        print_line(f"{paint(seed, 'green')}: {each.writes} writes, {each.seconds:.0f} s")
        return
    print_line(f"{paint(seed, 'bold red')}, step {each.step}:")
    for line in each.problem.splitlines():
        print_line(shown(f"  {line}"))
