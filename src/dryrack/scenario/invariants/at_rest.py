"""
Invariants at rest: prepared claims, disruption budgets, and pods that could be scheduled.

A claim is prepared on a virtual node if and only if its pod runs there; the drivers of virtual
nodes report what they hold, because the API does not show all of it. A PodDisruptionBudget allows
as many evictions as its pods justify: a wrong count allows too many at once, or none for ever. No
pod waits that the scheduler would place now: this finds a scheduler that has lost a pod from its
queue, or that counts free devices as taken.
"""

from __future__ import annotations

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


def find_unprepared_claims(
    drivers: VirtualDrivers, pods: Mapping[str, Raw], claims: Iterable[Raw]
) -> Iterator[Violation]:
    """Return violations for claims that are prepared without need, or needed and not prepared."""
    held = {driver: {each.uid for each in drivers.records(driver)} for driver in drivers.names}
    used = [claim for claim in claims if _allocation(claim)]
    for claim in used:
        names = ", ".join(_find_running(claim, pods))
        for driver in sorted(_drivers(claim) & held.keys()) if names else ():
            if claim["metadata"]["uid"] not in held[driver]:
                message = f"is not prepared by {driver}, and {names} runs with it"
                yield Violation(Invariant.PREPARED, f"claim {_name(claim)}", message)
    uids = {claim["metadata"]["uid"] for claim in used}
    for driver, found in sorted(held.items()):
        for uid in sorted(found - uids):
            message = f"is prepared by {driver}, and has no device"
            yield Violation(Invariant.NO_LEAK, f"claim with UID {uid}", message)


def _allocation(claim: Raw) -> Raw:
    found: Raw = get(claim, "status.allocation", {})
    return found


def _drivers(claim: Raw) -> Collection[str]:
    """Return the drivers that prepare devices of a claim."""
    results = get(_allocation(claim), "devices.results", ())
    return frozenset(each["driver"] for each in results if not skips_prepare(each))


def _find_running(claim: Raw, pods: Mapping[str, Raw]) -> Iterator[str]:
    for user in get(claim["status"], "reservedFor", ()):
        pod = pods.get(user["uid"], {})
        if get(pod, "status.phase") == "Running":
            yield f"pod {_name(pod)}"


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
                yield Violation(Invariant.BUDGETS, subject, message)


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


def _is_ours(pod: Pod) -> bool:
    """Return whether a pod waits only for the scheduler of a control plane."""
    is_named = (pod.spec.scheduler_name or DEFAULT_SCHEDULER) in SchedulerSettings().profiles
    return is_named and not pod.spec.scheduling_gates


def find_schedulable_pods(objects: Iterable[KubernetesObject]) -> Iterator[Violation]:
    """Return violations for pods and gangs that could be placed if all were tried now."""
    world = World.of(tuple(objects))
    waiting = [
        pod.full_name
        for pod in world.pods
        if not pod.spec.node_name and not pod.metadata.deletion_timestamp and _is_ours(pod)
    ]
    if not waiting:
        return
    found = what_if(world, Settings(chance=SeededChance()))
    for name in waiting:
        if name in found.nodes:
            message = f"is pending, although it fits on node {found.nodes[name]}"
            yield Violation(Invariant.NO_STARVATION, f"pod {name}", message)
