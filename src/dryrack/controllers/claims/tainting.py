"""
Which NoExecute taints are on devices, and when they drive those out who use them.

A taint is published with a device, or a DeviceTaintRule puts it on every device that it selects.
A claim tolerates what the allocation of the device says that it does. Only a toleration that
names the effect NoExecute counts here, whatever it does for scheduling: the real controller reads
them so.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from dryrack.allocation import DeviceId
from dryrack.client.timekeeping import seconds_of
from dryrack.controllers.objects import spec_of
from dryrack.kinds.expansion.workloads import tolerates
from dryrack.kinds.paths import get
from dryrack.kinds.raw import Raw

NO_EXECUTE = "NoExecute"


class Driving(NamedTuple):
    """A taint that drives out, and the uid of its rule; "" if it is published."""

    taint: Raw
    rule: str = ""


TaintsOn = Callable[[DeviceId], Iterable[Driving]]


class Eviction(NamedTuple):
    """When somebody has to go, and the rules that are among the reasons, by uid."""

    when: float
    rules: frozenset[str]


def eviction_from(claims: Iterable[Raw], taints_on: TaintsOn, now: float) -> Eviction | None:
    """When those go who use these claims; None: never."""
    ends: list[float] = []
    rules: set[str] = set()
    for claim in claims:
        for end, rule in _ends(claim, taints_on, now):
            ends.append(end)
            rules.add(rule)
    return Eviction(min(ends), frozenset(rules - {""})) if ends else None


def _ends(claim: Raw, taints_on: TaintsOn, now: float) -> Iterator[tuple[float, str]]:
    for result in results_of(claim):
        for driving in taints_on(device_of(result)):
            seconds = tolerated_seconds(result, driving.taint)
            if seconds is not None:
                added = driving.taint.get("timeAdded")
                yield (seconds_of(added) if added else now) + seconds, driving.rule


def tolerated_seconds(result: Raw, taint: Raw) -> float | None:
    """How long the holder of a device may stay after a taint was added; None: for good."""
    limits = [
        toleration.get("tolerationSeconds")
        for toleration in get(result, "tolerations", ())
        if toleration.get("effect") == NO_EXECUTE and tolerates(toleration, taint)
    ]
    if None in limits:
        return None
    return min((max(0, limit) for limit in limits if limit is not None), default=0)


def results_of(claim: Raw) -> Sequence[Raw]:
    allocation = get(claim, "status.allocation", {})
    return get(allocation, "devices.results", ())


def device_of(result: Raw) -> DeviceId:
    return DeviceId(result["driver"], result["pool"], result["device"])


def published_devices(slices: Iterable[Raw]) -> Iterator[tuple[DeviceId, Raw]]:
    """The devices of each pool's newest generation."""
    every = list(slices)
    newest: dict[tuple[str, str], int] = {}
    for each in every:
        key, generation = pool_of(each)
        newest[key] = max(generation, newest.get(key, generation))
    for each in every:
        (driver, pool), generation = pool_of(each)
        if generation == newest[driver, pool]:
            for device in get(each, "spec.devices", ()):
                yield DeviceId(driver, pool, device["name"]), device


def pool_of(resource_slice: Raw) -> tuple[tuple[str, str], int]:
    """Driver and name of the pool of a slice, and its generation."""
    spec = spec_of(resource_slice)
    pool = spec["pool"]
    return (spec["driver"], pool["name"]), int(pool.get("generation") or 0)


def taints_of(slices: Iterable[Raw]) -> Mapping[DeviceId, Sequence[Raw]]:
    """The taints that drive out and are published, by device."""
    found = {
        device: [taint for taint in get(raw, "taints", ()) if taint.get("effect") == NO_EXECUTE]
        for device, raw in published_devices(slices)
    }
    return {device: taints for device, taints in found.items() if taints}
