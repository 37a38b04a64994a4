"""Events about objects, as recorders of client-go write them."""

from __future__ import annotations

import hashlib
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dryrack.client.endpoints import EVENTS
from dryrack.client.errors import AlreadyExistsError, ApiError, TransportError
from dryrack.client.timekeeping import timestamp

if TYPE_CHECKING:
    from dryrack.base.ports import Chance
    from dryrack.client.client import Client
    from dryrack.client.timekeeping import Timekeeper
    from dryrack.kinds.raw import Raw

_logger = logging.getLogger(__name__)

# The longest name in the API; the name of an event begins with that of its object.
_NAME_MAX = 253
_SUFFIX_CHARS = 16


@dataclass(frozen=True, slots=True)
class EventRecorder:
    """Writes events in the name of a component; a lost event is only logged."""

    client: Client
    clock: Timekeeper
    chance: Chance
    component: str

    async def record(
        self, regarding: Raw, reason: str, message: str, *, type: str, once: str = ""
    ) -> None:
        """
        Write an event about an object.

        Events with the same object, reason, and `once` are written only once, by all processes.
        """
        metadata = regarding["metadata"]
        suffix = self.chance.uuid().replace("-", "")
        if once:
            uid = metadata.get("uid", "")
            suffix = hashlib.sha256(f"{uid} {reason} {once}".encode()).hexdigest()
        suffix = suffix[:_SUFFIX_CHARS]
        prefix = metadata["name"][: _NAME_MAX - len(suffix) - 1].rstrip("-.")
        namespace = metadata.get("namespace") or "default"
        involved = {key: regarding[key] for key in ("kind", "apiVersion")}
        keys = ("name", "namespace", "uid", "resourceVersion")
        involved |= {key: metadata[key] for key in keys if metadata.get(key)}
        when = timestamp(self.clock.now())
        event = {
            "metadata": {"name": f"{prefix}.{suffix}", "namespace": namespace},
            "involvedObject": involved,
            "reason": reason,
            "message": message,
            "type": type,
            "source": {"component": self.component},
            "reportingComponent": self.component,
            "firstTimestamp": when,
            "lastTimestamp": when,
            "count": 1,
        }
        try:
            await self.client.create(EVENTS, event)
        except (ApiError, TransportError) as error:
            if isinstance(error, AlreadyExistsError) and once:
                return
            _logger.info("%s: event %s lost: %s", self.component, reason, error)
