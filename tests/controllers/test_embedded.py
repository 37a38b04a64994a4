"""The scenes on the embedded cluster, in real time and without sockets."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

import pytest
from tests.controllers import scenes

from dryrack.apiserver.runtime_config import RuntimeConfig
from dryrack.client.endpoints import (
    CLAIMS,
    CLASSES,
    CONFIG_MAPS,
    NODES,
    POD_GROUPS,
    PODS,
    QUOTAS,
    SLICES,
    TEMPLATES,
    Endpoint,
)
from dryrack.client.errors import ApiError
from dryrack.client.informer import Name
from dryrack.cluster.control_plane import ControlPlaneOptions
from dryrack.cluster.embedded import embedded
from dryrack.kinds.releases import DEFAULT_RELEASE, Release

DEFINITIONS = Endpoint(
    "apiextensions.k8s.io",
    "v1",
    "customresourcedefinitions",
    "CustomResourceDefinition",
    is_namespaced=False,
)
RACKS = Endpoint("example.com", "v1", "racks", "Rack")

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from dryrack.client.client import Client


@pytest.fixture(autouse=True)
def no_bugs(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """No plan may raise: the loop would try again for ever, and say so."""
    yield
    assert [each for each in caplog.records if each.levelno >= logging.ERROR] == []


def play(
    scene: Callable[[Client], Awaitable[object]],
    serving: RuntimeConfig | None = None,
    release: Release = DEFAULT_RELEASE,
) -> None:
    options = ControlPlaneOptions(runtime_config=serving or RuntimeConfig(), release=release)

    async def run() -> None:
        async with embedded(options) as cluster:
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


def test_a_deployment_says_why_it_is_stuck() -> None:
    """And forgets it when its pods are taken."""
    play(lambda client: scenes.deployment_comes_loose(client, "play"))


def test_a_job_completes() -> None:
    """All completions are counted, each pod once."""
    play(lambda client: scenes.job_completes(client, "play"))


@pytest.mark.parametrize(
    "scene", [scenes.job_fails_by_its_policy, scenes.job_gives_up_indexes, scenes.job_has_enough]
)
def test_a_job_goes_by_its_policies(scene: Callable[[Client, str], Awaitable[object]]) -> None:
    """Failures that are fatal, indexes that are given up, successes that are enough."""
    play(lambda client: scene(client, "play"))


def test_a_job_fails_at_its_limit() -> None:
    """A job without retries fails with its first failed pod."""
    play(lambda client: scenes.job_fails(client, "play"))


def test_a_stateful_set_keeps_its_order() -> None:
    """Up from the first, down from the last."""
    play(lambda client: scenes.stateful_set_keeps_order(client, "play"))


def test_a_stateful_set_has_storage() -> None:
    """Claims are made for its pods, and go or stay as it says."""
    play(lambda client: scenes.stateful_set_has_storage(client, "play"))


def test_a_daemon_set_covers_the_nodes() -> None:
    """One pod on each node."""
    play(lambda client: scenes.daemon_set_covers(client, "play", ["node-a"]))


def test_a_namespace_takes_its_content_along() -> None:
    """Running pods, claims and config maps go with their namespace."""

    async def scene(client: Client) -> None:
        await scenes.deployment_rolls(client, "play")
        await scenes.namespace_ends(client, "play")

    play(scene)


def test_a_circle_of_owners_goes_in_the_foreground() -> None:
    """Three that own each other, each blocking the next, are gone when one is deleted."""

    async def scene(client: Client) -> None:
        made = [
            await client.create(CONFIG_MAPS, {"metadata": {"name": name, "namespace": "play"}})
            for name in ("a", "b", "c")
        ]
        for owner, owned in zip(made, (*made[1:], made[0]), strict=True):
            names = {key: owner["metadata"][key] for key in ("name", "uid")}
            reference = {"apiVersion": "v1", "kind": "ConfigMap", "blockOwnerDeletion": True}
            patch = {"metadata": {"ownerReferences": [reference | names]}}
            await client.patch(CONFIG_MAPS, owned["metadata"]["name"], patch, namespace="play")
        await client.delete(CONFIG_MAPS, "a", namespace="play", propagation="Foreground")
        for name in ("a", "b", "c"):
            await scenes.settled_one(client, CONFIG_MAPS, Name("play", name), lambda it: it is None)

    play(scene)


def test_a_tainted_device_loses_its_pod() -> None:
    """A NoExecute taint on an allocated device deletes the pod; its status has the reason."""

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


def test_a_group_stays_while_it_has_pods() -> None:
    """Deleted before its pods it waits for them; without any it goes at once."""

    async def scene(client: Client) -> None:
        policy: dict[str, Any] = {"schedulingPolicy": {"basic": {}}}
        for name in ("busy", "idle"):
            metadata = {"name": name, "namespace": "play"}
            await client.create(POD_GROUPS, {"metadata": metadata, "spec": policy})
        member = {"schedulingGroup": {"podGroupName": "busy"}, **scenes.POD_SPEC}
        await client.create(PODS, {"metadata": {"name": "p", "namespace": "play"}, "spec": member})
        for name in ("busy", "idle"):
            await client.delete(POD_GROUPS, name, namespace="play")
        await scenes.settled_one(client, POD_GROUPS, Name("play", "idle"), lambda it: it is None)
        busy = await client.get(POD_GROUPS, "busy", "play")
        assert "deletionTimestamp" in busy["metadata"]
        await client.delete(PODS, "p", namespace="play")
        await scenes.settled_one(client, POD_GROUPS, Name("play", "busy"), lambda it: it is None)

    play(scene, RuntimeConfig({"scheduling.k8s.io/v1alpha2": True}), Release.V1_36)


def test_a_claim_of_a_group_comes_and_goes_with_the_group() -> None:
    """The claim is created for the group, its pod has the name, and it is deleted with both."""

    async def scene(client: Client) -> None:
        await client.create(TEMPLATES, scenes.template_in("play"))
        claims = [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]
        metadata = {"name": "gang", "namespace": "play"}
        policy: dict[str, Any] = {"schedulingPolicy": {"basic": {}}, "resourceClaims": claims}
        name = Name("play", "p")
        pod = scenes.pod_with_claim(name)
        pod["spec"]["schedulingGroup"] = {"podGroupName": "gang"}
        await client.create(PODS, pod)
        await client.create(POD_GROUPS, {"metadata": metadata, "spec": policy})
        await scenes.settled_one(client, PODS, name, lambda it: scenes.is_true(it, "Ready"))
        [claim] = (await client.list(CLAIMS)).items
        assert claim["metadata"]["generateName"] == "gang-gpu-"
        await client.delete(POD_GROUPS, "gang", namespace="play")
        await client.delete(PODS, "p", namespace="play")
        await scenes.settled(client, CLAIMS, lambda every: not every)

    play(scene, RuntimeConfig({"scheduling.k8s.io/v1alpha2": True}), Release.V1_36)


def test_a_silent_node_runs_nothing() -> None:
    """A pod that is bound by hand to a node without a kubelet does not start."""

    async def scene(client: Client) -> None:
        await scenes.make_node(client, "node-b")
        patch = {"metadata": {"annotations": {"dryrack.dev/silent": "true"}}}
        await client.patch(NODES, "node-a", patch)
        for node in ("node-a", "node-b"):
            spec = scenes.POD_SPEC | {"nodeName": node}
            await client.create(
                PODS, {"metadata": {"name": node, "namespace": "play"}, "spec": spec}
            )
        await scenes.settled_one(
            client, PODS, Name("play", "node-b"), lambda it: scenes.is_true(it, "Ready")
        )
        assert scenes.phase(await client.get(PODS, "node-a", "play")) == "Pending"

    play(scene)


def test_a_running_pod_is_resized_and_debugged() -> None:
    """The kubelet reports the new resources, and runs the ephemeral container."""

    async def scene(client: Client) -> None:
        name = Name("play", "p")
        metadata = {"name": "p", "namespace": "play"}
        asking = {"name": "c", "image": "c", "resources": {"requests": {"cpu": "1"}}}
        await client.create(PODS, {"metadata": metadata, "spec": {"containers": [asking]}})
        await scenes.settled_one(client, PODS, name, lambda it: scenes.is_true(it, "Ready"))
        more = {"name": "c", "resources": {"requests": {"cpu": "2"}}}
        resize = {"spec": {"containers": [more], "resources": {"requests": {"cpu": "3"}}}}
        await client.patch(PODS, "p", resize, namespace="play", subresource="resize")
        debug = {"spec": {"ephemeralContainers": [{"name": "d", "image": "d"}]}}
        await client.patch(PODS, "p", debug, namespace="play", subresource="ephemeralcontainers")
        await scenes.settled_one(client, PODS, name, is_as_asked)

    def is_as_asked(pod: dict[str, Any] | None) -> bool:
        status = (pod or {}).get("status") or {}
        debuggers = status.get("ephemeralContainerStatuses") or [{}]
        resources = status["containerStatuses"][0].get("resources")
        return resources == {"requests": {"cpu": "2"}} and "running" in debuggers[0].get(
            "state", ""
        )

    play(scene)


def test_a_quota_is_counted() -> None:
    """Existing objects count, new ones are checked, and deleted ones are subtracted."""

    async def scene(client: Client) -> None:
        claim = {"devices": {"requests": [{"name": "a", "exactly": {"deviceClassName": "gpu"}}]}}

        def named(name: str) -> dict[str, Any]:
            return {"metadata": {"name": name, "namespace": "play"}, "spec": claim}

        await client.create(CLAIMS, named("before"))
        devices = "gpu.deviceclass.resource.k8s.io/devices"
        leases = "count/leases.coordination.k8s.io"
        hard = {devices: "2", leases: "1", "pods": "1"}
        quota = {"metadata": {"name": "q", "namespace": "play"}, "spec": {"hard": hard}}
        await client.create(QUOTAS, quota)
        await used(client, {devices: "1", leases: "0", "pods": "0"})
        await client.create(CLAIMS, named("second"))
        await used(client, {devices: "2", leases: "0", "pods": "0"})
        with pytest.raises(ApiError, match="exceeded quota: q, requested: gpu"):
            await client.create(CLAIMS, named("third"))
        pod = {"metadata": {"name": "p", "namespace": "play"}, "spec": scenes.POD_SPEC}
        await client.create(PODS, pod)
        await used(client, {devices: "2", leases: "0", "pods": "1"})
        await client.delete(CLAIMS, "before", namespace="play")
        await client.delete(PODS, "p", namespace="play")
        await used(client, {devices: "1", leases: "0", "pods": "0"})
        await client.create(CLAIMS, named("third"))

    async def used(client: Client, wanted: dict[str, str]) -> None:
        await scenes.settled_one(
            client,
            QUOTAS,
            Name("play", "q"),
            lambda it: ((it or {}).get("status") or {}).get("used") == wanted,
        )

    play(scene)


def test_a_quota_of_an_extended_resource_counts_claims() -> None:
    """Claims of a class use its extended resource, from when the class has one; pods do as well."""

    def claim(name: str, count: int) -> dict[str, Any]:
        wanted = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": count}
        devices = {"requests": [{"name": "a", "exactly": wanted}]}
        return {"metadata": {"name": name, "namespace": "play"}, "spec": {"devices": devices}}

    async def scene(client: Client) -> None:
        explicit = "requests.example.com/gpu"
        implicit = "requests.deviceclass.resource.kubernetes.io/gpu"
        hard = {explicit: "3", implicit: "9"}
        quota = {"metadata": {"name": "q", "namespace": "play"}, "spec": {"hard": hard}}
        await client.create(QUOTAS, quota)
        await used(client, {explicit: "0", implicit: "0"})
        await client.create(CLAIMS, claim("two", 2))
        await used(client, {explicit: "0", implicit: "2"})
        name = {"spec": {"extendedResourceName": "example.com/gpu"}}
        await client.patch(CLASSES, "gpu", name)
        await used(client, {explicit: "2", implicit: "2"})
        with pytest.raises(ApiError, match=f"exceeded quota: q, requested: {explicit}=2, used: "):
            await client.create(CLAIMS, claim("too-many", 2))
        # The scheduler creates a claim for this pod, which costs nothing more.
        limits = {"resources": {"limits": {"example.com/gpu": "1"}}}
        spec = {"containers": [{"name": "c", "image": "c", **limits}]}
        await client.create(PODS, {"metadata": {"name": "p", "namespace": "play"}, "spec": spec})
        await scenes.settled_one(
            client, PODS, Name("play", "p"), lambda it: scenes.is_true(it, "Ready")
        )
        await used(client, {explicit: "3", implicit: "3"})
        await client.delete(CLAIMS, "two", namespace="play")
        await used(client, {explicit: "1", implicit: "1"})

    async def used(client: Client, wanted: dict[str, str]) -> None:
        await scenes.settled_one(
            client,
            QUOTAS,
            Name("play", "q"),
            lambda it: ((it or {}).get("status") or {}).get("used") == wanted,
        )

    play(scene)


def test_a_custom_object_takes_what_it_owns_along() -> None:
    """Kinds that were defined a moment ago are collected like all others."""

    async def scene(client: Client) -> None:
        await client.create(DEFINITIONS, definition())
        await scenes.settled_one(
            client,
            DEFINITIONS,
            Name("", "racks.example.com"),
            lambda it: scenes.is_true(it, "Established"),
        )
        rack = await client.create(RACKS, {"metadata": {"name": "r", "namespace": "play"}})
        owner = {"apiVersion": "example.com/v1", "kind": "Rack", "name": "r"}
        owner["uid"] = rack["metadata"]["uid"]
        metadata = {"name": "owned", "namespace": "play", "ownerReferences": [owner]}
        await client.create(CONFIG_MAPS, {"metadata": metadata})
        await client.delete(RACKS, "r", namespace="play")
        await scenes.settled_one(client, CONFIG_MAPS, Name("play", "owned"), lambda it: it is None)

    play(scene)


def definition() -> dict[str, Any]:
    schema = {"openAPIV3Schema": {"type": "object"}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    names = {"plural": "racks", "singular": "rack", "kind": "Rack"}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    return {"metadata": {"name": "racks.example.com"}, "spec": spec}
