"""The scenes on the embedded cluster, in real time and without sockets."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

import pytest
from tests.controllers import scenes

from dryrack.client.endpoints import CLAIMS, NODES, PODS, SLICES, TEMPLATES
from dryrack.client.informer import Name
from dryrack.cluster.embedded import embedded

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from dryrack.client.client import Client


@pytest.fixture(autouse=True)
def no_bugs(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """No plan may raise: the loop would try again for ever, and say so."""
    yield
    assert [each for each in caplog.records if each.levelno >= logging.ERROR] == []


def play(scene: Callable[[Client], Awaitable[object]]) -> None:
    async def run() -> None:
        async with embedded() as cluster:
            await scenes.make_class(cluster.client)
            await scenes.make_node(cluster.client, "node-a", devices=2)
            await scenes.make_namespace(cluster.client, "play")
            await scene(cluster.client)

    asyncio.run(run())


def test_a_claim_comes_and_goes_with_its_pod() -> None:
    """A template becomes a claim, a pod runs with it, and nothing is left afterwards."""
    play(lambda client: scenes.claim_comes_and_goes(client, "play", "node-a"))


def test_a_deployment_rolls_forward_and_back() -> None:
    """Each template gets a revision; going back makes the old replica set the newest."""
    play(lambda client: scenes.deployment_rolls(client, "play"))


def test_a_job_completes() -> None:
    """All completions are counted, each pod once."""
    play(lambda client: scenes.job_completes(client, "play"))


def test_a_job_fails_at_its_limit() -> None:
    """With no retries allowed, one failed pod is the end."""
    play(lambda client: scenes.job_fails(client, "play"))


def test_a_stateful_set_keeps_its_order() -> None:
    """Up from the first, down from the last."""
    play(lambda client: scenes.stateful_set_keeps_order(client, "play"))


def test_a_daemon_set_covers_the_nodes() -> None:
    """One pod on each node."""
    play(lambda client: scenes.daemon_set_covers(client, "play", ["node-a"]))


def test_a_namespace_takes_its_content_along() -> None:
    """Running pods, claims and config maps go with their namespace."""

    async def scene(client: Client) -> None:
        await scenes.deployment_rolls(client, "play")
        await scenes.namespace_ends(client, "play")

    play(scene)


def test_a_tainted_device_loses_its_pod() -> None:
    """A NoExecute taint on an allocated device deletes the pod, which is told why."""

    async def scene(client: Client) -> None:
        name = Name("play", "worker")
        await client.create(TEMPLATES, scenes.template_in("play"))
        await client.create(PODS, scenes.pod_with_claim(name))
        await scenes.settled_one(client, PODS, name, lambda it: scenes.is_true(it, "Ready"))
        tainted = await client.get(SLICES, "node-a-gpus")
        taint = {"key": "example.com/broken", "value": "", "effect": "NoExecute"}
        for device in tainted["spec"]["devices"]:
            device["taints"] = [taint]
        tainted["spec"]["pool"]["generation"] += 1
        await client.update(SLICES, tainted)
        await scenes.settled_one(client, PODS, name, lambda it: it is None)
        await scenes.settled(client, CLAIMS, lambda every: not every)

    play(scene)


def test_a_silent_node_is_noticed_when_its_lease_ends() -> None:
    """A node that stops its heartbeat is played no longer; its lease is not renewed."""

    async def scene(client: Client) -> None:
        patch = {"metadata": {"annotations": {"dryrack.dev/silent": "true"}}}
        await client.patch(NODES, "node-a", patch)
        name = Name("play", "worker")
        await client.create(
            PODS,
            {
                "metadata": {"name": "worker", "namespace": "play"},
                "spec": scenes.POD_SPEC | {"nodeName": "node-a"},
            },
        )
        pod = await client.get(PODS, name.name, name.namespace)
        assert scenes.phase(pod) == "Pending"

    play(scene)
