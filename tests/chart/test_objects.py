"""The objects of the chart on the embedded API server: accepted, restricted, and enforced."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from tests.chart.test_manifests import RELEASE, VALUES, workloads
from tests.chart.variations import ALL
from tests.cli.command import dryrack
from tests.client.planes import CountedChance

from dryrack.client.client import Client
from dryrack.client.endpoints import NAMESPACES, NODES, PODS, SLICES, Endpoint
from dryrack.client.errors import ApiError, ForbiddenError
from dryrack.client.timekeeping import VirtualClock, settle
from dryrack.client.transport import User
from dryrack.cluster import apply_objects
from dryrack.cluster.chart import Release, merge_values, render
from dryrack.cluster.control_plane import ControlPlane, ControlPlaneOptions, build_control_plane
from dryrack.cluster.process.modes import AuthorizationMode
from dryrack.kinds.documents import read
from dryrack.library import lint

if TYPE_CHECKING:
    from pathlib import Path

    from dryrack.kinds.raw import Raw

# The CustomResourceDefinition of the Prometheus operator, without its schema.
MONITORS: Raw = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "servicemonitors.monitoring.coreos.com"},
    "spec": {
        "group": "monitoring.coreos.com",
        "names": {"kind": "ServiceMonitor", "plural": "servicemonitors"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "x-kubernetes-preserve-unknown-fields": True,
                    }
                },
            }
        ],
    },
}
EVERYTHING = merge_values(
    ALL,
    {
        "aggregateToView": True,
        "resourceQuota": {"enabled": True},
        "crds": {"nodeOverlays": True, "podGroups": True, "computeDomains": True},
        "publisher": {"configMap": {"createNamespace": True}},
        "plugin": {"openshift": True},
    },
)
PLUGIN = {"plugin": ALL["plugin"], "namespace": {"create": True}}
CASES: dict[str, tuple[Raw, Release]] = {
    "everything": (EVERYTHING, RELEASE),
    "default": ({"namespace": {"create": True}}, RELEASE),
    **{
        name: (
            {
                **yaml.safe_load((VALUES / f"{name}.yaml").read_text()),
                "namespace": {"create": True},
            },
            Release(name, namespace),
        )
        for name, namespace in (
            ("fake", "fake-system"),
            ("dra-kwok", "karpenter"),
            ("dra-file", "dra-system"),
            ("kubenexus", "kubenexus-system"),
        )
    },
}


def new_plane() -> ControlPlane:
    """An API server in this process that enforces roles."""
    options = ControlPlaneOptions(
        clock=VirtualClock(), chance=CountedChance(), authorization=AuthorizationMode.RBAC
    )
    return build_control_plane(options)


async def install(plane: ControlPlane, values: Raw, release: Release = RELEASE) -> None:
    """Create the objects of the chart."""
    await apply_objects(plane, read(render(release, values), "chart").documents, "helm")


@pytest.mark.parametrize("name", CASES)
def test_the_api_server_accepts_each_object(name: str) -> None:
    """With strict validation of fields; a second time, too, as for an upgrade."""
    values, release = CASES[name]

    async def scenario() -> None:
        plane = new_plane()
        monitors = read(yaml.safe_dump(MONITORS), "monitors")
        await apply_objects(plane, monitors.documents, "helm")
        await settle(50)
        await install(plane, values, release)
        await install(plane, values, release)

    asyncio.run(scenario())


@pytest.mark.parametrize("name", CASES)
def test_lint_finds_nothing(name: str, tmp_path: Path) -> None:
    """The chart has no mistake that dryrack lint knows."""
    values, release = CASES[name]
    files = tmp_path / "chart.yaml", tmp_path / "monitors.yaml"
    files[0].write_text(render(release, values))
    files[1].write_text(yaml.safe_dump(MONITORS))

    # Objects of custom kinds are not checked, which is a finding of its own.
    assert [each for each in lint(*files) if each.code != "DR007"] == []


@pytest.mark.parametrize("name", sorted(set(CASES) - {"everything"}))
def test_the_commands_accept_their_arguments(name: str, tmp_path: Path) -> None:
    """Each container has the arguments and files with which its command starts."""
    values, release = CASES[name]
    found = list(yaml.safe_load_all(render(release, values)))
    configs = {each["metadata"]["name"]: each for each in found if each["kind"] == "ConfigMap"}
    for each in found:
        if each["kind"] not in ("Deployment", "DaemonSet"):
            continue
        spec = each["spec"]["template"]["spec"]
        volumes = {
            it["name"]: it.get("configMap", {}).get("name") for it in spec.get("volumes", ())
        }
        [container] = spec["containers"]
        words = container["args"]
        for mount in container.get("volumeMounts", ()):
            for key, text in configs.get(volumes[mount["name"]], {}).get("data", {}).items():
                (tmp_path / key).write_text(text)
                path = f"{mount['mountPath']}/{key}"
                words = [str(tmp_path / key) if word == path else word for word in words]
        done = dryrack(*words, "--print-rbac")
        assert done.returncode == 0, f"{words}: {done.stderr}"


@pytest.mark.parametrize(
    ("level", "refused"),
    [("restricted", {"plugin"}), ("baseline", {"plugin"}), ("privileged", set())],
)
def test_only_the_plugin_needs_a_privileged_namespace(level: str, refused: set[str]) -> None:
    """The Pod Security Standard restricted admits the Pods of all other parts."""

    async def scenario() -> set[str]:
        plane = new_plane()
        client = plane.client()
        labels = {"pod-security.kubernetes.io/enforce": level}
        await client.create(NAMESPACES, {"metadata": {"name": "dryrack-system", "labels": labels}})
        await client.create(NAMESPACES, {"metadata": {"name": "config"}})
        values = merge_values(ALL, {"namespace": None, "serviceMonitor": None})
        await install(plane, values)
        parts = set()
        for each in workloads(ALL):
            template = each["spec"]["template"]
            name = each["metadata"]["name"]
            metadata = {**template["metadata"], "name": name, "namespace": "dryrack-system"}
            try:
                await client.create(PODS, {**template, "metadata": metadata})
            except ForbiddenError as error:
                if "violates PodSecurity" not in str(error):
                    raise
                parts.add(name.removeprefix("dryrack-"))
        return parts

    assert asyncio.run(scenario()) == refused


def account(name: str, node: str = "") -> User:
    """The ServiceAccount of a part, with a token of a Pod on a node."""
    extra = {"authentication.kubernetes.io/node-name": (node,)} if node else {}
    groups = ("system:serviceaccounts", "system:authenticated")
    return User(f"system:serviceaccount:dryrack-system:dryrack-{name}", groups, extra=extra)


def slice_of(name: str, node: str, driver: str, **labels: str) -> Raw:
    """A ResourceSlice of a node; without a node, of all nodes."""
    where = {"nodeName": node} if node else {"allNodes": True}
    pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": driver, "pool": pool, "devices": [{"name": "d"}], **where}
    return {"metadata": {"name": name, "labels": labels}, "spec": spec}


async def attempt(write: Any) -> str:
    """The message of a refusal, or "" for a write that is accepted."""
    try:
        await write
    except ApiError as error:
        return str(error)
    return ""


def test_a_plugin_writes_only_slices_of_its_own_node_and_drivers() -> None:
    """Another node, all nodes, another driver, and a token without a node are refused."""

    async def scenario() -> list[str]:
        plane = new_plane()
        await install(plane, PLUGIN)
        own = Client(plane.transport, user=account("plugin", "n1"))
        loose = Client(plane.transport, user=account("plugin"))
        driver = "fake.resource.3-shake.com"
        assert not await attempt(own.create(SLICES, slice_of("a", "n1", driver)))
        foreign = await plane.client().create(SLICES, slice_of("b", "n2", driver))
        refusals = [
            await attempt(own.create(SLICES, slice_of("c", "n2", driver))),
            await attempt(own.create(SLICES, slice_of("d", "", driver))),
            await attempt(own.create(SLICES, slice_of("e", "n1", "other.example.com"))),
            await attempt(loose.create(SLICES, slice_of("f", "n1", driver))),
            await attempt(own.delete(SLICES, "b")),
            await attempt(own.update(SLICES, {**foreign, "metadata": foreign["metadata"]})),
        ]
        assert not await attempt(own.delete(SLICES, "a"))
        return refusals

    other, everywhere, driver, loose, deleted, updated = asyncio.run(scenario())
    message = "the plugin of node n1 may only write ResourceSlices of this node"
    assert all(message in each for each in (other, everywhere, deleted, updated))
    assert "driver other.example.com is not one of fake.resource.3-shake.com, x.example" in driver
    assert "the token of the plugin does not name a node; run the plugin in a Pod" in loose


def test_a_plugin_writes_only_the_state_of_its_own_node() -> None:
    """NodeAllocationStates of other nodes are refused."""
    states = Endpoint(
        "nas.fake.resource.3-shake.com", "v1alpha1", "nodeallocationstates", "NodeAllocationState"
    )

    async def scenario() -> list[str]:
        plane = new_plane()
        await install(plane, PLUGIN)
        await settle(50)
        own = Client(plane.transport, user=account("plugin", "n1"))
        refusals = []
        for name in ("n1", "n2"):
            metadata = {"name": name, "namespace": "dryrack-system"}
            refusals.append(await attempt(own.create(states, {"metadata": metadata})))
        return refusals

    accepted, refused = asyncio.run(scenario())
    assert accepted == ""
    assert "a plugin may only write the NodeAllocationState of its own node" in refused


@pytest.mark.parametrize("nodes", ["params", "pattern", "off"])
def test_the_publisher_writes_only_its_own_slices_for_kwok_nodes(nodes: str) -> None:
    """Real nodes, other drivers, and slices of other writers are refused."""
    ours = {"kwok.x-k8s.io/managed-by": "dra-kwok-driver"}
    policy = {"nodes": nodes, "pattern": "^kwok-"}
    values: Raw = {"publisher": {"driver": "gpu.example.com", "policy": policy}}

    async def scenario() -> list[str]:
        plane = new_plane()
        admin = plane.client()
        annotated = {"annotations": {"kwok.x-k8s.io/node": "fake"}}
        await admin.create(NODES, {"metadata": {"name": "kwok-1", **annotated}})
        await admin.create(NODES, {"metadata": {"name": "real"}})
        await admin.create(NAMESPACES, {"metadata": {"name": "dryrack-system"}})
        await install(plane, values)
        client = Client(plane.transport, user=account("publisher"))
        driver = "gpu.example.com"
        assert not await attempt(client.create(SLICES, slice_of("a", "kwok-1", driver, **ours)))
        assert not await attempt(client.create(SLICES, slice_of("b", "", driver, **ours)))
        await admin.create(SLICES, slice_of("foreign", "kwok-1", driver))
        refusals = [
            await attempt(client.create(SLICES, slice_of("c", "real", driver, **ours))),
            await attempt(client.create(SLICES, slice_of("d", "kwok-1", "x.example.com", **ours))),
            await attempt(client.create(SLICES, slice_of("e", "kwok-1", driver))),
            await attempt(client.delete(SLICES, "foreign")),
            await attempt(client.update(SLICES, slice_of("foreign", "kwok-1", driver, **ours))),
        ]
        assert not await attempt(client.delete(SLICES, "a"))
        return refusals

    real, driver, unlabeled, deleted, updated = asyncio.run(scenario())
    expected = {
        "params": "node real has a kubelet",
        "pattern": "the name of node real does not match publisher.policy.pattern",
        "off": "",
    }
    assert expected[nodes] in real
    assert bool(real) == (nodes != "off")
    assert "driver x.example.com is not one of gpu.example.com" in driver
    assert "may only write ResourceSlices with the label" in unlabeled
    assert "may only write ResourceSlices with the label" in deleted
    assert "the publisher may not change ResourceSlices of other writers" in updated
