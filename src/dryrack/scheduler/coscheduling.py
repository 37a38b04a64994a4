"""
The status of the coscheduling plugin's PodGroups: a phase, and counts of their pods.

The status is the one that the controller of the plugin writes, so that a PodGroup looks the same
without that controller. If the controller runs, too, it finds nothing to write.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from dryrack.client.endpoints import COSCHEDULING_POD_GROUPS
from dryrack.client.errors import ApiError, TransportError
from dryrack.client.informer import Name, name_of
from dryrack.client.timekeeping import timestamp
from dryrack.client.workqueue import WorkQueue
from dryrack.kinds.paths import get
from dryrack.kinds.scheduling import CoschedulingPodGroup
from dryrack.placement import Dialect, GangKey

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.client.client import Client
    from dryrack.client.informer import Informer
    from dryrack.client.timekeeping import Timekeeper
    from dryrack.kinds.raw import Raw
    from dryrack.scheduler.group_objects import GroupObjects

_logger = logging.getLogger(__name__)

# Pods of a group change at about the same time; one write is enough for all of them.
_BATCH_SECONDS = 0.5


class CoschedulingStatuses:
    """Watches pods that name such a group; `run` writes the statuses."""

    def __init__(self, client: Client, clock: Timekeeper, pods: Informer) -> None:
        self._client = client
        self._clock = clock
        self._queue: WorkQueue[Name] = WorkQueue(clock)
        self._members = pods.index("coscheduling pod group", _group_keys)
        pods.listen(self._on_pod)

    def on_group(self, key: GangKey) -> None:
        """Queue a group that was added or changed."""
        if key.dialect is Dialect.COSCHEDULING:
            self._queue.add_after(Name(key.namespace, key.name), _BATCH_SECONDS)

    async def run(self, groups: GroupObjects) -> None:
        while True:
            name = await self._queue.take()
            try:
                group = groups.find_object(GangKey(Dialect.COSCHEDULING, *name))
                if group is not None:
                    await self._write(group)
            except (ApiError, TransportError) as error:
                _logger.info("status of podgroup %s: %s", "/".join(name), error)
                self._queue.retry(name)
            else:
                self._queue.forget(name)
            finally:
                self._queue.done(name)

    async def _write(self, group: Raw) -> None:
        pods = self._members.get("/".join(name_of(group)))
        status = coscheduling_status(group, pods, now=timestamp(self._clock.now()))
        if status != group.get("status", {}):
            await self._client.update(
                COSCHEDULING_POD_GROUPS, {**group, "status": status}, subresource="status"
            )

    def _on_pod(self, old: Raw | None, new: Raw | None) -> None:
        if old is not None and new is not None and _phase(old) == _phase(new):
            return
        for pod in (old, new):
            for key in _group_keys(pod) if pod is not None else ():
                self._queue.add_after(Name(*key.split("/")), _BATCH_SECONDS)


def coscheduling_status(group: Raw, pods: Sequence[Raw], *, now: str) -> Raw:
    """Return the status of a group with these pods."""
    minimum = group["spec"].get("minMember", 0)
    before = group.get("status", {})
    phases = [_phase(pod) for pod in pods]
    running, succeeded, failed = map(phases.count, ("Running", "Succeeded", "Failed"))
    if len(pods) < minimum:
        phase = "Pending"
    elif succeeded >= minimum:
        phase = "Finished"
    elif failed and failed + running + succeeded >= minimum:
        phase = "Failed"
    elif succeeded + running >= minimum:
        phase = "Running"
    else:
        phase = "Scheduling"
    status: Raw = {"phase": phase}
    status |= {
        name: number
        for name, number in (("running", running), ("succeeded", succeeded), ("failed", failed))
        if number
    }
    began = before.get("scheduleStartTime") or (now if phase != "Pending" else None)
    if began:
        status["scheduleStartTime"] = began
    occupied_by = before.get("occupiedBy")
    if not occupied_by and pods:
        # The owners of the first pod.
        metadata = pods[0]["metadata"]
        references = metadata.get("ownerReferences", ())
        namespace = metadata["namespace"]
        occupied_by = ",".join(sorted(f"{namespace}/{each['name']}" for each in references))
    if occupied_by and phase != "Pending":
        status["occupiedBy"] = occupied_by
    return status


def _group_keys(pod: Raw) -> Sequence[str]:
    metadata = pod["metadata"]
    name = get(metadata, "labels", {}).get(CoschedulingPodGroup.POD_LABEL)
    return (f"{metadata['namespace']}/{name}",) if name else ()


def _phase(pod: Raw) -> str:
    return str(pod.get("status", {}).get("phase", "Pending"))
