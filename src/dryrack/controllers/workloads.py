"""
Common parts of the controllers that create pods: ownership, availability, new pods.
"""

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec

from dryrack.client.endpoints import PODS, REPLICATION_CONTROLLERS, Endpoint
from dryrack.client.informer import Index, Informer, Name, name_of
from dryrack.client.timekeeping import seconds_of
from dryrack.controllers.objects import (
    condition_of,
    controller_of,
    controller_reference,
    controller_uids,
    is_controlled_by,
    is_deleted,
    is_ready,
    is_same_but_status,
    is_terminal,
    labels_of,
    owners_of,
    spec_of,
    status_of,
    uid_of,
)
from dryrack.controllers.reconciler import Reconciler
from dryrack.controllers.writes import (
    NOTHING,
    Create,
    Delete,
    EngineContext,
    Patch,
    Plan,
    Report,
    Update,
    Write,
)
from dryrack.kinds.decode import decode
from dryrack.kinds.expansion.workloads import pod_of
from dryrack.kinds.meta import LabelSelector
from dryrack.kinds.paths import get
from dryrack.kinds.raw import Raw
from dryrack.kinds.selectors import matches_labels

_canonical = msgspec.json.Encoder(order="deterministic").encode


# A decision takes some 5 µs for each member. That is nothing below the first number; above it,
# decisions take a hundredth of the time.
FAMILY_SMALL = 50
FAMILY_LOOKS_PER_SECOND = 2000.0
PACE_SECONDS_MAX = 1.0


# Characters that make no bad words: no vowels and nothing that looks like them.
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"


@dataclass(frozen=True, slots=True)
class Family:
    """The objects that an owner controls, and the writes that adopt or release others."""

    members: tuple[Raw, ...]
    writes: tuple[Write, ...] = ()


def template_hash(template: Raw, collisions: int = 0) -> str:
    """Return a short hash of a pod template."""
    number = zlib.crc32(_canonical(template))
    if collisions:
        number = zlib.crc32(str(collisions).encode(), number)
    return "".join(_ALPHABET[ord(digit) % len(_ALPHABET)] for digit in str(number))


def family_of(
    owner: Raw, endpoint: Endpoint, candidates: Iterable[Raw], *, of: Endpoint = PODS
) -> Family:
    """
    Return the candidates that belong to an owner by its selector.

    A matching orphan is adopted, and a member that no longer matches is released. While such writes
    are due, the members are incomplete.
    """
    selector = get(owner, "spec.selector", {})
    if endpoint == REPLICATION_CONTROLLERS:
        # This kind is older than selectors with expressions.
        selector = {"matchLabels": selector}
    expressions = decode(selector, LabelSelector) if selector.get("matchExpressions") else None
    labels = get(selector, "matchLabels", {}).items()
    members = []
    writes = []
    for candidate in candidates:
        own = labels_of(candidate)
        if expressions is not None:
            matches = matches_labels(expressions, own)
        else:
            matches = bool(labels) and labels <= own.items()
        if is_controlled_by(candidate, owner):
            if matches:
                members.append(candidate)
            elif not is_deleted(owner):
                others = [each for each in owners_of(candidate) if each["uid"] != uid_of(owner)]
                writes.append(_with_owners(candidate, others, of))
        elif matches and _is_orphan(candidate) and not is_deleted(owner):
            owners = [*owners_of(candidate), controller_reference(owner, endpoint)]
            writes.append(_with_owners(candidate, owners, of))
    return Family(tuple(members), tuple(writes))


def _is_orphan(candidate: Raw) -> bool:
    has_ended = is_deleted(candidate) or is_terminal(candidate)
    return controller_of(candidate) is None and not has_ended


def _with_owners(candidate: Raw, owners: list[Raw], of: Endpoint) -> Write:
    metadata = candidate["metadata"]
    identity = {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}
    patch = {"metadata": identity | {"ownerReferences": owners or None}}
    return Patch(of, name_of(candidate), patch)


class Candidates:
    """Finds the objects that an owner controls, and the orphans of its namespace."""

    def __init__(self, informer: Informer) -> None:
        self._controlled: Index = informer.index("controller", controller_uids)
        self._orphans: Index = informer.index("orphans", _namespace_of_orphan)

    def of(self, owner: Raw) -> tuple[Raw, ...]:
        return self.controlled(owner) + self._orphans.get(owner["metadata"]["namespace"])

    def controlled(self, owner: Raw) -> tuple[Raw, ...]:
        return self._controlled.get(uid_of(owner))

    def pace_of(self, member: Raw) -> float:
        """
        Return how long the owner waits before it is decided after a change of a member.

        A decision goes over all members, so an owner of many would always be busy if it was decided
        for each change. An owner of few is decided at once.
        """
        owner = controller_of(member)
        return pace(self._controlled.count(owner["uid"]) if owner else 0)


def pace(size: int) -> float:
    """Return the wait before a decision that goes over so many objects."""
    return 0.0 if size < FAMILY_SMALL else min(size / FAMILY_LOOKS_PER_SECOND, PACE_SECONDS_MAX)


def _namespace_of_orphan(obj: Raw) -> Sequence[str]:
    return (obj["metadata"].get("namespace", ""),) if controller_of(obj) is None else ()


def owner_key(obj: Raw, endpoint: Endpoint) -> Name | None:
    """Return the name of the object's controller, if it is of that kind."""
    owner = controller_of(obj)
    if owner is None or owner["kind"] != endpoint.kind:
        return None
    if owner["apiVersion"].rpartition("/")[0] != endpoint.group:
        return None
    return Name(obj["metadata"].get("namespace", ""), owner["name"])


def pod_from(template: Raw, owner: Raw, endpoint: Endpoint) -> Raw:
    """Return a new pod from the template of its owner."""
    metadata: Raw = {
        "namespace": owner["metadata"]["namespace"],
        "generateName": f"{owner['metadata']['name']}-",
        "ownerReferences": [controller_reference(owner, endpoint)],
    }
    return pod_of(template, metadata)


def creation_of(pod: Raw, owner: Raw) -> Write:
    """Return the creation of a pod, with events of its owner."""
    return Create(
        PODS,
        pod,
        refused=Report(owner, "Warning", "FailedCreate", "Error creating: {}"),
        accepted=Report(owner, "Normal", "SuccessfulCreate", "Created pod: {}"),
    )


def deletions_of(pods: Iterable[Raw], owner: Raw) -> list[Write]:
    """Return the deletions of pods, with events of their owner."""
    writes: list[Write] = []
    for pod in pods:
        message = f"Deleted pod: {pod['metadata']['name']}"
        report = Report(owner, "Normal", "SuccessfulDelete", message)
        writes += [Delete(PODS, name_of(pod), uid_of(pod)), report]
    return writes


def status_update(endpoint: Endpoint, owner: Raw, status: Raw) -> list[Write]:
    """Return the write of an owner's status, if it has changed."""
    if status == status_of(owner):
        return []
    return [Update(endpoint, owner | {"status": status}, "status")]


def replicas_of(owner: Raw) -> int:
    """Return the wanted number of replicas; the default is 1."""
    return int(get(owner, "spec.replicas", 1))


def min_ready_seconds_of(owner: Raw) -> float:
    """Return how long pods have to be ready to be available."""
    return float(spec_of(owner).get("minReadySeconds") or 0)


def is_active(pod: Raw) -> bool:
    """Return True if a pod counts as one of the replicas."""
    return not is_terminal(pod) and not is_deleted(pod)


def is_available(pod: Raw, min_ready_seconds: float, now: float) -> bool:
    """Return True if a pod has been ready for long enough."""
    return is_ready(pod) and available_in(pod, min_ready_seconds, now) <= 0


def available_in(pod: Raw, min_ready_seconds: float, now: float) -> float:
    """Return in how many seconds a ready pod becomes available."""
    condition = condition_of(pod, "Ready")
    if condition is None or not min_ready_seconds:
        return 0.0
    since = condition.get("lastTransitionTime")
    return seconds_of(since) + min_ready_seconds - now if since else 0.0


def waits_for_availability(
    pods: Iterable[Raw], min_ready_seconds: float, now: float
) -> float | None:
    """Return in how many seconds time alone makes a pod available."""
    if not min_ready_seconds:
        return None
    waits = (available_in(pod, min_ready_seconds, now) for pod in pods if is_ready(pod))
    return min((each for each in waits if each > 0), default=None)


class OwnerReconciler(Reconciler[Name]):
    """Decides the owners of a kind; a subclass has `plan_owner`."""

    def __init__(
        self,
        context: EngineContext,
        name: str,
        endpoint: Endpoint,
        *,
        owned: Endpoint = PODS,
        ignores_status: bool = False,
    ) -> None:
        """An owner is not queued for its own status if `ignores_status` is set."""
        super().__init__(context, name)
        self._written: dict[Name, Raw] = {}
        """By owner: the status that the controller has written last."""
        self._endpoint = endpoint
        self._ignores_status = ignores_status
        self.owners = self.watch(endpoint, self._on_owner)
        self.members = self.watch(owned)
        self.candidates = Candidates(self.members)
        self.members.listen(self._on_member)

    def plan_owner(self, owner: Raw) -> Plan:
        """Return what to write about an owner and the objects that it controls."""
        raise NotImplementedError

    async def decide(self, name: Name) -> Plan:
        owner = self.owners.objects.get(name)
        if owner is None:
            return NOTHING
        plan = self.plan_owner(owner)
        if self._ignores_status:
            for write in plan.writes:
                if isinstance(write, Update) and write.subresource == "status":
                    self._written[name] = status_of(write.object)
        return plan

    def _on_owner(self, old: Raw | None, new: Raw | None) -> None:
        if new is None:
            if old is not None:
                self._written.pop(name_of(old), None)
            return
        is_own = is_same_but_status(old, new) and status_of(new) == self._written.get(name_of(new))
        if not (self._ignores_status and is_own):
            self.queue.add(name_of(new))

    def _on_member(self, old: Raw | None, new: Raw | None) -> None:
        for each in (old, new):
            if each is not None and (key := owner_key(each, self._endpoint)):
                self.queue.add_after(key, self.candidates.pace_of(each))
