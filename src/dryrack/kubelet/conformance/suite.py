"""Run the requirements against a driver, one after the other."""

from __future__ import annotations

import random
import re
from typing import TYPE_CHECKING

from dryrack.kubelet.conformance.bench import BenchError
from dryrack.kubelet.conformance.report import NotMetError, Outcome, Result, SkippedError
from dryrack.kubelet.conformance.requirements import REQUIREMENTS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from dryrack.kubelet.conformance.bench import Bench
    from dryrack.kubelet.conformance.requirements import Requirement


async def run_suite(bench: Bench, *, focus: str = "", seed: int = 0) -> AsyncIterator[Result]:
    """Yield the result of each requirement whose name matches `focus`; the seed sets the order."""
    chosen = [each for each in REQUIREMENTS if re.search(focus, each.name)]
    # A driver must not depend on what happened before; seed 0 keeps the order of the list.
    if seed:
        random.Random(seed).shuffle(chosen)
    for each in chosen:
        yield await _try(bench, each)


async def _try(bench: Bench, requirement: Requirement) -> Result:
    began = bench.clock.now()
    outcome, sent, got, reason = Outcome.PASSED, "", "", ""
    try:
        await requirement.check(bench)
    except NotMetError as error:
        outcome, sent, got = Outcome.FAILED, error.sent, error.got
    except SkippedError as error:
        outcome, reason = Outcome.SKIPPED, str(error)
    except BenchError as error:
        outcome, sent, got = Outcome.FAILED, requirement.name, str(error)
    seconds = bench.clock.now() - began
    await bench.clean()
    return Result(requirement.name, requirement.contract, outcome, sent, got, reason, seconds)
