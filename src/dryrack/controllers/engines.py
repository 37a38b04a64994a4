"""
All controllers by name, and the way to run some of them.

Engines of one process share their informers: each kind is listed and watched once. Each engine can
be left out by its name, so that another program can replace it.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from dryrack.base.metrics import Registry
from dryrack.base.ports import Chance
from dryrack.client.client import Client
from dryrack.client.informer import Informers
from dryrack.client.supervision import Supervisor
from dryrack.client.timekeeping import Timekeeper
from dryrack.controllers.budgets import DisruptionController
from dryrack.controllers.claims.creation import ClaimCreation, GroupClaimCreation
from dryrack.controllers.claims.eviction import DeviceTaintEviction
from dryrack.controllers.claims.release import ClaimRelease
from dryrack.controllers.containers.sandboxes import Sandboxes
from dryrack.controllers.cronjobs import CronJobController
from dryrack.controllers.daemonsets import DaemonSetController
from dryrack.controllers.deployments.rollout import DeploymentController
from dryrack.controllers.endpoint_mirroring import EndpointSliceMirroringController
from dryrack.controllers.endpoints import EndpointsController, EndpointSliceController
from dryrack.controllers.garbage_collector import Collection
from dryrack.controllers.jobs.completion import JobController
from dryrack.controllers.loadbalancers import LoadBalancerController
from dryrack.controllers.namespaces import NamespaceController
from dryrack.controllers.nodes.device_faults import DeviceFaults
from dryrack.controllers.nodes.eviction import TaintEviction
from dryrack.controllers.nodes.heartbeat import Heartbeat
from dryrack.controllers.nodes.readiness import NodeLifecycleController
from dryrack.controllers.pods.collection import PodCollection
from dryrack.controllers.pods.drivers import Drivers
from dryrack.controllers.pods.running import VirtualKubelet
from dryrack.controllers.protection import ClaimProtection, GroupProtection, VolumeProtection
from dryrack.controllers.quotas import QuotaController
from dryrack.controllers.reconciler import Controller
from dryrack.controllers.replicasets import ReplicaSetController, ReplicationController
from dryrack.controllers.serviceaccounts import ServiceAccountController
from dryrack.controllers.statefulsets import StatefulSetController
from dryrack.controllers.volumes import ClaimBinding, EphemeralClaims, VolumeRelease
from dryrack.controllers.writes import EngineContext
from dryrack.kinds.releases import DEFAULT_RELEASE, Release

if TYPE_CHECKING:
    from dryrack.controllers.provisioning import ProvisionerSettings
    from dryrack.controllers.slices import PublisherSettings


@dataclass(frozen=True, slots=True)
class Engine:
    """A name for people, and the controllers with that name."""

    name: str
    parts: tuple[Callable[[EngineContext], Controller], ...]

    def component(self, part: Callable[[EngineContext], Controller]) -> str:
        """Return the name under which one of the parts is supervised."""
        return self.name if len(self.parts) == 1 else f"{self.name}/{part.__name__}"


def publisher(options: "PublisherSettings | None" = None) -> Engine:
    """Return the engine that publishes devices for nodes."""

    def build(context: EngineContext) -> Controller:
        from dryrack.controllers import slices

        return slices.engine(context, options or slices.PublisherSettings())

    return Engine("slices", (build,))


def provisioner(settings: "ProvisionerSettings") -> Engine:
    """Return the engine that creates nodes for pods, and removes them."""

    def build(context: EngineContext) -> Controller:
        from dryrack.controllers import provisioning

        return provisioning.engine(context, settings)

    return Engine("provisioner", (build,))


def compute_domains() -> Engine:
    """Return the engine for NVIDIA's ComputeDomains, for clusters that have nodes with channels."""

    def build(context: EngineContext) -> Controller:
        from dryrack.controllers.computedomains import ComputeDomainController

        return ComputeDomainController(context)

    return Engine("computedomains", (build,))


ENGINES = (
    Engine("kubelet", (Heartbeat, VirtualKubelet, DeviceFaults)),
    Engine("claims", (ClaimCreation, GroupClaimCreation, ClaimRelease)),
    Engine(
        "garbage-collector",
        (Collection, PodCollection, GroupProtection, ClaimProtection, VolumeProtection),
    ),
    Engine("namespaces", (NamespaceController,)),
    Engine("serviceaccounts", (ServiceAccountController,)),
    Engine("nodes", (NodeLifecycleController,)),
    Engine("taint-eviction", (TaintEviction, DeviceTaintEviction)),
    Engine("deployments", (DeploymentController,)),
    Engine("replicasets", (ReplicaSetController,)),
    Engine("replicationcontrollers", (ReplicationController,)),
    Engine("daemonsets", (DaemonSetController,)),
    Engine("statefulsets", (StatefulSetController,)),
    Engine("jobs", (JobController,)),
    Engine("cronjobs", (CronJobController,)),
    Engine("quotas", (QuotaController,)),
    Engine("budgets", (DisruptionController,)),
    Engine("endpoints", (EndpointsController,)),
    Engine("endpointslices", (EndpointSliceController, EndpointSliceMirroringController)),
    Engine("loadbalancers", (LoadBalancerController,)),
    Engine("volumes", (ClaimBinding, VolumeRelease, EphemeralClaims)),
    publisher(),
)


async def run(
    engines: Sequence[Engine],
    *,
    client: Client,
    clock: Timekeeper,
    chance: Chance,
    authority: str = "",
    informers: Informers | None = None,
    metrics: Registry | None = None,
    drivers: Drivers | None = None,
    sandboxes: Sandboxes | None = None,
    node_lease_seconds: int = 0,
    release: Release = DEFAULT_RELEASE,
    feature_gates: Mapping[str, bool] | None = None,
    supervisor: Supervisor | None = None,
) -> None:
    """
    Run these controllers until the task is cancelled.

    `authority` has the certificates with which pods verify the API server, in PEM; they are
    published in each namespace. The caller runs `informers`; without them the controllers run their
    own. `drivers` prepare the devices of virtual nodes, whose leases last for `node_lease_seconds`
    (0: as for a kubelet). The controllers and nodes behave as those of `release` with these
    `feature_gates`. `supervisor` restarts a controller that fails; without it the failure is
    raised.
    """
    reading = informers or Informers(client, clock=clock, chance=chance)
    context = EngineContext(
        client,
        reading,
        clock,
        chance,
        authority,
        metrics,
        drivers=drivers,
        sandboxes=sandboxes,
        node_lease_seconds=node_lease_seconds,
        release=release,
        feature_gates=feature_gates or {},
    )
    parts = [(engine.component(part), part) for engine in engines for part in engine.parts]
    runs: list[Coroutine[object, object, None]]
    if supervisor is None:
        # All controllers listen before the first of them runs.
        runs = [controller.run() for controller in [part(context) for _, part in parts]]
    else:
        runs = [supervisor.run(name, partial(_start, part, context)) for name, part in parts]
    async with asyncio.TaskGroup() as group:
        if informers is None:
            group.create_task(reading.run(), name="informers")
        for (name, _), run_of_part in zip(parts, runs, strict=True):
            group.create_task(run_of_part, name=f"engine {name}")


async def _start(part: Callable[[EngineContext], Controller], context: EngineContext) -> None:
    await part(context).run()
