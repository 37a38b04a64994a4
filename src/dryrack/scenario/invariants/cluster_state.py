"""
The state of a cluster at one time, and all invariants on it.

The same checks run in random worlds. A running cluster is read one kind after the other, and its
components react with a delay, so `find_lasting` reads it several times and reports only violations
that persist. An invariant whose objects cannot be read is not checked, and the result gives the
reason.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dryrack.client.discovery import discover
from dryrack.client.endpoints import (
    CLAIMS,
    COSCHEDULING_POD_GROUPS,
    NODES,
    POD_DISRUPTION_BUDGETS,
    POD_GROUPS,
    PODS,
    PREPARED_CLAIMS,
    SLICES,
    STORAGE_CLASSES,
    VOLUME_CLAIMS,
    VOLUMES,
)
from dryrack.client.errors import ForbiddenError, NotFoundError
from dryrack.client.timekeeping import seconds_of, sleep
from dryrack.cluster import DECISION_KINDS, MODELS, typed
from dryrack.kinds.paths import get, status_of
from dryrack.scenario.checkers import WATCHED, Checkers, bound_at
from dryrack.scenario.invariants.at_rest import (
    PreparedClaims,
    drivers_in_use,
    find_miscounted_budgets,
    find_schedulable_pods,
    find_unprepared_claims,
    is_waiting,
)
from dryrack.scenario.invariants.offers import Offers
from dryrack.scenario.invariants.violations import Invariant, Violation
from dryrack.scenario.invariants.volumes import StoredVolumes

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence

    from dryrack.client.client import Client
    from dryrack.client.endpoints import Endpoint
    from dryrack.client.timekeeping import Timekeeper
    from dryrack.kinds.raw import Raw

_LOOK_SECONDS = 1.0
# A kubelet reports the end of a pod some seconds after its grace period.
_TERMINATION_SECONDS = 30.0
# The time to pull an image, and the limit of the scheduler for binding conditions.
_START_SECONDS = 300.0
_BINDING_SECONDS = 600.0
_STORAGE = (VOLUME_CLAIMS, VOLUMES, STORAGE_CLASSES)
# NodeAllocationStates name the driver in their group.
_STATES = "nodeallocationstates"
_STATES_GROUP_PREFIX = "nas."
_GROUPS = (POD_GROUPS, COSCHEDULING_POD_GROUPS)
_NEEDS: Mapping[Invariant, tuple[Endpoint, ...]] = {
    Invariant.ONE_HOLDER: (CLAIMS,),
    Invariant.COUNTERS: (CLAIMS, SLICES),
    Invariant.CAPACITY: (CLAIMS, SLICES),
    Invariant.AS_REQUESTED: (CLAIMS, SLICES),
    Invariant.ON_OFFER: (CLAIMS, SLICES),
    Invariant.NO_LEAK: (CLAIMS, PODS, NODES, SLICES, *_GROUPS),
    Invariant.PREPARED: (CLAIMS, PODS),
    Invariant.WHOLE_GANGS: (PODS, *_GROUPS),
    Invariant.COMPLETE_POOLS: (SLICES,),
    Invariant.BUDGETS: (PODS, POD_DISRUPTION_BUDGETS),
    Invariant.VOLUMES: (PODS, *_STORAGE),
    Invariant.NO_STARVATION: (*DECISION_KINDS, *_STORAGE),
}
_RESOURCES = frozenset(each.resource for kinds in _NEEDS.values() for each in kinds)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterState:
    """The objects of a cluster at one time."""

    objects: Mapping[Endpoint, Sequence[Raw]]
    now: float
    unread: frozenset[str] = frozenset()
    """The resources that could not be read."""
    unread_reason: str = "the account cannot list"
    """Why, in front of their names."""
    prepared: tuple[PreparedClaims, ...] = ()

    def of(self, endpoint: Endpoint) -> Sequence[Raw]:
        """Return the objects of a kind, in the version that was read."""
        return [
            obj
            for each, objects in self.objects.items()
            if each.resource == endpoint.resource
            for obj in objects
        ]


@dataclass(frozen=True, slots=True)
class InvariantResult:
    """The result of the check of one invariant."""

    invariant: Invariant
    violations: tuple[Violation, ...] = ()
    unchecked: str = ""
    """What could not be checked, and why."""
    is_checked: bool = True
    """False if nothing could be checked."""

    @property
    def state(self) -> str:
        if self.violations:
            return "violated"
        return "ok" if self.is_checked else "not checked"


async def read_state(
    client: Client, clock: Timekeeper, prepared: Sequence[PreparedClaims] = ()
) -> ClusterState:
    """Read all objects that invariants concern; `prepared` are the records of drivers."""
    objects: dict[Endpoint, Sequence[Raw]] = {}
    unread: set[str] = set()
    records = list(prepared)
    for served in await discover(client):
        endpoint = served.endpoint
        is_state = endpoint.plural == _STATES
        if not (endpoint.resource in _RESOURCES or is_state) or not served.allows("list"):
            continue
        try:
            items = (await client.list(endpoint)).items
        except ForbiddenError:
            unread.add(endpoint.resource)
        except NotFoundError:
            # The API was removed after its discovery.
            continue
        else:
            if is_state:
                records += _records_in(endpoint, items)
            else:
                objects[endpoint] = items
    # A virtual cluster reports all of its drivers, and its states say the same again.
    if virtual := await _records_of_virtual_cluster(client):
        records = [*prepared, *virtual]
    return ClusterState(
        objects=objects, now=clock.now(), unread=frozenset(unread), prepared=tuple(records)
    )


async def _records_of_virtual_cluster(client: Client) -> Sequence[PreparedClaims]:
    """Return the claims that the simulated drivers of `dryrack up` have prepared."""
    try:
        page = await client.get_path(PREPARED_CLAIMS)
    except (ForbiddenError, NotFoundError):
        return ()
    drivers = get(page, "drivers", {})
    return [PreparedClaims(name, frozenset(uids)) for name, uids in drivers.items()]


def _records_in(endpoint: Endpoint, states: Iterable[Raw]) -> Iterator[PreparedClaims]:
    driver = endpoint.group.removeprefix(_STATES_GROUP_PREFIX)
    for each in states:
        if each.get("status") == "Ready":
            uids = frozenset(get(each, "spec.preparedDevices", {}))
            yield PreparedClaims(driver, uids, each["metadata"]["name"])


def check_state(state: ClusterState) -> tuple[InvariantResult, ...]:
    """Return the result of every invariant, in the order of `Invariant`."""
    unchecked = {}
    for invariant, kinds in _NEEDS.items():
        missing = dict.fromkeys(it.resource for it in kinds if it.resource in state.unread)
        if missing:
            unchecked[invariant] = f"{state.unread_reason} {', '.join(missing)}"
    violations: dict[Invariant, set[Violation]] = {each: set() for each in Invariant}
    for each in _find_violations(state, skip_placement=Invariant.NO_STARVATION in unchecked):
        violations[each.invariant].add(each)
    results = [
        InvariantResult(each, unchecked=unchecked[each], is_checked=False)
        if each in unchecked
        else InvariantResult(each, tuple(sorted(violations[each])))
        for each in Invariant
    ]
    return tuple(_with_driver_limits(each, state) for each in results)


def _find_violations(state: ClusterState, *, skip_placement: bool) -> Iterator[Violation]:
    checkers = Checkers()
    offers = Offers()
    slices = state.of(SLICES)
    claims = state.of(CLAIMS)
    watched = [each for each in state.objects if each.resource in WATCHED]
    others = [each for each in watched if each.resource not in (CLAIMS.resource, SLICES.resource)]
    named = ((each.resource, obj) for each in others for obj in state.objects[each])
    yield from checkers.load(slices, claims, named)
    offers.load(slices)
    for claim in claims:
        yield from offers.judge(claim)
    checkers.assume_whole_gangs()
    settling = _find_settling(state)
    volumes = StoredVolumes(*(state.of(each) for each in _STORAGE), pods=checkers.pods)
    at_rest = [*checkers.at_rest(), *volumes.violations()]
    at_rest += find_miscounted_budgets(state.of(POD_DISRUPTION_BUDGETS), checkers.pods.values())
    at_rest += find_unprepared_claims(state.prepared, checkers.pods, claims)
    if not skip_placement and any(map(is_waiting, checkers.pods.values())):
        held = volumes.held_pods() | _find_held_by_scheduler(checkers.pods)
        at_rest += find_schedulable_pods(
            each
            for kind in state.objects
            if kind in MODELS
            for each in typed(kind, state.objects[kind])
            if each.metadata.uid not in held
        )
    yield from (each for each in at_rest if each.subject not in settling)


def _find_held_by_scheduler(pods: Mapping[str, Raw]) -> frozenset[str]:
    """
    Return the UIDs of pods that are pending for a reason that objects do not show.

    A pod with a nominated node waits for a permission, for devices, or for the end of other pods. A
    scheduler plugin that has rejected a pod names itself in the condition.
    """
    held = set()
    for uid, pod in pods.items():
        status = status_of(pod)
        messages = (each.get("message") or "" for each in get(status, "conditions", ()))
        if status.get("nominatedNodeName") or any(it.startswith("plugin ") for it in messages):
            held.add(uid)
    return frozenset(held)


def _find_settling(state: ClusterState) -> frozenset[str]:
    """Return the pods and claims that a component has a while to complete."""
    subjects = set()
    for pod in state.of(PODS):
        deadline = get(pod["metadata"], "deletionTimestamp", "")
        if deadline:
            is_settling = state.now < seconds_of(deadline) + _TERMINATION_SECONDS
        else:
            since = bound_at(pod) if is_starting(pod) else ""
            is_settling = bool(since) and state.now < seconds_of(since) + _START_SECONDS
        if is_settling:
            subjects.add(f"pod {pod['metadata'].get('namespace', '')}/{pod['metadata']['name']}")
    for claim in state.of(CLAIMS):
        allocation = get(status_of(claim), "allocation", {})
        since = get(allocation, "allocationTimestamp", "")
        results = get(allocation, "devices.results", ())
        awaits_driver = any(each.get("bindingConditions") for each in results)
        if awaits_driver and since and state.now < seconds_of(since) + _BINDING_SECONDS:
            metadata = claim["metadata"]
            subjects.add(f"claim {metadata.get('namespace', '')}/{metadata['name']}")
    return frozenset(subjects)


def is_starting(pod: Raw) -> bool:
    """Return whether a pod has a node and does not run yet."""
    return bool(pod["spec"].get("nodeName")) and status_of(pod).get("phase", "Pending") == "Pending"


def _with_driver_limits(result: InvariantResult, state: ClusterState) -> InvariantResult:
    """Add the drivers without records to the result for prepared claims."""
    if result.invariant is not Invariant.PREPARED or not result.is_checked:
        return result
    known = {each.driver for each in state.prepared}
    used = drivers_in_use(state.of(CLAIMS))
    unknown = sorted(used - known)
    if not unknown:
        return result
    reason = (
        f"no record of the claims that {', '.join(unknown)} has prepared; "
        "on a node with dryrack plugin, pass --kubelet-dir"
    )
    return replace(result, unchecked=reason, is_checked=bool(used & known))


async def find_lasting(
    read: Callable[[], Awaitable[ClusterState]], clock: Timekeeper, seconds_max: float
) -> tuple[InvariantResult, ...]:
    """
    Return the results with the violations that persist for so long.

    It ends as soon as none of the first violations is left. A violation is the same if its
    invariant and its object are, because numbers in its message may change.
    """
    latest = clock.now() + seconds_max
    lasting: set[tuple[Invariant, str]] | None = None
    first: ClusterState | None = None
    while True:
        state = await read()
        first = first or state
        results = tuple(_without_queued(each, first, state) for each in check_state(state))
        seen = {(each.invariant, each.subject) for it in results for each in it.violations}
        lasting = seen if lasting is None else lasting & seen
        if not lasting or clock.now() >= latest:
            return tuple(_restrict(each, lasting) for each in results)
        await sleep(clock, min(_LOOK_SECONDS, max(0.0, latest - clock.now())))


def _without_queued(
    result: InvariantResult, first: ClusterState, last: ClusterState
) -> InvariantResult:
    """
    Return the result without pods that wait for their turn in the queue of a busy scheduler.

    A pod waits for its turn if the scheduler has bound others meanwhile, and none that is newer.
    """
    if result.invariant is not Invariant.NO_STARVATION or not result.violations:
        return result
    waited = {each["metadata"]["uid"] for each in first.of(PODS) if is_waiting(each)}
    bound = [
        each
        for each in last.of(PODS)
        if each["spec"].get("nodeName") and each["metadata"]["uid"] in waited
    ]
    if not bound:
        return result
    newest = max(each["metadata"].get("creationTimestamp", "") for each in bound)
    queued = {
        f"pod {each['metadata'].get('namespace', '')}/{each['metadata']['name']}"
        for each in last.of(PODS)
        if is_waiting(each) and each["metadata"].get("creationTimestamp", "") >= newest
    }
    kept = tuple(each for each in result.violations if each.subject not in queued)
    count = len(result.violations) - len(kept)
    reason = f"the scheduler is busy: {count} pending pods wait for their turn; check again"
    return replace(result, violations=kept, unchecked=reason if count else result.unchecked)


def _restrict(result: InvariantResult, lasting: set[tuple[Invariant, str]]) -> InvariantResult:
    kept = [each for each in result.violations if (each.invariant, each.subject) in lasting]
    return replace(result, violations=tuple(kept))
