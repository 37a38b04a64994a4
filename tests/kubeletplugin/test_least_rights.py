"""The permissions of the plugin on the cluster and on the node are those that it needs."""

from __future__ import annotations

import asyncio
import stat
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pytest
import yaml
from tests.cli.command import dryrack
from tests.client.planes import CountedChance, Road, Site
from tests.cluster.rights_witness import refuse_initial_events
from tests.kubeletplugin.nodes import NODE, Bench, bench
from tests.kubeletplugin.test_serving import dra, short_path

from dryrack.client.client import Client
from dryrack.client.endpoints import CLAIMS, NODES, SLICES, Endpoint
from dryrack.client.timekeeping import VirtualClock, settle
from dryrack.client.transport import User
from dryrack.cluster import check_needs
from dryrack.cluster.control_plane import ControlPlaneOptions, build_control_plane
from dryrack.cluster.initial_objects import add_allocation_states
from dryrack.cluster.process.instances import instance
from dryrack.cluster.process.modes import AuthorizationMode
from dryrack.cluster.process.node_plugins import COMMAND, NEEDS, NodePlugins, NodeSite
from dryrack.kubeletapi import DRA_V1
from dryrack.kubeletplugin import Sockets, serving_kubelet
from dryrack.kubeletplugin.kinds.fake import FakeKind
from dryrack.kubeletplugin.kinds.gpu import GpuKind

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from dryrack.client.transport import Request, Response, Transport
    from dryrack.kinds.raw import Raw
    from dryrack.kubeletplugin import DeviceKind

__all__ = ["short_path"]
UID = "5e2c7ba1-0000-4000-8000-000000000001"
RBAC = "rbac.authorization.k8s.io"
_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


def printed(*words: str) -> list[Raw]:
    return list(yaml.safe_load_all(dryrack("plugin", "--print-rbac", *words).stdout))


def granted(documents: list[Raw]) -> set[tuple[str, str]]:
    """Resources and verbs; what is only judged by itself, a verb on a field, is left out."""
    return {
        (resource, verb)
        for each in documents
        for rule in each.get("rules", ())
        for resource in rule["resources"]
        for verb in rule["verbs"]
        if ":" not in verb
    }


def used(request: Request) -> tuple[str, str]:
    """The resource and the verb of a request, as RBAC names them."""
    parts = request.path.strip("/").split("/")[2 if request.path.startswith("/api/") else 3 :]
    if parts[0] == "namespaces" and len(parts) > 2:
        parts = parts[2:]
    verb = _VERBS.get(request.method, "get" if len(parts) > 1 else "list")
    if verb == "list" and "watch=" in request.query:
        verb = "watch"
    return "/".join([parts[0], *parts[2:]]), verb


@dataclass(slots=True)
class Watched:
    """A transport that keeps what was asked, and what of it was forbidden."""

    to: Transport
    asked: set[tuple[str, str]] = field(default_factory=set)
    forbidden: list[str] = field(default_factory=list)

    async def send(self, request: Request) -> Response:
        # Without initial events, watches begin with a list.
        response = refuse_initial_events(request) or await self.to.send(request)
        self.asked.add(used(request))
        if response.status == 403:
            self.forbidden.append(f"{request.method} {request.path}: {response.body!r}")
        return response


async def until(holds: Callable[[], Awaitable[object]], clock: VirtualClock) -> None:
    """Wait for a condition; a missing right would keep it from ever becoming true."""
    for _ in range(200):
        await settle()
        if await holds():
            return
        await clock.advance(1)
    pytest.fail(f"{holds.__name__} did not appear")


async def life(world: Bench, admin: Client, kind: DeviceKind, device: str) -> None:
    """All that a plugin does: its slices, a claim, a damaged checkpoint, a repair, and the end."""
    where = NodeSite(NODE, world.directory, world.cdi, UID)
    sockets = where.sockets(kind.driver)
    client = world.site.client
    clock = world.site.clock
    # The plugin reports a fault that does not exist as an event.
    annotations = {f"device-fault.dryrack.dev/{device}": "nonsense"}
    await admin.create(NODES, {"metadata": {"name": NODE, "annotations": annotations}})
    claim = await replace(world, site=replace(world.site, client=admin)).claim("c", [device])
    for _ in range(2):
        await check_needs(client, NEEDS, COMMAND)
        plugins = NodePlugins(
            client,
            [kind],
            where,
            clock=clock,
            chance=world.site.chance,
            state_namespace="fake-system" if isinstance(kind, FakeKind) else "",
        )
        stopping = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(plugins.run(stopping, removes_slices=True), name="plugin")

            async def devices() -> list[Raw]:
                slices = (await admin.list(SLICES)).items
                return slices[0]["spec"].get("devices") or [] if slices else []

            async def statuses() -> list[Raw]:
                found = await admin.get(CLAIMS, "c", "default")
                return found["status"].get("devices") or []

            await until(devices, clock)
            await dra(sockets, DRA_V1, "NodePrepareResources", [claim])
            await until(statuses, clock)
            [slice_] = (await admin.list(SLICES)).items
            spec = slice_["spec"]
            pool = {"pool": {**spec["pool"], "generation": 7}}
            await admin.update(SLICES, {**slice_, "spec": {**spec, "devices": [], **pool}})
            await until(devices, clock)
            stopping.set()
        for path in world.plugin_directory.glob("checkpoints/*.json"):
            path.write_bytes(b"torn")


@pytest.mark.parametrize(
    ("devices", "kind", "device"),
    [("fake:2", FakeKind(2), "fake-0"), ("gpu:2", GpuKind(2), "gpu-0")],
)
def test_the_rights_for_some_devices_are_those_that_are_used(
    short_path: Path, devices: str, kind: DeviceKind, device: str
) -> None:
    """Nothing is forbidden, and nothing is granted that is never done; of one driver alone."""

    async def scenario() -> tuple[set[tuple[str, str]], Watched]:
        clock = VirtualClock()
        chance = CountedChance()
        mode = AuthorizationMode.RBAC
        plane = build_control_plane(
            ControlPlaneOptions(clock=clock, chance=chance, authorization=mode)
        )
        admin = Client(plane.transport)
        await add_allocation_states(admin)
        documents = printed("--devices", devices)
        for each in documents:
            if "Role" in each["kind"]:
                await admin.create(_endpoint(each["kind"]), each)
        account = User(
            "system:serviceaccount:kube-system:dryrack-plugin",
            ("system:serviceaccounts", "system:authenticated"),
            extra={"authentication.kubernetes.io/node-name": (NODE,)},
        )
        watched = Watched(plane.transport)
        restricted = Site(Road(watched), Client(watched, user=account), clock, chance)
        await life(Bench(restricted, short_path, kind), admin, kind, device)
        return granted(documents), watched

    rights, watched = asyncio.run(scenario())

    assert watched.forbidden == []
    assert sorted(watched.asked) == sorted(rights)


def test_rights_name_the_drivers_and_leave_out_what_they_do_not_need() -> None:
    """The permissions name the drivers if devices are given; only fake devices have states."""
    gpu = printed("--devices", "gpu", "--devices", "net")
    fake = printed("--devices", "fake")
    bare = printed("--devices", "fake", "--no-nas")
    rules = [rule for each in gpu for rule in each.get("rules", ())]
    [of_drivers] = [rule for rule in rules if rule["resources"] == ["resourceclaims/driver"]]

    assert of_drivers["resourceNames"] == ["gpu.example.com", "net.example.com"]
    assert ("resourceclaims", "watch") not in granted(gpu)
    assert ("resourceclaims", "watch") in granted(fake)
    assert {each["metadata"].get("namespace", "") for each in gpu} == {"", "kube-system", "default"}
    assert [each["kind"] for each in bare] == [each["kind"] for each in gpu]


def modes_below(directory: Path) -> dict[str, int]:
    paths = [each for each in directory.rglob("*") if not each.is_dir()]
    return {str(p.relative_to(directory)): stat.S_IMODE(p.stat().st_mode) for p in paths}


def test_nobody_else_can_read_or_write_what_the_plugin_keeps(short_path: Path) -> None:
    """Other users can read only files for containers and the runtime, and write none."""

    async def scenario() -> dict[str, int]:
        world = replace(bench(short_path), writes_metadata=True, is_shared=True)
        claim = await world.claim("c", ["fake-0"])
        plugin = world.plugin()
        plugin.recover()
        with instance(world.plugin_directory, UID):
            async with serving_kubelet(plugin, Sockets.of(short_path, world.kind.driver, UID)):
                await plugin.prepare([claim])
                return modes_below(short_path)

    modes = asyncio.run(scenario())
    public = {path for path, mode in modes.items() if mode & 0o077}

    assert len(modes) == 10
    assert all(path.startswith("cdi/") or path.endswith("/metadata.json") for path in public)
    assert not any(mode & 0o022 for mode in modes.values())


def _endpoint(kind: str) -> Endpoint:
    return Endpoint(RBAC, "v1", f"{kind.lower()}s", kind, is_namespaced="Cluster" not in kind)
