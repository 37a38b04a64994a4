"""
Invariants at rest: prepared claims, disruption budgets, and pods that could be scheduled.

A claim is prepared on a node if and only if its pod runs there. The API does not show all prepared
claims, so drivers report theirs. A PodDisruptionBudget allows as many evictions as its pods
justify: a wrong count allows too many at once, or none at all. No pod is pending that the scheduler
would place now: this finds a scheduler that has lost a pod from its queue, or that counts free
devices as allocated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dryrack.cluster import SeededChance
from dryrack.kinds.decode import decode
from dryrack.kinds.expansion.pod_claims import skips_prepare
from dryrack.kinds.meta import LabelSelector
from dryrack.kinds.paths import get, status_of
from dryrack.kinds.selectors import matches_labels
from dryrack.placement import Settings, World, what_if
from dryrack.scenario.invariants.violations import Invariant, Violation
from dryrack.scheduler import SchedulerSettings

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from dryrack.kinds.core import Pod
    from dryrack.kinds.meta import KubernetesObject
    from dryrack.kinds.raw import Raw
    from dryrack.kubeletplugin import VirtualDrivers


@dataclass(frozen=True, slots=True)
class PreparedClaims:
    """The claims that a driver has prepared."""

    driver: str
    uids: frozenset[str]
    node: str = ""
    """The node of the driver; empty for all nodes together."""


def prepared_by(drivers: VirtualDrivers) -> tuple[PreparedClaims, ...]:
    """Return the claims that the drivers of virtual nodes have prepared."""
    return tuple(
        PreparedClaims(driver, frozenset(each.uid for each in drivers.records(driver)))
        for driver in sorted(drivers.names)
    )


def drivers_in_use(claims: Iterable[Raw]) -> frozenset[str]:
    """Return the drivers that prepare devices of claims with a user."""
    used = (each for each in claims if get(status_of(each), "reservedFor", ()))
    return frozenset(driver for each in used for driver in _drivers(each))


def find_unprepared_claims(
    prepared: Iterable[PreparedClaims], pods: Mapping[str, Raw], claims: Iterable[Raw]
) -> Iterator[Violation]:
    """Return violations for claims that are prepared without need, or needed and not prepared."""
    known = {(each.driver, each.node): each for each in prepared}
    used = [claim for claim in claims if _allocation(claim)]
    for claim in used:
        for driver in sorted(_drivers(claim)):
            running = {get(pod, "spec.nodeName", ""): pod for pod in _find_running(claim, pods)}
            records = (
                (known.get((driver, node)) or known.get((driver, "")), node) for node in running
            )
            names = ", ".join(
                f"pod {_name(running[node])}"
                for record, node in records
                if record is not None and claim["metadata"]["uid"] not in record.uids
            )
            if names:
                message = f"is not prepared by {driver}, and {names} runs with it"
                fix = "restart the driver; if that does not help, delete the Pod"
                yield Violation(Invariant.PREPARED, f"claim {_name(claim)}", message, fix)
    uids = {claim["metadata"]["uid"] for claim in used}
    for (driver, node), each in sorted(known.items()):
        for uid in sorted(each.uids - uids):
            message = f"is prepared by {driver}{f' on node {node}' if node else ''}"
            fix = "restart the driver, or unprepare the claim on the node"
            subject = f"claim with UID {uid}"
            yield Violation(Invariant.NO_LEAK, subject, f"{message}, and has no device", fix)


def _allocation(claim: Raw) -> Raw:
    found: Raw = get(status_of(claim), "allocation", {})
    return found


def _drivers(claim: Raw) -> Collection[str]:
    """Return the drivers that prepare devices of a claim."""
    results = get(_allocation(claim), "devices.results", ())
    return frozenset(each["driver"] for each in results if not skips_prepare(each))


def _find_running(claim: Raw, pods: Mapping[str, Raw]) -> Iterator[Raw]:
    for user in get(claim["status"], "reservedFor", ()):
        pod = pods.get(user["uid"], {})
        if get(pod, "status.phase") == "Running":
            yield pod


def _name(obj: Raw) -> str:
    return f"{obj['metadata'].get('namespace', '')}/{obj['metadata']['name']}"


def find_miscounted_budgets(budgets: Iterable[Raw], pods: Iterable[Raw]) -> Iterator[Violation]:
    """
    Return violations for the budgets whose status does not match their pods.

    Budgets whose controller reports that it could not count are skipped.
    """
    present = tuple(pods)
    for budget in budgets:
        metadata = budget["metadata"]
        status = status_of(budget)
        if any(each.get("reason") == "SyncFailed" for each in get(status, "conditions", ())):
            continue
        counted = {key: status.get(key, 0) for key in _COUNTS}
        for key, wanted in _counts(budget, present).items():
            if counted[key] != wanted:
                subject = f"budget {metadata.get('namespace', '')}/{metadata['name']}"
                message = f"{key} is {counted[key]}, and should be {wanted}"
                fix = "the disruption controller may be down; restart it"
                yield Violation(Invariant.BUDGETS, subject, message, fix)


_COUNTS = ("observedGeneration", "currentHealthy", "disruptionsAllowed")


def _counts(budget: Raw, pods: Iterable[Raw]) -> Mapping[str, int]:
    """Return the counts that do not depend on the expected number of pods."""
    status = status_of(budget)
    healthy = sum(_is_healthy(pod) for pod in pods if _covers(budget, pod))
    spare = max(0, healthy - status.get("desiredHealthy", 0))
    return {
        "observedGeneration": budget["metadata"].get("generation", 0),
        "currentHealthy": healthy,
        "disruptionsAllowed": spare if status.get("expectedPods") else 0,
    }


def _covers(budget: Raw, pod: Raw) -> bool:
    if pod["metadata"].get("namespace") != budget["metadata"].get("namespace"):
        return False
    selector = get(budget, "spec.selector")
    labels = get(pod["metadata"], "labels", {})
    return selector is not None and matches_labels(decode(selector, LabelSelector), labels)


def _is_healthy(pod: Raw) -> bool:
    conditions = get(pod, "status.conditions", ())
    is_ready = any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
    return is_ready and "deletionTimestamp" not in pod["metadata"]


DEFAULT_SCHEDULER = "default-scheduler"


def is_waiting(pod: Raw) -> bool:
    """Return whether a pod waits for a node."""
    return not pod["spec"].get("nodeName") and "deletionTimestamp" not in pod["metadata"]


def _is_ours(pod: Pod) -> bool:
    """Return whether a pod waits only for the scheduler of a control plane."""
    is_named = (pod.spec.scheduler_name or DEFAULT_SCHEDULER) in SchedulerSettings().profiles
    return is_named and not pod.spec.scheduling_gates


def find_schedulable_pods(
    objects: Iterable[KubernetesObject], scheduling: SchedulerSettings | None = None
) -> Iterator[Violation]:
    """
    Return violations for pods and gangs that could be placed if all were tried now.

    With plugins that reject bindings it is not known, so there are none.
    """
    profiles = {} if scheduling is None else scheduling.profiles
    if any(profile.binding_plugins for profile in profiles.values()):
        return
    world = World.of(tuple(objects))
    waiting = [
        pod.full_name
        for pod in world.pods
        if not pod.spec.node_name and not pod.metadata.deletion_timestamp and _is_ours(pod)
    ]
    if not waiting:
        return
    found = what_if(world, Settings(chance=SeededChance(), profiles=profiles))
    for name in waiting:
        if name in found.nodes:
            message = f"is pending, although it fits on node {found.nodes[name]}"
            fix = f"check the scheduler; dryrack explain pod/{name} shows its decision"
            yield Violation(Invariant.NO_STARVATION, f"pod {name}", message, fix)
