"""Events: what engines tell people about an object, as recorders of client-go write it."""

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

# What the API takes as a name; an event's begins with that of its object.
_NAME_MAX = 253
_SUFFIX_CHARS = 16


@dataclass(frozen=True, slots=True)
class EventRecorder:
    """Writes events in the name of a component; losing one is no failure."""

    client: Client
    clock: Timekeeper
    chance: Chance
    component: str

    async def record(
        self, regarding: Raw, reason: str, message: str, *, type: str, once: str = ""
    ) -> None:
        """Events about one object with the same reason and `once` are one, whoever writes them."""
        suffix = self.chance.uuid().replace("-", "")
        if once:
            whose = regarding["metadata"].get("uid", "")
            suffix = hashlib.sha256(f"{whose} {reason} {once}".encode()).hexdigest()
        when = timestamp(self.clock.now())
        event = {
            **_names(regarding, suffix[:_SUFFIX_CHARS]),
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


def _names(regarding: Raw, suffix: str) -> Raw:
    """What an event is called, and what it is about."""
    metadata = regarding["metadata"]
    keys = ("name", "namespace", "uid", "resourceVersion")
    involved = {key: regarding[key] for key in ("kind", "apiVersion")}
    involved |= {key: metadata[key] for key in keys if metadata.get(key)}
    room = _NAME_MAX - len(suffix) - 1
    name = f"{metadata['name'][:room].rstrip('-.')}.{suffix}"
    namespace = metadata.get("namespace") or "default"
    return {"metadata": {"name": name, "namespace": namespace}, "involvedObject": involved}
