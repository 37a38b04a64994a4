"""A difference is found, made small and shown; what is no difference is let pass."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from tests.cases.store import read
from tests.oracle.differential import compare, report
from tests.oracle.oracles import AllocatorAnswer, Oracle
from tests.oracle.verdicts import GAVE_UP, Verdict, our_verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable

CASE = read(Path(__file__).parents[1] / "cases" / "allocator" / "two-of-a-request.yaml")
QUESTION = {name: part for name, part in CASE.items() if name not in ("answer", "idea")}

NO_CLASS = "could not retrieve device class"
NO_SELECTION = "failed to perform node selection for device"


class Scripted(Oracle[AllocatorAnswer]):
    """Stands in for Kubernetes, with answers that a test decides."""

    def __init__(self, answer: Callable[[int], AllocatorAnswer]) -> None:
        self._answer = answer
        self._asked = 0

    def ask(self, cases: Iterable[Any]) -> Generator[tuple[Any, AllocatorAnswer]]:
        for case in cases:
            self._asked += 1
            yield case, self._answer(self._asked)


def agreeing(_: int) -> AllocatorAnswer:
    results = our_verdict(QUESTION).results
    assert results is not None
    return AllocatorAnswer(results=tuple(dict(result) for result in results))


def endless(_: object) -> Verdict:
    while True:
        pass


def not_decided(field: str) -> AllocatorAnswer:
    return AllocatorAnswer(timeout=field == "timeout", panic="x" * (field == "panic"))


def test_agreement_is_counted() -> None:
    """If both sides decide alike, nothing is reported."""
    tally = compare(Scripted(agreeing), [QUESTION] * 3)

    assert (tally.compared, tally.allocated, tally.differences) == (3, 3, [])


def test_a_difference_is_shown_small_with_both_answers() -> None:
    """The report is YAML with the smallest case, both answers, and the command."""
    oracle = Scripted(lambda _: AllocatorAnswer())
    [found] = compare(oracle, [{**QUESTION, "name": "7:13"}]).differences
    text = report(oracle, found)
    shown = yaml.safe_load(text)

    assert text.startswith("# python -m tests.oracle.differential 7:13\n")
    assert shown["kubernetes"] == {"fits": False}
    assert "results" in shown["dryrack"]
    assert len(text) < len(yaml.safe_dump(QUESTION)) + 600


def test_an_answer_that_changes_from_time_to_time_is_right_either_way() -> None:
    """If Kubernetes gave our answer once, ours is one of its answers."""
    flapping = Scripted(lambda n: AllocatorAnswer() if n % 2 else agreeing(n))

    assert compare(flapping, [QUESTION] * 4).differences == []


def test_a_crash_of_ours_is_a_difference() -> None:
    """An unexpected exception is reported like any other difference."""
    oracle = Scripted(lambda _: AllocatorAnswer())
    [found] = compare(oracle, [{**QUESTION, "features": ["NoSuchFeature"]}]).differences

    assert "TypeError" in found.ours.error


def test_a_search_of_ours_that_has_no_end_is_a_difference(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """If Kubernetes ends and dryrack does not, that is reported without further waiting."""
    monkeypatch.setattr("tests.oracle.differential.OUR_SECONDS_MAX", 1e-6)
    oracle = Scripted(agreeing)
    monkeypatch.setattr("tests.oracle.differential.our_verdict", endless)
    [found] = compare(oracle, [{**QUESTION, "name": "7:14"}]).differences
    monkeypatch.setattr("tests.oracle.differential.shrink", None)

    assert "dryrack did not end: no end after" in report(oracle, found)


@pytest.mark.parametrize("field", ["timeout", "panic"])
def test_what_kubernetes_did_not_decide_is_left_out_and_counted(field: str) -> None:
    """A case without an answer proves nothing, and must not pass for one that agreed."""
    tally = compare(Scripted(lambda _: not_decided(field)), [QUESTION])

    assert (tally.compared, tally.timeouts + tally.panics, tally.differences) == (0, 1, [])


@pytest.mark.parametrize("answer", [agreeing, lambda _: not_decided("timeout")])
def test_what_we_gave_up_is_named(
    monkeypatch: pytest.MonkeyPatch, answer: Callable[[int], AllocatorAnswer]
) -> None:
    """It is no difference, whether Kubernetes decides or not, and does not pass for agreement."""
    gave_up = Verdict(error=GAVE_UP)
    oracle = Scripted(answer)
    monkeypatch.setattr("tests.oracle.differential.our_verdict", lambda case: gave_up)
    tally = compare(oracle, [{**QUESTION, "name": "7:15"}])

    assert (tally.differences, tally.undecided) == ([], ["7:15"])
    assert "gave up on 1" in str(tally)


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        (f"claim a: {NO_CLASS} x: y", f"claim a: {NO_CLASS} x: z", True),
        (f"claim a: {NO_CLASS} x: y", f"claim b: {NO_CLASS} x: y", False),
        (
            f"{NO_SELECTION} &D{{A:0x1}} in slice s: e",
            f"{NO_SELECTION} &D{{…}} in slice s: e",
            True,
        ),
        (f"{NO_SELECTION} &D{{}} in slice s: e", f"{NO_SELECTION} &D{{}} in slice t: e", False),
        ("claim a: no such key: x", "claim a: no such key: y", False),
    ],
)
def test_errors_are_compared_by_their_substance(left: str, right: str, same: bool) -> None:
    """Claim, request and problem must be named alike; what Go prints of itself may differ."""
    verdicts = Verdict(error=left, fatal=True), Verdict(error=right, fatal=True)

    assert verdicts[0].same_as(verdicts[1]) is same


def test_a_fatal_error_is_not_one_of_a_node() -> None:
    """An error that stops the attempt differs from one that only rules out the node."""
    assert not Verdict(error="e", fatal=True).same_as(Verdict(error="e", fatal=False))
    assert Verdict(error="e", fatal=True).same_as(Verdict(error="e"))
