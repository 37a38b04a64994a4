"""
The controllers on a real API server, in the place of those of kube-controller-manager.

A real server forgives nothing: what these plans write is valid, and what they wait for comes.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
from tests.controllers import scenes
from tests.realcluster.controlplane import Options

from dryrack.client.client import Client
from dryrack.client.https import connected
from dryrack.client.kubeconfig import load
from dryrack.cluster.ports import SystemChance, SystemClock
from dryrack.controllers.engines import ENGINES, run

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    from tests.realcluster.fixtures import StartCluster

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

OURS = (
    "daemonset-controller",
    "deployment-controller",
    "garbage-collector-controller",
    "job-controller",
    "namespace-controller",
    "pod-garbage-collector-controller",
    "replicaset-controller",
    "resourceclaim-controller",
    "root-ca-certificate-publisher-controller",
    "serviceaccount-controller",
    "statefulset-controller",
    "taint-eviction-controller",
    "device-taint-eviction-controller",
    "ttl-after-finished-controller",
)


@asynccontextmanager
async def our_controllers(kubeconfig: Path) -> AsyncIterator[Client]:
    clock = SystemClock()
    async with connected(load([kubeconfig], clock)) as transport, asyncio.TaskGroup() as group:
        client = Client(transport)
        engines = group.create_task(run(ENGINES, client=client, clock=clock, chance=SystemChance()))
        yield client
        engines.cancel()


async def whole_play(client: Client) -> None:
    """Every scene, each in a namespace of its own."""
    await scenes.make_class(client)
    await scenes.make_node(client, "node-a", devices=2)
    plays: list[Callable[[Client, str], Awaitable[object]]] = [
        lambda it, namespace: scenes.claim_comes_and_goes(it, namespace, "node-a"),
        scenes.deployment_rolls,
        scenes.job_completes,
        scenes.job_fails,
        scenes.stateful_set_keeps_order,
        lambda it, namespace: scenes.daemon_set_covers(it, namespace, ["node-a"]),
    ]
    for number, play in enumerate(plays):
        await scenes.make_namespace(client, f"play-{number}")
        await play(client, f"play-{number}")
        await scenes.namespace_ends(client, f"play-{number}")


def test_our_controllers_run_a_real_cluster(
    start_cluster: StartCluster, caplog: pytest.LogCaptureFixture
) -> None:
    """A real API server and scheduler work with our controllers."""
    cluster = start_cluster(Options(without_controllers=OURS))

    async def play() -> None:
        async with our_controllers(cluster.plane.kubeconfig) as client:
            await whole_play(client)

    asyncio.run(play())

    assert [each for each in caplog.records if each.levelno >= logging.ERROR] == []
