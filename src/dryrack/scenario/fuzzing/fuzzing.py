"""
Fuzzing: random worlds, one for each seed, run with every invariant checked.

A failure is reported with its seed and the smallest scenario that fails in the same way, as a file
for `dryrack scenario run`.
"""

from __future__ import annotations

import gc
import logging
import traceback
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from dryrack.base.limits import GARBAGE_THRESHOLDS
from dryrack.client.timekeeping import RestlessError
from dryrack.scenario.embedded_world import EmbeddedRun, run_in_virtual_time
from dryrack.scenario.fuzzing.random_worlds import random_scenario
from dryrack.scenario.outcome import Verdict
from dryrack.scenario.reading import read_scenario

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from dryrack.kinds.raw import Raw
    from dryrack.scenario.fuzzing.user_worlds import UserWorld
    from dryrack.scheduler import SchedulerSettings


def no_settings() -> None:
    """Return None, for the default settings of the scheduler."""


_EXPECTATION = "step: "
_RESTLESS = "the cluster does not become idle"


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedOutcome:
    """The outcome of one seed."""

    seed: int
    faults: int
    writes: int = 0
    seconds: float = 0.0
    """The duration, in virtual time."""
    hash: str = ""
    problem: str = ""
    step: str = ""
    """The last step before the failure."""
    scenario: str = ""
    """The smallest failing scenario, as a file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FuzzInput:
    """The input of a user; each process gets a copy."""

    world: UserWorld | None = None
    """None: random nodes and workloads."""
    scheduling: Callable[[], SchedulerSettings | None] = no_settings
    """Returns the settings of the scheduler; None for the defaults."""


def fuzz(
    seeds: Sequence[int], faults: int, *, jobs: int = 1, given: FuzzInput | None = None
) -> Iterator[SeedOutcome]:
    """Run every seed in turn, with so many faults each, in several processes."""
    given = given or FuzzInput()
    if jobs <= 1:
        yield from (try_seed(seed, faults, given) for seed in seeds)
        return
    context = get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context, initializer=_begin) as pool:
        yield from pool.map(partial(try_seed, faults=faults, given=given), seeds)


def _begin() -> None:
    """Silence the log of the engines: the outcome reports what goes wrong."""
    logging.getLogger("dryrack").addHandler(logging.NullHandler())
    gc.set_threshold(*GARBAGE_THRESHOLDS)


def run_seed(seed: int, faults: int) -> SeedOutcome:
    """Run a random world, and report a failure with the whole scenario."""
    return _run(random_scenario(seed, faults), seed, faults)


def try_seed(seed: int, faults: int, given: FuzzInput | None = None) -> SeedOutcome:
    """Run a random world, and shrink the scenario of a failure."""
    given = given or FuzzInput()
    make = random_scenario if given.world is None else given.world.scenario
    document = make(seed, faults)
    settings = given.scheduling()
    found = _run(document, seed, faults, settings)
    if not found.problem:
        return found
    kind = _kind(found.problem)
    if kind == _RESTLESS:
        # Every look at a smaller one would take minutes.
        return replace(found, scenario=scenario_text(document, seed, found.problem))
    smallest = shrink(document, lambda it: _kind(_run(it, seed, faults, settings).problem) == kind)
    last = _run(smallest, seed, faults, settings)
    return SeedOutcome(
        seed=seed,
        faults=faults,
        writes=found.writes,
        seconds=found.seconds,
        hash=found.hash,
        problem=last.problem,
        step=last.step,
        scenario=scenario_text(smallest, seed, last.problem),
    )


def scenario_text(document: Raw, seed: int, problem: str) -> str:
    """Return the file of a scenario, with the failure as a comment."""
    heading = "\n".join(f"# {line}" for line in problem.splitlines())
    text = yaml.dump(document, Dumper=_PlainDumper, sort_keys=False, allow_unicode=True)
    return f"{heading}\n# dryrack scenario run --seed {seed} FILE\n{text}"


class _PlainDumper(yaml.SafeDumper):
    """Writes YAML without anchors."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def _run(
    document: Raw, seed: int, faults: int, settings: SchedulerSettings | None = None
) -> SeedOutcome:
    try:
        return _outcome(document, seed, faults, settings)
    finally:
        # A whole cluster is garbage now, of which parts know each other.
        gc.collect()


def _outcome(
    document: Raw, seed: int, faults: int, settings: SchedulerSettings | None
) -> SeedOutcome:
    text = yaml.dump(document, Dumper=_PlainDumper, sort_keys=False)
    loaded = read_scenario(text, f"seed {seed}", name=f"seed-{seed}", folder=Path())
    try:
        how = EmbeddedRun(seed=seed, skips_missing=True, scheduling=settings)
        outcome = run_in_virtual_time(loaded, how)
    except RestlessError as error:
        return SeedOutcome(seed=seed, faults=faults, problem=f"{_RESTLESS}: {error}")
    except Exception as error:  # noqa: BLE001 - an engine that ends by an error is what is looked for
        lines = "".join(traceback.format_exception(error)).strip().splitlines()
        return SeedOutcome(
            seed=seed, faults=faults, problem="\n".join(["a component ended", *lines])
        )
    done = [each for each in outcome.steps if each.verdict is not Verdict.SKIPPED]
    return SeedOutcome(
        seed=seed,
        faults=faults,
        writes=outcome.writes,
        seconds=outcome.seconds,
        hash=outcome.hash,
        problem="\n".join(outcome.failures),
        step=f"{len(done)} of {len(outcome.steps)}",
    )


def _kind(problem: str) -> str:
    """
    Return what is broken; a smaller scenario must break in the same way.

    An expectation of a step names its object and what is wrong with it. Without that, a scenario
    that no longer creates the object would count as a smaller one.
    """
    line = problem.partition("\n")[0]
    return line if line.startswith(_EXPECTATION) else line.partition(":")[0]


def shrink(document: Raw, fails: Callable[[Raw], bool], *, trials_max: int = 400) -> Raw:
    """
    Return the scenario with as few steps as `fails` needs; the given one fails.

    Delta debugging leaves out steps, large parts first and single ones last, as long as the rest
    still fails. Steps of a random world have times of their own, so the remaining steps do not
    move.
    """
    steps: list[Raw] = list(document["steps"])
    size = max(1, len(steps) // 2)
    trials = 0
    while True:
        is_smaller = False
        place = 0
        while place < len(steps) and trials < trials_max:
            rest = steps[:place] + steps[place + size :]
            trials += 1
            if rest and fails(document | {"steps": rest}):
                steps = rest
                is_smaller = True
            else:
                place += size
        if trials >= trials_max or (size == 1 and not is_smaller):
            return document | {"steps": _simplest(document, steps, fails)}
        if size > 1:
            size //= 2


def _simplest(document: Raw, steps: Sequence[Raw], fails: Callable[[Raw], bool]) -> list[Raw]:
    """Return the steps that apply several objects, with as few of them as needed."""
    found = list(steps)
    for place, step in enumerate(found):
        for obj in step.get("apply", ()):
            smaller = [each for each in found[place]["apply"] if each is not obj]
            trial = [*found[:place], {**step, "apply": smaller}, *found[place + 1 :]]
            if smaller and fails(document | {"steps": trial}):
                found = trial
    return found
