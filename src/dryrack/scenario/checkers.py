"""
Invariants of devices, claims, pods and gangs, checked at every write.

At every write, no device is allocated twice, and counters and capacity are not overdrawn. At rest,
when no fault is in force and no component writes, nothing is leaked (allocations without a user,
reservations for pods that are deleted or have no node, deletions that a finalizer blocks, objects
of deleted pods and nodes), every pod with devices starts, no gang is half bound, and every pool is
complete. A finalizer of a scheduler that crashed protects nothing; it goes with its claim, as in
Kubernetes.

A write costs what it changes, however large the cluster is. `check` checks a list of objects, such
as a dump.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from dryrack.client.endpoints import (
    CLAIMS,
    COSCHEDULING_POD_GROUPS,
    NODES,
    POD_GROUPS,
    PODS,
    SLICES,
)
from dryrack.kinds.core import Pod
from dryrack.kinds.decode import DecodeError, decode
from dryrack.kinds.expansion.pod_claims import is_group
from dryrack.kinds.paths import get, status_of
from dryrack.kinds.quantity import Quantity
from dryrack.kinds.scheduling import CoschedulingPodGroup, PodGroup, PodGroupV1Beta1
from dryrack.placement import Membership, definitions, membership
from dryrack.scenario.invariants.violations import Invariant, Violation

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from dryrack.kinds.raw import Raw
    from dryrack.placement import GangKey

_TERMINAL = ("Succeeded", "Failed")
_DELETED = "which no longer exists"
_DELETE_POD = "delete a Pod that uses one of these claims"
_UNRESERVE = "remove the entry from status.reservedFor; the resourceclaim controller may be down"
_GROUP_FIELDS = ("schedulingGroup", "workloadRef")
_GROUP_TYPES: Mapping[tuple[str, str], type[PodGroup | PodGroupV1Beta1 | CoschedulingPodGroup]] = {
    (POD_GROUPS.resource, PodGroup.API_VERSION): PodGroup,
    (POD_GROUPS.resource, PodGroupV1Beta1.API_VERSION): PodGroupV1Beta1,
    (COSCHEDULING_POD_GROUPS.resource, CoschedulingPodGroup.API_VERSION): CoschedulingPodGroup,
}
WATCHED = tuple(
    each.resource for each in (PODS, NODES, CLAIMS, SLICES, POD_GROUPS, COSCHEDULING_POD_GROUPS)
)


class _Device(NamedTuple):
    driver: str
    pool: str
    name: str

    def __str__(self) -> str:
        return "/".join(self)


class _Use(NamedTuple):
    """The use of a device by a claim; a share if it has an identifier."""

    share: str
    consumed: Mapping[str, str]


class Checkers:
    """Checks the writes of one cluster; see the docstring of the module."""

    def __init__(self) -> None:
        self._devices = _Devices()
        self._gangs = _Gangs()
        self._slices: dict[str, Raw] = {}
        self._claims: dict[str, Raw] = {}
        self._pods: dict[str, Raw] = {}
        self._nodes: set[str] = set()
        self._groups: set[str] = set()

    @property
    def pods(self) -> Mapping[str, Raw]:
        """Return the pods by UID."""
        return self._pods

    @property
    def claims(self) -> Iterable[Raw]:
        return self._claims.values()

    def see(self, resource: str, old: Raw | None, new: Raw | None) -> tuple[Violation, ...]:
        """Take a write, and return the violations that it causes."""
        if resource == CLAIMS.resource:
            _keep(self._claims, old, new)
            return tuple(self._devices.claim(old, new))
        if resource == PODS.resource:
            _keep(self._pods, old, new)
            self._gangs.pod(old, new)
        elif resource == SLICES.resource:
            _keep(self._slices, old, new)
            self._devices.slice(old, new)
        elif resource == NODES.resource:
            self._nodes.discard(_name(old)) if new is None else self._nodes.add(_name(new))
        elif resource in (POD_GROUPS.resource, COSCHEDULING_POD_GROUPS.resource):
            self._groups.discard(_uid(old)) if new is None else self._groups.add(_uid(new))
            self._gangs.group(resource, new)
        return ()

    def load(
        self, slices: Iterable[Raw], claims: Iterable[Raw], others: Iterable[tuple[str, Raw]]
    ) -> tuple[Violation, ...]:
        """Take all objects of a cluster at once, in linear time; return the violations."""
        for resource, obj in others:
            self.see(resource, None, obj)
        for each in slices:
            self.see(SLICES.resource, None, each)
        existing = tuple(claims)
        for each in existing:
            _keep(self._claims, None, each)
        return tuple(self._devices.load(existing))

    def assume_whole_gangs(self) -> None:
        """
        Take gangs as formerly whole whose pending pods are newer than the binding of the others.

        The past of existing pods is not known. A pod that replaces a lost member waits without a
        violation; a gang with a pod that was pending when others were bound is half bound.
        """
        self._gangs.assume_whole(self._pods)

    def at_rest(self) -> tuple[Violation, ...]:
        """Return the violations when nothing is under way, in order."""
        found = (*self._leaks(), *self._idle(), *self._gangs.half(), *self._incomplete())
        return tuple(sorted(found))

    def _idle(self) -> Iterator[Violation]:
        """Return violations for pods that have their devices and a node and do not start."""
        for claim in self._claims.values():
            status = status_of(claim)
            for user in get(status, "reservedFor", ()) if status.get("allocation") else ():
                pod = self._pods.get(user["uid"])
                if pod is None or _phase(pod) != "Pending" or not pod["spec"].get("nodeName"):
                    continue
                if self._devices.is_overdrawn(claim):
                    continue
                message = f"is bound to node {pod['spec']['nodeName']}, but does not start"
                fix = f"kubectl describe pod {_full_name(pod).partition('/')[2]} shows the reason"
                yield Violation(Invariant.NO_STARVATION, f"pod {_full_name(pod)}", message, fix)

    def _leaks(self) -> Iterator[Violation]:
        for claim in self._claims.values():
            for message, fix in self._claim_leaks(claim):
                yield Violation(Invariant.NO_LEAK, f"claim {_full_name(claim)}", message, fix)
        for pod in self._pods.values():
            node = pod["spec"].get("nodeName", "")
            subject = f"pod {_full_name(pod)}"
            if "deletionTimestamp" in pod["metadata"]:
                message = "has a deletionTimestamp, but still exists"
                fix = "check the kubelet of its node, or delete the Pod with --force"
                yield Violation(Invariant.NO_LEAK, subject, message, fix)
            if node and node not in self._nodes:
                message = f"is bound to node {node}, {_DELETED}"
                fix = "delete the Pod with --force"
                yield Violation(Invariant.NO_LEAK, subject, message, fix)
        for each in self._slices.values():
            node = each["spec"].get("nodeName", "")
            if node and node not in self._nodes:
                subject = f"slice {_name(each)}"
                message = f"belongs to node {node}, {_DELETED}"
                fix = "delete the ResourceSlice"
                yield Violation(Invariant.NO_LEAK, subject, message, fix)

    def _claim_leaks(self, claim: Raw) -> Iterator[tuple[str, str]]:
        """Yield what is left over of a claim, each with its fix."""
        metadata = claim["metadata"]
        status = status_of(claim)
        users = get(status, "reservedFor", ())
        is_allocated = bool(status.get("allocation"))
        if is_allocated and not users:
            yield (
                "is allocated, but not reserved for any pod",
                "delete the claim, or start a Pod that uses it",
            )
        for user in users:
            yield from self._user_leaks(user)
        # One that is in use goes when its users have.
        if "deletionTimestamp" in metadata and not users:
            kept = ", ".join(get(metadata, "finalizers", ()))
            yield (
                f"has a deletionTimestamp, but still exists; finalizers: {kept or 'none'}",
                "check the controllers of these finalizers, or remove the finalizers",
            )
        for owner in get(metadata, "ownerReferences", ()):
            if owner["kind"] == "Pod" and owner["uid"] not in self._pods:
                yield (
                    f"was created for pod {owner['name']}, {_DELETED}",
                    "delete the claim; the garbage collector may be down",
                )

    def _user_leaks(self, user: Raw) -> Iterator[tuple[str, str]]:
        if is_group(user):
            if user["uid"] not in self._groups:
                yield f"is reserved for PodGroup {user['name']}, {_DELETED}", _UNRESERVE
            return
        if user.get("resource") != "pods":
            return
        pod = self._pods.get(user["uid"])
        if pod is None:
            yield f"is reserved for pod {user['name']}, {_DELETED}", _UNRESERVE
        elif _phase(pod) in _TERMINAL:
            yield f"is reserved for pod {user['name']}, which has ended", _UNRESERVE
        elif not pod["spec"].get("nodeName"):
            yield (
                f"is reserved for pod {user['name']}, which is not bound to a node",
                "check the scheduler of the Pod, or delete the Pod",
            )

    def _incomplete(self) -> Iterator[Violation]:
        pools: dict[tuple[str, str], list[Raw]] = defaultdict(list)
        for each in self._slices.values():
            spec = each["spec"]
            pools[spec["driver"], spec["pool"]["name"]].append(spec["pool"])
        for (driver, name), parts in pools.items():
            newest = max(part.get("generation", 0) for part in parts)
            current = [part for part in parts if part.get("generation", 0) == newest]
            subject = f"pool {driver}/{name}"
            wanted = {part["resourceSliceCount"] for part in current}
            if wanted != {len(current)}:
                numbers = " and ".join(map(str, sorted(wanted)))
                message = f"generation {newest} has {len(current)} slices of {numbers}"
                fix = "restart the driver, which publishes the pool again"
                yield Violation(Invariant.COMPLETE_POOLS, subject, message, fix)
            if len(current) < len(parts):
                message = f"{len(parts) - len(current)} slices are of an older generation"
                fix = "delete the old ResourceSlices, or restart the driver"
                yield Violation(Invariant.COMPLETE_POOLS, subject, message, fix)


def check(objects: Iterable[tuple[str, Raw]], *, at_rest: bool) -> tuple[Violation, ...]:
    """
    Return the violations of these objects, each with its resource (`pods`, `resourceclaims.…`).
    """
    checkers = Checkers()
    by_kind: dict[str, list[Raw]] = defaultdict(list)
    for resource, obj in objects:
        by_kind[resource].append(obj)
    slices = by_kind.pop(SLICES.resource, [])
    claims = by_kind.pop(CLAIMS.resource, [])
    others = [(resource, obj) for resource, found in by_kind.items() for obj in found]
    violations = checkers.load(slices, claims, others)
    return tuple(sorted({*violations, *(checkers.at_rest() if at_rest else ())}))


@dataclass(slots=True)
class _PoolSupply:
    """The counters and capacity in the slices of a pool."""

    counters: dict[str, dict[tuple[str, str], int]] = field(default_factory=dict)
    """The value of each counter, by slice."""
    draws: dict[str, dict[str, dict[tuple[str, str], int]]] = field(default_factory=dict)
    """The counters that a device consumes, by slice and device."""
    capacity: dict[str, dict[str, dict[str, int]]] = field(default_factory=dict)
    """The capacity that can be shared, by slice and device."""


class _Devices:
    """The users of each device."""

    def __init__(self) -> None:
        self._uses: dict[_Device, dict[str, list[_Use]]] = defaultdict(dict)
        self._names: dict[str, str] = {}
        self._pools: dict[tuple[str, str], _PoolSupply] = defaultdict(_PoolSupply)
        self._in_use: dict[tuple[str, str], set[_Device]] = defaultdict(set)
        # Those that were on no slice for a while: what they draw was given away.
        self._missed: set[_Device] = set()

    def slice(self, old: Raw | None, new: Raw | None) -> None:
        each = new or old
        assert each is not None, "a write is of something"
        key = (each["spec"]["driver"], each["spec"]["pool"]["name"])
        self._put(self._pools[key], each, new)
        if not self._in_use.get(key):
            return
        drawing = {name for devices in self._pools[key].draws.values() for name in devices}
        self._missed |= {each for each in self._in_use[key] if each.name not in drawing}

    @staticmethod
    def _put(pool: _PoolSupply, each: Raw, new: Raw | None) -> None:
        spec = each["spec"]
        name = _name(each)
        for table in (pool.counters, pool.draws, pool.capacity):
            table.pop(name, None)
        if new is None:
            return
        pool.counters[name] = {
            (counters["name"], counter): _nanos(value["value"])
            for counters in get(spec, "sharedCounters", ())
            for counter, value in counters["counters"].items()
        }
        devices = get(spec, "devices", ())
        pool.draws[name] = {
            device["name"]: _draws(device) for device in devices if device.get("consumesCounters")
        }
        pool.capacity[name] = {
            device["name"]: {
                key: _nanos(value["value"]) for key, value in get(device, "capacity", {}).items()
            }
            for device in devices
            if device.get("allowMultipleAllocations")
        }

    def load(self, claims: Iterable[Raw]) -> Iterator[Violation]:
        """Take claims that exist already; yield the violations of all devices in use."""
        for claim in claims:
            for device, uses in _uses(claim).items():
                self._names[_uid(claim)] = _full_name(claim)
                self._uses[device][_uid(claim)] = uses
                self._in_use[device.driver, device.pool].add(device)
        for device in sorted(self._uses):
            yield from self._twice(device)
            yield from self._overdrawn_capacity(device)
        for pool, devices in sorted(self._in_use.items()):
            yield from self._overdrawn_counters(pool, {each.name for each in devices}, devices)

    def claim(self, old: Raw | None, new: Raw | None) -> Iterator[Violation]:
        before = _uses(old)
        after = _uses(new)
        claim = new or old
        assert claim is not None, "a write is of something"
        uid = _uid(claim)
        if old is not None and new is not None and _uid(old) != uid:
            before = {}
            _ = list(self.claim(old, None))
        if before == after:
            return
        self._names[uid] = _full_name(claim)
        for device in before:
            self._uses[device].pop(uid, None)
            if not self._uses[device]:
                del self._uses[device]
                self._in_use[device.driver, device.pool].discard(device)
                self._missed.discard(device)
        for device, uses in after.items():
            self._uses[device][uid] = uses
            self._in_use[device.driver, device.pool].add(device)
        if not after:
            self._names.pop(uid, None)
        for device in sorted(after.keys() - before.keys()):
            yield from self._twice(device)
            yield from self._overdrawn_capacity(device)
        fresh = after.keys() - before.keys()
        for pool in sorted({(each.driver, each.pool) for each in fresh}):
            known = self._in_use[pool] - self._missed
            yield from self._overdrawn_counters(pool, {each.name for each in fresh}, known)

    def is_overdrawn(self, claim: Raw) -> bool:
        """
        Return whether a device cannot be prepared beside others, although no allocation was wrong.

        A device that is lost draws on no counter, so another device of its card is allocated; when
        it is back, one of the two has to wait.
        """
        pools: dict[tuple[str, str], set[str]] = defaultdict(set)
        for each in _uses(claim):
            pools[each.driver, each.pool].add(each.name)
        return any(
            True
            for pool, names in pools.items()
            for _ in self._overdrawn_counters(pool, names, self._in_use[pool])
        )

    def _twice(self, device: _Device) -> Iterator[Violation]:
        uses = [use for uses in self._uses[device].values() for use in uses]
        shares = [use.share for use in uses]
        if len(uses) > 1 and ("" in shares or len(set(shares)) < len(shares)):
            message = f"is allocated to claims {self._holders([device])}"
            yield Violation(Invariant.ONE_HOLDER, f"device {device}", message, _DELETE_POD)

    def _overdrawn_capacity(self, device: _Device) -> Iterator[Violation]:
        if not any(use.consumed for uses in self._uses[device].values() for use in uses):
            return
        pool = self._pools[device.driver, device.pool]
        offered: dict[str, int] | None = next(
            (each[device.name] for each in pool.capacity.values() if device.name in each), None
        )
        if offered is None:
            return
        taken: dict[str, int] = defaultdict(int)
        for uses in self._uses[device].values():
            for use in uses:
                for key, amount in use.consumed.items():
                    taken[key] += _nanos(amount)
        for key in sorted(taken):
            if key in offered and taken[key] > offered[key]:
                message = f"claims {self._holders([device])} use more {key} than the device has"
                yield Violation(Invariant.CAPACITY, f"device {device}", message, _DELETE_POD)

    def _overdrawn_counters(
        self, pool: tuple[str, str], devices: Collection[str], in_use: Collection[_Device]
    ) -> Iterator[Violation]:
        """Return the overdrawn counters among those that these devices consume."""
        supply = self._pools[pool]
        left = {
            name: each for counters in supply.counters.values() for name, each in counters.items()
        }
        if not left:
            return
        draws = {name: each for tables in supply.draws.values() for name, each in tables.items()}
        looked_at = {place for name in devices for place in draws.get(name, ())}
        drawing = [each for each in in_use if each.name in draws]
        for device in drawing:
            for place, amount in draws[device.name].items():
                left[place] = left.get(place, 0) - amount
        for (counters, counter), rest in sorted(left.items()):
            if rest < 0 and (counters, counter) in looked_at:
                subject = f"pool {'/'.join(pool)}, counter {counters}/{counter}"
                message = f"claims {self._holders(drawing)} use more than the counter has"
                yield Violation(Invariant.COUNTERS, subject, message, _DELETE_POD)

    def _holders(self, devices: Iterable[_Device]) -> str:
        names = {self._names[uid] for device in devices for uid in self._uses[device]}
        return ", ".join(sorted(names))


@dataclass(slots=True)
class _Party:
    """The members of a gang, by their state."""

    min_count: int | None
    bound: set[str] = field(default_factory=set)
    waiting: set[str] = field(default_factory=set)
    was_whole: bool = False


class _Gangs:
    """The gangs that are bound in part or as a whole."""

    def __init__(self) -> None:
        self._of: dict[str, Membership | None] = {}
        self._parties: dict[GangKey, _Party] = {}
        self._minimums: dict[GangKey, int] = {}

    def pod(self, old: Raw | None, new: Raw | None) -> None:
        if old is not None and (new is None or _uid(new) != _uid(old)):
            said = self._of.pop(_uid(old), None)
            if said is not None:
                self._leave(said.key, _uid(old))
        if new is None:
            return
        uid = _uid(new)
        if uid not in self._of:
            self._of[uid] = _membership(new)
        said = self._of[uid]
        if said is None:
            return
        party = self._parties.setdefault(said.key, _Party(said.min_count))
        party.bound.discard(uid)
        party.waiting.discard(uid)
        if "deletionTimestamp" not in new["metadata"] and _phase(new) != "Failed":
            (party.bound if new["spec"].get("nodeName") else party.waiting).add(uid)
        self._judge(said.key, party)

    def group(self, resource: str, new: Raw | None) -> None:
        kind = _GROUP_TYPES.get((resource, (new or {}).get("apiVersion", "")))
        if new is None or kind is None:
            return
        for each in definitions(decode(new, kind)):
            self._minimums[each.key] = each.min_count

    def half(self) -> Iterator[Violation]:
        for key, party in self._parties.items():
            minimum = self._minimum(key, party)
            if party.was_whole or minimum is None or not 0 < len(party.bound) < minimum:
                continue
            message = f"{len(party.bound)} of {minimum} are bound, {len(party.waiting)} wait"
            fix = "free devices for the pending Pods, or delete the gang"
            yield Violation(Invariant.WHOLE_GANGS, str(key), message, fix)

    def assume_whole(self, pods: Mapping[str, Raw]) -> None:
        for party in self._parties.values():
            latest = max((bound_at(pods[uid]) for uid in party.bound), default="")
            created = (pods[uid]["metadata"].get("creationTimestamp", "") for uid in party.waiting)
            if party.bound and all(each > latest for each in created):
                party.was_whole = True

    def _leave(self, key: GangKey, uid: str) -> None:
        party = self._parties.get(key)
        if party is None:
            # All that are left are being deleted.
            return
        party.bound.discard(uid)
        party.waiting.discard(uid)
        if not party.bound and not party.waiting:
            del self._parties[key]
        else:
            self._judge(key, party)

    def _judge(self, key: GangKey, party: _Party) -> None:
        minimum = self._minimum(key, party)
        if not party.bound:
            # Who comes now is in another life of the gang.
            party.was_whole = False
        elif minimum is not None and len(party.bound) >= minimum:
            party.was_whole = True

    def _minimum(self, key: GangKey, party: _Party) -> int | None:
        return self._minimums.get(key.definition) if party.min_count is None else party.min_count


def _membership(pod: Raw) -> Membership | None:
    """Return the gang of a pod, or None; the labels rule out most pods."""
    labels = get(pod["metadata"], "labels", {})
    is_marked = any("pod-group" in label for label in labels)
    if not is_marked and not any(name in pod["spec"] for name in _GROUP_FIELDS):
        return None
    try:
        said = membership(decode(pod, Pod))
    except DecodeError:
        return None
    return said if isinstance(said, Membership) else None


def _uses(claim: Raw | None) -> dict[_Device, list[_Use]]:
    """Return the devices that a claim uses; admin access uses none."""
    allocation = get(claim or {}, "status.allocation", {})
    found: dict[_Device, list[_Use]] = defaultdict(list)
    for each in get(allocation, "devices.results", ()):
        if not each.get("adminAccess"):
            device = _Device(each["driver"], each["pool"], each["device"])
            use = _Use(each.get("shareID") or "", get(each, "consumedCapacity", {}))
            found[device].append(use)
    return dict(found)


def _draws(device: Raw) -> dict[tuple[str, str], int]:
    found: dict[tuple[str, str], int] = defaultdict(int)
    for consumption in device["consumesCounters"]:
        for counter, value in consumption["counters"].items():
            found[consumption["counterSet"], counter] += _nanos(value["value"])
    return dict(found)


def _keep(known: dict[str, Raw], old: Raw | None, new: Raw | None) -> None:
    if old is not None:
        known.pop(_uid(old), None)
    if new is not None:
        known[_uid(new)] = new


def bound_at(pod: Raw) -> str:
    """Return the time at which a pod got its node, or was created."""
    conditions = get(status_of(pod), "conditions", ())
    times = [
        each.get("lastTransitionTime") for each in conditions if each["type"] == "PodScheduled"
    ]
    return str(next(filter(None, times), pod["metadata"].get("creationTimestamp", "")))


def _nanos(text: Any) -> int:
    return Quantity.from_json(text).nanos


def _phase(pod: Raw) -> str:
    return str(status_of(pod).get("phase", ""))


def _name(obj: Raw | None) -> str:
    return str((obj or {})["metadata"]["name"])


def _uid(obj: Raw | None) -> str:
    return str((obj or {})["metadata"]["uid"])


def _full_name(obj: Raw) -> str:
    metadata = obj["metadata"]
    return f"{metadata.get('namespace', '')}/{metadata['name']}"
