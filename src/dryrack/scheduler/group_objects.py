"""
PodGroups and Workloads: the objects that define gangs, and their statuses.

A cluster serves some of these kinds: `scheduling.k8s.io` in the version of its release, if it is
enabled, and the `scheduling.x-k8s.io` PodGroup of the coscheduling plugin, if its
CustomResourceDefinition exists. Each kind is watched as soon as it is served. Gangs that are
defined by labels have no object.

The status of a native PodGroup is the condition `PodGroupScheduled` (from 1.37 on
`PodGroupInitiallyScheduled`), which stays true once it is. For that of the coscheduling plugin see
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
# Pods without a group do not wait longer for a server that does not answer which kinds it serves.
_KNOWN_SECONDS_MAX = 10.0


class GroupObjects:
    """Reads the definitions of gangs, and writes their statuses."""

    def __init__(
        self,
        client: Client,
        *,
        clock: Timekeeper,
        informers: Informers,
        on_definition: Callable[[GangKey], None],
        on_object: Callable[[GangKey], None],
    ) -> None:
        """
        Watch each kind once it is served.

        `on_definition` is called for each definition that is added, changed, or deleted,
        `on_object` for each added or changed object, even if its definition stays the same.
        """
        self.definitions: dict[GangKey, Definition] = {}
        self._client = client
        self._clock = clock
        self._on_definition = on_definition
        self._on_group = on_object
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
            informers.add_cache(each)

    async def wait_until_known(self) -> None:
        """Wait until it is known which kinds are served, for a limited time."""
        deadline = self._clock.now() + _KNOWN_SECONDS_MAX
        while not all(each.is_known for each in self._kinds) and self._clock.now() < deadline:
            self._is_news.clear()
            timer = self._clock.call_at(deadline, self._is_news.set)
            try:
                await self._is_news.wait()
            finally:
                timer.cancel()

    def find_object(self, key: GangKey) -> Raw | None:
        """Return the object that defines the gang."""
        _, obj = self._objects.get(key.definition, (None, None))
        return obj

    def find_for_pod(self, pod: Raw) -> Raw | None:
        """Return the native PodGroup of a pod."""
        name = group_of(pod)
        if not name:
            return None
        return self.find_object(GangKey(Dialect.POD_GROUP, pod["metadata"]["namespace"], name))

    def was_scheduled(self, key: GangKey) -> bool:
        """Return whether the status of the object says that the gang was complete once."""
        endpoint, raw = self._objects.get(key.definition, (None, {}))
        if endpoint is COSCHEDULING_POD_GROUPS:
            return raw.get("status", {}).get("phase") in ("Running", "Finished", "Failed")
        condition = _condition(raw, CONDITIONS.get(endpoint, "")) if endpoint else None
        return condition is not None and condition["status"] == "True"

    async def report_scheduled(self, key: GangKey) -> None:
        """Report that as many pods are bound as the gang needs."""
        await self._report(key, "True", "Scheduled", "")

    async def report_unschedulable(self, key: GangKey, message: str) -> None:
        """Report that the gang does not fit, or lacks something."""
        await self._report(key, "False", "Unschedulable", message)

    async def report_error(self, key: GangKey, message: str) -> None:
        """Report that the pods of the gang could not be bound."""
        await self._report(key, "False", "SchedulerError", message)

    async def _report(self, key: GangKey, status: str, reason: str, message: str) -> None:
        endpoint, raw = self._objects.get(key.definition, (None, {}))
        if endpoint is None or endpoint not in CONDITIONS:
            return
        before = _condition(raw, CONDITIONS[endpoint])
        since = timestamp(self._clock.now())
        if before is not None:
            reported = (before["status"], before.get("reason", ""), before.get("message", ""))
            # The condition stays true once it is.
            if before["status"] == "True" or reported == (status, reason, message):
                return
            if before["status"] == status:
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
            # The object was deleted, or another one has its name.
            return

    def _on_object(self, endpoint: Endpoint, old: Raw | None, new: Raw | None) -> None:
        kind = _KINDS[endpoint]
        before = {each.key: each for each in definitions(decode(old, kind))} if old else {}
        after = {each.key: each for each in definitions(decode(new, kind))} if new else {}
        for key in before.keys() - after.keys():
            self.definitions.pop(key, None)
            self._objects.pop(key, None)
            self._on_definition(key)
        for key, definition in after.items():
            assert new is not None, "an added or changed object exists"
            self._objects[key] = (endpoint, new)
            self._on_group(key)
            # Statuses, which the scheduler writes itself, do not change the definition.
            if self.definitions.get(key) != definition:
                self.definitions[key] = definition
                self._on_definition(key)


def _condition(obj: Raw, kind: str) -> Raw | None:
    conditions = obj.get("status", {}).get("conditions", ())
    return next((each for each in conditions if each["type"] == kind), None)
