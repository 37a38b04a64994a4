"""`dryrack provision` on a cluster: it works with the rights that it prints, and needs them all."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest
import yaml
from msgspec.structs import replace as changed
from tests.cli.command import dryrack
from tests.controllers.scenes import phase
from tests.kubeletplugin.test_least_rights import granted, used
from tests.provisioning.worlds import (
    catalogue,
    deploy,
    instance_type,
    names,
    pod,
    pool,
    settings,
    template,
)

from dryrack.client.client import Client
from dryrack.client.endpoints import (
    DEFINITIONS,
    DEPLOYMENTS,
    NODE_CLAIMS,
    NODE_POOLS,
    NODES,
    PODS,
    TEMPLATES,
    Endpoint,
)
from dryrack.client.errors import AlreadyExistsError
from dryrack.client.informer import Name
from dryrack.client.timekeeping import VirtualClock, run_virtual
from dryrack.client.transport import User
from dryrack.cluster import check_needs, provisioner_needs
from dryrack.cluster.assembly import EngineOptions, assemble_engines
from dryrack.cluster.attached import Attached, Attachment, Candidacy
from dryrack.cluster.control_plane import ControlPlaneOptions, build_control_plane
from dryrack.cluster.engines import running_engines
from dryrack.cluster.initial_objects import add_device_classes
from dryrack.cluster.ports import SeededChance
from dryrack.cluster.process.modes import AuthorizationMode
from dryrack.cluster.rights import DEFINITIONS as OF_PUBLISHER
from dryrack.cluster.rights import NODE_POOLS as OF_PROVISIONER
from dryrack.cluster.rights import POD_GROUPS
from dryrack.controllers import provisioning

if TYPE_CHECKING:
    from dryrack.client.transport import Request, Response, Transport
    from dryrack.kinds.raw import Raw

ACCOUNT = User(
    "system:serviceaccount:kube-system:dryrack-provisioner",
    ("system:serviceaccounts", "system:authenticated"),
)


@dataclass
class Restricted:
    """Requests of the account, and those of them that are forbidden."""

    to: Transport
    asked: set[tuple[str, str]] = field(default_factory=set)
    forbidden: list[str] = field(default_factory=list)

    async def send(self, request: Request) -> Response:
        response = await self.to.send(changed(request, user=ACCOUNT))
        parts = request.path.strip("/").split("/")
        # Discovery, as /apis/karpenter.sh/v1, needs no right.
        if len(parts) > (2 if parts[0] == "api" else 3):
            self.asked.add(used(request))
        if response.status == 403:
            self.forbidden.append(f"{request.method} {request.path}: {response.body!r}")
        return response


def endpoint_of(kind: str) -> Endpoint:
    plural = f"{kind.lower()}s"
    if "Role" in kind:
        group = "rbac.authorization.k8s.io"
        return Endpoint(group, "v1", plural, kind, is_namespaced="Cluster" not in kind)
    return Endpoint("", "v1", plural, kind, is_namespaced=kind != "Namespace")


async def create_all(client: Client, documents: list[Raw]) -> None:
    for each in documents:
        try:
            await client.create(endpoint_of(each["kind"]), each)
        except AlreadyExistsError:
            assert each["kind"] in ("Namespace", "ServiceAccount"), each["metadata"]


@pytest.mark.parametrize("karpenter", [False, True])
def test_the_printed_rights_are_those_that_are_used(karpenter: bool) -> None:
    """The provisioner works with the permissions of --print-rbac, and uses each of them."""
    arguments = ("--karpenter",) if karpenter else ()
    documents = list(yaml.safe_load_all(dryrack("provision", "--print-rbac", *arguments).stdout))

    async def run() -> Restricted:
        clock = VirtualClock()
        plane = build_control_plane(
            ControlPlaneOptions(clock=clock, authorization=AuthorizationMode.RBAC)
        )
        admin = plane.client()
        for path in (*OF_PROVISIONER, *OF_PUBLISHER, *POD_GROUPS):
            for each in yaml.safe_load_all(path.read_text()):
                await admin.create(DEFINITIONS, each)
        await add_device_classes(admin, catalogue().device_classes.values())
        await create_all(admin, documents)
        restricted = Restricted(plane.transport)
        lease = Name("kube-system", "dryrack-provisioner")
        attachment = Attachment(
            candidacy=Candidacy(lease, "one"), clock=clock, chance=SeededChance(1)
        )
        own = settings(uses_karpenter=karpenter)
        # Another provisioner, without limits, takes the part of Karpenter.
        other = settings(ignores_claims=True) if karpenter else None
        attached = Attached(restricted, lambda c: provisioning.engine(c, own), attachment)
        stopping = asyncio.Event()
        try:
            engines = assemble_engines(EngineOptions(catalogue=catalogue(), provisioner=other))
            async with running_engines(engines, plane.wiring), asyncio.TaskGroup() as group:
                await clock.advance(1)
                client = Client(restricted)
                await check_needs(client, provisioner_needs(own), "dryrack provision")
                group.create_task(attached.run(stopping))
                await clock.advance(5)
                await life(admin, clock)
                stopping.set()
        finally:
            plane.expiry.stop()
        return restricted

    restricted = run_virtual(run())

    assert restricted.forbidden == []
    lacking = granted(documents) - restricted.asked
    # Without initial events, watches begin with a list.
    assert {each for each in lacking if each[1] != "list"} == set()


async def life(client: Client, clock: VirtualClock) -> None:
    """Nodes come and go: one is empty, one is drained, and one is drained by force."""
    small = instance_type("c-4x-amd64-linux", "g5.xlarge")
    made = pool("small", small)
    made["spec"]["template"]["spec"]["terminationGracePeriod"] = "1m"
    await client.create(NODE_POOLS, made)
    await client.create(TEMPLATES, template(1))
    await client.create(PODS, pod("train", gpus=1))
    await client.create(DEPLOYMENTS, deploy("web", 1, cpu="3"))
    await clock.advance(20)
    assert {phase(each) for each in (await client.list(PODS)).items} == {"Running"}
    protected = {"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}}
    await client.patch(PODS, "train", protected, namespace="default")
    for name in await names(client, NODE_CLAIMS):
        await client.delete(NODE_CLAIMS, name)
    await clock.advance(120)
    assert "train" not in await names(client, PODS)
    await client.delete(DEPLOYMENTS, "web", namespace="default", propagation="Foreground")
    await clock.advance(120)
    assert not await names(client, NODES)
