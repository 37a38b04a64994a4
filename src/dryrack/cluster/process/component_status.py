"""
The state of the components of an embedded control plane, as API objects.

When a component fails, or an object that it handles, the ConfigMap
`kube-system/dryrack-components` lists what has failed, and an Event reports it. `dryrack status`
and the dashboard read the ConfigMap. A control plane in which nothing has failed has no such
ConfigMap, and writes nothing.
"""

from __future__ import annotations

import asyncio
import json
import logging
from typing import TYPE_CHECKING

from dryrack.client.client import MERGE_PATCH
from dryrack.client.endpoints import CONFIG_MAPS
from dryrack.client.errors import ApiError, NotFoundError, TransportError
from dryrack.client.events import EventRecorder
from dryrack.client.informer import Name
from dryrack.client.supervision import Failure, Supervisor
from dryrack.client.timekeeping import sleep, timestamp
from dryrack.kinds.paths import get

if TYPE_CHECKING:
    from dryrack.base.ports import Chance
    from dryrack.client.client import Client
    from dryrack.client.timekeeping import Timekeeper
    from dryrack.kinds.raw import Raw

_logger = logging.getLogger(__name__)

COMPONENTS = Name("kube-system", "dryrack-components")
_KEY = "failures"
# An object that fails is tried again after milliseconds at first; people read more slowly.
_WRITE_SECONDS = 1.0


class ComponentStatuses:
    """Supervises components, and publishes what has failed."""

    def __init__(self, client: Client, *, clock: Timekeeper, chance: Chance) -> None:
        self._changed = asyncio.Event()
        self.supervisor = Supervisor(clock, self._changed.set)
        self._client = client
        self._clock = clock
        self._events = EventRecorder(client, clock, chance, "dryrack")

    async def run(self) -> None:
        """Write the ConfigMap whenever something fails or recovers, until it is cancelled."""
        await self._clear()
        while True:
            await self._changed.wait()
            self._changed.clear()
            try:
                data = {
                    _KEY: json.dumps([_entry(each) for each in self.supervisor.failures], indent=1)
                }
                namespace, name = COMPONENTS
                try:
                    stored = await self._client.patch(
                        CONFIG_MAPS,
                        name,
                        {"data": data},
                        namespace=namespace,
                        media_type=MERGE_PATCH,
                    )
                except NotFoundError:
                    metadata = {"namespace": namespace, "name": name}
                    stored = await self._client.create(
                        CONFIG_MAPS, {"metadata": metadata, "data": data}
                    )
                regarding = {**stored, "kind": "ConfigMap", "apiVersion": "v1"}
                for each in self.supervisor.failures:
                    await self._events.record(
                        regarding,
                        "ComponentFailed",
                        describe_failure(_entry(each)),
                        type="Warning",
                        once=f"{each.component} {each.subject} {each.error}",
                    )
            except (ApiError, TransportError) as error:
                _logger.warning("ConfigMap %s: %s", "/".join(COMPONENTS), error)
            await sleep(self._clock, _WRITE_SECONDS)

    async def _clear(self) -> None:
        """Delete what an earlier process left in a data directory that was kept."""
        try:
            await self._client.delete(CONFIG_MAPS, COMPONENTS.name, namespace=COMPONENTS.namespace)
        except (ApiError, TransportError) as error:
            if not isinstance(error, NotFoundError):
                _logger.warning("ConfigMap %s: %s", "/".join(COMPONENTS), error)


def _entry(failure: Failure) -> Raw:
    entry: Raw = {"component": failure.component}
    if failure.subject:
        entry["object"] = failure.subject
    entry |= {"error": failure.error, "count": failure.count, "time": timestamp(failure.at)}
    if failure.restarts_at is not None:
        entry["restartsAt"] = timestamp(failure.restarts_at)
    return entry


def component_failures(config_map: Raw | None) -> tuple[Raw, ...]:
    """Return the entries of the ConfigMap; none if it does not exist or is not readable."""
    text = get(config_map or {}, "data", {}).get(_KEY, "")
    try:
        entries = json.loads(text) if text else []
    except ValueError:
        return ()
    return tuple(entries) if isinstance(entries, list) else ()


def describe_failure(entry: Raw) -> str:
    """Return one sentence about an entry of the ConfigMap."""
    times = entry.get("count", 1)
    often = "once" if times == 1 else f"{times} times"
    if entry.get("object"):
        return (
            f"{entry['component']} failed {often} on {entry['object']}: {entry['error']}; "
            "it tries the object again later"
        )
    state = "is stopped and restarts" if entry.get("restartsAt") else "runs again"
    return f"{entry['component']} failed {often}: {entry['error']}; it {state}"
