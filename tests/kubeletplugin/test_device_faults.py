"""Faults of devices on virtual nodes: slices, pods and the Node show them, and they end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.cluster.store_writes import writes_after
from tests.kubeletplugin.test_virtual import container, make, play, request

from dryrack.client.client import Selection
from dryrack.client.endpoints import CLAIMS, EVENTS, NODES, PODS, SLICES
from dryrack.client.errors import NotFoundError
from dryrack.hardware import add_expiry, device_annotation, node_annotation
from dryrack.kubeletplugin.kinds.fake import DRIVER, FakeKind

if TYPE_CHECKING:
    from dryrack.client.client import Client
    from dryrack.client.timekeeping import VirtualClock
    from dryrack.cluster.embedded import EmbeddedCluster
    from dryrack.kinds.raw import Raw

KINDS = (FakeKind(2),)


async def annotate(client: Client, clock: VirtualClock, **annotations: str | None) -> None:
    """Faults of devices by their names, with underscores; of the node as `node__ready`."""
    keys = {
        node_annotation(name.removeprefix("node__"))
        if name.startswith("node__")
        else device_annotation(name.replace("_", "-")): value
        for name, value in annotations.items()
    }
    await client.patch(NODES, "node-1", {"metadata": {"annotations": keys}})
    await clock.advance(0)


async def published(client: Client) -> dict[str, list[Raw]]:
    """The taints of every device of the driver, without the times."""
    slices = (await client.list(SLICES, Selection(fields=f"spec.driver={DRIVER}"))).items
    return {
        device["name"]: [
            {key: value for key, value in taint.items() if key != "timeAdded"}
            for taint in device.get("taints", ())
        ]
        for each in slices
        for device in each["spec"]["devices"]
    }


async def told(client: Client) -> list[Raw]:
    """Return the health of devices in the status of the pod."""
    pod = await client.get(PODS, "pod0", "test")
    assert pod["status"]["phase"] == "Running"
    (status,) = pod["status"]["containerStatuses"]
    return list(status.get("allocatedResourcesStatus", ()))


async def make_pod(client: Client, clock: VirtualClock, count: int = 1) -> list[str]:
    """A pod with devices; their names."""
    claims = {"devices": {"requests": [request("r", "fake.3-shake.com", count)]}}
    await make(client, "test", claims, [container("ctr", {"name": "devices", "request": "r"})])
    await clock.advance(2)
    [claim] = (await client.list(CLAIMS)).items
    return [each["device"] for each in claim["status"]["allocation"]["devices"]["results"]]


def test_a_pod_says_how_its_devices_are() -> None:
    """In the words of a kubelet: the claim and request, each CDI device, and its health."""

    async def scene(cluster: EmbeddedCluster, clock: VirtualClock) -> None:
        client = cluster.client
        [name, other] = await make_pod(client, clock, 2)
        [claim] = (await client.list(CLAIMS)).items
        prefix = f"{FakeKind().cdi_kind}={claim['metadata']['uid']}"
        healthy = {"health": "Healthy", "resourceID": f"{prefix}-{other}"}

        for fault, expected in (
            (None, {"health": "Healthy"}),
            ("unhealthy=no heartbeat", {"health": "Unhealthy", "message": "no heartbeat"}),
            ("unknown", {"health": "Unknown"}),
            ("lost", {"health": "Unhealthy", "message": "the device is lost"}),
            (None, {"health": "Healthy"}),
        ):
            await annotate(client, clock, **{name: fault})
            (entry,) = await told(client)
            assert entry["name"] == "claim:devices/r"
            mine = {"resourceID": f"{prefix}-{name}"} | expected
            assert entry["resources"] == [mine, healthy], fault

    play(scene, KINDS)


def test_a_pod_without_devices_says_nothing_of_them() -> None:
    """Nor is it written when devices of its node fail."""

    async def scene(cluster: EmbeddedCluster, clock: VirtualClock) -> None:
        client = cluster.client
        await make(client, "test", {}, [container("ctr")])
        await clock.advance(2)
        before = await client.get(PODS, "pod0", "test")
        [device, _] = await published(client)
        await annotate(client, clock, **{device: "unhealthy"})
        await clock.advance(20)

        assert await client.get(PODS, "pod0", "test") == before
        assert await told(client) == []

    play(scene, KINDS)


def test_slices_show_the_faults_of_devices() -> None:
    """A lost one leaves, an unhealthy one is kept from new pods, a taint is as it was said."""

    async def scene(cluster: EmbeddedCluster, clock: VirtualClock) -> None:
        client = cluster.client
        [first, second] = await published(client)
        await annotate(client, clock, **{first: "lost", second: "unhealthy"})
        assert await published(client) == {
            second: [{"key": "dryrack.dev/unhealthy", "effect": "NoSchedule"}]
        }

        await annotate(client, clock, **{first: "taint=ecc=double:NoExecute", second: None})
        assert await published(client) == {
            first: [{"key": "ecc", "value": "double", "effect": "NoExecute"}],
            second: [],
        }

        await annotate(client, clock, **{first: None})
        assert await published(client) == {first: [], second: []}

    play(scene, KINDS)


def test_a_fault_with_an_end_is_over_by_the_clock() -> None:
    """After a fault ends, slices and pods are as before, without further writes."""

    async def scene(cluster: EmbeddedCluster, clock: VirtualClock) -> None:
        client = cluster.client
        [name] = await make_pod(client, clock)
        await annotate(client, clock, **{name: add_expiry("unhealthy", clock.now() + 30)})
        revision = cluster.plane.store.revision
        await clock.advance(28)
        assert writes_after(cluster.plane.store, revision) == []
        assert len((await published(client))[name]) == 1
        (entry,) = await told(client)
        assert entry["resources"][0]["health"] == "Unhealthy"

        await clock.advance(3)
        assert (await published(client))[name] == []
        (entry,) = await told(client)
        assert entry["resources"][0]["health"] == "Healthy"
        revision = cluster.plane.store.revision
        await clock.advance(600)
        assert writes_after(cluster.plane.store, revision) == []

    play(scene, KINDS)


def test_a_taint_that_executes_drives_pods_away() -> None:
    """The taint is enough for the eviction by device taints; the device is there for no new pod."""

    async def scene(cluster: EmbeddedCluster, clock: VirtualClock) -> None:
        client = cluster.client
        [name] = await make_pod(client, clock)
        await annotate(client, clock, **{name: "taint=ecc:NoExecute"})
        await clock.advance(60)
        try:
            pod = await client.get(PODS, "pod0", "test")
        except NotFoundError:
            return
        raise AssertionError(f"still there: {pod['status']}")

    play(scene, KINDS)


def test_a_driver_that_is_gone_leaves_its_slices_as_they_are() -> None:
    """They are stale, pods no longer know the health of their devices, and both come back."""

    async def scene(cluster: EmbeddedCluster, clock: VirtualClock) -> None:
        client = cluster.client
        [name] = await make_pod(client, clock)
        before = await published(client)
        until = add_expiry("gone", clock.now() + 60)
        await annotate(client, clock, **{"node__driver": until, name: "unhealthy"})
        await clock.advance(50)
        assert await published(client) == before
        (entry,) = await told(client)
        assert entry["resources"][0]["health"] == "Unknown"

        await clock.advance(11)
        assert len((await published(client))[name]) == 1
        (entry,) = await told(client)
        assert entry["resources"][0]["health"] == "Unhealthy"

    play(scene, KINDS)


def test_a_node_is_not_ready_for_as_long_as_it_is_said() -> None:
    """Its condition and taints say so, and it is ready again when that is over."""

    async def scene(cluster: EmbeddedCluster, clock: VirtualClock) -> None:
        client = cluster.client
        await annotate(client, clock, node__ready=add_expiry("false", clock.now() + 30))
        await clock.advance(5)
        node = await client.get(NODES, "node-1")
        [ready] = [each for each in node["status"]["conditions"] if each["type"] == "Ready"]
        assert (ready["status"], ready["reason"]) == ("False", "KubeletNotReady")
        assert {each["key"] for each in node["spec"]["taints"]} == {"node.kubernetes.io/not-ready"}

        await clock.advance(30)
        node = await client.get(NODES, "node-1")
        [ready] = [each for each in node["status"]["conditions"] if each["type"] == "Ready"]
        assert (ready["status"], ready["reason"]) == ("True", "KubeletReady")
        assert "taints" not in node["spec"]

    play(scene, KINDS)


def test_an_annotation_that_says_nothing_is_told_on_the_node() -> None:
    """Once, with what would be right; the devices are as they were."""

    async def scene(cluster: EmbeddedCluster, clock: VirtualClock) -> None:
        client = cluster.client
        before = await published(client)
        await annotate(client, clock, **dict.fromkeys(before, "broken"))
        await clock.advance(60)

        events = (await client.list(EVENTS)).items
        messages = [each["message"] for each in events if each["reason"] == "InvalidFault"]
        assert len(messages) == 2
        assert all("unknown fault 'broken'; use unhealthy, unknown" in each for each in messages)
        assert await published(client) == before

    play(scene, KINDS)


def test_a_device_that_is_lost_before_it_is_prepared_is_not_there() -> None:
    """The pod waits and its event says so; it runs when the device is back."""

    async def scene(cluster: EmbeddedCluster, clock: VirtualClock) -> None:
        client = cluster.client
        await annotate(client, clock, node__prepare="slow=20s")
        claims = {"devices": {"requests": [request("r", "fake.3-shake.com")]}}
        await make(client, "test", claims, [container("ctr", {"name": "devices"})])
        await clock.advance(2)
        [claim] = (await client.list(CLAIMS)).items
        [result] = claim["status"]["allocation"]["devices"]["results"]
        await annotate(client, clock, **{result["device"]: "lost"})
        await clock.advance(30)
        pod = await client.get(PODS, "pod0", "test")
        assert pod["status"]["phase"] == "Pending"
        messages = [each["message"] for each in (await client.list(EVENTS)).items]
        assert any(f"device node-1/{result['device']} is not on node" in each for each in messages)

        await annotate(client, clock, **{result["device"]: None})
        await clock.advance(60)
        [entry] = await told(client)
        assert entry["resources"][0]["health"] == "Healthy"

    play(scene, KINDS)
