"""
NoExecute taints of devices, and the status of the DeviceTaintRules that set them.

A taint is published with a device, or a DeviceTaintRule sets it on every device that it selects. A
claim tolerates a taint if the allocation of the device has a toleration. As in the real controller,
only a toleration with the effect NoExecute counts here, whatever it does for scheduling.

A condition of a rule counts the pods that have to be deleted and those that were deleted. It is
written at once for a new or changed rule, and then at most every ten seconds.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from dryrack.allocation import DeviceId, evicts_from
from dryrack.client.endpoints import TAINT_RULES
from dryrack.client.informer import Name, name_of
from dryrack.client.timekeeping import seconds_of, timestamp
from dryrack.controllers.claims.references import claims_of_pod, is_reserved_for
from dryrack.controllers.objects import condition_of, in_version_of, is_deleted, spec_of, uid_of
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


class NoExecuteTaint(NamedTuple):
    """A NoExecute taint, and the UID of its rule; "" if it is published."""

    taint: Raw
    rule: str = ""


TaintsOn = Callable[[DeviceId], Iterable[NoExecuteTaint]]


class Eviction(NamedTuple):
    """The time of an eviction, and the UIDs of the rules that cause it."""

    when: float
    rules: frozenset[str]


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule as it is stored, and decoded."""

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

    def evicts(self, result: Raw) -> bool:
        """Return True if the pods of an allocated device are evicted, now or later."""
        if not self.selects(device_of(result)):
            return False
        return tolerated_seconds(result, {**self.taint, "effect": NO_EXECUTE}) is not None


@dataclass(frozen=True, slots=True)
class Counts:
    """The numbers in the condition of a rule."""

    pending: int = 0
    namespaces: int = 0
    published: int = 0
    allocated: int = 0
    evicted: int = 0


@dataclass(slots=True)
class Rules:
    """The existing rules, and the evictions of each since the start."""

    known: dict[str, Rule] = field(default_factory=dict)
    evicted: dict[str, int] = field(default_factory=dict)

    def change(self, name: str, old: Raw | None, new: Raw | None) -> None:
        if new is not None:
            self.known[name] = Rule.of(new)
        else:
            self.known.pop(name, None)
            self.evicted.pop(uid_of(old or new or {"metadata": {}}), None)

    def on(self, device: DeviceId) -> Iterable[NoExecuteTaint]:
        """Yield the NoExecute taints of rules on a device."""
        for name in sorted(self.known):
            rule = self.known[name]
            if rule.effect == NO_EXECUTE and rule.selects(device):
                yield NoExecuteTaint(rule.taint, uid_of(rule.raw))

    def named(self, uids: Iterable[str]) -> list[str]:
        wanted = set(uids)
        return [name for name, rule in sorted(self.known.items()) if uid_of(rule.raw) in wanted]

    def count(self, uids: Iterable[str]) -> None:
        """Count the eviction of a pod for rules."""
        for uid in uids:
            self.evicted[uid] = self.evicted.get(uid, 0) + 1


def plan_status(rule: Rule, count: Callable[[], Counts], now: float) -> Plan:
    """Return the write of the condition, if it is due and differs from the present one."""
    before = condition_of(rule.raw, CONDITION)
    generation = rule.raw["metadata"].get("generation", 0)
    if before is not None and before.get("observedGeneration", 0) == generation:
        wait = PERIOD_SECONDS - (now - seconds_of(before["lastTransitionTime"]))
        if wait > 0:
            return Plan(again_seconds=wait)
    status, reason, message = _judge(rule, count())
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
    return Plan((Apply(in_version_of(TAINT_RULES, rule.raw), reported, MANAGER, "status"),))


def _judge(rule: Rule, counts: Counts) -> tuple[str, str, str]:
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
        published = _some(counts.published, "published device", "published devices")
        allocated = _some(counts.allocated, "allocated device", "allocated devices")
        pods = _some(counts.pending, "pod", "pods")
        parts.append(
            f"{published} selected. {allocated} selected. {pods} would be evicted in "
            f"{_namespaces(counts)} {_WITHOUT_EFFECT}"
        )
    else:
        parts.append("Eviction only happens for the NoExecute effect.")
    if counts.evicted:
        parts.append(
            f"{_some(counts.evicted, 'pod', 'pods')} evicted since starting the controller."
        )
    return status, reason, " ".join(parts)


def _namespaces(counts: Counts) -> str:
    return _some(counts.namespaces, "namespace", "different namespaces")


def _some(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"


def find_pending(
    rule: Rule, claims: Iterable[Raw], consumers: Callable[[Raw], Iterable[Raw]]
) -> list[Name]:
    """
    Return the pods that a rule evicts, now or later, whatever its effect is.

    `consumers` are the pods that a claim is reserved for. Not every pod of a group uses the claims
    of the group.
    """
    names = {
        name_of(pod)
        for claim in claims
        if any(rule.evicts(result) for result in results_of(claim))
        for pod in consumers(claim)
        if spec_of(pod).get("nodeName")
        and not is_deleted(pod)
        and is_reserved_for(claim, pod)
        and any(each.claim == claim["metadata"]["name"] for each in claims_of_pod(pod))
    }
    return sorted(names)


def eviction_from(claims: Iterable[Raw], taints_on: TaintsOn, now: float) -> Eviction | None:
    """Return when the pods with these claims are evicted, or None."""
    ends: list[float] = []
    rules: set[str] = set()
    for claim in claims:
        for result in results_of(claim):
            for each in taints_on(device_of(result)):
                seconds = tolerated_seconds(result, each.taint)
                if seconds is not None:
                    added = each.taint.get("timeAdded")
                    ends.append((seconds_of(added) if added else now) + seconds)
                    rules.add(each.rule)
    return Eviction(min(ends), frozenset(rules - {""})) if ends else None


def tolerated_seconds(result: Raw, taint: Raw) -> float | None:
    """Return how long a pod may use a device after a taint was added; None: forever."""
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
    """Yield the devices of each pool's newest generation."""
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
    """Return the driver and the name of a slice's pool, and its generation."""
    spec = spec_of(resource_slice)
    pool = spec["pool"]
    return (spec["driver"], pool["name"]), int(pool.get("generation") or 0)


def taints_of(slices: Iterable[Raw]) -> Mapping[DeviceId, Sequence[Raw]]:
    """Return the published NoExecute taints, by device."""
    by_device = {
        device: [taint for taint in get(raw, "taints", ()) if taint.get("effect") == NO_EXECUTE]
        for device, raw in published_devices(slices)
    }
    return {device: taints for device, taints in by_device.items() if taints}
