"""Virtual nodes with devices: slices, pods, and logs that show what containers would have got."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest
from tests.client.planes import CountedChance

from dryrack.client.client import Selection
from dryrack.client.endpoints import (
    CLAIMS,
    CLASSES,
    EVENTS,
    NAMESPACES,
    NODES,
    PODS,
    SLICES,
    TEMPLATES,
)
from dryrack.client.timekeeping import VirtualClock, run_virtual
from dryrack.client.transport import ADMIN, Request
from dryrack.cluster import load_catalogue
from dryrack.cluster.assembly import EngineOptions, assemble_engines, node_plugins
from dryrack.cluster.control_plane import ControlPlaneOptions
from dryrack.cluster.embedded import embedded
from dryrack.cluster.engines import running_engines
from dryrack.cluster.initial_objects import virtual_node
from dryrack.hardware import device_annotation, node_annotation
from dryrack.kinds.decode import to_builtins
from dryrack.kubeletplugin import PrepareError, VirtualDrivers, device_classes, read_devices
from dryrack.kubeletplugin.kinds.cpu import CpuKind
from dryrack.kubeletplugin.kinds.fake import DRIVER, FakeKind, uuid_of, uuids_of
from dryrack.kubeletplugin.kinds.file import FileKind
from dryrack.kubeletplugin.kinds.gpu import GpuKind
from dryrack.kubeletplugin.kinds.net import NetKind
from dryrack.store import EventType

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from dryrack.client.client import Client
    from dryrack.client.transport import Transport
    from dryrack.cluster.embedded import EmbeddedCluster
    from dryrack.cluster.engines import Family
    from dryrack.kinds.raw import Raw
    from dryrack.kubeletplugin import AllocatedDevice, ContainerEdits, DeviceKind, PreparingClaim
    from dryrack.store import Event

KINDS = (FakeKind(), FileKind())


def play(
    scene: Callable[[EmbeddedCluster, VirtualClock], Awaitable[None]],
    kinds: tuple[DeviceKind, ...] = KINDS,
) -> None:
    """A cluster with one virtual node that has these kinds."""
    clock = VirtualClock()
    drivers = VirtualDrivers(kinds)
    options = ControlPlaneOptions(clock=clock, chance=CountedChance(), drivers=drivers)

    async def run() -> None:
        async with embedded(options, engines=engines_with(drivers)) as cluster:
            for each in device_classes(kinds):
                await cluster.client.create(CLASSES, to_builtins(each))
            await cluster.client.create(NODES, virtual_node("node-1"))
            await clock.advance(2)
            await scene(cluster, clock)

    run_virtual(run())


async def make(client: Client, namespace: str, claims: Raw, containers: list[Raw]) -> None:
    """A pod with claims, each by what it asks for."""
    await client.create(NAMESPACES, {"metadata": {"name": namespace}})
    for name, devices in claims.items():
        metadata = {"name": name, "namespace": namespace}
        await client.create(
            TEMPLATES, {"metadata": metadata, "spec": {"spec": {"devices": devices}}}
        )
    named = [{"name": name, "resourceClaimTemplateName": name} for name in claims]
    pod = {
        "metadata": {"name": "pod0", "namespace": namespace},
        "spec": {"resourceClaims": named, "containers": containers},
    }
    await client.create(PODS, pod)


def request(name: str, device_class: str, count: int = 1) -> Raw:
    return {"name": name, "exactly": {"deviceClassName": device_class, "count": count}}


def container(name: str, *claims: Raw) -> Raw:
    return {"name": name, "image": "example.com/work:1", "resources": {"claims": list(claims)}}


def engines_with(drivers: VirtualDrivers) -> tuple[Family, ...]:
    return assemble_engines(EngineOptions(drivers=drivers, plugins=node_plugins(drivers)))


async def reasons(client: Client, namespace: str) -> dict[str, str]:
    """Return the messages of events, by their reasons."""
    events = (await client.list(EVENTS, Selection(namespace=namespace))).items
    return {each["reason"]: each.get("message") or each.get("note", "") for each in events}


@dataclass(frozen=True, slots=True)
class Moody(FakeKind):
    """Cannot prepare anything while it is in a mood."""

    mood: list[str] = field(default_factory=lambda: ["not now"])

    def edits(self, device: AllocatedDevice, claim: PreparingClaim, number: int) -> ContainerEdits:
        if self.mood:
            raise PrepareError(self.mood[0])
        return FakeKind.edits(self, device, claim, number)


async def log(transport: Transport, namespace: str, container: str) -> list[str]:
    path = f"/api/v1/namespaces/{namespace}/pods/pod0/log"
    request = Request("GET", path, f"container={container}", {}, b"", ADMIN)
    response = await transport.send(request)
    assert isinstance(response.body, bytes)
    return response.body.decode().splitlines()


def test_a_virtual_node_has_its_devices_as_long_as_it_is_there() -> None:
    """Slices are created with the node, created again after a deletion, and deleted with it."""

    async def scene(cluster: EmbeddedCluster, clock: VirtualClock) -> None:
        client = cluster.client
        selection = Selection(fields=f"spec.driver={DRIVER}")
        [first] = (await client.list(SLICES, selection)).items
        await client.delete(SLICES, first["metadata"]["name"])
        await clock.advance(2)
        [second] = (await client.list(SLICES, selection)).items
        await client.delete(NODES, "node-1")
        await clock.advance(60)

        assert len(first["spec"]["devices"]) == 8
        assert second["spec"] == first["spec"]
        assert (await client.list(SLICES)).items == ()

    play(scene)


def test_the_log_shows_what_the_containers_would_have_got() -> None:
    """Devices of all claims of a container, each with a number of its own, and the file."""

    async def scene(cluster: EmbeddedCluster, clock: VirtualClock) -> None:
        client = cluster.client
        claims = {
            "one": {"requests": [request("r", "fake.3-shake.com", 2)]},
            "two": {
                "requests": [request("a", "fake.3-shake.com"), request("b", "fake.3-shake.com")]
            },
            "file": {"requests": [request("r", "file-resource")]},
        }
        containers = [
            container("ctr0", {"name": "one"}, {"name": "two"}, {"name": "file"}),
            container("ctr1", {"name": "two", "request": "b"}),
        ]
        await make(client, "test", claims, containers)
        await clock.advance(30)
        first, second = [await log(cluster.transport, "test", each) for each in ("ctr0", "ctr1")]
        own = [uuid_of("node-1", f"fake-{n}") for n in range(4)]

        assert [line for line in first if re.match(r"env: FAKE_DEVICE_\d", line)] == [
            f"env: FAKE_DEVICE_{n}={uuid}" for n, uuid in enumerate(own)
        ]
        assert first.count("env: FAKE_NODE_NAME=node-1") == 1
        assert "file /etc/dra/file1: pod0" in first
        assert "env: DRYRACK_DEVICE_0" not in "\n".join(first)
        assert [line for line in second if re.match(r"env: FAKE_DEVICE_\d", line)] == [
            f"env: FAKE_DEVICE_3={own[3]}"
        ]

    play(scene)


def test_a_pod_whose_devices_cannot_be_prepared_waits_and_says_why() -> None:
    """The planning is that of a real node, its refusals too; the words are the kubelet's."""

    async def scene(cluster: EmbeddedCluster, clock: VirtualClock) -> None:
        client = cluster.client
        for split in (2, 0):
            parameters = {"apiVersion": f"{DRIVER}/v1alpha1", "kind": "FakeClaimParameters"}
            opaque = {"driver": DRIVER, "parameters": parameters | {"split": split}}
            asked = {"requests": [request("r", "fake.3-shake.com")], "config": [{"opaque": opaque}]}
            await make(client, f"split-{split}", {"one": asked}, [container("c", {"name": "one"})])
            await clock.advance(30)
        good, bad = [await log(cluster.transport, f"split-{split}", "c") for split in (2, 0)]
        children = uuids_of("node-1", "fake-0", 2)
        waiting = await client.get(PODS, "pod0", "split-0")
        [claim] = (await client.list(CLAIMS, Selection(namespace="split-0"))).items
        events = await reasons(client, "split-0")

        assert [f"env: FAKE_DEVICE_{n}={uuid}" for n, uuid in enumerate(children)] == [
            line for line in good if re.match(r"env: FAKE_DEVICE_\d", line)
        ]
        assert (
            'container \\"c\\" in pod \\"pod0\\" is waiting to start: ContainerCreating' in bad[0]
        )
        assert waiting["status"]["phase"] == "Pending"
        assert waiting["status"]["containerStatuses"][0]["state"] == {
            "waiting": {"reason": "ContainerCreating"}
        }
        assert events["FailedPrepareDynamicResources"] == (
            "Failed to prepare dynamic resources: prepare dynamic resources: NodePrepareResources "
            f"failed for ResourceClaim {claim['metadata']['name']}: claim split-0/"
            f"{claim['metadata']['name']}: request r, opaque parameters: invalid number of "
            "children: split=0; use 1 to 1000"
        )
        assert "devices" not in claim["status"]

    play(scene)


def test_a_prepare_that_failed_is_tried_again_and_the_pod_runs() -> None:
    """A failed preparation is retried at an interval, as by a kubelet."""
    kind = Moody()

    async def scene(cluster: EmbeddedCluster, clock: VirtualClock) -> None:
        asked = {"requests": [request("r", kind.device_class)]}
        await make(cluster.client, "test", {"one": asked}, [container("c", {"name": "one"})])
        await clock.advance(60)
        before = await cluster.client.get(PODS, "pod0", "test")
        kind.mood.clear()
        await clock.advance(15)
        after = await cluster.client.get(PODS, "pod0", "test")

        assert before["status"]["phase"] == "Pending"
        assert after["status"]["phase"] == "Running"

    play(scene, (kind,))


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("prepare: fail=no power", ": no power"),
        ("prepare: hang", "code = DeadlineExceeded desc = context deadline exceeded"),
        ("driver: gone", f"prepare dynamic resources: DRA driver {DRIVER} is not registered"),
    ],
)
def test_a_fault_of_the_node_keeps_its_pods_waiting_until_it_is_over(
    fault: str, words: str
) -> None:
    """By an annotation of the Node; when it goes, the pod runs at once."""
    part, _, text = fault.partition(": ")

    async def scene(cluster: EmbeddedCluster, clock: VirtualClock) -> None:
        client = cluster.client
        key = node_annotation(part)
        await client.patch(NODES, "node-1", {"metadata": {"annotations": {key: text}}})
        asked = {"requests": [request("r", "fake.3-shake.com")]}
        await make(client, "test", {"one": asked}, [container("c", {"name": "one"})])
        await clock.advance(120)
        before = await client.get(PODS, "pod0", "test")
        events = await reasons(client, "test")
        await client.patch(NODES, "node-1", {"metadata": {"annotations": {key: None}}})
        await clock.advance(1)
        after = await client.get(PODS, "pod0", "test")

        assert before["status"]["phase"] == "Pending"
        assert events["FailedPrepareDynamicResources"].endswith(words)
        assert after["status"]["phase"] == "Running"

    play(scene)


def test_a_node_that_is_slow_prepares_in_its_time() -> None:
    """The pod waits for as long as the annotation says, without an event."""

    async def scene(cluster: EmbeddedCluster, clock: VirtualClock) -> None:
        client = cluster.client
        marks = {"annotations": {node_annotation("prepare"): "slow=20s"}}
        await client.patch(NODES, "node-1", {"metadata": marks})
        asked = {"requests": [request("r", "fake.3-shake.com")]}
        await make(client, "test", {"one": asked}, [container("c", {"name": "one"})])
        phases = []
        for seconds in (15, 15):
            await clock.advance(seconds)
            phases.append((await client.get(PODS, "pod0", "test"))["status"]["phase"])

        assert phases == ["Pending", "Running"]
        assert "FailedPrepareDynamicResources" not in await reasons(client, "test")

    play(scene)


def test_claims_of_virtual_nodes_say_what_is_prepared_and_come_to_rest() -> None:
    """As on a real node; nothing is written twice, and it goes with the pod."""

    async def scene(cluster: EmbeddedCluster, clock: VirtualClock) -> None:
        client = cluster.client
        asked = {"requests": [request("r", "fake.3-shake.com")]}
        await make(client, "test", {"one": asked}, [container("c", {"name": "one"})])
        await clock.advance(30)
        [claim] = (await client.list(CLAIMS, Selection(namespace="test"))).items
        await clock.advance(3600)
        [later] = (await client.list(CLAIMS, Selection(namespace="test"))).items
        [device] = claim["status"]["devices"]
        uid = claim["metadata"]["uid"]

        assert (device["driver"], device["pool"], device["device"]) == (DRIVER, "node-1", "fake-0")
        assert device["data"] == {"cdiDeviceIDs": [f"k8s.{DRIVER}/fake={uid}-fake-0"]}
        assert [(each["type"], each["status"]) for each in device["conditions"]] == [
            ("Ready", "True")
        ]
        assert later["metadata"]["resourceVersion"] == claim["metadata"]["resourceVersion"]

    play(scene)


@pytest.mark.parametrize(
    "annotations",
    [{}, {node_annotation("prepare"): "fail=no power"}, {device_annotation("fake-0"): "lost"}],
)
@pytest.mark.virtual_time
async def test_a_kubelet_that_starts_again_prepares_what_its_pods_have(annotations: Raw) -> None:
    """Running pods continue despite faults, and keep their devices."""
    clock = VirtualClock()
    first = VirtualDrivers(KINDS)
    second = VirtualDrivers(KINDS)
    options = ControlPlaneOptions(clock=clock, chance=CountedChance())

    async with embedded(options, engines=()) as cluster:
        async with running_engines(engines_with(first), cluster.plane.wiring):
            for each in device_classes(KINDS):
                await cluster.client.create(CLASSES, to_builtins(each))
            await cluster.client.create(NODES, virtual_node("node-1"))
            asked = {"requests": [request("r", "fake.3-shake.com")]}
            await make(cluster.client, "test", {"one": asked}, [container("c", {"name": "one"})])
            await clock.advance(30)
        marks = {"metadata": {"annotations": annotations}}
        await cluster.client.patch(NODES, "node-1", marks)
        async with running_engines(engines_with(second), cluster.plane.wiring):
            await clock.advance(30)
            known = second.records(DRIVER, "node-1")
            await cluster.client.delete(PODS, "pod0", namespace="test")
            await clock.advance(60)

    assert [each.devices for each in known] == [
        each.devices for each in first.records(DRIVER, "node-1")
    ]
    assert second.records(DRIVER) == ()


@pytest.mark.virtual_time
async def test_a_kubelet_that_starts_again_gives_back_what_went_meanwhile() -> None:
    """A claim that was deleted while the kubelet was not running is unprepared."""
    clock = VirtualClock()
    drivers = VirtualDrivers(KINDS)
    options = ControlPlaneOptions(clock=clock, chance=CountedChance())

    async with embedded(options, engines=()) as cluster:
        client = cluster.client
        async with running_engines(engines_with(drivers), cluster.plane.wiring):
            for each in device_classes(KINDS):
                await client.create(CLASSES, to_builtins(each))
            await client.create(NODES, virtual_node("node-1"))
            asked = {"requests": [request("r", "fake.3-shake.com")]}
            await make(client, "test", {"one": asked}, [container("c", {"name": "one"})])
            await clock.advance(30)
        [claim] = (await client.list(CLAIMS, Selection(namespace="test"))).items
        before = drivers.prepared() == {claim["metadata"]["uid"]}
        await client.delete(PODS, "pod0", namespace="test", grace_seconds=0)
        claim["metadata"].pop("finalizers")
        await client.update(CLAIMS, claim)
        await client.delete(CLAIMS, claim["metadata"]["name"], namespace="test")
        async with running_engines(engines_with(drivers), cluster.plane.wiring):
            await clock.advance(1)

    assert before
    assert drivers.records(DRIVER) == ()


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (["sh", "-c", "export; sleep 9999"], "export FAKE_DEVICE_0='{}'"),
        (["bash", "-c", "export; sleep 9999"], 'declare -x FAKE_DEVICE_0="{}"'),
        (["sh", "-c", "env && sleep 9999"], "FAKE_DEVICE_0={}"),
        (["printenv"], "FAKE_DEVICE_0={}"),
        (["sh", "-c", "export X=1; sleep 9999"], "env: FAKE_DEVICE_0={}"),
    ],
)
def test_a_command_that_prints_its_environment_has_it_in_the_log(
    command: list[str], expected: str
) -> None:
    """In the form in which that shell prints it, as in the demos of the fake driver."""

    async def scene(cluster: EmbeddedCluster, clock: VirtualClock) -> None:
        asked = {"requests": [request("r", "fake.3-shake.com")]}
        one = container("ctr0", {"name": "one"}) | {"command": command}
        await make(cluster.client, "test1", {"one": asked}, [one])
        await clock.advance(30)
        lines = await log(cluster.transport, "test1", "ctr0")

        assert [line for line in lines if "FAKE_DEVICE_0" in line] == [
            expected.format(uuid_of("node-1", "fake-0"))
        ]

    play(scene)


def test_a_shared_file_has_the_lines_of_all_pods_that_have_it() -> None:
    """The file names the users of all claims; a command prints it as it is at that time."""

    async def scene(cluster: EmbeddedCluster, clock: VirtualClock) -> None:
        asked = {"requests": [request("r", "file-resource")]}
        for namespace in ("one", "two"):
            command = {"command": ["sh", "-c", "cat /etc/dra/file1; sleep 9999"]}
            made = container("c", {"name": "one"}) | command
            await make(cluster.client, namespace, {"one": asked}, [made])
            await clock.advance(30)
        first = await log(cluster.transport, "one", "c")
        second = await log(cluster.transport, "two", "c")

        assert (first, second) == (["pod0"], ["pod0", "pod0"])

    play(scene, (FileKind(1, is_shared=True),))


def test_partitions_of_a_gpu_exclude_the_whole_and_shares_show_what_they_are() -> None:
    """The scheduler counts what partitions take, and the log has the amounts of a share."""

    async def scene(cluster: EmbeddedCluster, clock: VirtualClock) -> None:
        client = cluster.client
        part = {"cel": {"expression": "'partition' in device.attributes['gpu.example.com']"}}
        whole = {"cel": {"expression": "'full' in device.attributes['gpu.example.com']"}}
        asked = request("r", "gpu.example.com", 2)
        asked["exactly"]["selectors"] = [part]
        asked["exactly"]["capacity"] = {"requests": {"memory": "8Gi", "compute": "10"}}
        other = request("r", "gpu.example.com")
        other["exactly"]["selectors"] = [whole]
        for name, requests in (("parts", [asked]), ("whole", [other])):
            claims = {"one": {"requests": requests}}
            await make(client, name, claims, [container("c", {"name": "one"})])
            await clock.advance(30)
        lines = await log(cluster.transport, "parts", "c")
        waiting = await client.get(PODS, "pod0", "whole")

        for variable in ("GPU_DEVICE_0_PARTITION_0", "GPU_DEVICE_0_PARTITION_1"):
            assert f"env: {variable}_MEMORY=8Gi" in lines
            assert f"env: {variable}_COMPUTE=10" in lines
        assert "env: DRA_RESOURCE_DRIVER_NAME=gpu.example.com" in lines
        assert "nodeName" not in waiting["spec"]

    play(scene, (GpuKind(1, is_shared=True, partitions=4),))


def test_claims_share_nics_and_cpus_and_the_log_shows_their_parts() -> None:
    """Two requests have parts of one NIC, by the amounts that the scheduler gave them."""

    async def scene(cluster: EmbeddedCluster, clock: VirtualClock) -> None:
        fast = request("fast", "net.example.com")
        plain = request("plain", "net.example.com")
        fast["exactly"]["capacity"] = {"requests": {"ingressBandwidth": "10G"}}
        cpus = request("cpus", "cpu.example.com")
        cpus["exactly"]["capacity"] = {"requests": {"cpu.example.com/cpu": "3"}}
        claims = {"one": {"requests": [fast, plain, cpus]}}
        containers = [
            container(name, {"name": "one", "request": name}) for name in ("fast", "plain", "cpus")
        ]
        await make(cluster.client, "test", claims, containers)
        await clock.advance(30)
        logs = {
            name: await log(cluster.transport, "test", name) for name in ("fast", "plain", "cpus")
        }

        assert "env: NET_DEVICE_0_INGRESS_RATE=10000000000" in logs["fast"]
        assert "env: NET_DEVICE_0_EGRESS_RATE=1000000000" in logs["fast"]
        assert "env: NET_DEVICE_0_INGRESS_RATE=1000000000" in logs["plain"]
        assert "env: CPU_DEVICE_0_CONSUMED_CPU=3" in logs["cpus"]

    play(scene, (NetKind(1), CpuKind(1)))


def test_children_of_a_fake_device_exclude_the_whole() -> None:
    """With the option `split`, children are devices in the scheduler and in the log."""

    async def scene(cluster: EmbeddedCluster, clock: VirtualClock) -> None:
        asked = {"requests": [request("r", "fake.3-shake.com", 2)]}
        for name in ("first", "second"):
            await make(cluster.client, name, {"one": asked}, [container("c", {"name": "one"})])
            await clock.advance(30)
        lines = await log(cluster.transport, "first", "c")
        waiting = await cluster.client.get(PODS, "pod0", "second")
        children = [uuid_of("node-1", f"fake-0-child-{place}") for place in range(2)]

        assert [line for line in lines if re.match(r"env: FAKE_DEVICE_\d", line)] == [
            f"env: FAKE_DEVICE_{n}={uuid}" for n, uuid in enumerate(children)
        ]
        # Of three children one is left, and the whole is no longer there to be had.
        assert "nodeName" not in waiting["spec"]

    play(scene, (FakeKind(1, split=3),))


def test_a_machine_of_the_catalogue_gives_partitions_by_the_classes_of_its_driver() -> None:
    """A MIG partition and a NIC in one container, each with the variables of its driver."""
    kinds = read_devices(["catalogue:p5.48xlarge,mig=true"], [], load_catalogue)

    async def scene(cluster: EmbeddedCluster, clock: VirtualClock) -> None:
        claims = {
            "one": {"requests": [request("m", "mig.nvidia.com"), request("n", "rdma")]},
        }
        await make(cluster.client, "test", claims, [container("c", {"name": "one"})])
        await clock.advance(30)
        lines = await log(cluster.transport, "test", "c")

        assert any(line.startswith("env: GPU_NVIDIA_COM_DEVICE_0=gpu-0-mig-") for line in lines)
        assert any(line.startswith("env: DRA_NET_DEVICE_0=pci-0000-") for line in lines)
        assert "env: NVIDIA_VISIBLE_DEVICES=void" in lines

    play(scene, kinds)


def test_slices_that_somebody_deletes_at_once_are_written_once_a_second() -> None:
    """Slices that are deleted at once again and again are written once a second."""

    async def scene(cluster: EmbeddedCluster, clock: VirtualClock) -> None:
        written = 0

        async with asyncio.TaskGroup() as deletions:

            def on_slice(event: Event) -> None:
                nonlocal written
                if event.type is EventType.ADDED:
                    written += 1
                    name = event.stored.object["metadata"]["name"]
                    deletions.create_task(cluster.client.delete(SLICES, name))

            [slice_] = (await cluster.client.list(SLICES)).items
            leave = cluster.plane.store.subscribe("resourceslices.resource.k8s.io", on_slice)
            await cluster.client.delete(SLICES, slice_["metadata"]["name"])
            await clock.advance(10.5)
            leave()

        assert written == 10

    play(scene, (FakeKind(),))
