"""
ResourceSlices as offers: a claim gets devices that were published and match its requests.

An allocation has as many devices as its requests want, and each device matches the selectors of its
request. The devices are in complete pools of the newest generation. A scheduler may use a slightly
old state of the slices: as old as a watch can be late and a plan takes to be written. A device that
has not been on offer for longer than that must not be allocated.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import cache
from typing import TYPE_CHECKING

from dryrack.cel import (
    CompileError,
    Device,
    Environment,
    EvaluationError,
    Program,
    compile_expression,
)
from dryrack.client.endpoints import CLAIMS, SLICES
from dryrack.kinds.decode import decode
from dryrack.kinds.paths import get
from dryrack.kinds.resource import ResourceSlice
from dryrack.scenario.invariants.violations import Invariant, Violation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from dryrack.kinds.raw import Raw

# Watches are late by seconds, and a gang is written in a minute if every second request fails.
LATE_SECONDS_MAX = 90.0
_REALLOCATE = "delete the claim and its Pods, so that the scheduler allocates devices again"
_Pool = tuple[str, str]


class Offers:
    """The current pools, and since when incomplete pools are incomplete."""

    def __init__(self) -> None:
        self._slices: dict[_Pool, dict[str, Raw]] = defaultdict(dict)
        self._offered: dict[_Pool, dict[str, Device | None]] = defaultdict(dict)
        self._last_seen: dict[tuple[_Pool, str], float] = {}

    def see(
        self, resource: str, old: Raw | None, new: Raw | None, at: float
    ) -> tuple[Violation, ...]:
        """Take a write and its time, and return the violations that it causes."""
        if resource == SLICES.resource:
            each = new or old
            assert each is not None, "a write is of something"
            spec = each["spec"]
            name = each["metadata"]["name"]
            pool = (spec["driver"], spec["pool"]["name"])
            for device in self._offered.pop(pool, {}):
                self._last_seen[pool, device] = at
            if new is None:
                self._slices[pool].pop(name, None)
            else:
                self._slices[pool][name] = new
            self._offered[pool] = dict.fromkeys(_on_offer([*self._slices[pool].values()]))
        elif resource == CLAIMS.resource and new is not None:
            return tuple(self._claim(old, new, at))
        return ()

    def load(self, slices: Iterable[Raw]) -> None:
        """Take all slices of a cluster at once, in linear time."""
        for each in slices:
            spec = each["spec"]
            pool = (spec["driver"], spec["pool"]["name"])
            self._slices[pool][each["metadata"]["name"]] = each
        for pool, found in self._slices.items():
            self._offered[pool] = dict.fromkeys(_on_offer([*found.values()]))

    def judge(self, claim: Raw) -> Iterator[Violation]:
        """Return what is wrong with the existing allocation of a claim."""

        def find_problem(result: Raw) -> str:
            if self._is_offered(result, float("inf")):
                return ""
            slices = self._slices.get((result["driver"], result["pool"]), {}).values()
            devices = (device for each in slices for device in get(each["spec"], "devices", ()))
            # A device of an incomplete pool exists.
            is_published = any(device["name"] == result["device"] for device in devices)
            return "" if is_published else "is in no ResourceSlice"

        return self._judge(claim, find_problem)

    def _claim(self, old: Raw | None, new: Raw, at: float) -> Iterator[Violation]:
        """Return what is wrong with the new allocation of a claim."""
        if old is None or not _results(old):
            late = "is not published now and was not published recently"
            yield from self._judge(new, lambda it: "" if self._is_offered(it, at) else late)

    def _judge(self, claim: Raw, find_problem: Callable[[Raw], str]) -> Iterator[Violation]:
        results = _results(claim)
        subject = f"claim {claim['metadata'].get('namespace', '')}/{claim['metadata']['name']}"
        requests = dict(_requests(claim))
        for result in results:
            device = f"{result['driver']}/{result['pool']}/{result['device']}"
            if problem := find_problem(result):
                message = f"{device} {problem}"
                fix = "check the driver of the device, or delete the Pods that use the claim"
                yield Violation(Invariant.ON_OFFER, subject, message, fix)
            request = requests.get(result["request"], {})
            for expression in self._unmet(result, request):
                yield Violation(
                    Invariant.AS_REQUESTED, subject, f"{device} is not {expression}", _REALLOCATE
                )
        if not results:
            return
        counts = Counter(result["request"] for result in results)
        for name, given in sorted(counts.items()):
            request = requests.get(name, {})
            wanted = request.get("count", 1)
            if request.get("allocationMode", "ExactCount") == "ExactCount" and given != wanted:
                message = f"request {name} has {given} devices, but asks for {wanted}"
                yield Violation(Invariant.AS_REQUESTED, subject, message, _REALLOCATE)

    def _is_offered(self, result: Raw, at: float) -> bool:
        pool = (result["driver"], result["pool"])
        if result["device"] in self._offered.get(pool, {}):
            return True
        return at - self._last_seen.get((pool, result["device"]), -1e18) <= LATE_SECONDS_MAX

    def _unmet(self, result: Raw, request: Raw) -> Iterator[str]:
        expressions = [each["cel"]["expression"] for each in get(request, "selectors", ())]
        device = self._device(result) if expressions else None
        if device is None:
            return
        for expression in expressions:
            program = _program(expression)
            try:
                is_met = program is None or program.matches(device)
            except EvaluationError:
                is_met = False
            if not is_met:
                yield expression

    def _device(self, result: Raw) -> Device | None:
        """Return the device as selectors see it; None if it is no longer on offer."""
        pool = (result["driver"], result["pool"])
        offered = self._offered.get(pool, {})
        if result["device"] not in offered:
            return None
        if offered[result["device"]] is None:
            for each in self._slices[pool].values():
                for device in decode(each, ResourceSlice).spec.devices:
                    if device.name in offered:
                        offered[device.name] = Device(
                            pool[0],
                            device.attributes,
                            device.capacity,
                            device.allow_multiple_allocations,
                        )
        return offered[result["device"]]


@cache
def _program(expression: str) -> Program | None:
    environment = Environment(
        consumable_capacity=True, list_type_attributes=False, new_expressions=False
    )
    found = compile_expression(expression, environment)
    return None if isinstance(found, CompileError) else found


def _on_offer(slices: list[Raw]) -> Iterator[str]:
    """Return the names of the devices of a pool if it is complete."""
    pools = [each["spec"]["pool"] for each in slices]
    newest = max((pool.get("generation", 0) for pool in pools), default=0)
    current = [
        each["spec"] for each in slices if each["spec"]["pool"].get("generation", 0) == newest
    ]
    if all(spec["pool"]["resourceSliceCount"] == len(current) for spec in current):
        for spec in current:
            yield from (device["name"] for device in get(spec, "devices", ()))


def _results(claim: Raw) -> list[Raw]:
    allocation = get(claim, "status.allocation", {})
    found: list[Raw] = get(allocation, "devices.results", [])
    return found


def _requests(claim: Raw) -> Iterator[tuple[str, Raw]]:
    """Return requests and their alternatives, by the name that results use."""
    for request in get(claim["spec"].get("devices", {}), "requests", ()):
        if request.get("exactly"):
            yield request["name"], request["exactly"]
        for each in get(request, "firstAvailable", ()):
            yield f"{request['name']}/{each['name']}", each
