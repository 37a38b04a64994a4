"""A component that fails stops alone: the API server, its state and the other components stay."""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from tests.apiserver.replay import CountingChance

from dryrack.client.client import Selection
from dryrack.client.endpoints import CONFIG_MAPS, DEPLOYMENTS, EVENTS, NODES, PODS
from dryrack.client.supervision import Supervisor
from dryrack.client.timekeeping import VirtualClock
from dryrack.cluster.assembly import assemble_engines
from dryrack.cluster.control_plane import ControlPlaneOptions
from dryrack.cluster.embedded import EmbeddedCluster, embedded
from dryrack.cluster.initial_objects import KWOK_NODE
from dryrack.cluster.ports import SystemClock
from dryrack.cluster.process.component_status import COMPONENTS, component_failures
from dryrack.cluster.process.service import supervised_engines
from dryrack.controllers.pods import configuration, running
from dryrack.controllers.pods.running import VirtualKubelet
from dryrack.scheduler import cycle

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from dryrack.kinds.raw import Raw

_NODE = {"metadata": {"name": "n1", "annotations": {KWOK_NODE: "fake"}}}


class BugError(Exception):
    """A bug that a test plants."""


def _pod(name: str) -> Raw:
    metadata = {"name": name, "namespace": "default"}
    return {"metadata": metadata, "spec": {"containers": [{"name": "c", "image": "busybox"}]}}


@asynccontextmanager
async def _supervised() -> AsyncIterator[tuple[EmbeddedCluster, VirtualClock]]:
    clock = VirtualClock()
    options = ControlPlaneOptions(clock=clock, chance=CountingChance())
    async with (
        embedded(options, engines=()) as cluster,
        supervised_engines(assemble_engines(), cluster.plane),
    ):
        await cluster.client.create(NODES, _NODE)
        yield cluster, clock


async def _phase(cluster: EmbeddedCluster, name: str) -> str:
    pod = await cluster.client.get(PODS, name, "default")
    return str(pod["status"]["phase"])


async def _failures(cluster: EmbeddedCluster) -> tuple[Raw, ...]:
    return component_failures(
        await cluster.client.get(CONFIG_MAPS, COMPONENTS.name, COMPONENTS.namespace)
    )


async def _events(cluster: EmbeddedCluster) -> list[str]:
    listing = await cluster.client.list(EVENTS, Selection(namespace="kube-system"))
    return [each["message"] for each in listing.items if each["reason"] == "ComponentFailed"]


def _fails_for(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function with a bug: it raises if an argument speaks of that pod."""

    def fail(*args: Any, **kwargs: Any) -> Any:
        if any(f"'{name}'" in str(each) for each in args):
            raise BugError(name)
        return function(*args, **kwargs)

    return fail


def test_a_listener_that_raises_restarts_its_component(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The others go on meanwhile; it is logged once, and shown in a ConfigMap and an Event."""
    original = VirtualKubelet._on_pod
    monkeypatch.setattr(VirtualKubelet, "_on_pod", _fails_for("poison", original))

    async def play() -> None:
        async with _supervised() as (cluster, clock):
            await cluster.client.create(PODS, _pod("poison"))
            await clock.advance(10)
            await cluster.client.create(DEPLOYMENTS, _deployment())
            await clock.advance(10)
            pods = (await cluster.client.list(PODS, Selection(namespace="default"))).items
            assert len(pods) == 3
            assert all(each["spec"].get("nodeName") == "n1" for each in pods)
            assert {each["status"]["phase"] for each in pods} == {"Pending"}
            [failure] = await _failures(cluster)
            assert failure["component"] == "kubelet/VirtualKubelet"
            assert failure["count"] >= 3
            assert "BugError: poison" in failure["error"]
            [message] = await _events(cluster)
            assert message.startswith("kubelet/VirtualKubelet failed once: ")

            monkeypatch.setattr(VirtualKubelet, "_on_pod", original)
            await clock.advance(120)
            pods = (await cluster.client.list(PODS, Selection(namespace="default"))).items
            assert {each["status"]["phase"] for each in pods} == {"Running"}
            [failure] = await _failures(cluster)
            assert "restartsAt" not in failure

    with caplog.at_level(logging.ERROR):
        asyncio.run(play())
    [record] = [each for each in caplog.records if "VirtualKubelet" in each.getMessage()]
    assert "dryrack record" in record.getMessage()
    assert record.exc_info


def _deployment() -> Raw:
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": _pod("x")["spec"]}
    return {
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"replicas": 2, "selector": {"matchLabels": labels}, "template": template},
    }


@pytest.mark.parametrize(
    ("module", "function", "component"),
    [(running, "undelivered", "kubelet/VirtualKubelet"), (cycle, "collect_demands", "scheduler")],
)
async def test_an_object_that_cannot_be_handled_does_not_stop_the_component(
    module: Any, function: str, component: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other objects are handled, the failure names the object, and it ends with the object."""
    original = getattr(module, function)
    monkeypatch.setattr(module, function, _fails_for("poison", original))

    async with _supervised() as (cluster, clock):
        await cluster.client.create(PODS, _pod("poison"))
        await cluster.client.create(PODS, _pod("healthy"))
        await clock.advance(10)
        assert await _phase(cluster, "healthy") == "Running"
        assert await _phase(cluster, "poison") == "Pending"
        [failure] = await _failures(cluster)
        assert failure["component"] == component
        assert failure["object"].endswith("default/poison")
        assert failure["object"] in (await _events(cluster))[0]
        if component == "scheduler":
            pod = await cluster.client.get(PODS, "poison", "default")
            [condition] = pod["status"]["conditions"]
            assert condition["reason"] == "SchedulerError"

        monkeypatch.setattr(module, function, original)
        await clock.advance(120)
        assert await _phase(cluster, "poison") == "Running"
        assert await _failures(cluster) == ()


async def test_an_index_that_raises_ends_only_the_components_that_read_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They build it anew when they start again."""
    original = configuration.reference_keys
    monkeypatch.setattr(running, "reference_keys", _fails_for("poison", original))

    async with _supervised() as (cluster, clock):
        await clock.advance(5)
        await cluster.client.create(PODS, _pod("poison"))
        await clock.advance(10)
        assert (await cluster.client.get(PODS, "poison", "default"))["spec"]["nodeName"] == "n1"
        [failure] = await _failures(cluster)
        assert failure["component"] == "kubelet/VirtualKubelet"
        await cluster.client.delete(PODS, "poison", namespace="default", grace_seconds=0)
        await clock.advance(120)
        await cluster.client.create(PODS, _pod("healthy"))
        await clock.advance(10)
        assert await _phase(cluster, "healthy") == "Running"


def test_what_fails_in_a_test_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a supervisor a bug ends the cluster, also where it concerns one object."""
    monkeypatch.setattr(running, "undelivered", _fails_for("poison", running.undelivered))

    async def play() -> None:
        clock = VirtualClock()
        options = ControlPlaneOptions(clock=clock, chance=CountingChance())
        async with embedded(options) as cluster:
            await cluster.client.create(NODES, _NODE)
            await cluster.client.create(PODS, _pod("poison"))
            await clock.advance(10)

    with pytest.raises(ExceptionGroup) as raised:
        asyncio.run(play())
    assert raised.group_contains(BugError)


async def test_a_timer_that_raises_ends_its_component() -> None:
    """It is not only written to the log, while the component waits for it in vain."""
    clock = SystemClock()
    failed = asyncio.Event()
    supervisor = Supervisor(clock, failed.set)

    async def start() -> None:
        def fire() -> None:
            raise BugError("timer")

        clock.call_at(clock.now(), fire)
        await asyncio.Event().wait()

    task = asyncio.create_task(supervisor.run("clockwork", start))
    await failed.wait()
    [failure] = supervisor.failures
    assert failure.component == "clockwork"
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
