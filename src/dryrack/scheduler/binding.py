"""
Binding: write a decision to the cluster, and undo it if one of the writes fails.

The writes are those of kube-scheduler: the finalizer that protects an allocated claim, the status
with the allocation and its consumers, and last the bindings. For a plan with many pods, all claims
of all pods are reserved before the first pod is bound. The attempt ends if another client allocated
or deleted a claim meanwhile.

Promise: `reserve` reserves all claims or, if it raises, none; `bind` binds at least one pod or, if
it raises, none, and then no reservation and no allocation stays behind. Only writes of this
scheduler are undone: those of another scheduler for the same pod stay. If the server does not
answer while writes are undone, reservations stay for pods that are not bound; the next attempt for
those pods finds them.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

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
from dryrack.client.timekeeping import sleep, timestamp
from dryrack.kinds.decode import to_builtins
from dryrack.kinds.expansion.pod_claims import DELETE_PROTECTION
from dryrack.placement import RESERVATIONS_MAX
from dryrack.scheduler.claims.binding_conditions import BindingConditionsError
from dryrack.scheduler.claims.extended_resources import ExtendedResourceClaims

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

    from dryrack.client.client import Client
    from dryrack.client.timekeeping import Timekeeper
    from dryrack.kinds.raw import Raw
    from dryrack.kinds.resource import AllocationResult
    from dryrack.scheduler.claims.extended_resources import ExtendedClaim

# Other clients write to the same claim now and then, but not all the time.
_TRIES_MAX = 5
# Codes of a server that cannot answer for now; kube-scheduler retries after the same.
_PASSING = (500, 503)
# The number of concurrent writes for one plan: a large gang need not wait for each of its members.
_CONCURRENT_MAX = 16
_SERVER_ERROR = 500
# Errors that a server answers each time that the same request is sent.
REFUSALS = (BadRequestError, ForbiddenError, InvalidError)


class OvertakenError(DryrackError):
    """The cluster has changed since the decision; decide again."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """A pod and its node, with the consumer that reserves each claim ("ns/name") for the pod."""

    pod: Raw
    node: str
    consumers: Mapping[str, Raw]
    # The claim that the scheduler creates, or has created, for extended resources of the pod.
    extended: ExtendedClaim | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """Pods that are bound together."""

    assignments: tuple[Assignment, ...]
    # Every claim that one of the pods uses, as it was last read.
    claims: Mapping[str, Raw]
    # The allocations of those claims that had none.
    given: Mapping[str, AllocationResult]


@dataclass(slots=True)
class _ClaimUse:
    """A claim with its consumers in one plan, by uid, and the uids of the pods of each consumer."""

    name: str
    claim: Raw
    allocation: AllocationResult | None
    consumers: dict[str, Raw] = field(default_factory=dict)
    pods: dict[str, list[str]] = field(default_factory=dict)


@dataclass(slots=True)
class _ClaimWrite:
    """A write to a claim; if the answer was lost, it may have been carried out."""

    use: _ClaimUse
    # The uids of the consumers that this write adds.
    added: tuple[str, ...]
    # The claim as the server returned it.
    answer: Raw | None = None


@dataclass(slots=True)
class Reserved:
    """A plan whose claims are all reserved."""

    plan: Plan
    writes: dict[str, _ClaimWrite] = field(default_factory=dict)

    def claim(self, name: str) -> Raw | None:
        """Return the claim as it was written; None if it has to be read."""
        write = self.writes.get(name)
        return None if write is None else write.answer


@dataclass(frozen=True, slots=True)
class Bound:
    """The pods that were bound, and the others, each with its error."""

    assignments: tuple[Assignment, ...]
    failures: tuple[tuple[Assignment, Exception], ...] = ()


class Binder:
    """Writes and undoes plans for one client."""

    def __init__(
        self, client: Client, clock: Timekeeper, retry_seconds: Sequence[float] = ()
    ) -> None:
        """
        Build it for one client.

        `retry_seconds` are the delays after which a binding is retried that failed for now.
        """
        self._client = client
        self._clock = clock
        self._retry_seconds = retry_seconds
        self.extended = ExtendedResourceClaims(client)

    async def reserve(self, plan: Plan) -> Reserved:
        """Reserve all claims of all pods, or none."""
        reserved = Reserved(plan)
        uses: dict[str, _ClaimUse] = {}
        for assignment in plan.assignments:
            for name, consumer in assignment.consumers.items():
                use = uses.get(name)
                if use is None:
                    use = uses[name] = _ClaimUse(name, plan.claims[name], plan.given.get(name))
                use.consumers[consumer["uid"]] = consumer
                use.pods.setdefault(consumer["uid"], []).append(assignment.pod["metadata"]["uid"])
        # Of two plans with the same claims, the order by name lets one fail at its first claim.
        ordered = [uses[name] for name in sorted(uses)]
        try:
            for start in range(0, len(ordered), _CONCURRENT_MAX):
                batch = ordered[start : start + _CONCURRENT_MAX]
                # An error is raised once no write is in flight any more.
                answers = await asyncio.gather(
                    *(self._reserve_claim(use, reserved) for use in batch), return_exceptions=True
                )
                for answer in answers:
                    if isinstance(answer, BaseException):
                        raise answer
        except BaseException:
            await self._undo(reserved)
            raise
        return reserved

    async def prepare(
        self, reserved: Reserved, wait_until_ready: Callable[[Sequence[Raw]], Awaitable[None]]
    ) -> None:
        """
        Report claims for extended resources to their pods, and wait until all devices are ready.

        If the scheduler is stopped meanwhile, all claims stay reserved for the next scheduler.
        """
        claims = [each.answer for each in reserved.writes.values() if each.answer is not None]
        try:
            for each in reserved.plan.assignments:
                if each.extended is not None:
                    await self.extended.write_status(each.pod, each.extended)
            await wait_until_ready(claims)
        except Exception as failure:
            useless = failure.claim if isinstance(failure, BindingConditionsError) else ""
            await self._undo(reserved, useless)
            raise

    async def bind(
        self,
        reserved: Reserved,
        find_obstacle: Callable[[Raw, str], str],
        annotations: Mapping[str, str],
    ) -> Bound:
        """
        Bind all pods; if the first cannot be bound, bind none and release all claims.

        Once one pod is bound, others that fail keep their reservations. `find_obstacle` returns
        what is known to prevent the binding of a pod to a node, so that no plan is begun that
        cannot be completed. The binding itself adds the annotations, without a further write.
        """
        first, *others = reserved.plan.assignments
        try:
            for each in others:
                if obstacle := find_obstacle(each.pod, each.node):
                    raise OvertakenError(obstacle)
            failure = await self._bind_pod(first, find_obstacle, annotations)
            if failure is not None:
                raise failure
        except BaseException:
            await self._undo(reserved)
            raise
        bound = [first]
        failures = []
        for start in range(0, len(others), _CONCURRENT_MAX):
            batch = others[start : start + _CONCURRENT_MAX]
            answers = await asyncio.gather(
                *(self._bind_pod(each, find_obstacle, annotations) for each in batch)
            )
            for assignment, answer in zip(batch, answers, strict=True):
                if answer is None:
                    bound.append(assignment)
                else:
                    failures.append((assignment, answer))
        return Bound(tuple(bound), tuple(failures))

    async def release(self, claim: Raw, uids: Iterable[str]) -> None:
        """Remove consumers, and the allocation with the last of them."""
        removed = frozenset(uids)

        def change(status: Raw) -> Raw:
            status = _remove_consumers(status, removed)
            dropped = () if status.get("reservedFor") else ("allocation", "devices")
            return {key: value for key, value in status.items() if key not in dropped}

        await self._update_status(claim, change)

    async def is_unbound(self, pod: Raw) -> bool:
        """Return whether the server says that the pod is on no node; caches may be behind."""
        return await self._read_node(pod) == ""

    async def read_claim(self, claim: Raw) -> Raw | None:
        """Return the claim as it is in the API, None if it was deleted."""
        metadata = claim["metadata"]
        try:
            return await self._client.get(CLAIMS, metadata["name"], metadata["namespace"])
        except NotFoundError:
            return None

    async def _update_status(self, claim: Raw, change: Callable[[Raw], Raw]) -> None:
        """Change the status of a claim, also while others write to it; skip a deleted claim."""
        current: Raw | None = claim
        for _ in range(_TRIES_MAX):
            if current is None or current["metadata"]["uid"] != claim["metadata"]["uid"]:
                return
            before = current.get("status", {})
            status = change(before)
            if status == before:
                return
            try:
                await self._client.update(
                    CLAIMS, {**current, "status": status}, subresource="status"
                )
            except NotFoundError:
                return
            except ConflictError:
                current = await self.read_claim(claim)
            else:
                return
        raise OvertakenError(f"claim {full_name(claim)}: changes faster than it can be written")

    async def _read_node(self, pod: Raw) -> str | None:
        """
        Return the node of a pod, "" if it has none; None if the server does not answer.

        A pod that may be bound keeps its claims: they are reserved for it, so the next attempt
        finds them.
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

    async def _reserve_claim(self, use: _ClaimUse, reserved: Reserved) -> None:
        """Write the consumers of a claim; read the claim again if it changed meanwhile."""
        metadata = use.claim["metadata"]
        claim = use.claim
        for attempt in range(_TRIES_MAX + 1):
            try:
                await self._write_reservation(claim, use, reserved)
            except (ConflictError, OvertakenError) as error:
                # The first attempt may have been made with an old state of the claim.
                if attempt and isinstance(error, OvertakenError):
                    raise
            else:
                return
            claim = await self._client.get(CLAIMS, metadata["name"], metadata["namespace"])
            if claim["metadata"]["uid"] != metadata["uid"]:
                raise OvertakenError(f"claim {full_name(claim)}: was replaced")
        raise OvertakenError(f"claim {use.name}: changes faster than it can be written")

    async def _write_reservation(self, claim: Raw, use: _ClaimUse, reserved: Reserved) -> None:
        if "deletionTimestamp" in claim["metadata"]:
            raise OvertakenError(f"claim {use.name}: is being deleted")
        status, added = _add_consumers(claim, use, now=timestamp(self._clock.now()))
        if status == claim.get("status"):
            # An attempt before has reserved it for the pod, or another pod for their group.
            reserved.writes[use.name] = _ClaimWrite(use, (), claim)
            return
        finalizers = claim["metadata"].get("finalizers", [])
        if use.allocation is not None and DELETE_PROTECTION not in finalizers:
            metadata = {**claim["metadata"], "finalizers": [*finalizers, DELETE_PROTECTION]}
            claim = await self._client.update(CLAIMS, {**claim, "metadata": metadata})
        # Noted first: a write whose answer is lost may have been carried out.
        write = reserved.writes[use.name] = _ClaimWrite(use, added)
        try:
            write.answer = await self._client.update(
                CLAIMS, {**claim, "status": status}, subresource="status"
            )
        except ApiError as refusal:
            if refusal.code < _SERVER_ERROR:
                del reserved.writes[use.name]
            raise

    async def _bind_pod(
        self,
        assignment: Assignment,
        find_obstacle: Callable[[Raw, str], str],
        annotations: Mapping[str, str],
    ) -> Exception | None:
        """Bind one pod; return the error if the pod is not on its node now."""
        pod = assignment.pod
        node = assignment.node
        if obstacle := find_obstacle(pod, node):
            return OvertakenError(obstacle)
        identity: Raw = {key: pod["metadata"][key] for key in ("name", "namespace", "uid")}
        if annotations:
            identity["annotations"] = dict(annotations)
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": identity, "target": target}
        for seconds in (*self._retry_seconds, None):
            try:
                await self._client.create(PODS, binding, subresource="binding")
            except (ApiError, TransportError) as failure:
                # Perhaps only the answer was lost.
                if await self._read_node(pod) == node:
                    return None
                is_passing = isinstance(failure, ApiError) and failure.code in _PASSING
                if seconds is None or not is_passing:
                    return failure
                await sleep(self._clock, seconds)
            else:
                return None
        raise AssertionError("the last attempt returns")

    async def _undo(self, reserved: Reserved, useless: str = "") -> None:
        """
        Undo what was written for pods that are certainly not bound.

        A useless claim loses its allocation, too, even if an earlier attempt wrote that.
        """
        extended = [each for each in reserved.plan.assignments if each.extended is not None]
        if not reserved.writes and not extended:
            return
        perhaps_bound = set()
        for assignment in reserved.plan.assignments:
            if await self._read_node(assignment.pod) != "":
                perhaps_bound.add(assignment.pod["metadata"]["uid"])
        for write in reversed(tuple(reserved.writes.values())):
            try:
                await self._undo_write(write, perhaps_bound, is_useless=write.use.name == useless)
            except (ApiError, TransportError, OvertakenError):
                # The claim stays reserved for the pod; the next attempt for the pod finds it.
                continue
            finally:
                write.answer = None
        for each in extended:
            if each.extended is not None and each.pod["metadata"]["uid"] not in perhaps_bound:
                await self.extended.discard(reserved.plan.claims[each.extended.name])

    async def _undo_write(
        self, write: _ClaimWrite, perhaps_bound: set[str], *, is_useless: bool
    ) -> None:
        use = write.use
        current = write.answer
        if current is None:
            current = await self.read_claim(use.claim)
            if current is None or not _is_written(current, use):
                return
        uids = use.consumers if is_useless else write.added
        removed = frozenset(uid for uid in uids if not perhaps_bound.intersection(use.pods[uid]))
        if is_useless or use.allocation is not None:
            await self.release(current, removed)
        else:
            await self._update_status(current, lambda status: _remove_consumers(status, removed))


def full_name(claim: Raw) -> str:
    return f"{claim['metadata']['namespace']}/{claim['metadata']['name']}"


def _add_consumers(claim: Raw, use: _ClaimUse, *, now: str) -> tuple[Raw, tuple[str, ...]]:
    """Return the status with all consumers and the new allocation, and the uids that are new."""
    status = claim.get("status", {})
    if use.allocation is not None and status.get("allocation"):
        raise OvertakenError(f"claim {use.name}: got allocated elsewhere in the meantime")
    if use.allocation is None and not status.get("allocation"):
        raise OvertakenError(f"claim {use.name}: got deallocated in the meantime")
    consumers = [*status.get("reservedFor", [])]
    uids = {consumer["uid"] for consumer in consumers}
    added = tuple(uid for uid in use.consumers if uid not in uids)
    consumers += [use.consumers[uid] for uid in added]
    if len(consumers) > RESERVATIONS_MAX:
        raise OvertakenError(f"claim {use.name}: {RESERVATIONS_MAX} pods use it already")
    if use.allocation is None:
        return {**status, "reservedFor": consumers}, added
    # As in Kubernetes, the client that allocates sets the time; it cannot be set later.
    allocation = {"allocationTimestamp": now, **to_builtins(use.allocation)}
    return {**status, "allocation": allocation, "reservedFor": consumers}, added


def _is_written(claim: Raw, use: _ClaimUse) -> bool:
    """Return whether a claim has the allocation that was to be written to it."""
    if claim["metadata"]["uid"] != use.claim["metadata"]["uid"]:
        return False
    if use.allocation is None:
        return True
    stored = claim.get("status", {}).get("allocation", {})
    return all(stored.get(key) == value for key, value in to_builtins(use.allocation).items())


def _remove_consumers(status: Raw, removed: frozenset[str]) -> Raw:
    consumers = [each for each in status.get("reservedFor", []) if each["uid"] not in removed]
    others = {key: value for key, value in status.items() if key != "reservedFor"}
    return {**others, "reservedFor": consumers} if consumers else others
