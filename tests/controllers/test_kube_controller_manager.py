"""The real controllers and ours leave the same objects in the same scenes."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
from tests.controllers import scenes
from tests.controllers.likeness import likeness, reasons, snapshot
from tests.realcluster.controlplane import Options

from dryrack.client.client import Client
from dryrack.client.endpoints import DEPLOYMENTS, PODS, TEMPLATES
from dryrack.client.https import connected
from dryrack.client.informer import Name
from dryrack.client.kubeconfig import load
from dryrack.cluster.embedded import embedded
from dryrack.cluster.ports import SystemChance, SystemClock
from dryrack.controllers.engines import ENGINES, run

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.realcluster.fixtures import StartCluster

    from dryrack.kinds.raw import Raw

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]


@asynccontextmanager
async def our_kubelet(kubeconfig: Path) -> AsyncIterator[Client]:
    """A real control plane with all its controllers, and virtual nodes of ours."""
    clock = SystemClock()
    kubelet = [each for each in ENGINES if each.name == "kubelet"]
    async with connected(load([kubeconfig], clock)) as transport, asyncio.TaskGroup() as group:
        client = Client(transport)
        engines = group.create_task(run(kubelet, client=client, clock=clock, chance=SystemChance()))
        yield client
        engines.cancel()


async def everything(client: Client) -> tuple[list[Raw], set[tuple[str, str]]]:
    """A cluster with one of each, when it has come to rest."""
    await scenes.make_class(client)
    await scenes.make_node(client, "node-a", devices=2)
    await scenes.make_namespace(client, "play")
    await client.create(TEMPLATES, scenes.template_in("play"))
    await client.create(PODS, scenes.pod_with_claim(Name("play", "worker")))
    web = Name("play", "web")
    await client.create(DEPLOYMENTS, scenes.deployment(web, replicas=2))
    await scenes.settled_one(client, DEPLOYMENTS, web, scenes.is_rolled_out(2))
    patch = {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "b"}]}}}}
    await client.patch(DEPLOYMENTS, "web", patch, namespace="play")
    await scenes.settled_one(client, DEPLOYMENTS, web, scenes.is_rolled_out(2))
    await scenes.deployment_is_stuck(client, "play")
    await scenes.stateful_set_keeps_order(client, "play")
    await scenes.daemon_set_covers(client, "play", ["node-a"])
    await scenes.job_completes(client, "play")
    await scenes.job_fails(client, "play")
    await scenes.job_fails_by_its_policy(client, "play")
    await scenes.job_gives_up_indexes(client, "play")
    await scenes.job_has_enough(client, "play")
    name = Name("play", "worker")
    await scenes.settled_one(client, PODS, name, lambda it: scenes.is_true(it, "Ready"))
    return await snapshot(client, "play"), await reasons(client, "play")


def test_the_same_objects_as_kube_controller_manager(start_cluster: StartCluster) -> None:
    """Owners, labels, annotations, finalizers, conditions and counts are those of the real one."""
    kubeconfig = start_cluster(Options()).plane.kubeconfig

    async def real() -> tuple[list[Raw], set[tuple[str, str]]]:
        async with our_kubelet(kubeconfig) as client:
            return await everything(client)

    async def ours() -> tuple[list[Raw], set[tuple[str, str]]]:
        async with embedded() as cluster:
            return await everything(cluster.client)

    theirs, their_reasons = asyncio.run(real())
    objects, our_reasons = asyncio.run(ours())

    assert likeness(objects) == likeness(theirs)
    assert our_reasons >= their_reasons
