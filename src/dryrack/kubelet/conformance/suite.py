"""Run the requirements against a driver, one after the other."""

from __future__ import annotations

import random
import re
from typing import TYPE_CHECKING

from dryrack.kubelet.conformance.program import BenchError
from dryrack.kubelet.conformance.report import NotMetError, Outcome, Result, SkippedError
from dryrack.kubelet.conformance.requirements import REQUIREMENTS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from dryrack.kubelet.conformance.bench import Bench
    from dryrack.kubelet.conformance.contract import Requirement


async def run_suite(bench: Bench, *, focus: str = "") -> AsyncIterator[Result]:
    """Yield the result of each requirement whose name matches `focus`; the seed sets the order."""
    chosen = [each for each in REQUIREMENTS if re.search(focus, each.name)]
    # A driver must not depend on what happened before; seed 0 keeps the order of the list.
    if bench.seed:
        random.Random(bench.seed).shuffle(chosen)
    lost = ""
    for each in chosen:
        if lost:
            reason = f"the driver does not start again after {lost}"
            yield Result(each.name, each.contract, Outcome.SKIPPED, reason=reason)
            continue
        result = await check_requirement(bench, each)
        yield result
        try:
            await bench.clean()
            if result.outcome is Outcome.FAILED:
                # The next requirement must not see the consequences.
                await bench.reset()
        except BenchError:
            lost = each.name


async def check_requirement(bench: Bench, requirement: Requirement) -> Result:
    """Return the result of one requirement."""
    began = bench.clock.now()
    outcome, sent, got, reason = Outcome.PASSED, "", "", ""
    steps: tuple[str, ...] = ()
    try:
        await requirement.check(bench)
    except NotMetError as error:
        outcome, sent, got, steps = Outcome.FAILED, error.sent, error.got, error.steps
    except SkippedError as error:
        outcome, reason = Outcome.SKIPPED, str(error)
    except BenchError as error:
        outcome, sent, got = Outcome.FAILED, "the calls of the requirement", str(error)
    seconds = bench.clock.now() - began
    return Result(
        requirement.name, requirement.contract, outcome, sent, got, reason, seconds, steps
    )
