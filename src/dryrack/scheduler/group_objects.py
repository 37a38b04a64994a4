"""
PodGroups and Workloads: the objects that say what a gang is, and are told what became of it.

A cluster serves some of them: `scheduling.k8s.io` in the version of its release, where it is
switched on, and the `scheduling.x-k8s.io` PodGroup of the coscheduling plugin, where somebody has
defined it. Each is followed from when it is served. Gangs by labels have no object.

A native PodGroup is told by the condition `PodGroupScheduled` (from 1.37 on
`PodGroupInitiallyScheduled`), which once true stays so. For that of the coscheduling plugin see
`coscheduling`.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from dryrack.client.client import STRATEGIC_PATCH
from dryrack.client.endpoints import (
    COSCHEDULING_POD_GROUPS,
    POD_GROUPS,
    POD_GROUPS_V1BETA1,
    WORKLOADS_V1ALPHA1,
)
from dryrack.client.errors import ConflictError, NotFoundError
from dryrack.client.optional_kind import OptionalKind
from dryrack.client.timekeeping import timestamp
from dryrack.kinds.decode import decode
from dryrack.kinds.expansion.pod_claims import group_of
from dryrack.kinds.scheduling import (
    CoschedulingPodGroup,
    PodGroup,
    PodGroupV1Beta1,
    WorkloadV1Alpha1,
)
from dryrack.placement import Dialect, GangKey, definitions

if TYPE_CHECKING:
    from collections.abc import Callable

    from dryrack.client.client import Client
    from dryrack.client.endpoints import Endpoint
    from dryrack.client.informer import Informers
    from dryrack.client.timekeeping import Timekeeper
    from dryrack.kinds.meta import KubernetesObject
    from dryrack.kinds.raw import Raw
    from dryrack.placement import Definition

_KINDS: dict[Endpoint, type[KubernetesObject]] = {
    POD_GROUPS: PodGroup,
    POD_GROUPS_V1BETA1: PodGroupV1Beta1,
    WORKLOADS_V1ALPHA1: WorkloadV1Alpha1,
    COSCHEDULING_POD_GROUPS: CoschedulingPodGroup,
}
CONDITIONS = {
    POD_GROUPS: "PodGroupScheduled",
    POD_GROUPS_V1BETA1: "PodGroupInitiallyScheduled",
}
# A server that does not say in this time what it serves keeps nobody else waiting.
_KNOWN_SECONDS_MAX = 10.0


class GroupObjects:
    """Definitions by gang, and the writing of statuses."""

    def __init__(
        self,
        client: Client,
        *,
        clock: Timekeeper,
        informers: Informers,
        changed: Callable[[GangKey], None],
        seen: Callable[[GangKey], None],
    ) -> None:
        """
        `changed` is told of each definition that comes, changes or goes.

        `seen` is told of its object, whatever about it changes.
        """
        self.definitions: dict[GangKey, Definition] = {}
        self._client = client
        self._clock = clock
        self._changed = changed
        self._seen = seen
        self._objects: dict[GangKey, tuple[Endpoint, Raw]] = {}
        self._is_news = asyncio.Event()
        self._kinds = [
            OptionalKind(
                client,
                endpoint,
                clock=clock,
                informers=informers,
                on_object=partial(self._on_object, endpoint),
                on_known=self._is_news.set,
                is_builtin=endpoint is not COSCHEDULING_POD_GROUPS,
            )
            for endpoint in _KINDS
        ]
        for each in self._kinds:
            informers.tend(each)

    async def known(self) -> None:
        """Waits until it is known what there is, but not for ever."""
        deadline = self._clock.now() + _KNOWN_SECONDS_MAX
        while not all(each.is_known for each in self._kinds) and self._clock.now() < deadline:
            self._is_news.clear()
            timer = self._clock.call_at(deadline, self._is_news.set)
            try:
                await self._is_news.wait()
            finally:
                timer.cancel()

    def object(self, key: GangKey) -> Raw | None:
        """The object that defines the gang."""
        found = self._objects.get(key.definition)
        return None if found is None else found[1]

    def of_pod(self, pod: Raw) -> Raw | None:
        """The native PodGroup of a pod."""
        name = group_of(pod)
        if not name:
            return None
        return self.object(GangKey(Dialect.POD_GROUP, pod["metadata"]["namespace"], name))

    def was_scheduled(self, key: GangKey) -> bool:
        """Whether the object says that the gang was whole once."""
        endpoint, raw = self._objects.get(key.definition, (None, {}))
        if endpoint is COSCHEDULING_POD_GROUPS:
            return raw.get("status", {}).get("phase") in ("Running", "Finished", "Failed")
        condition = _condition(raw, CONDITIONS.get(endpoint, "")) if endpoint else None
        return condition is not None and condition["status"] == "True"

    async def scheduled(self, key: GangKey) -> None:
        """As many of its pods as it needs are bound."""
        await self._tell(key, "True", "Scheduled", "")

    async def refused(self, key: GangKey, message: str) -> None:
        """It does not fit, or lacks something."""
        await self._tell(key, "False", "Unschedulable", message)

    async def failed(self, key: GangKey, message: str) -> None:
        """It was to be bound, and could not be."""
        await self._tell(key, "False", "SchedulerError", message)

    async def _tell(self, key: GangKey, status: str, reason: str, message: str) -> None:
        endpoint, raw = self._objects.get(key.definition, (None, {}))
        if endpoint is None or endpoint not in CONDITIONS:
            return
        before = _condition(raw, CONDITIONS[endpoint])
        told = (status, reason, message)
        # One that was scheduled stays so.
        if before is not None and (before["status"] == "True" or _says(before) == told):
            return
        since = timestamp(self._clock.now())
        if before is not None and before["status"] == status:
            since = before["lastTransitionTime"]
        metadata = raw["metadata"]
        condition = {
            "type": CONDITIONS[endpoint],
            "status": status,
            "reason": reason,
            "message": message,
            "lastTransitionTime": since,
        }
        if "generation" in metadata:
            condition["observedGeneration"] = metadata["generation"]
        try:
            await self._client.patch(
                endpoint,
                metadata["name"],
                {"metadata": {"uid": metadata["uid"]}, "status": {"conditions": [condition]}},
                namespace=metadata["namespace"],
                subresource="status",
                media_type=STRATEGIC_PATCH,
            )
        except (NotFoundError, ConflictError):
            # It is gone, or another of that name.
            return

    def _on_object(self, endpoint: Endpoint, old: Raw | None, new: Raw | None) -> None:
        kind = _KINDS[endpoint]
        before = {each.key: each for each in definitions(decode(old, kind))} if old else {}
        after = {each.key: each for each in definitions(decode(new, kind))} if new else {}
        for key in before.keys() - after.keys():
            self.definitions.pop(key, None)
            self._objects.pop(key, None)
            self._changed(key)
        for key, definition in after.items():
            assert new is not None, "an added or changed object exists"
            self._objects[key] = (endpoint, new)
            self._seen(key)
            # Its status is what is written here.
            if self.definitions.get(key) != definition:
                self.definitions[key] = definition
                self._changed(key)


def _condition(obj: Raw, kind: str) -> Raw | None:
    conditions = obj.get("status", {}).get("conditions", ())
    return next((each for each in conditions if each["type"] == kind), None)


def _says(condition: Raw) -> tuple[str, str, str]:
    return condition["status"], condition.get("reason", ""), condition.get("message", "")
