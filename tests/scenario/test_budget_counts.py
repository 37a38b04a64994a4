"""Disruption budgets at rest: what they allow is what their pods say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from dryrack.scenario.invariants.at_rest import find_miscounted_budgets

if TYPE_CHECKING:
    from dryrack.kinds.raw import Raw


def pod(name: str, *, app: str = "web", namespace: str = "default", ready: bool = True) -> Raw:
    condition = {"type": "Ready", "status": "True" if ready else "False"}
    metadata = {"name": name, "namespace": namespace, "labels": {"app": app}}
    return {"metadata": metadata, "status": {"conditions": [condition]}}


def budget(**status: Any) -> Raw:
    metadata = {"name": "web", "namespace": "default", "generation": 1}
    counted = {
        "observedGeneration": 1,
        "currentHealthy": 2,
        "desiredHealthy": 1,
        "disruptionsAllowed": 1,
        "expectedPods": 2,
    }
    spec = {"selector": {"matchLabels": {"app": "web"}}}
    return {"metadata": metadata, "spec": spec, "status": counted | status}


GONE = pod("gone") | {"metadata": pod("gone")["metadata"] | {"deletionTimestamp": "now"}}
PODS = (
    *(pod("a"), pod("b"), GONE),
    *(pod("unready", ready=False), pod("other", app="db"), pod("away", namespace="there")),
)


@pytest.mark.parametrize(
    "sound",
    [
        budget(),
        budget(desiredHealthy=3, disruptionsAllowed=0),
        budget(expectedPods=0, disruptionsAllowed=0),
        budget(conditions=[{"type": "DisruptionAllowed", "reason": "SyncFailed"}])
        | {"metadata": {"name": "web", "namespace": "default", "generation": 2}},
    ],
)
def test_a_budget_that_counts_its_pods_is_sound(sound: Raw) -> None:
    """Those that are ready and stay, of its namespace; one that says it cannot count is let be."""
    assert [*find_miscounted_budgets([sound], PODS)] == []


@pytest.mark.parametrize(
    ("status", "told"),
    [
        ({"currentHealthy": 3}, "currentHealthy is 3, and should be 2"),
        ({"disruptionsAllowed": 0}, "disruptionsAllowed is 0, and should be 1"),
        ({"disruptionsAllowed": 2}, "disruptionsAllowed is 2, and should be 1"),
        ({"observedGeneration": 0}, "observedGeneration is 0, and should be 1"),
    ],
)
def test_a_budget_that_has_lost_count_is_told_of(status: Raw, told: str) -> None:
    """Whether it would let too many go, or none."""
    [found] = find_miscounted_budgets([budget(**status)], PODS)

    assert str(found) == f"disruption budgets match their pods: budget default/web: {told}"
