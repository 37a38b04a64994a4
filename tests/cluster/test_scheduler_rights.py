"""
The rights that are shipped are those that the scheduler needs: all of them, and no other.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from tests.client.planes import CountedChance, refusal
from tests.cluster.rights_witness import (
    As,
    Deed,
    Witness,
    endpoint_of,
    granted,
    granted_names,
    refuse_initial_events,
    workloads_of_1_35,
)

from dryrack.apiserver.runtime_config import parse
from dryrack.client.client import Client
from dryrack.client.endpoints import (
    CLAIMS,
    CLASSES,
    COSCHEDULING_POD_GROUPS,
    DEFINITIONS,
    NODES,
    POD_GROUPS_V1BETA1,
    PODS,
    SLICES,
    STORAGE_CLASSES,
    VOLUME_CLAIMS,
    VOLUMES,
    Endpoint,
)
from dryrack.client.errors import NotFoundError
from dryrack.client.informer import Informers, Name
from dryrack.client.timekeeping import VirtualClock, settle
from dryrack.client.transport import Request, Response, User
from dryrack.cluster.attached import Attached, Attachment, Candidacy, check_needs
from dryrack.cluster.control_plane import ControlPlaneOptions, build_control_plane
from dryrack.cluster.process.modes import AuthorizationMode
from dryrack.cluster.rights import MANIFESTS, scheduler
from dryrack.cluster.scheduling import NEEDS, engine
from dryrack.controllers import EngineContext
from dryrack.placement import SELECTED_NODE
from dryrack.scheduler import SchedulerSettings

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from dryrack.kinds.raw import Raw


PRIORITIES = Endpoint(
    "scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", is_namespaced=False
)
ACCOUNT = "dryrack-scheduler"
LEASE = Name("kube-system", ACCOUNT)
# Written with the status of a claim, and asked for in no request of its own.
SYNTHETIC = "resourceclaims/binding"
GROUP = "pod-group.scheduling.sigs.k8s.io"


def manifests() -> list[Raw]:
    return list(yaml.safe_load_all(scheduler(ACCOUNT, LEASE)))


@dataclass(slots=True)
class Trouble:
    """Refuses requests by method and the end of their path, as often as it was asked to."""

    waiting: list[tuple[str, str, Response]] = field(default_factory=list)

    def once(self, method: str, path_end: str, response: Response) -> None:
        self.waiting.append((method, path_end, response))

    def __call__(self, request: Request) -> Response | None:
        for number, (method, path_end, response) in enumerate(self.waiting):
            if request.method == method and request.path.endswith(path_end):
                del self.waiting[number]
                return response
        return None


@dataclass(slots=True)
class Play:
    """A scheduler is at work; this is what happens around it."""

    admin: Client
    clock: VirtualClock
    trouble: Trouble
    witness: Witness

    async def until(self, what: str, holds: Callable[[], Awaitable[bool]]) -> None:
        for _ in range(300):
            await settle(50)
            if await holds():
                return
            await self.clock.advance(0.2)
        pytest.fail(f"not {what}; forbidden: {self.witness.forbidden}")

    async def furnish(self) -> None:
        allocatable = {"cpu": "8", "memory": "8Gi", "pods": "20"}
        await self.admin.create(NODES, {"metadata": {"name": "n"}, "status": {}})
        node = await self.admin.get(NODES, "n")
        status = {"allocatable": allocatable, "capacity": allocatable}
        await self.admin.update(NODES, {**node, "status": status}, subresource="status")
        pool = {"name": "n", "generation": 1, "resourceSliceCount": 1}
        devices = [{"name": f"d{number}"} for number in range(8)]
        spec = {"driver": "x.example.com", "nodeName": "n", "pool": pool, "devices": devices}
        await self.admin.create(SLICES, {"metadata": {"name": "s"}, "spec": spec})
        backed = {"extendedResourceName": "example.com/gpu"}
        await self.admin.create(CLASSES, {"metadata": {"name": "c"}, "spec": backed})

    async def claim(self, name: str) -> str:
        requests = [{"name": "r", "exactly": {"deviceClassName": "c"}}]
        metadata = {"name": name, "namespace": "default"}
        spec = {"devices": {"requests": requests}}
        await self.admin.create(CLAIMS, {"metadata": metadata, "spec": spec})
        return name

    async def pod(
        self,
        name: str,
        *,
        claim: str = "",
        requests: Raw | None = None,
        labels: Raw | None = None,
        **spec: Any,
    ) -> None:
        resources: Raw = {"requests": requests or {}, "limits": requests or {}}
        if claim:
            resources["claims"] = [{"name": "r"}]
            spec["resourceClaims"] = [{"name": "r", "resourceClaimName": claim}]
        containers = [{"name": "c", "image": "i", "resources": resources}]
        metadata = {"name": name, "namespace": "default", "labels": labels or {}}
        whole = {"schedulerName": "dryrack", "containers": containers, **spec}
        await self.admin.create(PODS, {"metadata": metadata, "spec": whole})

    async def bound(self, *names: str) -> None:
        async def holds() -> bool:
            pods = [await self.admin.get(PODS, name, "default") for name in names]
            return all(pod["spec"].get("nodeName") for pod in pods)

        await self.until(f"bound: {', '.join(names)}", holds)

    async def refused(self, name: str) -> None:
        async def holds() -> bool:
            pod = await self.admin.get(PODS, name, "default")
            return bool(pod["status"].get("conditions"))

        await self.until(f"refused: {name}", holds)

    async def deleted(self, name: str) -> None:
        """Nobody plays its kubelet, so that it stays."""

        async def holds() -> bool:
            pod = await self.admin.get(PODS, name, "default")
            return "deletionTimestamp" in pod["metadata"]

        await self.until(f"deleted: {name}", holds)

    async def run(self) -> None:
        await self.furnish()
        await self.pod("one", claim=await self.claim("one"))
        await self.bound("one")
        await self._in_spite_of_trouble()
        await self.pod("backed", requests={"example.com/gpu": "1"})
        await self.bound("backed")
        labels = {f"{GROUP}/name": "gang", f"{GROUP}/min-available": "2"}
        for name in ("first", "second"):
            await self.pod(name, claim=await self.claim(name), labels=labels)
        await self.bound("first", "second")
        await self._groups()
        await self._storage()
        await self.pod("large", requests={"cpu": "64"})
        await self.refused("large")
        await self._half_a_gang()
        await self._preemption()

    async def _in_spite_of_trouble(self) -> None:
        """Another client writes at the same time, and the server fails."""
        self.trouble.once("PUT", "/resourceclaims/conflict", refusal(409, "Conflict"))
        await self.pod("conflict", claim=await self.claim("conflict"))
        await self.bound("conflict")
        # A binding that fails once is tried again; after four failures it is given up.
        for name in ("failure", "lost"):
            for _ in range(4):
                self.trouble.once("POST", f"/pods/{name}/binding", refusal(500, "InternalError"))
        await self.pod("failure", claim=await self.claim("failure"))
        await self.bound("failure")
        await self.pod("lost", requests={"example.com/gpu": "1"})
        await self.bound("lost")

    async def _storage(self) -> None:
        """A volume that is made where its pod goes."""
        late = {"provisioner": "p", "volumeBindingMode": "WaitForFirstConsumer"}
        await self.admin.create(STORAGE_CLASSES, {"metadata": {"name": "late"}, **late})
        asked = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        claim = {
            "metadata": {"name": "data", "namespace": "default"},
            "spec": {"storageClassName": "late", **asked},
        }
        await self.admin.create(VOLUME_CLAIMS, claim)
        source = {"name": "v", "persistentVolumeClaim": {"claimName": "data"}}
        await self.pod("stored", volumes=[source])

        async def chosen() -> bool:
            found = await self.admin.get(VOLUME_CLAIMS, "data", "default")
            return SELECTED_NODE in found["metadata"].get("annotations", {})

        await self.until("node chosen", chosen)
        offered = {
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "1Gi"},
            "csi": {"driver": "p", "volumeHandle": "v"},
        }
        await self.admin.create(VOLUMES, {"metadata": {"name": "v"}, "spec": offered})
        bound = {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}
        patch = {"metadata": bound, "spec": {"volumeName": "v"}}
        await self.admin.patch(VOLUME_CLAIMS, "data", patch, namespace="default")
        await self.bound("stored")
        await self._free_volume({"storageClassName": "late", **offered})

    async def _free_volume(self, offered: Raw) -> None:
        """One that somebody has made, and that the scheduler keeps for a claim."""
        free = await self.admin.create(VOLUMES, {"metadata": {"name": "free"}, "spec": offered})
        available = free | {"status": {"phase": "Available"}}
        await self.admin.update(VOLUMES, available, subresource="status")
        asked = {key: offered[key] for key in ("accessModes", "storageClassName")}
        claim = {
            "metadata": {"name": "late", "namespace": "default"},
            "spec": {**asked, "resources": {"requests": offered["capacity"]}},
        }
        await self.admin.create(VOLUME_CLAIMS, claim)
        source = {"name": "v", "persistentVolumeClaim": {"claimName": "late"}}
        await self.pod("kept", volumes=[source])

        async def kept() -> bool:
            return "claimRef" in (await self.admin.get(VOLUMES, "free"))["spec"]

        await self.until("volume kept", kept)
        bound = {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}
        patch = {"metadata": bound, "spec": {"volumeName": "free"}}
        await self.admin.patch(VOLUME_CLAIMS, "late", patch, namespace="default")
        await self.bound("kept")

    async def _groups(self) -> None:
        """Gangs that have an object, which is told what became of them."""
        [definition] = yaml.safe_load_all((MANIFESTS / "podgroups.yaml").read_text())
        await self.admin.create(DEFINITIONS, definition)
        metadata = {"name": "group", "namespace": "default"}
        policy = {"schedulingPolicy": {"gang": {"minCount": 1}}}
        await self.admin.create(POD_GROUPS_V1BETA1, {"metadata": metadata, "spec": policy})
        await self.pod("native", schedulingGroup={"podGroupName": "group"})
        await self.bound("native")
        await self.until("served", self._takes_groups)
        await self.pod("custom", labels={"scheduling.x-k8s.io/pod-group": "group"})
        await self.bound("custom")

    async def _takes_groups(self) -> bool:
        metadata = {"name": "group", "namespace": "default"}
        group = {"metadata": metadata, "spec": {"minMember": 1}}
        try:
            await self.admin.create(COSCHEDULING_POD_GROUPS, group)
        except NotFoundError:
            return False
        return True

    async def _preemption(self) -> None:
        """A pod of lower priority makes way."""
        await self.pod("low", requests={"cpu": "5"})
        await self.bound("low")
        await self.admin.create(PRIORITIES, {"metadata": {"name": "high"}, "value": 1000})
        await self.pod("high", requests={"cpu": "5"}, priorityClassName="high")
        await self.deleted("low")

    async def _half_a_gang(self) -> None:
        """Somebody has bound one member, and the other fits nowhere."""
        labels = {f"{GROUP}/name": "half", f"{GROUP}/min-available": "2"}
        await self.pod("huge", labels=labels, requests={"cpu": "64"})
        await self.pod("bound", labels=labels)
        await self.refused("bound")
        await self.clock.advance(2)
        target = {"apiVersion": "v1", "kind": "Node", "name": "n"}
        metadata = {"name": "bound", "namespace": "default"}
        kind = {"apiVersion": "v1", "kind": "Binding"}
        binding = {**kind, "metadata": metadata, "target": target}
        await self.admin.create(PODS, binding, subresource="binding")
        await self.deleted("bound")


def test_the_rights_are_all_used_and_all_that_is_used() -> None:
    """On a plane that enforces roles nothing is forbidden, and no right is for nothing."""

    async def scenario() -> Witness:
        clock = VirtualClock()
        chance = CountedChance()
        options = ControlPlaneOptions(
            clock=clock,
            chance=chance,
            authorization=AuthorizationMode.RBAC,
            runtime_config=parse("api/all=true"),
            feature_gates={"GenericWorkload": True},
        )
        plane = build_control_plane(options)
        admin = plane.client()
        for each in manifests():
            await admin.create(endpoint_of(each), each)
        groups = ("system:serviceaccounts", "system:authenticated")
        user = User(f"system:serviceaccount:{LEASE.namespace}:{ACCOUNT}", groups)
        trouble = Trouble()
        await admin.create(DEFINITIONS, workloads_of_1_35())
        await settle(50)
        # Kinds that a cluster may not serve are listed only without initial events.
        witness = Witness(
            As(plane.transport, user),
            refuse=lambda request: refuse_initial_events(request) or trouble(request),
        )
        await check_needs(Client(witness), NEEDS)
        attachment = Attachment(candidacy=Candidacy(LEASE, "one"), clock=clock, chance=chance)
        settings = SchedulerSettings.of(["dryrack"])
        attached = Attached(witness, lambda around: engine(around, settings), attachment)
        stopping = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(attached.run(stopping))
            await Play(admin, clock, trouble, witness).run()
            # Long enough for a renewal of the lease.
            await clock.advance(10)
            stopping.set()
        assert not trouble.waiting
        return witness

    witness = asyncio.run(scenario())
    rights = {each for each in granted(manifests()) if each.resource != SYNTHETIC}

    assert witness.forbidden == []
    assert sorted({_right(each, rights) for each in witness.done}) == sorted(rights)
    assert granted_names(manifests()) <= witness.names


def _right(deed: Deed, rights: set[Deed]) -> Deed:
    """What allows it: a right in the whole cluster is one in every namespace."""
    everywhere = Deed(deed.verb, deed.group, deed.resource)
    return everywhere if everywhere in rights else deed


def test_all_that_it_cannot_do_without_is_asked_for_before_it_starts() -> None:
    """What a cluster does not show is told at once, and not by a cache that never fills."""
    optional = {"podgroups.scheduling.x-k8s.io", "podgroups.scheduling.k8s.io"}
    optional |= {"workloads.scheduling.k8s.io", "customresourcedefinitions.apiextensions.k8s.io"}
    clock = VirtualClock()
    chance = CountedChance()
    client = build_control_plane(ControlPlaneOptions(clock=clock, chance=chance)).client()
    informers = Informers(client, clock=clock, chance=chance)
    engine(EngineContext(client, informers, clock, chance), SchedulerSettings())

    assert set(informers.unsynced()) - optional == {each.endpoint.resource for each in NEEDS}
