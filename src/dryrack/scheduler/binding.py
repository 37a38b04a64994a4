"""
Binding: a decision made so by writes to the cluster, and unmade if one of them fails.

The writes are those of kube-scheduler: the finalizer that keeps an allocated claim from vanishing,
the status with the allocation and the consumers that reserve it, and last the bindings. A plan may
be about many pods: all claims of all of them are reserved before the first pod is bound. A claim
that somebody else allocated or deleted meanwhile ends the attempt.

Promise: `reserve` reserves all or, if it raises, nothing; `bind` binds at least one pod or, if it
raises, none, and then no reservation and no allocation stays behind. Only what was written here is
taken back: what another scheduler wrote for the same pod stays. Where the server does not answer
even to that, reservations stay for pods that are not bound; they are found when those pods are
tried again.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from dryrack.base.errors import DryrackError
from dryrack.client.endpoints import CLAIMS, PODS
from dryrack.client.errors import (
    ApiError,
    BadRequestError,
    ConflictError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    TransportError,
)
from dryrack.client.timekeeping import timestamp
from dryrack.kinds.decode import to_builtins
from dryrack.kinds.expansion.pod_claims import DELETE_PROTECTION
from dryrack.placement import RESERVATIONS_MAX
from dryrack.scheduler.claims.binding_conditions import BindingConditionsError
from dryrack.scheduler.claims.extended_resources import ExtendedResourceClaims

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence

    from dryrack.base.ports import Clock
    from dryrack.client.client import Client
    from dryrack.kinds.raw import Raw
    from dryrack.kinds.resource import AllocationResult
    from dryrack.scheduler.claims.extended_resources import ExtendedClaim

_Item = TypeVar("_Item")

# Somebody else writes to the same claim now and then; nobody does so all the time.
_TRIES_MAX = 5
# Writes of one plan in flight: a large gang need not wait for each of its members in turn.
_AT_ONCE_MAX = 16
_SERVER_ERROR = 500
# What a server says to what it will not take, however often it is tried.
REFUSALS = (BadRequestError, ForbiddenError, InvalidError)


class OvertakenError(DryrackError):
    """The cluster has changed since the decision; decide anew."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """A pod, the node where it is to run, and by claim ("ns/name") who reserves it for the pod."""

    pod: Raw
    node: str
    consumers: Mapping[str, Raw]
    # The claim that is made for it, or was, if it asks for extended resources of devices.
    extended: ExtendedClaim | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """Pods that are bound together."""

    assignments: tuple[Assignment, ...]
    # Every claim that one of the pods uses, as it was last known.
    claims: Mapping[str, Raw]
    # What is allocated to those that have nothing yet.
    given: Mapping[str, AllocationResult]


@dataclass(slots=True)
class _Use:
    """A claim and all who reserve it by one plan, by their uid, with the pods for which they do."""

    name: str
    claim: Raw
    allocation: AllocationResult | None
    consumers: dict[str, Raw] = field(default_factory=dict)
    pods: dict[str, list[str]] = field(default_factory=dict)


@dataclass(slots=True)
class _Written:
    """What was written to a claim, or may have been if the answer was lost."""

    use: _Use
    added: tuple[str, ...]
    # The claim as the server answered with it.
    answer: Raw | None = None


@dataclass(slots=True)
class Reserved:
    """The claims of a plan, all reserved."""

    plan: Plan
    written: dict[str, _Written] = field(default_factory=dict)

    def claim(self, name: str) -> Raw | None:
        """The claim as it was written; None where that has to be asked."""
        written = self.written.get(name)
        return None if written is None else written.answer


@dataclass(frozen=True, slots=True)
class Bound:
    """The pods that were bound, and the others, each with what was in the way."""

    assignments: tuple[Assignment, ...]
    failures: tuple[tuple[Assignment, Exception], ...] = ()


class Binder:
    """Writes for one client."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self.extended = ExtendedResourceClaims(client)

    async def reserve(self, plan: Plan) -> Reserved:
        """All claims of all pods, or none."""
        reserved = Reserved(plan)
        try:
            for uses in _batches(_uses(plan)):
                await _all(self._reserve(use, reserved) for use in uses)
        except BaseException:
            await self._undo(reserved)
            raise
        return reserved

    async def prepare(
        self, reserved: Reserved, ready: Callable[[Sequence[Raw]], Awaitable[None]]
    ) -> None:
        """
        Tells pods of claims made for them, and waits until the devices of all can be used.

        Whoever is stopped in it leaves all reserved: the next one waits on.
        """
        written = [each.answer for each in reserved.written.values() if each.answer is not None]
        try:
            for each in reserved.plan.assignments:
                if each.extended is not None:
                    await self.extended.tell(each.pod, each.extended)
            await ready(written)
        except Exception as failure:
            useless = failure.claim if isinstance(failure, BindingConditionsError) else ""
            await self._undo(reserved, useless)
            raise

    async def bind(
        self,
        reserved: Reserved,
        obstacle: Callable[[Raw, str], str],
        annotations: Mapping[str, str],
    ) -> Bound:
        """
        All pods; if the first cannot be bound, none is and nothing stays reserved.

        Once one is bound, others that fail keep what is reserved for them. `obstacle` says what
        is known to be in the way of a pod on a node: then nothing is begun that cannot be finished.
        The pods get the annotations by being bound, which costs no further write.
        """
        first, *others = reserved.plan.assignments
        try:
            for each in others:
                if obstacle(each.pod, each.node):
                    raise OvertakenError(obstacle(each.pod, each.node))
            failure = await self._bound(first, obstacle, annotations)
            if failure is not None:
                raise failure
        except BaseException:
            await self._undo(reserved)
            raise
        bound = [first]
        failures = []
        for batch in _batches(others):
            answers = await asyncio.gather(
                *(self._bound(each, obstacle, annotations) for each in batch)
            )
            for assignment, answer in zip(batch, answers, strict=True):
                if answer is None:
                    bound.append(assignment)
                else:
                    failures.append((assignment, answer))
        return Bound(tuple(bound), tuple(failures))

    async def release(self, claim: Raw, uids: Iterable[str]) -> None:
        """Takes consumers out, and the allocation with the last of them."""
        gone = frozenset(uids)
        await self._change(claim, lambda status: _emptied(_unreserved(status, gone)))

    async def is_unbound(self, pod: Raw) -> bool:
        """Whether the pod is certainly on no node; what is known of it may be old."""
        return await self._node_of(pod) == ""

    async def now(self, claim: Raw) -> Raw | None:
        """The claim as it is, None if it is gone."""
        metadata = claim["metadata"]
        try:
            return await self._client.get(CLAIMS, metadata["name"], metadata["namespace"])
        except NotFoundError:
            return None

    async def _change(self, claim: Raw, changed: Callable[[Raw], Raw]) -> None:
        """Writes another status, whoever else writes; nothing if the claim is gone."""
        known: Raw | None = claim
        for _ in range(_TRIES_MAX):
            if known is None or known["metadata"]["uid"] != claim["metadata"]["uid"]:
                return
            before = known.get("status", {})
            status = changed(before)
            if status == before:
                return
            try:
                await self._client.update(CLAIMS, {**known, "status": status}, subresource="status")
            except NotFoundError:
                return
            except ConflictError:
                known = await self.now(claim)
            else:
                return
        raise OvertakenError(f"claim {full_name(claim)}: changes faster than it can be written")

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

    async def _reserve(self, use: _Use, reserved: Reserved) -> None:
        known = use.claim
        for attempt in range(_TRIES_MAX + 1):
            try:
                await self._write(known, use, reserved)
            except (ConflictError, OvertakenError) as error:
                # What was known of it may be no longer so.
                if attempt and isinstance(error, OvertakenError):
                    raise
            else:
                return
            known = await self._current(use.claim)
        raise OvertakenError(f"claim {use.name}: changes faster than it can be written")

    async def _current(self, claim: Raw) -> Raw:
        metadata = claim["metadata"]
        current = await self._client.get(CLAIMS, metadata["name"], metadata["namespace"])
        if current["metadata"]["uid"] != metadata["uid"]:
            raise OvertakenError(f"claim {full_name(claim)}: was replaced")
        return current

    async def _write(self, claim: Raw, use: _Use, reserved: Reserved) -> None:
        if "deletionTimestamp" in claim["metadata"]:
            raise OvertakenError(f"claim {use.name}: is being deleted")
        status, added = _reserving(claim, use, now=timestamp(self._clock.now()))
        if status == claim.get("status"):
            # It is reserved already, for the pod by an attempt before, or for its group.
            reserved.written[use.name] = _Written(use, (), claim)
            return
        if use.allocation is not None:
            claim = await self._protected(claim)
        # Noted first: a write whose answer is lost may have been carried out.
        written = reserved.written[use.name] = _Written(use, added)
        try:
            written.answer = await self._client.update(
                CLAIMS, {**claim, "status": status}, subresource="status"
            )
        except ApiError as refusal:
            if refusal.code < _SERVER_ERROR:
                del reserved.written[use.name]
            raise

    async def _protected(self, claim: Raw) -> Raw:
        finalizers = claim["metadata"].get("finalizers", [])
        if DELETE_PROTECTION in finalizers:
            return claim
        metadata = {**claim["metadata"], "finalizers": [*finalizers, DELETE_PROTECTION]}
        return await self._client.update(CLAIMS, {**claim, "metadata": metadata})

    async def _bound(
        self,
        assignment: Assignment,
        obstacle: Callable[[Raw, str], str],
        annotations: Mapping[str, str],
    ) -> Exception | None:
        """Binds one pod; what was in the way, if it is not bound there now."""
        pod = assignment.pod
        node = assignment.node
        if obstacle(pod, node):
            return OvertakenError(obstacle(pod, node))
        try:
            await self._bind(pod, node, annotations)
        except (ApiError, TransportError) as failure:
            # Perhaps only the answer was lost.
            return None if await self._node_of(pod) == node else failure
        return None

    async def _bind(self, pod: Raw, node: str, annotations: Mapping[str, str]) -> None:
        metadata = pod["metadata"]
        identity: Raw = {key: metadata[key] for key in ("name", "namespace", "uid")}
        if annotations:
            identity["annotations"] = dict(annotations)
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": identity, "target": target}
        await self._client.create(PODS, binding, subresource="binding")

    async def _undo(self, reserved: Reserved, useless: str = "") -> None:
        """
        Takes back what was written for pods that are certainly not bound.

        The allocation of a useless claim goes as well, whoever has made it.
        """
        of_pods = [each for each in reserved.plan.assignments if each.extended is not None]
        if not reserved.written and not of_pods:
            return
        kept = set()
        for assignment in reserved.plan.assignments:
            if await self._node_of(assignment.pod) != "":
                kept.add(assignment.pod["metadata"]["uid"])
        for written in reversed(tuple(reserved.written.values())):
            try:
                await self._take_back(written, kept, is_useless=written.use.name == useless)
            except (ApiError, TransportError, OvertakenError):
                # It stays reserved for the pod, which will find it when it is tried again.
                continue
            finally:
                written.answer = None
        for each in of_pods:
            if each.extended is not None and each.pod["metadata"]["uid"] not in kept:
                await self.extended.discard(reserved.plan.claims[each.extended.name])

    async def _take_back(self, written: _Written, kept: set[str], *, is_useless: bool) -> None:
        use = written.use
        current = written.answer
        if current is None:
            current = await self.now(use.claim)
            if current is None or not _is_as_written(current, use):
                return
        ours = use.consumers if is_useless else written.added
        gone = frozenset(uid for uid in ours if not kept.intersection(use.pods[uid]))
        if is_useless or use.allocation is not None:
            await self.release(current, gone)
        else:
            await self._change(current, lambda status: _unreserved(status, gone))


def full_name(claim: Raw) -> str:
    return f"{claim['metadata']['namespace']}/{claim['metadata']['name']}"


def _uses(plan: Plan) -> list[_Use]:
    """By the names of the claims: two who want the same meet at the first, not in the middle."""
    uses: dict[str, _Use] = {}
    for assignment in plan.assignments:
        for name, consumer in assignment.consumers.items():
            use = uses.get(name)
            if use is None:
                use = uses[name] = _Use(name, plan.claims[name], plan.given.get(name))
            use.consumers[consumer["uid"]] = consumer
            use.pods.setdefault(consumer["uid"], []).append(assignment.pod["metadata"]["uid"])
    return [uses[name] for name in sorted(uses)]


def _reserving(claim: Raw, use: _Use, *, now: str) -> tuple[Raw, tuple[str, ...]]:
    """The status with all users, and the allocation if there is to be one; who is new."""
    status = claim.get("status", {})
    if use.allocation is not None and status.get("allocation"):
        raise OvertakenError(f"claim {use.name}: got allocated elsewhere in the meantime")
    if use.allocation is None and not status.get("allocation"):
        raise OvertakenError(f"claim {use.name}: got deallocated in the meantime")
    users = [*status.get("reservedFor", [])]
    known = {user["uid"] for user in users}
    added = tuple(uid for uid in use.consumers if uid not in known)
    users += [use.consumers[uid] for uid in added]
    if len(users) > RESERVATIONS_MAX:
        raise OvertakenError(f"claim {use.name}: {RESERVATIONS_MAX} pods use it already")
    if use.allocation is None:
        return {**status, "reservedFor": users}, added
    # As Kubernetes: whoever allocates says when. It cannot be said of one that is there.
    allocation = {"allocationTimestamp": now, **to_builtins(use.allocation)}
    return {**status, "allocation": allocation, "reservedFor": users}, added


def _is_as_written(claim: Raw, use: _Use) -> bool:
    """Whether a claim has the allocation that was to be written to it."""
    if claim["metadata"]["uid"] != use.claim["metadata"]["uid"]:
        return False
    if use.allocation is None:
        return True
    found = claim.get("status", {}).get("allocation", {})
    wanted = to_builtins(use.allocation)
    return {key: found.get(key) for key in wanted} == wanted


def _unreserved(status: Raw, gone: frozenset[str]) -> Raw:
    users = [user for user in status.get("reservedFor", []) if user["uid"] not in gone]
    without = {key: value for key, value in status.items() if key != "reservedFor"}
    return {**without, "reservedFor": users} if users else without


def _emptied(status: Raw) -> Raw:
    """Without devices, if nobody uses them."""
    if status.get("reservedFor"):
        return status
    return {key: value for key, value in status.items() if key not in ("allocation", "devices")}


def _batches(each: Sequence[_Item]) -> Iterator[Sequence[_Item]]:
    left = iter(each)
    while batch := tuple(islice(left, _AT_ONCE_MAX)):
        yield batch


async def _all(writes: Iterable[Awaitable[None]]) -> None:
    """Makes all of them, and raises the first failure when none is in flight any more."""
    answers = await asyncio.gather(*writes, return_exceptions=True)
    for answer in answers:
        if isinstance(answer, BaseException):
            raise answer
