"""
Pods leave devices whose NoExecute taints their claims do not tolerate.

The taints are those that slices publish. When a claim's time with a tainted device is over, all
pods that use the claim are deleted; what frees the claim is then the usual way of things.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from dryrack.client.endpoints import CLAIMS, PODS, SLICES
from dryrack.client.informer import Name
from dryrack.controllers.claims.references import claims_of_pod
from dryrack.controllers.loop import Loop
from dryrack.controllers.nodes.eviction import evicted, leaves_at
from dryrack.controllers.objects import is_deleted, is_terminal, spec_of, status_of, uid_of
from dryrack.controllers.writes import NOTHING, Plan, Surroundings

Raw = dict[str, Any]
Device = tuple[str, str, str]
"""Driver, pool and name."""

REASON = "DeletionByDeviceTaintManager"
MESSAGE = "Device Taint manager: deleting due to NoExecute taint"


def plan(
    pod: Raw, claims: Iterable[Raw], taints: Mapping[Device, Sequence[Raw]], now: float
) -> Plan:
    """Whether and when a pod goes; `claims` are those it has reserved."""
    if is_deleted(pod) or is_terminal(pod) or not spec_of(pod).get("nodeName"):
        return NOTHING
    ends = [end for claim in claims for end in _ends(claim, taints, now)]
    deadline = min(ends, default=None)
    if deadline is None:
        return NOTHING
    if deadline > now:
        return Plan(again_seconds=deadline - now)
    return evicted(pod, REASON, MESSAGE, now)


def _ends(claim: Raw, taints: Mapping[Device, Sequence[Raw]], now: float) -> Iterator[float]:
    for result in results_of(claim):
        driving = [
            each for each in taints.get(device_of(result), ()) if each.get("effect") == "NoExecute"
        ]
        end = leaves_at(result.get("tolerations") or (), driving, now) if driving else None
        if end is not None:
            yield end


def results_of(claim: Raw) -> Sequence[Raw]:
    allocation = status_of(claim).get("allocation") or {}
    return (allocation.get("devices") or {}).get("results") or ()


def device_of(result: Raw) -> Device:
    return result["driver"], result["pool"], result["device"]


def taints_of(slices: Iterable[Raw]) -> Mapping[Device, Sequence[Raw]]:
    """The taints of devices, from the slices of each pool's newest generation."""
    every = list(slices)
    newest: dict[tuple[str, str], int] = {}
    for each in every:
        key, generation = _pool(each)
        newest[key] = max(generation, newest.get(key, generation))
    found: dict[Device, Sequence[Raw]] = {}
    for each in every:
        (driver, pool), generation = _pool(each)
        if generation == newest[driver, pool]:
            for device in spec_of(each).get("devices") or ():
                if device.get("taints"):
                    found[driver, pool, device["name"]] = device["taints"]
    return found


def _pool(resource_slice: Raw) -> tuple[tuple[str, str], int]:
    spec = spec_of(resource_slice)
    pool = spec["pool"]
    return (spec["driver"], pool["name"]), int(pool.get("generation") or 0)


class DeviceTaintEviction:
    """Watches slices, claims and pods."""

    def __init__(self, around: Surroundings) -> None:
        self._clock = around.clock
        self._pods = around.informers.of(PODS)
        self._claims = around.informers.of(CLAIMS)
        self._slices = around.informers.of(SLICES)
        self._by_pool = self._slices.index("pool", _pool_keys)
        self._by_device = self._claims.index("device", _device_keys)
        self._loop: Loop[Name] = Loop(
            around,
            "device-taint-eviction",
            self._decide,
            reads=(self._pods, self._claims, self._slices),
        )
        self._claims.listen(self._on_claim)
        self._slices.listen(self._on_slice)

    async def run(self) -> None:
        await self._loop.run()

    def _on_claim(self, old: Raw | None, new: Raw | None) -> None:
        if new is not None and results_of(new):
            self._add_consumers(new)

    def _on_slice(self, old: Raw | None, new: Raw | None) -> None:
        before, after = (taints_of([each]) if each else {} for each in (old, new))
        for device in sorted(set(before) | set(after)):
            if before.get(device) != after.get(device):
                for claim in self._by_device.get("/".join(device)):
                    self._add_consumers(claim)

    def _add_consumers(self, claim: Raw) -> None:
        for consumer in status_of(claim).get("reservedFor") or ():
            if consumer.get("resource") == "pods":
                self._loop.queue.add(Name(claim["metadata"]["namespace"], consumer["name"]))

    async def _decide(self, name: Name) -> Plan:
        pod = self._pods.objects.get(name)
        if pod is None:
            return NOTHING
        named = (each.claim for each in claims_of_pod(pod) if each.claim)
        found = (self._claims.get(name.namespace, each) for each in named)
        claims = [claim for claim in found if claim and _is_used_by(claim, pod)]
        pools = {device_of(each)[:2] for claim in claims for each in results_of(claim)}
        slices = [each for pool in sorted(pools) for each in self._by_pool.get("/".join(pool))]
        return plan(pod, claims, taints_of(slices), self._clock.now())


def _is_used_by(claim: Raw, pod: Raw) -> bool:
    consumers = status_of(claim).get("reservedFor") or ()
    return any(each.get("uid") == uid_of(pod) for each in consumers)


def _pool_keys(resource_slice: Raw) -> Sequence[str]:
    return ("/".join(_pool(resource_slice)[0]),)


def _device_keys(claim: Raw) -> Sequence[str]:
    return ["/".join(device_of(each)) for each in results_of(claim)]
