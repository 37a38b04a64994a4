"""`dryrack scenario fuzz`: run random scenarios and write those that fail to files."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dryrack.cli.files import UsageError
from dryrack.cli.output import Format, many, paint, print_data, print_line, say, shown
from dryrack.cli.scenarios.running import quiet
from dryrack.scenario import fuzz

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.scenario import SeedOutcome


@dataclass(frozen=True, slots=True)
class Wish:
    """The values of the options."""

    seeds: Sequence[int]
    faults: int
    jobs: int
    folder: str
    output: Format


def run(wish: Wish) -> bool:
    """Run the scenarios; return whether all of them pass."""
    folder = Path(wish.folder)
    if not folder.is_dir():
        raise UsageError(f"--keep-in {wish.folder}: no such directory; create it first")
    outcomes: list[SeedOutcome] = []
    with quiet():
        for each in fuzz(wish.seeds, wish.faults, jobs=wish.jobs):
            outcomes.append(each)
            if each.problem:
                _keep(each, folder)
            if wish.output is Format.TABLE:
                _tell(each)
    if wish.output is not Format.TABLE:
        print_data({"seeds": [asdict(each) for each in outcomes]}, wish.output)
    broken = [each for each in outcomes if each.problem]
    faults = len(outcomes) * wish.faults
    writes = sum(each.writes for each in outcomes)
    count = many(len(outcomes), "scenario")
    say(f"{count}, {faults} faults, {writes} writes: {len(broken)} failed")
    return not broken


def _keep(each: SeedOutcome, folder: Path) -> None:
    file = folder / f"seed-{each.seed}.yaml"
    file.write_text(each.scenario)
    say(f"seed {each.seed}: wrote the smallest scenario that fails to {file}")


def _tell(each: SeedOutcome) -> None:
    seed = f"seed {each.seed}"
    if not each.problem:
        print_line(f"{paint(seed, 'green')}: {each.writes} writes, {each.seconds:.0f} s")
        return
    print_line(f"{paint(seed, 'bold red')}, step {each.step}:")
    for line in each.problem.splitlines():
        print_line(shown(f"  {line}"))
