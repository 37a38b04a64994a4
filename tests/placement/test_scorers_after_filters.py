"""Scorers see only nodes that filters accept, and their errors count only where the pod fits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.placement.gang_worlds import claim, cluster, devices, node, pool

from dryrack.kinds.core import Pod
from dryrack.kinds.decode import decode
from dryrack.placement import (
    DEFAULT_PROFILE,
    Args,
    Fleet,
    NodeScorer,
    NodeState,
    Placed,
    Plugin,
    PodConstraints,
    Profile,
    TieRule,
    Ties,
    Unplaced,
    place,
)

if TYPE_CHECKING:
    from collections.abc import Callable


def profile(score: Callable[[NodeState], int], ties: Ties | None = None) -> Profile:
    def score_pod(_pod: PodConstraints, _fleet: Fleet, _args: Args) -> NodeScorer:
        return NodeScorer(score)

    plugin = Plugin("Mine", score=score_pod, sign=lambda _pod: None)
    return Profile(filters=DEFAULT_PROFILE.filters, scores=((plugin, 1),), ties=ties or Ties())


def pod(cpu: str = "2") -> Pod:
    container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
    metadata = {"name": "p", "namespace": "ml"}
    return decode({"metadata": metadata, "spec": {"containers": [container]}}, Pod)


def free_cpu(state: NodeState) -> int:
    return state.allocatable.get("cpu", 0) // 10**9


def test_a_scorer_is_not_called_for_nodes_that_a_filter_refuses() -> None:
    """A textbook formula is negative where the pod does not fit."""
    here = cluster([node("small", cpu="1"), node("large", cpu="8")], [])
    seen = []

    def score(state: NodeState) -> int:
        seen.append(state.name)
        return 100 if free_cpu(state) < 2 else 50

    outcome = place(pod(), (), (), here, profile=profile(score))

    assert isinstance(outcome, Placed)
    assert (outcome.node, seen) == ("large", ["large"])


def test_a_score_out_of_range_counts_only_where_devices_are_left() -> None:
    """On a node without devices kube-scheduler calls no scorer."""
    here = cluster([node("a"), node("b")], [pool("b", devices("d0"))])
    wanted = claim("k")

    def score(state: NodeState) -> int:
        return 500 if state.name == "a" else 7

    outcome = place(pod(), (wanted,), (), here, profile=profile(score))
    fails = place(pod(), (wanted,), (), here, profile=profile(lambda _state: 500))

    assert isinstance(outcome, Placed)
    assert outcome.node == "b"
    assert isinstance(fails, Unplaced)
    assert fails.is_error
    assert "the score 500 is invalid" in fails.message


def test_the_tie_rule_belongs_to_the_profile() -> None:
    """By name, by the number of pods, or in a fixed random order of the seed."""
    here = cluster([node(name) for name in "abcdef"], [])

    def chosen(ties: Ties) -> str:
        outcome = place(pod(), (), (), here, profile=profile(lambda _state: 50, ties))
        assert isinstance(outcome, Placed)
        return outcome.node

    assert chosen(Ties(TieRule.NAME)) == "a"
    assert chosen(Ties(TieRule.FEWEST_PODS)) == "a"
    fixed = {seed: chosen(Ties(TieRule.FIXED, seed)) for seed in range(20)}
    assert fixed == {seed: chosen(Ties(TieRule.FIXED, seed)) for seed in range(20)}
    assert len(set(fixed.values())) > 3
