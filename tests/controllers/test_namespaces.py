"""The end of a namespace, step by step."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tests.base.exposition import value

from dryrack.base.metrics import Registry
from dryrack.client.endpoints import CONFIG_MAPS, NAMESPACES, PODS
from dryrack.client.informer import Informers
from dryrack.client.timekeeping import VirtualClock
from dryrack.cluster.control_plane import ControlPlaneOptions, build_control_plane
from dryrack.controllers.namespaces import LOOK_SECONDS_MAX, NamespaceController, plan
from dryrack.controllers.writes import DeleteAll, EngineContext, Update

if TYPE_CHECKING:
    from dryrack.kinds.raw import Raw

NOW = 1_800_000_000.0
ENDING: Raw = {
    "metadata": {"name": "play", "deletionTimestamp": "2027-01-15T08:00:00Z"},
    "spec": {"finalizers": ["kubernetes"]},
    "status": {"phase": "Terminating"},
}
THING: Raw = {"metadata": {"name": "x"}}
GOING: Raw = {"metadata": {"name": "x", "deletionTimestamp": "2027-01-15T08:00:00Z"}}


def remaining(writes: tuple[object, ...]) -> str:
    """Return the conditions of the namespace about remaining objects."""
    (told,) = (each for each in writes if isinstance(each, Update))
    conditions = {each["type"]: each["reason"] for each in told.object["status"]["conditions"]}
    return str(conditions["NamespaceContentRemaining"])


def test_pods_go_before_what_they_rely_on() -> None:
    """While there is a pod, deleted or not, nothing else is deleted, and nothing is counted."""
    first = plan(ENDING, {PODS: [THING], CONFIG_MAPS: [THING]}, NOW).writes
    then = plan(ENDING, {PODS: [GOING], CONFIG_MAPS: [THING]}, NOW)
    last = plan(ENDING, {PODS: [], CONFIG_MAPS: [THING]}, NOW).writes

    assert DeleteAll(PODS, "play") in first
    assert DeleteAll(CONFIG_MAPS, "play") not in first
    assert not any(isinstance(each, DeleteAll) for each in then.writes)
    assert remaining(then.writes) == "ContentRemoved"
    assert [each for each in last if isinstance(each, DeleteAll)] == [
        DeleteAll(CONFIG_MAPS, "play")
    ]
    assert remaining(last) == "SomeResourcesRemain"


def test_an_empty_namespace_is_released() -> None:
    """Its finalizer goes when every kind has answered that nothing is left."""
    (freed,) = plan(ENDING, {PODS: [], CONFIG_MAPS: []}, NOW).writes

    assert isinstance(freed, Update)
    assert (freed.endpoint, freed.subresource) == (NAMESPACES, "finalize")
    assert freed.object["spec"]["finalizers"] == []


async def test_a_namespace_that_is_held_is_looked_at_less_and_less() -> None:
    """It ends soon after its last object is let go, and costs little while it is not."""
    clock = VirtualClock()
    metrics = Registry()
    plane = build_control_plane(ControlPlaneOptions(clock=clock))
    client = plane.client()
    chance = plane.options.chance
    informers = Informers(client, clock=clock, chance=chance)
    context = EngineContext(client, informers, clock, chance, metrics=metrics)
    await client.create(NAMESPACES, {"metadata": {"name": "play"}})
    held = {"name": "x", "namespace": "play", "finalizers": ["example.com/hold"]}
    await client.create(CONFIG_MAPS, {"metadata": held})
    await client.delete(NAMESPACES, "play")

    def decisions() -> float:
        names = {"controller": "namespace-controller", "result": "requeue_after"}
        return value(metrics.render(), "controller_runtime_reconcile_total", **names)

    async with asyncio.TaskGroup() as group:
        tasks = (
            group.create_task(informers.run(), name="informers"),
            group.create_task(NamespaceController(context).run(), name="deletion"),
        )
        await clock.advance(600)
        before = decisions()
        await clock.advance(600)
        assert decisions() - before <= 600 / LOOK_SECONDS_MAX + 1
        await client.patch(CONFIG_MAPS, "x", {"metadata": {"finalizers": None}}, namespace="play")
        await clock.advance(LOOK_SECONDS_MAX + 1)
        names = [each["metadata"]["name"] for each in (await client.list(NAMESPACES)).items]
        assert "play" not in names
        for task in tasks:
            task.cancel()
