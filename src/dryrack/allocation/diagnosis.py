"""
The reasons of a walk without a solution, device by device.

A walk remembers how far it came: the most devices it had chosen at once, and the ask that then
found none. The reasons are those of that moment, from the same checks: the status of each device
in the table, and, for usable devices, the conflict with the choices up to there. Other asks are
named if too few devices are usable for them in any case. A request with subrequests is named for
each of them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from difflib import get_close_matches
from typing import TYPE_CHECKING

from dryrack.allocation.demand.constraints import MISSING, MatchState
from dryrack.allocation.demand.requests import RESULTS_MAX
from dryrack.allocation.model.errors import AllocationError
from dryrack.allocation.model.identity import claim_name
from dryrack.allocation.model.reasons import TAKEN, Code, Reason
from dryrack.allocation.search.problem import FAILED, OPTIONAL_OPERATIONS, UNKNOWN, USABLE
from dryrack.allocation.search.walk import Walk
from dryrack.allocation.supply.taints import blocking_taints
from dryrack.cel.selector_parts import unmet_parts
from dryrack.kinds.quantity import Format, Quantity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dryrack.allocation.search.problem import Problem, RequestRow
    from dryrack.cel.selector_parts import UnmetPart


# How a fact begins that is about a device which the same pod has already.
_CHOSEN = "chosen for"
_GUARD = "guard the selector, or correct the attributes of the device"


def diagnose(walk: Walk) -> tuple[Reason, ...]:
    """Return the reasons of a walk without a solution; the ask that got stuck comes first."""
    return tuple(_Diagnosis(walk).reasons())


class _Diagnosis:
    def __init__(self, walk: Walk) -> None:
        self._problem: Problem = walk.problem
        self._walk = walk
        self._moment = Walk(walk.problem)
        self._moment.replay(walk.deepest)
        self._chosen_for = {device: row for row, device in walk.deepest}

    def reasons(self) -> Iterator[Reason]:
        named: set[str] = set()
        for row in self._culprits():
            named.add(row.ask.claim_name)
            details = [self._of_device(row, device) for device in self._devices(row)]
            yield self._summary(row, details)
            for pool in self._problem.pools:
                if pool.incomplete:
                    have, want = pool.incomplete
                    yield self._reason(
                        row,
                        str(pool.id),
                        Code.POOL_INCOMPLETE,
                        f"{have} of {want} ResourceSlices exist",
                        "publish the whole pool in one generation",
                    )
                if pool.invalid:
                    yield self._reason(
                        row, str(pool.id), Code.POOL_INVALID, pool.invalid, "correct the slices"
                    )
            yield from (reason for reason in details if reason is not None)
        limited = self._walk.limited
        if limited is not None:
            named.add(limited.ask.claim_name)
            yield self._over_limit(limited)
        for claim in map(claim_name, self._problem.claims):
            if named and claim not in named:
                yield Reason(
                    claim=claim,
                    request="",
                    device="",
                    code=Code.OTHER_CLAIM,
                    fact="all claims of a pod are allocated together; the scheduler cannot "
                    f"allocate {_list(named)}",
                    remedy=f"see {_list(named)}",
                )

    def _culprits(self) -> list[RequestRow]:
        stuck = self._walk.stuck
        ways = [] if stuck is None else list(self._problem.requests[stuck.request])
        for others in self._problem.requests:
            if others[0] not in ways and all(map(self._short, others)):
                ways.extend(others)
        return ways

    def _short(self, row: RequestRow) -> bool:
        if row.ask.takes_all and not row.all_devices:
            return True
        return sum(self._status(row, device) == USABLE for device in self._devices(row)) < row.count

    def _devices(self, row: RequestRow) -> range | list[int]:
        if row.ask.takes_all and row.all_devices:
            return row.all_devices
        return range(len(self._problem.devices))

    def _status(self, row: RequestRow, device: int) -> int:
        code = row.status[device]
        return self._problem.judge(row, device) if code == UNKNOWN else code

    def _summary(self, row: RequestRow, details: list[Reason | None]) -> Reason:
        wanted = "all devices" if row.ask.takes_all else _count(row.count, "device")
        if not self._problem.devices:
            fact = f"needs {wanted}; node {self._problem.node.metadata.name} has no devices"
            remedy = "publish a complete pool of devices for the node"
            summary = self._reason(row, "", Code.NO_DEVICES, fact, remedy)
            return replace(summary, lacking=max(1, row.count))
        if row.ask.takes_all and not row.all_devices:
            fact = "needs all matching devices; none matches"
            remedy = "at least one is needed"
            return replace(self._reason(row, "", Code.NO_DEVICES, fact, remedy), lacking=1)
        together = details.count(None)
        lacking = row.count - together
        fact = f"needs {wanted}; {self._had(row, details)}"
        none = all(each is not None and each.code is Code.CLASS_SELECTOR for each in details)
        code = Code.NO_DEVICES if none else Code.NOT_ENOUGH
        summary = self._reason(row, "", code, fact, f"{lacking} more needed")
        return replace(summary, lacking=lacking)

    def _had(self, row: RequestRow, details: list[Reason | None]) -> str:
        """Return how many devices of the class are available, or that the class selects none."""
        codes = Counter(None if reason is None else reason.code for reason in details)
        meant = len(details) - codes[Code.CLASS_SELECTOR]
        if not meant:
            name = row.ask.device_class.metadata.name
            node = self._problem.node.metadata.name
            return f"class {name} selects none of {_count(len(details), 'device')} of node {node}"
        other = sum(each is not None and each.fact.startswith(_CHOSEN) for each in details)
        codes[Code.IN_USE] -= other
        taken = [f"{codes[code]} {words}" for code, words in TAKEN.items() if codes[code]]
        taken += [f"{other} {_CHOSEN} other requests"] if other else []
        because = f" ({', '.join(taken)})" if taken else ""
        verb = "is" if codes[None] == 1 else "are"
        return f"{codes[None]} of {meant} {verb} available{because}"

    def _over_limit(self, row: RequestRow) -> Reason:
        fact = f"{row.count} more devices exceed the limit of {RESULTS_MAX} devices per claim"
        return self._reason(row, "", Code.TOO_MANY_RESULTS, fact, "request fewer devices")

    def _of_device(self, row: RequestRow, device: int) -> Reason | None:
        """Return why the device is not available; None if the search chose it for this request."""
        if self._chosen_for.get(device) is row:
            return None
        code = self._status(row, device)
        if code == Code.IN_USE:
            # The search stops here, but a device that no selector matches is not a reason.
            code = self._unmatched_code(row, device) or code
        if code == USABLE:
            return self._chosen_against(row, device)
        if code == FAILED:
            named = str(self._problem.devices[device].id)
            return self._reason(row, named, Code.SELECTOR_ERROR, row.failures[device], _GUARD)
        return self._refusal_reason(row, device, Code(code))

    def _unmatched_code(self, row: RequestRow, device: int) -> Code | None:
        """Return whose selectors do not match the device; ignore selectors that fail."""
        shape = self._problem.devices[device].shape
        selectors = self._problem.context.selectors
        if selectors.judge(row.ask.class_selectors, shape) is False:
            return Code.CLASS_SELECTOR
        if selectors.judge(row.ask.selectors, shape) is False:
            return Code.REQUEST_SELECTOR
        return None

    def _reason(self, row: RequestRow, device: str, code: Code, fact: str, remedy: str) -> Reason:
        ask = row.ask
        return Reason(
            claim=ask.claim_name,
            request=ask.label,
            device=device,
            code=code,
            fact=fact,
            remedy=remedy,
        )

    def _chosen_against(self, row: RequestRow, device: int) -> Reason:
        """Return why the device does not fit with the devices that are chosen already."""
        named = str(self._problem.devices[device].id)
        other = self._chosen_for.get(device)
        if other is not None and not self._problem.shareable(device):
            fact = f"{_CHOSEN} request {other.ask.label}"
            if other.ask.claim_name != row.ask.claim_name:
                fact += f" of claim {other.ask.claim_name}"
            return self._reason(row, named, Code.IN_USE, fact, "add a device like it")
        code = self._moment.refusal(row, device)
        if code is not None:
            return self._refusal_reason(row, device, code)
        try:
            broken = self._moment.broken(row, device)
        except AllocationError as error:
            # The search never came to this device.
            return self._reason(row, named, Code.SELECTOR_ERROR, str(error), _GUARD)
        if broken is not None:
            return self._refusal_reason(row, device, Code.CONSTRAINT)
        fact = "fits alone, but not together with the other requests"
        return self._reason(row, named, Code.COMBINATION, fact, "request less in total")

    def _refusal_reason(self, row: RequestRow, device: int, code: Code) -> Reason:
        fact, remedy = _FACTS[code](self, row, device)
        reason = self._reason(row, str(self._problem.devices[device].id), code, fact, remedy)
        if code in (Code.REQUEST_SELECTOR, Code.CLASS_SELECTOR):
            ask = row.ask
            of_class = code is Code.CLASS_SELECTOR
            parts = self._unmet(ask.class_selectors if of_class else ask.selectors, device)
            return replace(reason, distance=sum(part.distance for part in parts))
        if code is Code.CAPACITY_SHORT:
            return replace(reason, left=self._left(row, device))
        return reason

    # One fact and one remedy for each code.

    def _class_selector(self, row: RequestRow, device: int) -> tuple[str, str]:
        name = row.ask.device_class.metadata.name
        facts = "; ".join(part.fact for part in self._unmet(row.ask.class_selectors, device))
        fact = f"class {name} does not select it: {facts.replace('the selector', 'the class')}"
        return fact, "use a class that selects it"

    def _request_selector(self, row: RequestRow, device: int) -> tuple[str, str]:
        parts = self._unmet(row.ask.selectors, device)
        return "; ".join(part.fact for part in parts), "relax the selector"

    def _unmet(self, expressions: tuple[str, ...], device: int) -> tuple[UnmetPart, ...]:
        shape = self._problem.devices[device].shape
        return unmet_parts(expressions, shape, self._problem.context.selectors)

    def _left(self, row: RequestRow, device: int) -> Quantity | None:
        """Return the amount that a request can still have of the capacity that is short."""
        misfit = self._problem.misfit(row, device)
        if misfit is not None and misfit.wanted is not None and misfit.lacking is not None:
            return misfit.wanted - misfit.lacking
        short = self._short_capacity(row, device)
        return None if short is None else Quantity.of(short[1], short[3])

    def _in_use(self, row: RequestRow, device: int) -> tuple[str, str]:
        identity = self._problem.devices[device].id
        holder = self._problem.context.allocated.holders.get(identity)
        return (f"in use by claim {holder}" if holder else "in use"), "free it"

    def _node(self, row: RequestRow, device: int) -> tuple[str, str]:
        node = self._problem.node
        if (
            self._problem.devices[device].slice.spec.skip_node_operations
            and OPTIONAL_OPERATIONS not in node.status.declared_features
            and self._problem.context.features.optional_node_operations
        ):
            fact = f"its slice skips node operations, which node {node.metadata.name} cannot do"
            return fact, f"use a node that declares the feature {OPTIONAL_OPERATIONS}"
        return f"not available on node {node.metadata.name}", "use a node that the device is for"

    def _incompatible(self, row: RequestRow, device: int) -> tuple[str, str]:
        groups = sorted(
            group
            for consumption in self._problem.devices[device].device.consumes_counters
            for group in consumption.compatibility_groups
        )
        own = (
            f"has the compatibility groups {', '.join(groups)}"
            if groups
            else ("has no compatibility group")
        )
        fact = f"{own}, which do not match those of other devices of its counter set"
        return fact, "free these devices"

    def _gate_off(self, row: RequestRow, device: int) -> tuple[str, str]:
        if self._problem.devices[device].device.binding_conditions:
            gates = "DRADeviceBindingConditions and DRAResourceClaimDeviceStatus"
            return "has binding conditions, but their feature gates are off", f"enable {gates}"
        operations = self._problem.devices[device].slice.spec.skip_node_operations
        if operations and not self._problem.context.features.optional_node_operations:
            return (
                "its slice skips node operations, but the feature gate is off",
                f"enable {OPTIONAL_OPERATIONS}",
            )
        return (
            "consumes counters, but the feature gate of partitionable devices is off",
            "enable DRAPartitionableDevices",
        )

    def _capacity(self, row: RequestRow, device: int) -> tuple[str, str]:
        misfit = self._problem.misfit(row, device)
        if misfit is None:
            return self._crowded_fact(row, device)
        if misfit.lacking is not None:
            return f"{misfit.name} is short by {misfit.lacking}", "request less, or free some"
        if row.status[device] == Code.CAPACITY_ABSENT:
            name = misfit.name
            known = sorted(self._problem.devices[device].device.capacity)
            if not known:
                return f"has no capacity {name}; it has no capacities", "request no capacity"
            bare = name.rpartition("/")[2]
            meant = [each for each in known if each.rpartition("/")[2] == bare]
            meant = meant or get_close_matches(name, known, n=1)
            remedy = f"request {meant[0]}" if meant else "request a capacity that it has"
            return f"has no capacity {name}; it has {', '.join(known)}", remedy
        return (
            f"its request policy does not allow {misfit.wanted} of {misfit.name}",
            f"request {self._allowed_amounts(device, misfit.name)}",
        )

    def _allowed_amounts(self, device: int, name: str) -> str:
        """Return the amounts that the request policy of a device allows."""
        capacity = self._problem.devices[device].device.capacity.get(name)
        policy = capacity.request_policy if capacity is not None else None
        if policy is not None and policy.valid_values:
            return " or ".join(map(str, policy.valid_values))
        if policy is None or policy.valid_range is None:
            return "an allowed amount"
        least, most, step = (getattr(policy.valid_range, key) for key in ("min", "max", "step"))
        to = f" to {most}" if most is not None else " or more"
        return f"{least}{to}{f', in steps of {step}' if step is not None else ''}"

    def _crowded_fact(self, row: RequestRow, device: int) -> tuple[str, str]:
        short = self._short_capacity(row, device)
        if short is None:
            return "capacity is short", "request less, or free some"
        name, left, need, form = short
        return f"{name} is short by {Quantity.of(need - left, form)}", "request less, or free some"

    def _short_capacity(self, row: RequestRow, device: int) -> tuple[str, int, int, Format] | None:
        """Return the first capacity that is short after the choices so far: left and needed."""
        room = self._moment.room(device)
        capacity = self._problem.devices[device].device.capacity
        for (name, each), left, need in zip(capacity.items(), room, row.needs[device], strict=True):
            if left < need:
                return name, left, need, each.value.format
        return None

    def _counters(self, row: RequestRow, device: int) -> tuple[str, str]:
        ledger = self._problem.ledger
        drawn = self._moment.drawn
        remedy = "free a device that consumes it"
        for number, amount in self._problem.draws[device]:
            left = ledger.left[number] - drawn.get(number, 0)
            if left < amount:
                name = ledger.names[number]
                lacking = Quantity.of(amount - left, self._format(device, name.counter))
                return f"counter {name.counter_set}/{name.counter} is short by {lacking}", remedy
        return "too little is left of a counter of its pool", remedy

    def _format(self, device: int, counter: str) -> Format:
        for consumption in self._problem.devices[device].device.consumes_counters:
            if counter in consumption.counters:
                return consumption.counters[counter].value.format
        return Format.DECIMAL_SI

    def _taint_fact(self, row: RequestRow, device: int) -> tuple[str, str]:
        offered = self._problem.devices[device].device
        taints = blocking_taints(offered, row.ask.tolerations)
        texts = ", ".join(_taint(taint.key, taint.value, taint.effect) for taint in taints)
        return f"tainted {texts}", "tolerate the taint, or remove it"

    def _constraint(self, row: RequestRow, device: int) -> tuple[str, str]:
        for constraint in () if row.ask.derived else row.constraints:
            if self._problem.columns[constraint.number][device] == MISSING:
                return f"has no attribute {constraint.attribute}", "give it the attribute"
        broken = self._moment.broken(row, device)
        if broken is None:
            return "a constraint would not be satisfied", "relax the constraint"
        match = isinstance(self._moment.states[broken.number], MatchState)
        differs = "differs from" if match else "is the same as"
        fact = f"{broken.attribute} {differs} that of a device chosen before"
        return fact, f"remove {broken.kind.value}, or add devices that satisfy it"


_FACTS = {
    Code.CLASS_SELECTOR: _Diagnosis._class_selector,
    Code.REQUEST_SELECTOR: _Diagnosis._request_selector,
    Code.IN_USE: _Diagnosis._in_use,
    Code.NODE: _Diagnosis._node,
    Code.GATE_OFF: _Diagnosis._gate_off,
    Code.CAPACITY_ABSENT: _Diagnosis._capacity,
    Code.CAPACITY_POLICY: _Diagnosis._capacity,
    Code.CAPACITY_SHORT: _Diagnosis._capacity,
    Code.COUNTER_SHORT: _Diagnosis._counters,
    Code.INCOMPATIBLE: _Diagnosis._incompatible,
    Code.TAINTED: _Diagnosis._taint_fact,
    Code.CONSTRAINT: _Diagnosis._constraint,
}


def _taint(key: str, value: str, effect: str) -> str:
    return f"{key}={value}:{effect}" if value else f"{key}:{effect}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _list(names: set[str]) -> str:
    return ", ".join(f"claim {name}" for name in sorted(names))
