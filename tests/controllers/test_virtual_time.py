"""What only time brings about, on an embedded cluster whose time stands still until it is moved."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tests.controllers import scenes

from dryrack.client.client import Selection
from dryrack.client.endpoints import CLAIMS, LEASES, NODES, PODS, SLICES, TEMPLATES
from dryrack.client.errors import NotFoundError
from dryrack.client.informer import Name
from dryrack.client.timekeeping import VirtualClock, settle
from dryrack.cluster.embedded import embedded
from dryrack.cluster.plane import PlaneOptions

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from dryrack.client.client import Client


def play(scene: Callable[[Client, VirtualClock], Awaitable[None]]) -> None:
    async def run() -> None:
        clock = VirtualClock()
        async with embedded(PlaneOptions(clock=clock)) as cluster:
            metadata = {"name": "node-a", "annotations": {"kwok.x-k8s.io/node": "fake"}}
            await cluster.client.create(NODES, {"metadata": metadata})
            await clock.advance(1)
            await scene(cluster.client, clock)

    asyncio.run(run())


async def make_pod(client: Client, name: str, **annotations: str) -> None:
    keys = {f"dryrack.dev/{key.replace('_', '-')}": value for key, value in annotations.items()}
    metadata = {"name": name, "namespace": "default", "annotations": keys}
    await client.create(PODS, {"metadata": metadata, "spec": scenes.POD_SPEC})
    await settle()


async def phase_of(client: Client, name: str) -> str:
    try:
        return scenes.phase(await client.get(PODS, name, "default"))
    except NotFoundError:
        return "gone"


def test_a_pod_starts_when_its_delay_is_over() -> None:
    """`start-seconds` counts from the pod's arrival on the node."""

    async def scene(client: Client, clock: VirtualClock) -> None:
        await make_pod(client, "slow", start_seconds="30")
        await clock.advance(29)
        assert await phase_of(client, "slow") == "Pending"
        await clock.advance(2)
        assert await phase_of(client, "slow") == "Running"

    play(scene)


def test_a_crashing_container_waits_longer_each_time() -> None:
    """Restarts come at once, then after 10, 20, 40 seconds, as the kubelet has them."""

    async def scene(client: Client, clock: VirtualClock) -> None:
        await make_pod(client, "crash", run_seconds="1", exit_code="2")
        restarts = []
        for seconds in (3, 11, 21, 41):
            await clock.advance(seconds)
            pod = await client.get(PODS, "crash", "default")
            restarts.append(pod["status"]["containerStatuses"][0]["restartCount"])
        assert restarts == [1, 2, 3, 4]

    play(scene)


def test_a_deleted_pod_has_its_grace() -> None:
    """A container that takes its time to stop has the grace of the deletion, and no more."""

    async def scene(client: Client, clock: VirtualClock) -> None:
        await make_pod(client, "stubborn", stop_seconds="1000")
        await client.delete(PODS, "stubborn", namespace="default", grace_seconds=20)
        await clock.advance(18)
        assert await phase_of(client, "stubborn") == "Running"
        await clock.advance(3)
        assert await phase_of(client, "stubborn") == "gone"

    play(scene)


def test_a_deleted_pod_that_a_finalizer_keeps_ends_and_frees_its_devices() -> None:
    """It has failed by SIGTERM, is not run again, and its claim is free while it still exists."""

    async def scene(client: Client, clock: VirtualClock) -> None:
        await scenes.make_class(client)
        await client.create(SLICES, scenes.slice_of("node-a", 1))
        await client.create(TEMPLATES, scenes.template_in("default"))
        name = Name("default", "kept")
        await client.create(PODS, scenes.pod_with_claim(name, finalizers=["example.com/keep"]))
        await settle()
        assert await phase_of(client, "kept") == "Running"
        await client.delete(PODS, "kept", namespace="default")
        await clock.advance(600)
        pod = await client.get(PODS, "kept", "default")
        assert scenes.phase(pod) == "Failed"
        (container,) = pod["status"]["containerStatuses"]
        assert container["state"]["terminated"]["exitCode"] == 143
        assert container["restartCount"] == 0
        assert not (await client.list(CLAIMS, Selection(namespace="default"))).items
        await clock.advance(600)
        again = await client.get(PODS, "kept", "default")
        assert again["metadata"]["resourceVersion"] == pod["metadata"]["resourceVersion"]
        await client.patch(PODS, "kept", {"metadata": {"finalizers": None}}, namespace="default")
        assert await phase_of(client, "kept") == "gone"

    play(scene)


def test_a_living_node_renews_its_lease() -> None:
    """After any time, a node that is played has a fresh lease and stays Ready."""

    async def scene(client: Client, clock: VirtualClock) -> None:
        await clock.advance(300)
        lease = await client.get(LEASES, "node-a", "kube-node-lease")
        assert lease["spec"]["holderIdentity"] == "node-a"
        assert scenes.is_true(await client.get(NODES, "node-a"), "Ready")

    play(scene)


def test_a_silent_node_loses_its_pods() -> None:
    """Unknown after the grace, tainted at once, and empty when the tolerations are over."""

    async def scene(client: Client, clock: VirtualClock) -> None:
        await make_pod(client, "worker")
        assert await phase_of(client, "worker") == "Running"
        patch = {"metadata": {"annotations": {"dryrack.dev/silent": "true"}}}
        await client.patch(NODES, "node-a", patch)
        await clock.advance(30)
        assert scenes.is_true(await client.get(NODES, "node-a"), "Ready")
        await clock.advance(60)
        node = await client.get(NODES, "node-a")
        assert not scenes.is_true(node, "Ready")
        taints = {(each["key"], each["effect"]) for each in node["spec"]["taints"]}
        assert taints == {
            ("node.kubernetes.io/unreachable", "NoSchedule"),
            ("node.kubernetes.io/unreachable", "NoExecute"),
        }
        pod = await client.get(PODS, "worker", "default")
        assert "deletionTimestamp" not in pod["metadata"]
        await clock.advance(310)
        pod = await client.get(PODS, "worker", "default")
        assert "deletionTimestamp" in pod["metadata"]
        assert scenes.is_true(pod, "DisruptionTarget")

    play(scene)


def test_pods_of_a_vanished_node_go_after_the_quarantine() -> None:
    """A node that is deleted might come back; its pods wait so long, and no longer."""

    async def scene(client: Client, clock: VirtualClock) -> None:
        await make_pod(client, "worker")
        await client.delete(NODES, "node-a")
        await clock.advance(35)
        assert await phase_of(client, "worker") == "Running"
        await clock.advance(10)
        assert await phase_of(client, "worker") == "gone"

    play(scene)
