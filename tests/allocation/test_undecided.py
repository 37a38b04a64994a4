"""A search that would take too long is given up, and says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.allocation.builders import NODE, allocator, node
from tests.allocation.generate import cases
from tests.allocation.knapsacks import give_up_after, hard_claim, hard_node
from tests.oracle.verdicts import GAVE_UP, our_verdict

from dryrack.allocation import Code, Undecided
from dryrack.cli.allocate import verdict
from dryrack.placement.place import Refusal
from dryrack.placement.whatif.explain import explain_nodes

if TYPE_CHECKING:
    from dryrack.allocation import Outcome

# The first of those that are compared with Kubernetes; so many take some seconds.
GENERATED = 4000
# Those of them that are given up.
UNDECIDED = {"1:84", "1:812", "1:1667", "1:3121"}


def knapsack(patch: pytest.MonkeyPatch) -> Outcome:
    """Twenty-five of sixty devices, none like another, that may just fit into four counters."""
    give_up_after(64, patch)
    slices = hard_node(NODE)
    return allocator(slices).allocate(node(), [hard_claim("all-of-it")])


def test_a_search_is_given_up_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """An undecided search is neither an allocation nor a refusal."""
    outcome = knapsack(monkeypatch)

    assert isinstance(outcome, Undecided)


def test_what_is_not_known_is_told_of_each_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reason names the claim, says that nothing is known, and what to do about it."""
    outcome = knapsack(monkeypatch)

    assert isinstance(outcome, Undecided)
    [reason] = outcome.reasons
    assert reason.code is Code.UNDECIDED
    assert reason.claim.endswith("all-of-it")
    assert "the search stopped at its limit" in reason.message
    assert reason.remedy


def test_the_same_search_is_given_up_at_the_same_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps are counted, not seconds, so a slow machine knows as much as a fast one."""
    assert knapsack(monkeypatch) == knapsack(monkeypatch)


def test_nobody_is_told_that_it_does_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """The verdict of the claim is unknown."""
    outcome = knapsack(monkeypatch)

    assert isinstance(outcome, Undecided)
    assert verdict(explain_nodes([Refusal("node", outcome.reasons)])) == "unknown whether it fits"


@pytest.mark.parametrize("start", range(0, GENERATED, 500))
def test_generated_cases_are_decided(start: int) -> None:
    """Few generated cases stay undecided; Kubernetes stops at many more."""
    undecided = [
        case["name"] for case in cases(1, 500, start=start) if our_verdict(case).error == GAVE_UP
    ]

    assert set(undecided) <= UNDECIDED


@pytest.mark.parametrize(
    "name",
    [
        # An alternative that is always too large is never entered.
        "2:1816",
        # Requests before one for "all" devices share a value that enough devices have.
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
