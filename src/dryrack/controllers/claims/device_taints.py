"""
What a DeviceTaintRule has done so far, or would do, as a condition of its status.

The message counts: pods that have to go, pods that went. It is renewed at once when the rule is
new or changed, and then no more often than every ten seconds.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from dryrack.allocation import DeviceId, evicts_from
from dryrack.client.endpoints import TAINT_RULES
from dryrack.client.informer import Name, name_of
from dryrack.client.timekeeping import seconds_of, timestamp
from dryrack.controllers.claims.references import claims_of_pod, is_reserved_for
from dryrack.controllers.objects import condition_of, is_deleted, spec_of, uid_of
from dryrack.controllers.writes import NOTHING, Apply, Plan
from dryrack.kinds.decode import decode
from dryrack.kinds.expansion.workloads import tolerates
from dryrack.kinds.paths import get
from dryrack.kinds.raw import Raw
from dryrack.kinds.resource import DeviceTaintRule

PERIOD_SECONDS = 10.0
MANAGER = "device-taint-eviction-controller"
CONDITION = "EvictionInProgress"
_WITHOUT_EFFECT = (
    "if the effect was NoExecute. This information will not be updated again. "
    "Recreate the DeviceTaintRule to trigger an update."
)


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


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule as it is stored, and as it selects."""

    raw: Raw
    decoded: DeviceTaintRule

    @classmethod
    def of(cls, raw: Raw) -> "Rule":
        return cls(raw, decode(raw, DeviceTaintRule))

    @property
    def effect(self) -> str:
        return str(self.taint.get("effect") or "")

    @property
    def taint(self) -> Raw:
        return get(self.raw, "spec.taint", {})

    def selects(self, device: DeviceId) -> bool:
        return evicts_from(self.decoded, device)

    def drives(self, result: Raw) -> bool:
        """Whether the holder of a device that was allocated so has to go, now or later."""
        if not self.selects(device_of(result)):
            return False
        return tolerated_seconds(result, {**self.taint, "effect": NO_EXECUTE}) is not None


@dataclass(frozen=True, slots=True)
class Counts:
    """What a rule is about."""

    pending: int = 0
    namespaces: int = 0
    published: int = 0
    allocated: int = 0
    evicted: int = 0


@dataclass(slots=True)
class Rules:
    """The rules that there are, and what was done by each since the start."""

    known: dict[str, Rule] = field(default_factory=dict)
    evicted: dict[str, int] = field(default_factory=dict)

    def change(self, name: str, old: Raw | None, new: Raw | None) -> None:
        if new is not None:
            self.known[name] = Rule.of(new)
        else:
            self.known.pop(name, None)
            self.evicted.pop(uid_of(old or new or {"metadata": {}}), None)

    def on(self, device: DeviceId) -> Iterable[Driving]:
        """The taints of rules that drive out from a device."""
        for name in sorted(self.known):
            rule = self.known[name]
            if rule.effect == NO_EXECUTE and rule.selects(device):
                yield Driving(rule.taint, uid_of(rule.raw))

    def named(self, uids: Iterable[str]) -> list[str]:
        wanted = set(uids)
        return [name for name, rule in sorted(self.known.items()) if uid_of(rule.raw) in wanted]

    def count(self, uids: Iterable[str]) -> None:
        """That a pod went because of these."""
        for uid in uids:
            self.evicted[uid] = self.evicted.get(uid, 0) + 1


def plan_status(rule: Rule, counted: Callable[[], Counts], now: float) -> Plan:
    """The condition, if it is time for it and it says something else than before."""
    before = condition_of(rule.raw, CONDITION)
    generation = rule.raw["metadata"].get("generation", 0)
    if before is not None and before.get("observedGeneration", 0) == generation:
        wait = PERIOD_SECONDS - (now - seconds_of(before["lastTransitionTime"]))
        if wait > 0:
            return Plan(again_seconds=wait)
    status, reason, message = _told(rule, counted())
    condition = {"type": CONDITION, "status": status, "reason": reason, "message": message}
    condition |= {"observedGeneration": generation}
    if before is not None and {**before, "lastTransitionTime": ""} == {
        **condition,
        "lastTransitionTime": "",
    }:
        return NOTHING
    condition["lastTransitionTime"] = timestamp(now)
    metadata = {"name": rule.raw["metadata"]["name"], "uid": uid_of(rule.raw)}
    reported = {"metadata": metadata, "status": {"conditions": [condition]}}
    return Plan((Apply(TAINT_RULES, reported, MANAGER, "status"),))


def _told(rule: Rule, counts: Counts) -> tuple[str, str, str]:
    status = "False"
    reason = "OtherEffect"
    parts = []
    if rule.effect == NO_EXECUTE:
        reason = "Completed" if counts.evicted else "NotStarted"
        if counts.pending:
            status = "True"
            reason = "PodsPendingEviction"
            pods = _some(counts.pending, "pod needs", "pods need")
            parts.append(f"{pods} to be evicted in {_namespaces(counts)}.")
    elif rule.effect == "None":
        reason = "NoEffect"
        parts.append(_foreseen(counts))
    else:
        parts.append("Eviction only happens for the NoExecute effect.")
    if counts.evicted:
        parts.append(
            f"{_some(counts.evicted, 'pod', 'pods')} evicted since starting the controller."
        )
    return status, reason, " ".join(parts)


def _foreseen(counts: Counts) -> str:
    published = _some(counts.published, "published device", "published devices")
    allocated = _some(counts.allocated, "allocated device", "allocated devices")
    pods = _some(counts.pending, "pod", "pods")
    return (
        f"{published} selected. {allocated} selected. {pods} would be evicted in "
        f"{_namespaces(counts)} {_WITHOUT_EFFECT}"
    )


def _namespaces(counts: Counts) -> str:
    return _some(counts.namespaces, "namespace", "different namespaces")


def _some(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"


def pending(
    rule: Rule, claims: Iterable[Raw], consumers: Callable[[Raw], Iterable[Raw]]
) -> list[Name]:
    """
    Return the pods that have to go because of a rule, now or later, whatever its effect is.

    `consumers` are the pods that a claim is reserved for. Not every pod of a group uses the claims
    of the group.
    """
    found = {
        name_of(pod)
        for claim in claims
        if any(rule.drives(result) for result in results_of(claim))
        for pod in consumers(claim)
        if spec_of(pod).get("nodeName")
        and not is_deleted(pod)
        and is_reserved_for(claim, pod)
        and any(each.claim == claim["metadata"]["name"] for each in claims_of_pod(pod))
    }
    return sorted(found)


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
