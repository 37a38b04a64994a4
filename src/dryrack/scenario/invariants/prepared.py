"""
Prepared claims: at rest, a claim is prepared on a virtual node if and only if its pod runs there.

The drivers of virtual nodes report what they hold; the API does not show all of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.kinds.paths import get
from dryrack.scenario.invariants.violations import Invariant, Violation

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from dryrack.kinds.raw import Raw
    from dryrack.kubeletplugin import VirtualDrivers


def unprepared(
    drivers: VirtualDrivers, pods: Mapping[str, Raw], claims: Iterable[Raw]
) -> Iterator[Violation]:
    """Return violations for claims that are prepared without need, or needed and not prepared."""
    held = {driver: {each.uid for each in drivers.records(driver)} for driver in drivers.names}
    used = [claim for claim in claims if _allocation(claim)]
    for claim in used:
        names = ", ".join(_running(claim, pods))
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
    results = get(_allocation(claim), "devices.results", ())
    return frozenset(each["driver"] for each in results)


def _running(claim: Raw, pods: Mapping[str, Raw]) -> Iterator[str]:
    for user in get(claim["status"], "reservedFor", ()):
        pod = pods.get(user["uid"], {})
        if get(pod, "status.phase") == "Running":
            yield f"pod {_name(pod)}"


def _name(obj: Raw) -> str:
    return f"{obj['metadata'].get('namespace', '')}/{obj['metadata']['name']}"
