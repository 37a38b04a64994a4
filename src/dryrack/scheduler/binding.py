"""
Making a decision so, one write after the other, and unmaking it if one of them fails.

The writes are those of kube-scheduler: the finalizer that keeps an allocated claim from
vanishing, the status with the allocation and the pod that reserves it, and last the binding. A
claim that somebody else allocated or deleted meanwhile ends the attempt. Whatever fails, the
reservation is taken out again, and an allocation that nobody else uses is withdrawn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.base.errors import DryrackError
from dryrack.client.client import STRATEGIC_PATCH
from dryrack.client.endpoints import CLAIMS, PODS
from dryrack.client.errors import ApiError, ConflictError, NotFoundError, TransportError
from dryrack.client.timekeeping import timestamp
from dryrack.kinds.decode import to_builtins
from dryrack.scheduler.binding_conditions import BindingConditionsError
from dryrack.scheduler.demands import RESERVATIONS_MAX

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence, Set

    from dryrack.base.ports import Clock
    from dryrack.client.client import Client
    from dryrack.kinds.raw import Raw
    from dryrack.kinds.resource import AllocationResult

FINALIZER = "resource.kubernetes.io/delete-protection"
# Somebody else writes to the same claim now and then; nobody does so all the time.
_TRIES_MAX = 5


class OvertakenError(DryrackError):
    """The cluster has changed since the decision; decide anew."""


class Binder:
    """Writes for one client."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock

    async def bind(
        self,
        pod: Raw,
        node: str,
        *,
        claims: Sequence[Raw],
        given: Mapping[str, AllocationResult],
        ready: Callable[[Sequence[Raw]], Awaitable[None]],
    ) -> Sequence[Raw | None]:
        """
        All of it, or none of it: a failure leaves no reservation and no allocation behind.

        `ready` waits until the devices of the claims, as they were written, can be used. Answers
        with the claims as they are now, None where that has to be asked.
        """
        reserved: list[Raw] = []
        written: list[Raw | None] = [None] * len(claims)
        is_waiting = False
        try:
            for index, claim in enumerate(claims):
                # Noted first: a write whose answer is lost may have been carried out.
                reserved.append(claim)
                written[index] = await self._reserve(claim, pod, given.get(_full_name(claim)))
            is_waiting = True
            await ready([each for each in written if each is not None])
            is_waiting = False
            await self._bind(pod, node)
        except BaseException as failure:
            if is_waiting and not isinstance(failure, Exception):
                # Whoever comes next finds the claims reserved for the pod, and waits on.
                raise
            bound = await self._node_of(pod)
            if bound == node and isinstance(failure, Exception):
                # Only the answer was lost.
                return written
            if bound == "":
                useless = {failure.claim} if isinstance(failure, BindingConditionsError) else set()
                await self._undo(pod, reserved, given.keys() | useless)
            raise
        return written

    async def now(self, claim: Raw) -> Raw | None:
        """The claim as it is, None if it is gone."""
        metadata = claim["metadata"]
        try:
            return await self._client.get(CLAIMS, metadata["name"], metadata["namespace"])
        except NotFoundError:
            return None

    async def _node_of(self, pod: Raw) -> str | None:
        """
        Where the pod is bound to, "" if it is not; None if nobody can say.

        A pod that may be bound keeps its claims: they are reserved for it, so they are not lost,
        and it will find them when it is tried again.
        """
        metadata = pod["metadata"]
        try:
            current = await self._client.get(PODS, metadata["name"], metadata["namespace"])
        except NotFoundError:
            return ""
        except (ApiError, TransportError):
            return None
        if current["metadata"]["uid"] != metadata["uid"]:
            return ""
        return str(current["spec"].get("nodeName", ""))

    async def _reserve(self, claim: Raw, pod: Raw, allocation: AllocationResult | None) -> Raw:
        try:
            return await self._reserved(claim, pod, allocation)
        except (ConflictError, OvertakenError):
            # What was known of it may be no longer so.
            pass
        for _ in range(_TRIES_MAX):
            try:
                return await self._reserved(await self._current(claim), pod, allocation)
            except ConflictError:
                continue
        raise OvertakenError(f"claim {_full_name(claim)}: changes faster than it can be written")

    async def _current(self, claim: Raw) -> Raw:
        metadata = claim["metadata"]
        current = await self._client.get(CLAIMS, metadata["name"], metadata["namespace"])
        if current["metadata"]["uid"] != metadata["uid"]:
            raise OvertakenError(f"claim {_full_name(claim)}: was replaced")
        return current

    async def _reserved(self, claim: Raw, pod: Raw, allocation: AllocationResult | None) -> Raw:
        if "deletionTimestamp" in claim["metadata"]:
            raise OvertakenError(f"claim {_full_name(claim)}: is being deleted")
        status = _reserving(claim, pod, allocation, now=timestamp(self._clock.now()))
        if allocation is not None:
            claim = await self._protected(claim)
        return await self._client.update(CLAIMS, {**claim, "status": status}, subresource="status")

    async def _protected(self, claim: Raw) -> Raw:
        finalizers = claim["metadata"].get("finalizers", [])
        if FINALIZER in finalizers:
            return claim
        metadata = {**claim["metadata"], "finalizers": [*finalizers, FINALIZER]}
        return await self._client.update(CLAIMS, {**claim, "metadata": metadata})

    async def _bind(self, pod: Raw, node: str) -> None:
        metadata = pod["metadata"]
        identity = {key: metadata[key] for key in ("name", "namespace", "uid")}
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": identity, "target": target}
        await self._client.create(PODS, binding, subresource="binding")

    async def _undo(self, pod: Raw, claims: Sequence[Raw], to_deallocate: Set[str]) -> None:
        for claim in reversed(claims):
            try:
                await self._release(claim, pod, is_ours=_full_name(claim) in to_deallocate)
            except (ApiError, TransportError):
                # It stays reserved for the pod, which will find it when it is tried again.
                continue

    async def _release(self, claim: Raw, pod: Raw, *, is_ours: bool) -> None:
        metadata = claim["metadata"]
        without = {"$patch": "delete", "uid": pod["metadata"]["uid"]}
        current = await self._client.patch(
            CLAIMS,
            metadata["name"],
            {"metadata": {"uid": metadata["uid"]}, "status": {"reservedFor": [without]}},
            namespace=metadata["namespace"],
            subresource="status",
            media_type=STRATEGIC_PATCH,
        )
        status = current.get("status", {})
        if is_ours and status.get("allocation") and not status.get("reservedFor"):
            without_devices = ("allocation", "devices")
            emptied = {key: value for key, value in status.items() if key not in without_devices}
            await self._client.update(CLAIMS, {**current, "status": emptied}, subresource="status")


def _reserving(claim: Raw, pod: Raw, allocation: AllocationResult | None, *, now: str) -> Raw:
    """The status with the pod among the users, and with the allocation if there is to be one."""
    status = claim.get("status", {})
    if allocation is not None and status.get("allocation"):
        raise OvertakenError(f"claim {_full_name(claim)}: got allocated elsewhere in the meantime")
    if allocation is None and not status.get("allocation"):
        raise OvertakenError(f"claim {_full_name(claim)}: got deallocated in the meantime")
    users = [*status.get("reservedFor", [])]
    if all(user["uid"] != pod["metadata"]["uid"] for user in users):
        users.append(
            {
                "resource": "pods",
                "name": pod["metadata"]["name"],
                "uid": pod["metadata"]["uid"],
            }
        )
    if len(users) > RESERVATIONS_MAX:
        raise OvertakenError(f"claim {_full_name(claim)}: {RESERVATIONS_MAX} pods use it already")
    given = status["allocation"] if allocation is None else to_builtins(allocation)
    # As Kubernetes: whoever reserves says when, if nobody has.
    return {**status, "allocation": {"allocationTimestamp": now, **given}, "reservedFor": users}


def _full_name(claim: Raw) -> str:
    return f"{claim['metadata']['namespace']}/{claim['metadata']['name']}"
