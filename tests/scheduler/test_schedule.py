"""The scheduler on an embedded cluster without other components."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.scheduler.builders import (
    RecordingTransport,
    all_bound,
    allocated_devices,
    create_objects,
    eventually,
    user_of,
    with_scheduler,
)

from dryrack.apiserver.runtime_config import RuntimeConfig
from dryrack.client.endpoints import CLAIMS, EVENTS, NODES, PODS, TAINT_RULES

if TYPE_CHECKING:
    from dryrack.client.client import Client
    from dryrack.cluster.embedded import EmbeddedCluster


def test_an_allocation_says_when_it_was_made() -> None:
    """As Kubernetes 1.36: the timestamp is written with the reservation, once."""

    async def story(cluster: EmbeddedCluster, noting: RecordingTransport) -> None:
        client = cluster.client
        await create_objects(client, 1)
        await eventually(cluster, lambda: all_bound(client))
        claim = await client.get(CLAIMS, "p0", "default")
        made = claim["status"]["allocation"]["allocationTimestamp"]
        assert made.endswith("Z")
        assert made >= claim["metadata"]["creationTimestamp"]

    with_scheduler(story)


def test_nothing_is_read_again_that_is_known() -> None:
    """Binding takes the writes and no reads: what was watched and what was answered is enough."""

    async def story(cluster: EmbeddedCluster, noting: RecordingTransport) -> None:
        await create_objects(cluster.client, 2)
        await eventually(cluster, lambda: all_bound(cluster.client))
        reads = [each for each in noting.requests if each.startswith("GET /apis/resource.k8s.io")]
        assert not [each for each in reads if "/namespaces/default/" in each]
        writes = [each for each in noting.requests if each.startswith("PUT")]
        assert len(writes) == 4

    with_scheduler(story)


def test_a_taint_rule_keeps_pods_from_devices_until_it_is_gone() -> None:
    """A rule acts as if its taint were on the device; who waits is woken when it goes."""

    async def story(cluster: EmbeddedCluster, noting: RecordingTransport) -> None:
        client = cluster.client
        rule = {
            "metadata": {"name": "drain"},
            "spec": {
                "deviceSelector": {"device": "d1"},
                "taint": {"key": "drain", "effect": "NoSchedule"},
            },
        }
        await client.create(TAINT_RULES, rule)
        await create_objects(client, 2)

        async def one_waits() -> bool:
            pods = (await client.list(PODS)).items
            return sum(bool(each["status"].get("conditions")) for each in pods) > 0

        await eventually(cluster, one_waits)
        await eventually(cluster, lambda: _has(client, ["d0"]))
        await client.delete(TAINT_RULES, "drain")
        await eventually(cluster, lambda: all_bound(client))
        assert sorted(await allocated_devices(client)) == ["d0", "d1"]

    with_scheduler(story, RuntimeConfig({"resource.k8s.io/v1beta2": True}))


async def _has(client: Client, devices: list[str]) -> bool:
    return await allocated_devices(client) == devices


def test_pods_that_share_a_claim_go_to_one_node() -> None:
    """The first gets it allocated, the second finds it so, and both are among its users."""

    async def story(cluster: EmbeddedCluster, noting: RecordingTransport) -> None:
        client = cluster.client
        await client.create(NODES, {"metadata": {"name": "a"}})
        await create_objects(client, 1)
        await client.create(PODS, user_of("p0", "second"))
        await eventually(cluster, lambda: all_bound(client))
        claim = await client.get(CLAIMS, "p0", "default")
        assert sorted(user["name"] for user in claim["status"]["reservedFor"]) == ["p0", "second"]

    with_scheduler(story)


def test_condition_and_event_say_which_selector_is_not_met() -> None:
    """The event of a long one is cut as kube-scheduler cuts it; the condition has it all."""
    selector = f'device.driver == "{"x" * 1000}"'

    async def story(cluster: EmbeddedCluster, noting: RecordingTransport) -> None:
        client = cluster.client
        await create_objects(client, 1)
        exactly = {"deviceClassName": "c", "selectors": [{"cel": {"expression": selector}}]}
        claim = {
            "metadata": {"name": "far", "namespace": "default"},
            "spec": {"devices": {"requests": [{"name": "r", "exactly": exactly}]}},
        }
        await client.create(CLAIMS, claim)
        await client.create(PODS, user_of("far", "far"))

        async def events() -> list[str]:
            found = (await client.list(EVENTS)).items
            return [each["message"] for each in found if each["involvedObject"]["name"] == "far"]

        async def told() -> bool:
            return bool(await events())

        await eventually(cluster, told)
        [condition] = (await client.get(PODS, "far", "default"))["status"]["conditions"]
        [event] = await events()
        assert f"the selector requires '{'x' * 1000}'; relax" in condition["message"]
        assert event == f"{condition['message'][:1020]} ..."

    with_scheduler(story)


def test_a_pod_waits_for_its_claim_alone() -> None:
    """It gets no condition, as by kube-scheduler, and goes on when that claim is made."""

    async def story(cluster: EmbeddedCluster, noting: RecordingTransport) -> None:
        client = cluster.client
        await create_objects(client, 0)
        await client.create(PODS, user_of("late", "late"))
        requests = [{"name": "r", "exactly": {"deviceClassName": "c"}}]
        metadata = {"name": "late", "namespace": "default"}
        await client.create(
            CLAIMS, {"metadata": metadata, "spec": {"devices": {"requests": requests}}}
        )
        await eventually(cluster, lambda: all_bound(client))

    with_scheduler(story)


def test_who_has_the_higher_priority_is_served_first() -> None:
    """Though it came later: the last device goes to it."""

    async def story(cluster: EmbeddedCluster, noting: RecordingTransport) -> None:
        client = cluster.client
        await create_objects(client, 0)
        taint = {"key": "closed", "effect": "NoSchedule"}
        node = await client.get(NODES, "n")
        node = await client.update(NODES, {**node, "spec": {"taints": [taint]}})
        requests = [{"name": "r", "exactly": {"deviceClassName": "c"}}]
        for name, priority in (("a", ""), ("b", ""), ("vip", "system-node-critical")):
            metadata = {"name": name, "namespace": "default"}
            claim = {"metadata": metadata, "spec": {"devices": {"requests": requests}}}
            await client.create(CLAIMS, claim)
            pod = user_of(name, name)
            pod["spec"] |= {"priorityClassName": priority} if priority else {}
            await client.create(PODS, pod)

        async def all_wait() -> bool:
            pods = (await client.list(PODS)).items
            return all(each["status"].get("conditions") for each in pods)

        async def two_are_bound() -> bool:
            pods = (await client.list(PODS)).items
            return sum(bool(each["spec"].get("nodeName")) for each in pods) == 2

        await eventually(cluster, all_wait)
        await client.update(NODES, {**node, "spec": {}})
        await eventually(cluster, two_are_bound)
        pods = (await client.list(PODS)).items
        bound = [each["metadata"]["name"] for each in pods if each["spec"].get("nodeName")]
        assert bound == ["a", "vip"]

    with_scheduler(story)
