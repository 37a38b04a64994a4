"""Changes that time alone causes, on an embedded cluster with a virtual clock."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.controllers import scenes

from dryrack.client.client import Selection
from dryrack.client.endpoints import (
    CLAIMS,
    CONFIG_MAPS,
    EVENTS,
    LEASES,
    NODES,
    PODS,
    SECRETS,
    SLICES,
    TEMPLATES,
    Endpoint,
)
from dryrack.client.errors import NotFoundError
from dryrack.client.informer import Name
from dryrack.client.timekeeping import VirtualClock, run_virtual, settle
from dryrack.cluster.assembly import EngineOptions
from dryrack.cluster.control_plane import ControlPlaneOptions
from dryrack.cluster.embedded import embedded
from dryrack.controllers.pods.virtual import SILENT

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from dryrack.client.client import Client
    from dryrack.kinds.raw import Raw


def play(scene: Callable[[Client, VirtualClock], Awaitable[None]], lease_seconds: int = 0) -> None:
    async def run() -> None:
        clock = VirtualClock()
        engines = EngineOptions(node_lease_seconds=lease_seconds)
        async with embedded(ControlPlaneOptions(clock=clock), engines=engines) as cluster:
            metadata = {"name": "node-a", "annotations": {"kwok.x-k8s.io/node": "fake"}}
            await cluster.client.create(NODES, {"metadata": metadata})
            await clock.advance(1)
            await scene(cluster.client, clock)

    run_virtual(run())


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


async def bind_by_hand(client: Client, name: str, spec: Raw) -> None:
    """A pod on its node without a scheduler."""
    metadata = {"name": name, "namespace": "default"}
    await client.create(PODS, {"metadata": metadata, "spec": {"nodeName": "node-a"} | spec})
    await settle()


async def warnings_of(client: Client, name: str) -> list[tuple[str, str]]:
    events = (await client.list(EVENTS, Selection(namespace="default"))).items
    mine = [each for each in events if each["involvedObject"]["name"] == name]
    return [(each["reason"], each["message"]) for each in mine if each["type"] == "Warning"]


async def waiting_in(client: Client, name: str, container: str) -> tuple[str, str]:
    pod = await client.get(PODS, name, "default")
    told = {each["name"]: each["state"] for each in pod["status"]["containerStatuses"]}
    waiting = told[container].get("waiting", {})
    return waiting.get("reason", ""), waiting.get("message", "")


VOLUMES: list[tuple[Raw, Endpoint, str]] = [
    ({"configMap": {"name": "late"}}, CONFIG_MAPS, 'configmap "late" not found'),
    ({"secret": {"secretName": "late"}}, SECRETS, 'secret "late" not found'),
    (
        {"projected": {"sources": [{"secret": {"name": "late"}}]}},
        SECRETS,
        'secret "late" not found',
    ),
]


@pytest.mark.parametrize(("volume", "endpoint", "problem"), VOLUMES)
def test_a_pod_waits_for_what_its_volumes_are_made_of(
    volume: Raw, endpoint: Endpoint, problem: str
) -> None:
    """One event is written, nothing is decided meanwhile, and the pod starts with the object."""

    async def scene(client: Client, clock: VirtualClock) -> None:
        await bind_by_hand(
            client, "mounts", scenes.POD_SPEC | {"volumes": [{"name": "v"} | volume]}
        )
        await clock.advance(600)
        assert await waiting_in(client, "mounts", "main") == ("ContainerCreating", "")
        told = f'MountVolume.SetUp failed for volume "v" : {problem}'
        assert await warnings_of(client, "mounts") == [("FailedMount", told)]
        made = {"metadata": {"name": "late", "namespace": "default"}}
        await client.create(endpoint, made)
        await settle()
        assert await phase_of(client, "mounts") == "Running"
        await client.delete(endpoint, "late", namespace="default")
        await clock.advance(60)
        assert await phase_of(client, "mounts") == "Running"

    play(scene)


ENVIRONMENTS: list[tuple[Raw, str]] = [
    ({"envFrom": [{"configMapRef": {"name": "late"}}]}, 'configmap "late" not found'),
    (
        {
            "env": [
                {"name": "E", "valueFrom": {"configMapKeyRef": {"name": "late", "key": "color"}}}
            ]
        },
        'configmap "late" not found',
    ),
]


@pytest.mark.parametrize(("environment", "problem"), ENVIRONMENTS)
def test_a_container_waits_for_what_its_environment_is_made_of(
    environment: Raw, problem: str
) -> None:
    """The others run; it starts when the object is there with the key that it names."""

    async def scene(client: Client, clock: VirtualClock) -> None:
        containers = [{"name": "main", "image": "a"} | environment, {"name": "other", "image": "a"}]
        await bind_by_hand(client, "reads", {"containers": containers})
        await clock.advance(600)
        assert await waiting_in(client, "reads", "main") == ("CreateContainerConfigError", problem)
        assert await waiting_in(client, "reads", "other") == ("", "")
        assert await phase_of(client, "reads") == "Pending"
        assert await warnings_of(client, "reads") == [("Failed", f"Error: {problem}")]
        metadata = {"name": "late", "namespace": "default"}
        await client.create(CONFIG_MAPS, {"metadata": metadata, "data": {"taste": "sweet"}})
        await settle()
        if "env" in environment:
            message = "couldn't find key color in ConfigMap default/late"
            assert (await waiting_in(client, "reads", "main"))[1] == message
            await client.patch(CONFIG_MAPS, "late", {"data": {"color": "red"}}, namespace="default")
            await settle()
        pod = await client.get(PODS, "reads", "default")
        assert scenes.is_true(pod, "Ready")
        assert [each["restartCount"] for each in pod["status"]["containerStatuses"]] == [0, 0]

    play(scene)


def test_what_is_optional_is_not_waited_for() -> None:
    """Neither by volumes nor by environments."""

    async def scene(client: Client, clock: VirtualClock) -> None:
        absent = {"name": "absent", "optional": True}
        spec = {
            "volumes": [{"name": "v", "configMap": absent}],
            "containers": [{"name": "main", "image": "a", "envFrom": [{"secretRef": absent}]}],
        }
        await bind_by_hand(client, "free", spec)
        assert await phase_of(client, "free") == "Running"

    play(scene)


def test_a_pod_ends_at_its_deadline() -> None:
    """Its containers get the pod's own grace, and then it has failed, and says why."""

    async def scene(client: Client, clock: VirtualClock) -> None:
        spec = scenes.POD_SPEC | {"activeDeadlineSeconds": 60, "terminationGracePeriodSeconds": 10}
        annotations = {"dryrack.dev/stop-seconds": "1000"}
        metadata = {"name": "brief", "namespace": "default", "annotations": annotations}
        await client.create(PODS, {"metadata": metadata, "spec": spec})
        await clock.advance(68)
        assert await phase_of(client, "brief") == "Running"
        await clock.advance(4)
        status = (await client.get(PODS, "brief", "default"))["status"]
        assert (status["phase"], status["reason"]) == ("Failed", "DeadlineExceeded")
        told = "Pod was active on the node longer than the specified deadline"
        assert status["message"] == told
        assert status["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 137
        await clock.advance(600)
        assert await phase_of(client, "brief") == "Failed"

    play(scene)


def test_a_pod_that_never_started_ends_at_its_deadline() -> None:
    """The deadline counts from the arrival on the node."""

    async def scene(client: Client, clock: VirtualClock) -> None:
        volumes = [{"name": "v", "configMap": {"name": "absent"}}]
        await bind_by_hand(
            client, "stuck", scenes.POD_SPEC | {"activeDeadlineSeconds": 60, "volumes": volumes}
        )
        await clock.advance(58)
        assert await phase_of(client, "stuck") == "Pending"
        await clock.advance(4)
        assert await phase_of(client, "stuck") == "Failed"

    play(scene)


def test_a_living_node_renews_its_lease() -> None:
    """After any time, a node that is played has a fresh lease and stays Ready."""

    async def scene(client: Client, clock: VirtualClock) -> None:
        await clock.advance(300)
        lease = await client.get(LEASES, "node-a", "kube-node-lease")
        assert lease["spec"]["holderIdentity"] == "node-a"
        assert scenes.is_true(await client.get(NODES, "node-a"), "Ready")

    play(scene)


@pytest.mark.parametrize("lease_seconds", [0, 24 * 3600])
def test_a_silent_node_loses_its_pods(lease_seconds: int) -> None:
    """Unknown after the grace, tainted at once, and empty when the tolerations are over."""

    async def scene(client: Client, clock: VirtualClock) -> None:
        await make_pod(client, "worker")
        assert await phase_of(client, "worker") == "Running"
        patch = {"metadata": {"annotations": {SILENT: "true"}}}
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
        await client.patch(NODES, "node-a", {"metadata": {"annotations": {SILENT: None}}})
        await clock.advance(60)
        assert scenes.is_true(await client.get(NODES, "node-a"), "Ready")

    play(scene, lease_seconds)


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
