"""The reference page about events, conditions and metrics, generated from the components."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.base.metrics import Registry
from dryrack.client.client import Client
from dryrack.client.informer import Informers
from dryrack.client.metering import MeteredTransport
from dryrack.client.timekeeping import VirtualClock
from dryrack.cluster import attached, scheduling
from dryrack.cluster.ports import SystemChance
from dryrack.controllers import slices
from dryrack.controllers.slices.events import EVENTS
from dryrack.controllers.slices.sources import CONDITIONS
from dryrack.controllers.writes import EngineContext
from dryrack.kubeletplugin.plugin_metrics import PluginMetrics, fatal_errors
from dryrack.scheduler import SchedulerSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from dryrack.client.transport import Request, Response

_HEAD = """\
# Events, conditions, and metrics

## Events of the scheduler

`dryrack schedule` and the scheduler of `dryrack up` record these events on Pods.

| Reason | Type | Meaning |
|---|---|---|
| `Scheduled` | Normal | The scheduler bound the Pod to a node. |
| `FailedScheduling` | Warning | The Pod fits on no node. The message has the reason for each \
group of nodes. |
| `Preempted` | Normal | The scheduler deletes the Pod because a Pod of higher priority needs its \
capacity or devices. |
| `BindingConditionsPending` | Normal | A driver must prepare the devices before the scheduler \
binds the Pod. |
| `GangDissolved` | Warning | The gang of the Pod cannot start completely, so the scheduler \
deletes the Pods that it bound. |
| `WaitingOnPermit` | Normal | A scheduler plugin in Python has not permitted the Pod yet. \
The Pod keeps its node and its devices. |

## Events of virtual nodes

| Reason | Object | Type | Meaning |
|---|---|---|---|
| `CDIDevicesInjected` | Pod | Normal | A container gets CDI devices of \
[driver programs](../guides/driver-programs.md). The message has their environment, mounts, \
device nodes, and hooks. |
| `Failed` | Pod | Warning | A container cannot be created, for example because a CDI device does \
not resolve. |
| `FailedMount` | Pod | Warning | A ConfigMap or Secret of a volume is missing. |
| `FailedPrepareDynamicResources` | Pod | Warning | The devices of the Pod cannot be prepared. |
| `InvalidFault` | Node | Warning | dryrack cannot parse a [fault](faults.md) annotation and \
ignores it. |
"""

_PUBLISHING = """\
## Events of the device publisher

`dryrack publish` and the component `slices` of `dryrack up` record these events.
A source is a ConfigMap, a NodeOverlay, or a DRAConfig.
Each version of a source has at most one event for a reason, even if several publishers run.

| Reason | Meaning |
|---|---|
"""

_COUNTS = """\
`status.resourceSliceCount` is the number of ResourceSlices of the DRAConfig, and
`status.nodeCount` is the number of nodes that have them.
"""

_TABLE = ("| Metric | Type | Labels | Meaning |", "|---|---|---|---|")


def page() -> str:
    publisher = _of_engine(lambda around: slices.engine(around, slices.PublisherSettings()))
    scheduler = _of_engine(lambda around: scheduling.engine(around, SchedulerSettings()))
    shared = {name: row for name, row in publisher.items() if name in scheduler}
    return "\n".join(
        [
            _HEAD,
            _PUBLISHING
            + "\n".join(f"| `{reason}` | {EVENTS[reason]} |" for reason in sorted(EVENTS)),
            "",
            "## Conditions of a DRAConfig",
            "",
            "| Condition | Meaning |",
            "|---|---|",
            *(f"| `{kind}` | {CONDITIONS[kind]} |" for kind in sorted(CONDITIONS)),
            "",
            _COUNTS,
            *_section(
                "Common metrics",
                "`dryrack schedule`, `dryrack publish`, and `dryrack plugin` serve `/metrics` for "
                "Prometheus at the address of `--metrics-address`.\n"
                "`dryrack plugin` does not have `leader_election_master_status`.\n"
                "The API server of `dryrack up` serves `/metrics` without the common metrics. It "
                "has the metrics of the scheduler and the device publisher, "
                "`apiserver_storage_objects` (number of objects by resource), and "
                "`kubernetes_build_info`.",
                shared.values(),
            ),
            *_section(
                "Metrics of the scheduler",
                "Metrics that kube-scheduler also has have its names, labels, and buckets.",
                (row for name, row in scheduler.items() if name not in shared),
            ),
            *_section(
                "Metrics of the device publisher",
                "The metrics of the queue and of reconciliations have the names of "
                "controller-runtime.",
                (row for name, row in publisher.items() if name not in shared),
            ),
            *_section(
                "Metrics of the kubelet plugin",
                "The names are those of dra-example-driver. The label `driver` is additional.",
                _of_plugin().values(),
            ),
        ]
    )


def _section(title: str, text: str, rows: Iterable[str]) -> list[str]:
    return [f"## {title}", "", text, "", *_TABLE, *rows, ""]


def _rows(registry: Registry) -> dict[str, str]:
    return {
        each.name: f"| `{each.name}` | {each.kind} | {', '.join(each.labels)} | {each.text} |"
        for each in registry.families
    }


def _of_plugin() -> dict[str, str]:
    registry = Registry()
    PluginMetrics(registry, "gpu.example.com")
    fatal_errors(registry)
    return _rows(registry)


def _of_engine(build: Callable[[EngineContext], object]) -> dict[str, str]:
    """Return the row of each metric that an engine has on a cluster, by name."""

    class Nowhere:
        async def send(self, request: Request) -> Response:
            raise AssertionError("a page needs no requests")

    registry = Registry()
    attached.leadership(registry)
    client = Client(MeteredTransport(Nowhere(), registry))
    clock = VirtualClock()
    chance = SystemChance()
    informers = Informers(client, clock=clock, chance=chance)
    build(EngineContext(client, informers, clock, chance, metrics=registry))
    return _rows(registry)
