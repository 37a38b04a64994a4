"""Scenarios by name or file: run one after the other, and told as they go."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dryrack.cli.files import UsageError
from dryrack.cli.output import Format, print_data
from dryrack.cli.scenarios.showing import Narrator, print_verdict
from dryrack.scenario import EmbeddedRun, load_scenario, run_in_real_time, run_in_virtual_time

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.scenario import LoadedScenario, Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """How to run, as it was asked for."""

    seed: int = 0
    real_time: bool = False
    output: Format = Format.TABLE


def run(names: Sequence[str], wish: Wish) -> bool:
    """Whether every scenario came to what it must."""
    loaded = [_load(name) for name in names]
    outcomes = [_run(each, wish) for each in loaded]
    if wish.output is not Format.TABLE:
        print_data({"scenarios": [each.document() for each in outcomes]}, wish.output)
    return all(each.held for each in outcomes)


def _run(loaded: LoadedScenario, wish: Wish) -> Outcome:
    tells = wish.output is Format.TABLE
    narrator = Narrator(loaded) if tells else None
    how = (
        EmbeddedRun(seed=wish.seed)
        if narrator is None
        else EmbeddedRun(seed=wish.seed, observer=narrator)
    )
    outcome = (run_in_real_time if wish.real_time else run_in_virtual_time)(loaded, how)
    if tells:
        print_verdict(outcome)
    return outcome


def _load(name: str) -> LoadedScenario:
    path = Path(name)
    if not path.is_file():
        raise UsageError(f"{name}: no such file")
    return load_scenario(path)
