"""
What pods are told: the condition PodScheduled and events, in the words of the decision.

A refusal is written when it changes, not each time that it is found again. An event has room for
so much; the condition has it all.
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
# What kube-scheduler writes at most, as the newer form of events allows no more.
_EVENT_MAX = 1024


class UntoldError(DryrackError):
    """A pod could not be told why it waits; what was decided about it stands."""


class Reporter:
    """Speaks to each pod in the name by which the pod calls its scheduler."""

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

    def speaks_for(self, pod: Raw) -> bool:
        """Whether the pod calls its scheduler by one of the names."""
        return scheduler_of(pod) in self._recorders

    async def scheduled(self, pod: Raw, node: str) -> None:
        self.meter.ended(name_of(pod), Result.SCHEDULED)
        name = "/".join(name_of(pod))
        _logger.info("pod scheduled", extra={"pod": name, "node": node})
        message = f"Successfully assigned {name} to {node}"
        await self.event(pod, "Scheduled", message, type="Normal")

    async def refused(self, pod: Raw, message: str, nominated: str = "") -> bool:
        """
        Says why the pod waits, and on which node room is kept for it; whether why is news.

        Raises UntoldError.
        """
        self.meter.ended(name_of(pod), Result.UNSCHEDULABLE)
        return await self._tell(pod, "Unschedulable", message, nominated)

    async def failed(self, pod: Raw, message: str) -> None:
        """
        Report that an attempt ended in an error: a plugin, a selector, or a write failed.

        The pod is nominated for no node any more. Raises UntoldError.
        """
        self.meter.ended(name_of(pod), Result.ERROR)
        await self._tell(pod, "SchedulerError", message, "")

    async def nominate(self, pod: Raw, node: str) -> None:
        """Report the node of a pod that is not bound yet; a failure to do so does not matter."""
        try:
            await patch_status(self._client, pod, {"nominatedNodeName": node})
        except (ApiError, TransportError) as error:
            _logger.info("pod %s: no nominated node: %s", "/".join(name_of(pod)), error)

    async def _tell(self, pod: Raw, reason: str, message: str, nominated: str) -> bool:
        """Write what is news, at once."""
        is_news = _told(pod) != (reason, message)
        status: Raw = {}
        # What is known of a pod may be older than its nomination.
        is_error = reason == "SchedulerError"
        if is_error or pod.get("status", {}).get("nominatedNodeName", "") != nominated:
            status["nominatedNodeName"] = nominated or None
        if is_news:
            status["conditions"] = [self._condition(reason, message)]
            name = "/".join(name_of(pod))
            _logger.info("pod waits", extra={"pod": name, "why": message})
        if status:
            try:
                await patch_status(self._client, pod, status)
            except NotFoundError:
                return False
            except (ApiError, TransportError) as error:
                raise UntoldError(f"pod {'/'.join(name_of(pod))}: {error}") from error
        if is_news:
            await self.event(pod, "FailedScheduling", message, type="Warning")
        return is_news

    def _condition(self, reason: str, message: str) -> Raw:
        return {
            "type": "PodScheduled",
            "status": "False",
            "reason": reason,
            "message": message,
            "lastTransitionTime": timestamp(self._clock.now()),
        }

    async def event(
        self,
        pod: Raw,
        reason: str,
        message: str,
        *,
        type: str,
        by: Raw | None = None,
    ) -> None:
        """Tells a pod something; `by` is the pod whose scheduler says it, if not its own."""
        regarding = {"apiVersion": "v1", "kind": "Pod", "metadata": pod["metadata"]}
        recorder = self._recorders[scheduler_of(by or pod)]
        await recorder.record(regarding, reason, _shortened(message), type=type)


async def patch_status(client: Client, pod: Raw, status: Raw) -> None:
    """Changes the status of this very pod."""
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
    """The name by which the pod calls its scheduler."""
    return str(pod["spec"].get("schedulerName", DEFAULT_NAME))


def _shortened(message: str) -> str:
    return message if len(message) <= _EVENT_MAX else f"{message[: _EVENT_MAX - 4]} ..."


def _told(pod: Raw) -> tuple[str, str]:
    """Return the reason and the message of the pod's condition; empty if it has none."""
    conditions = pod.get("status", {}).get("conditions", [])
    for condition in conditions:
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return str(condition.get("reason", "")), str(condition.get("message", ""))
    return "", ""
