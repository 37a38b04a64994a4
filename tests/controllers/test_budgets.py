"""PodDisruptionBudgets: what may be evicted, counted and carried out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.controllers import scenes

from dryrack.client.endpoints import DEPLOYMENTS, POD_DISRUPTION_BUDGETS, PODS
from dryrack.client.errors import ApiError
from dryrack.client.informer import Name
from dryrack.client.timekeeping import VirtualClock, settle, timestamp
from dryrack.cluster.control_plane import ControlPlaneOptions
from dryrack.cluster.embedded import embedded
from dryrack.controllers.budgets import DELETION_SECONDS_MAX, Scale, plan
from dryrack.controllers.writes import Report, Update

if TYPE_CHECKING:
    from dryrack.client.client import Client
    from dryrack.kinds.raw import Raw


NOW = 1_800_000_000.0
LABELS = {"app": "web"}


def budget(status: Raw | None = None, **spec: Any) -> Raw:
    metadata = {"name": "web", "namespace": "default", "uid": "u", "generation": 3}
    selector = {"matchLabels": LABELS}
    obj: Raw = {"metadata": metadata, "spec": {"selector": selector, **spec}}
    return obj | ({"status": status} if status else {})


def pods(*words: str, owner: str = "set") -> list[Raw]:
    """Pods in a word each: ready, waiting, or leaving."""
    made = []
    for number, word in enumerate(words):
        metadata: Raw = {"name": f"p{number}", "namespace": "default", "labels": LABELS}
        if owner:
            reference = {"kind": "ReplicaSet", "apiVersion": "apps/v1", "name": "s", "uid": owner}
            metadata["ownerReferences"] = [reference | {"controller": True}]
        if word == "leaving":
            metadata["deletionTimestamp"] = timestamp(NOW)
        condition = {"type": "Ready", "status": "False" if word == "waiting" else "True"}
        made.append({"metadata": metadata, "status": {"conditions": [condition]}})
    return made


def five(pod: Raw) -> Scale | None:
    return ("set", 5)


def counted(obj: Raw, covered: list[Raw]) -> tuple[int, ...]:
    (write,) = [each for each in plan(obj, covered, five, NOW).writes if isinstance(each, Update)]
    keys = ("expectedPods", "desiredHealthy", "currentHealthy", "disruptionsAllowed")
    return tuple(write.object["status"][key] for key in keys)


@pytest.mark.parametrize(
    ("spec", "words", "expected"),
    [
        ({"minAvailable": 2}, ["ready"] * 3, (3, 2, 3, 1)),
        ({"minAvailable": 2}, ["ready", "ready", "leaving"], (3, 2, 2, 0)),
        ({"minAvailable": 2}, ["ready", "waiting", "waiting"], (3, 2, 1, 0)),
        ({"minAvailable": "50%"}, ["ready"] * 4, (5, 3, 4, 1)),
        ({"maxUnavailable": 1}, ["ready"] * 5, (5, 4, 5, 1)),
        ({"maxUnavailable": "30%"}, ["ready"] * 5, (5, 3, 5, 2)),
        ({"maxUnavailable": 9}, ["ready"] * 5, (5, 0, 5, 5)),
        # Nobody is there yet, so nobody may go.
        ({"minAvailable": 0}, [], (0, 0, 0, 0)),
    ],
)
def test_a_budget_counts_as_upstream_does(
    spec: Raw, words: list[str], expected: tuple[int, ...]
) -> None:
    """Expected, desired and healthy pods, and how many of them may be missed."""
    assert counted(budget(**spec), pods(*words)) == expected


def test_an_evicted_pod_is_missed_until_it_is_gone_or_stays() -> None:
    """An evicted pod counts as missing at once, and counts again if it is not deleted."""
    when = timestamp(NOW - DELETION_SECONDS_MAX + 10)
    told = budget({"disruptedPods": {"p0": when, "p7": when}}, minAvailable=1)
    waiting = plan(told, pods("ready", "ready"), five, NOW)
    over = plan(told, pods("ready", "ready"), five, NOW + 11)
    statuses = [
        next(each.object["status"] for each in answer.writes if isinstance(each, Update))
        for answer in (waiting, over)
    ]

    assert statuses[0]["disruptedPods"] == {"p0": when}
    assert statuses[0]["disruptionsAllowed"] == 0
    assert waiting.again_seconds == 11
    assert "disruptedPods" not in statuses[1]
    assert statuses[1]["disruptionsAllowed"] == 1
    assert over.again_seconds is None


def test_what_is_counted_is_not_written_again() -> None:
    """The second plan over the same pods has nothing to say."""
    first = plan(budget(minAvailable=1), pods("ready", "ready"), five, NOW)
    (write,) = first.writes
    assert isinstance(write, Update)

    assert plan(write.object, pods("ready", "ready"), five, NOW + 60).writes == ()


def test_pods_whose_controller_nobody_knows_allow_nothing() -> None:
    """The condition says which pod it was."""
    status, report = plan(budget(maxUnavailable=1), pods("ready"), lambda pod: None, NOW).writes
    assert isinstance(status, Update)
    assert isinstance(report, Report)
    condition = status.object["status"]["conditions"][0]

    assert status.object["status"]["disruptionsAllowed"] == 0
    assert condition["reason"] == "SyncFailed"
    assert condition["message"] == 'found no controllers for pod "p0"'
    assert report.reason == "CalculateExpectedPodCountFailed"


async def evicted(client: Client, name: str) -> int:
    """The code of the answer to an eviction."""
    metadata = {"name": name, "namespace": "default"}
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata}
    try:
        await client.create(PODS, body, subresource="eviction")
    except ApiError as error:
        return error.code
    return 201


async def test_a_drained_deployment_keeps_what_its_budget_asks_for() -> None:
    """Evictions go on as replacements come, one at a time, until all pods were replaced."""
    clock = VirtualClock()
    async with embedded(ControlPlaneOptions(clock=clock)) as cluster:
        client = cluster.client
        for node in ("node-a", "node-b"):
            await scenes.make_node(client, node)
        name = Name("default", "web")
        await client.create(DEPLOYMENTS, scenes.deployment(name, replicas=3))
        selector = scenes.deployment(name, replicas=3)["spec"]["selector"]
        metadata = {"name": "web", "namespace": "default"}
        spec = {"selector": selector, "maxUnavailable": 1}
        await client.create(POD_DISRUPTION_BUDGETS, {"metadata": metadata, "spec": spec})
        await clock.advance(10)
        first = {each["metadata"]["name"] for each in (await client.list(PODS)).items}
        assert len(first) == 3
        codes: list[int] = []
        for _ in range(20):
            living = {each["metadata"]["name"] for each in (await client.list(PODS)).items}
            codes += [await evicted(client, pod) for pod in sorted(first & living)]
            await settle()
            await clock.advance(5)
        left = (await client.list(PODS)).items
        status = (await client.get(POD_DISRUPTION_BUDGETS, "web", "default"))["status"]

        assert codes.count(201) == 3
        assert 429 in codes
        assert not first & {each["metadata"]["name"] for each in left}
        assert status["disruptionsAllowed"] == 1
        assert status["currentHealthy"] == status["expectedPods"] == 3
