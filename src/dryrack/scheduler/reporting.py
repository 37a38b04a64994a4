"""
Reports to pods: the condition PodScheduled, the nominated node, and events.

A refusal is written when it changes, not each time that it is found again. An event may have to be
cut; the condition contains the whole message.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from dryrack.base.errors import DryrackError
from dryrack.client.client import STRATEGIC_PATCH
from dryrack.client.endpoints import PODS
from dryrack.client.errors import ApiError, NotFoundError, TransportError
from dryrack.client.events import EventRecorder
from dryrack.client.informer import name_of
from dryrack.client.timekeeping import timestamp
from dryrack.scheduler.metering import Result

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dryrack.base.ports import Chance
    from dryrack.client.client import Client
    from dryrack.client.timekeeping import Timekeeper
    from dryrack.kinds.raw import Raw
    from dryrack.scheduler.metering import SchedulingMeter

_logger = logging.getLogger(__name__)

DEFAULT_NAME = "default-scheduler"
# The limit of kube-scheduler and of the newer events API.
_EVENT_MAX = 1024


class ReportError(DryrackError):
    """The reason why a pod waits could not be written; the decision stays as it is."""


class Reporter:
    """Writes reports under the scheduler name that each pod has."""

    def __init__(
        self,
        client: Client,
        clock: Timekeeper,
        chance: Chance,
        *,
        names: Iterable[str],
        meter: SchedulingMeter,
    ) -> None:
        self._client = client
        self._clock = clock
        self.meter = meter
        self._recorders = {name: EventRecorder(client, clock, chance, name) for name in names}

    def is_responsible_for(self, pod: Raw) -> bool:
        """Return whether the schedulerName of the pod is one of this scheduler's."""
        return scheduler_of(pod) in self._recorders

    async def report_scheduled(self, pod: Raw, node: str) -> None:
        self.meter.finish_attempt(name_of(pod), Result.SCHEDULED)
        name = "/".join(name_of(pod))
        _logger.info("pod scheduled", extra={"pod": name, "node": node})
        message = f"Successfully assigned {name} to {node}"
        await self.record_event(pod, "Scheduled", message, type="Normal")

    async def report_unschedulable(self, pod: Raw, message: str, nominated: str = "") -> None:
        """
        Report why the pod waits, and the node that is reserved for it after a preemption.

        Raise ReportError if that cannot be written.
        """
        self.meter.finish_attempt(name_of(pod), Result.UNSCHEDULABLE)
        await self._report(pod, "Unschedulable", message, nominated)

    async def report_error(self, pod: Raw, message: str) -> None:
        """
        Report that an attempt ended in an error: a plugin, a selector, or a write failed.

        The pod loses its nominated node. Raise ReportError if that cannot be written.
        """
        self.meter.finish_attempt(name_of(pod), Result.ERROR)
        await self._report(pod, "SchedulerError", message, "")

    async def nominate(self, pod: Raw, node: str) -> None:
        """Report the node of a pod that is not bound yet; a failure to do so does not matter."""
        try:
            await patch_status(self._client, pod, {"nominatedNodeName": node})
        except (ApiError, TransportError) as error:
            _logger.info("pod %s: no nominated node: %s", "/".join(name_of(pod)), error)

    async def _report(self, pod: Raw, reason: str, message: str, nominated: str) -> None:
        """Write the changed fields of the status in one request, and an event if there is news."""
        is_news = _reported_reason(pod) != (reason, message)
        status: Raw = {}
        # The informer may lag, and not show a nomination yet.
        is_error = reason == "SchedulerError"
        if is_error or pod.get("status", {}).get("nominatedNodeName", "") != nominated:
            status["nominatedNodeName"] = nominated or None
        if is_news:
            condition = {
                "type": "PodScheduled",
                "status": "False",
                "reason": reason,
                "message": message,
                "lastTransitionTime": timestamp(self._clock.now()),
            }
            if "generation" in pod["metadata"]:
                condition["observedGeneration"] = pod["metadata"]["generation"]
            status["conditions"] = [condition]
            name = "/".join(name_of(pod))
            _logger.info("pod waits", extra={"pod": name, "why": message})
        if status:
            try:
                await patch_status(self._client, pod, status)
            except NotFoundError:
                return
            except (ApiError, TransportError) as error:
                raise ReportError(f"pod {'/'.join(name_of(pod))}: {error}") from error
        if is_news:
            await self.record_event(pod, "FailedScheduling", message, type="Warning")

    async def record_event(
        self,
        pod: Raw,
        reason: str,
        message: str,
        *,
        type: str,
        by: Raw | None = None,
    ) -> None:
        """Record an event of a pod; its source is the scheduler of `by`, or else its own."""
        regarding = {"apiVersion": "v1", "kind": "Pod", "metadata": pod["metadata"]}
        recorder = self._recorders[scheduler_of(by or pod)]
        if len(message) > _EVENT_MAX:
            message = f"{message[: _EVENT_MAX - 4]} ..."
        await recorder.record(regarding, reason, message, type=type)


async def patch_status(client: Client, pod: Raw, status: Raw) -> None:
    """Change the status of a pod, unless another pod has its name by now."""
    metadata = pod["metadata"]
    await client.patch(
        PODS,
        metadata["name"],
        {"metadata": {"uid": metadata["uid"]}, "status": status},
        namespace=metadata["namespace"],
        subresource="status",
        media_type=STRATEGIC_PATCH,
    )


def scheduler_of(pod: Raw) -> str:
    """Return the schedulerName of a pod."""
    return str(pod["spec"].get("schedulerName", DEFAULT_NAME))


def _reported_reason(pod: Raw) -> tuple[str, str]:
    """Return the reason and the message of the pod's condition; empty if it has none."""
    conditions = pod.get("status", {}).get("conditions", [])
    for condition in conditions:
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return str(condition.get("reason", "")), str(condition.get("message", ""))
    return "", ""
