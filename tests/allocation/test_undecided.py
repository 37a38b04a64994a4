"""A search that would take too long is given up, and says so."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest
from tests.allocation.builders import allocator, claim, counters, drawing, node, pool, request
from tests.allocation.generate import cases
from tests.oracle.verdicts import GAVE_UP, our_verdict

from dryrack.allocation import Code, Refusal, Undecided
from dryrack.allocation import allocator as allocator_module
from dryrack.allocation.explain import stories
from dryrack.cli.allocate import verdict

if TYPE_CHECKING:
    from dryrack.allocation import Outcome

COUNTERS = ("memory", "cores", "links", "lanes")
# The first of those that are compared with Kubernetes; so many take some seconds.
GENERATED = 4000


def knapsack(rounds: int, patch: pytest.MonkeyPatch) -> Outcome:
    """Twenty-five of sixty devices, none like another, that may just fit into four counters."""
    chance = Random(4)
    draws = [{name: chance.randint(100, 999) for name in COUNTERS} for _ in range(60)]
    offered = [drawing(f"part-{n:02}", "gpu", **each) for n, each in enumerate(draws)]
    least = {name: sum(sorted(each[name] for each in draws)[:25]) for name in COUNTERS}
    limits = {name: 145 * amount // 100 for name, amount in least.items()}
    patch.setattr(allocator_module, "_ROUNDS_MAX", rounds)
    slices = pool(offered, sets=[counters("gpu", **limits)])
    return allocator(slices).allocate(node(), [claim(request("r", 25), name="all-of-it")])


def test_a_search_is_given_up_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was not decided is neither an allocation nor a proof that there is none."""
    outcome = knapsack(2, monkeypatch)

    assert isinstance(outcome, Undecided)


def test_what_is_not_known_is_told_of_each_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reason names the claim, says that nothing is known, and what to do about it."""
    outcome = knapsack(2, monkeypatch)

    assert isinstance(outcome, Undecided)
    [reason] = outcome.reasons
    assert reason.code is Code.UNDECIDED
    assert reason.claim.endswith("all-of-it")
    assert "given up" in reason.message
    assert reason.remedy


def test_the_same_search_is_given_up_at_the_same_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps are counted, not seconds, so a slow machine knows as much as a fast one."""
    assert knapsack(2, monkeypatch) == knapsack(2, monkeypatch)


def test_nobody_is_told_that_it_does_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is said of the claim is what is known, which is nothing."""
    outcome = knapsack(2, monkeypatch)

    assert isinstance(outcome, Undecided)
    assert verdict(stories([Refusal("node", outcome.reasons)])) == "not decided"


@pytest.mark.parametrize("start", range(0, GENERATED, 500))
def test_generated_cases_are_decided(start: int) -> None:
    """On cases that nobody chose no search is given up, though Kubernetes gives up on some."""
    undecided = [
        case["name"] for case in cases(1, 500, start=start) if our_verdict(case).error == GAVE_UP
    ]

    assert undecided == []


@pytest.mark.parametrize(
    "name",
    [
        # What one request must take, another does not see between two devices.
        "1:8947",
        # An alternative that is always too large is never entered, whatever lurks in it.
        "2:1816",
        # Requests before one for "all" devices share a value that there is enough of for all.
        "1000003:31489",
        "1000003:141991",
        # Up to 1.36 each of "all" devices must differ from the one before only.
        "1000003:62929",
        "1000003:206254",
    ],
)
def test_what_was_given_up_once_is_decided(name: str) -> None:
    """Each of these cases needs a step of the proof that no other case asks for."""
    seed, number = map(int, name.split(":"))
    [case] = cases(seed, 1, start=number)

    assert our_verdict(case).error != GAVE_UP
