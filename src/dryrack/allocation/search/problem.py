"""
One attempt, ready to be searched: the claims of a pod against the devices of a node.

Everything that can be said about a request and a device without knowing what else will be
chosen is said here, once, when it is first needed, and kept as a small number in a table:
usable, refused for a reason, or an error. The search then only looks at what changes while it
chooses. What is refused here for a reason, the search would have refused every time, without
any other effect; what is an error stops the attempt when, and only when, the search asks.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from dryrack import cel
from dryrack.allocation.demand.constraints import (
    MISSING,
    Column,
    Constraint,
    ConstraintKind,
    new_column,
)
from dryrack.allocation.demand.requests import RESULTS_MAX, Ask, asks_of, check_gates
from dryrack.allocation.model.errors import AllocationError
from dryrack.allocation.model.features import Features, Release
from dryrack.allocation.model.identity import claim_name
from dryrack.allocation.model.reasons import Code
from dryrack.allocation.supply.capacity import CapacityMisfit, CapacityRules, Misfit
from dryrack.allocation.supply.counters import CounterLedger
from dryrack.allocation.supply.taints import blocking_taints
from dryrack.cel.selectors import SelectorFailure, SelectorTable, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence

    from dryrack.allocation.model.identity import DeviceId, PoolId
    from dryrack.allocation.proof.search_memo import SearchMemo
    from dryrack.allocation.supply.pools import Pool, PooledDevice
    from dryrack.allocation.supply.usage import Taken
    from dryrack.kinds.core import Node
    from dryrack.kinds.quantity import Quantity
    from dryrack.kinds.resource import DeviceClass, DeviceRequest, ResourceClaim

# What the table says about an ask and a device; refusals are the codes above these.
UNKNOWN = 0
USABLE = 1
FAILED = 2

# Keeps usable and failed, makes every refusal one and the same.
FOLD = bytes(code if code in (USABLE, FAILED) else 0 for code in range(256))

_MISFIT = {
    Misfit.ABSENT: Code.CAPACITY_ABSENT,
    Misfit.POLICY: Code.CAPACITY_POLICY,
    Misfit.SHORT: Code.CAPACITY_SHORT,
}


def selector_compiler(
    features: Features, release: Release = Release.V1_36
) -> Callable[[str], cel.Program | cel.CompileError]:
    """Return the compiler of a scheduler, which takes selectors that are stored already."""
    environment = cel.Environment(
        consumable_capacity=features.consumable_capacity,
        # From 1.37 on a stored expression may look at lists whatever the gate says.
        list_type_attributes=features.list_type_attributes or release is not Release.V1_36,
        new_expressions=False,
    )
    return partial(cel.compile_expression, env=environment)


@dataclass(frozen=True, slots=True)
class AllocatorContext:
    """What all attempts of one allocator share."""

    features: Features
    release: Release
    classes: Mapping[str, DeviceClass]
    allocated: Taken
    selectors: SelectorTable
    endings: SearchMemo

    @property
    def rules(self) -> CapacityRules:
        return CapacityRules.of(self.release, self.features)

    def is_counted(self, device: DeviceId) -> bool:
        """Whether further shares of a device that is in use draw no counters."""
        if device in self.allocated.capacity:
            return True
        # Up to 1.36 only a share that consumes capacity is seen to have drawn already.
        return self.release is not Release.V1_36 and self.allocated.is_shared(device)


@dataclass(frozen=True, slots=True)
class Site:
    """
    Where a claim is to be used: on all of these nodes, or, if that is open, on any of them.

    `pools` are those of which one of the nodes sees something; None, if that is all there are.
    """

    nodes: tuple[Node, ...]
    is_open: bool = False
    pools: frozenset[PoolId] | None = None
    # Of the nodes, if it is open.
    names: frozenset[str] = field(init=False, default=frozenset())

    def __post_init__(self) -> None:
        if self.is_open:
            names = frozenset(node.metadata.name for node in self.nodes)
            object.__setattr__(self, "names", names)

    def sees(self, pooled: PooledDevice) -> bool:
        """Whether a claim that is used there can have the device."""
        if self.is_open:
            # Of many nodes the one that a device is for is found by its name.
            name = pooled.where.node_name
            return name in self.names if name else any(map(pooled.is_for, self.nodes))
        return all(map(pooled.is_for, self.nodes)) and (len(self.nodes) == 1 or not pooled.is_tied)


class RequestRow:
    """An ask with its place in the attempt and its row of the table."""

    __slots__ = (
        "all_devices",
        "ask",
        "by_class",
        "by_request",
        "claim",
        "constraints",
        "count",
        "failures",
        "name_of",
        "needs",
        "order",
        "request",
        "status",
        "sub",
    )

    def __init__(self, ask: Ask, *, claim: int, request: int, sub: int, status: bytearray) -> None:
        self.ask = ask
        # What the selectors of its class and its own said about each shape so far.
        self.by_class: dict[cel.Device, Verdict] = {}
        self.by_request: dict[cel.Device, Verdict] = {}
        self.claim = claim
        # Counted through all claims.
        self.request = request
        # The first request of the claim with this name; the API allows no second.
        self.name_of = request
        self.sub = sub
        self.count = ask.count
        self.constraints: tuple[Constraint, ...] = ()
        self.all_devices: list[int] = []
        self.status = status
        self.failures: dict[int, str] = {}
        # What a share of each shareable device would consume, in the order of its capacities.
        self.needs: dict[int, tuple[int, ...]] = {}
        # The devices worth looking at, in order.
        self.order: Sequence[int] = range(len(status))

    def share_row(self, rows: dict[Hashable, RequestRow]) -> None:
        """Use the row of an ask of the claim of which the same would be said."""
        ask = self.ask
        if ask.takes_all:
            return
        key = (
            ask.device_class.metadata.name,
            ask.selectors,
            ask.tolerations,
            tuple((name, quantity.text) for name, quantity in ask.capacity.items()),
            ask.admin,
            self.constraints,
            self.count > 1,
        )
        other = rows.setdefault(key, self)
        self.status = other.status
        self.failures = other.failures
        self.needs = other.needs


class Problem:
    """The attempt. Building it raises what Kubernetes refuses before it searches."""

    def __init__(
        self,
        surroundings: AllocatorContext,
        node: Node,
        pools: Sequence[Pool],
        claims: Sequence[ResourceClaim],
        sites: Sequence[Site] = (),
    ) -> None:
        """`sites` are those of the claims, if they are not all to be used on the node."""
        self.surroundings = surroundings
        self.node = node
        self.pools = pools
        self.claims = claims
        self._are_apart = bool(sites)
        self.sites = sites or (Site((node,)),) * len(claims)
        self.devices: list[PooledDevice] = []
        self.pool_of: list[Pool] = []
        self._spans: list[tuple[Pool, int, int]] = []
        self._lay_out()
        self._row = self._taken_before()
        self.ledger = CounterLedger(surroundings.allocated.in_use)
        self.draws: dict[int, tuple[tuple[int, int], ...]] = {}
        self.constraints: list[Constraint] = []
        self.columns: list[Column] = []
        # One entry per request of all claims: the ways to satisfy it.
        self.requests: list[tuple[RequestRow, ...]] = []
        self.has_admin = False
        self._rules = surroundings.rules
        self._shared_columns: dict[str, Column] = {}
        for index, claim in enumerate(claims):
            self._add_claim(index, claim)

    def freeze(self) -> None:
        """What is in use was looked at for the last time; what happens from now on is no matter."""
        allocated = self.surroundings.allocated.snapshot(each.id for each in self.devices)
        self.surroundings = replace(self.surroundings, allocated=allocated)

    def _lay_out(self) -> None:
        start = 0
        for pool in self.pools:
            end = start + len(pool.devices)
            self.devices += pool.devices
            self.pool_of += [pool] * len(pool.devices)
            self._spans.append((pool, start, end))
            start = end

    def _taken_before(self) -> bytearray:
        """The row of the table that says no more than which devices are in use."""
        allocated = self.surroundings.allocated
        row = bytearray(len(self.devices))
        for pool, start, end in self._spans:
            in_use = allocated.in_use(pool.id)
            for index in range(start, end) if in_use else ():
                device = self.devices[index]
                if device.device.name in in_use and device.id in allocated.devices:
                    row[index] = Code.IN_USE
        return row

    def _add_claim(self, index: int, claim: ResourceClaim) -> None:
        first = len(self.requests)
        names: dict[str, int] = {}
        least = sum([self._add_request(index, each, names) for each in claim.spec.devices.requests])
        if least > RESULTS_MAX:
            raise AllocationError(
                f"claim {claim_name(claim)}: number of requested devices {least} "
                f"exceeds the claim limit of {RESULTS_MAX}"
            )
        if claim.spec.devices.constraints:
            self._add_constraints(index, claim)
        slates = [slate for slates in self.requests[first:] for slate in slates]
        if self.constraints:
            for slate in slates:
                slate.constraints = tuple(self._covering(slate))
        if len(slates) > 1:
            rows: dict[Hashable, RequestRow] = {}
            for slate in slates:
                slate.share_row(rows)

    def _add_request(self, claim_index: int, request: DeviceRequest, names: dict[str, int]) -> int:
        """Add a request; returns the fewest devices that satisfy it."""
        claim = self.claims[claim_index]
        surroundings = self.surroundings
        check_gates(claim, request, surroundings.features)
        slates: list[RequestRow] = []
        for sub, draft in enumerate(asks_of(claim, request, surroundings.classes)):
            ask = draft.checked(surroundings.features)
            slate = RequestRow(
                ask,
                claim=claim_index,
                request=len(self.requests),
                sub=sub,
                status=bytearray(len(self.devices)) if ask.admin else bytearray(self._row),
            )
            slate.by_class = surroundings.selectors.verdicts(ask.class_selectors)
            slate.by_request = surroundings.selectors.verdicts(ask.selectors)
            if ask.takes_all:
                slate.all_devices = list(self._all_devices(slate))
                slate.count = len(slate.all_devices)
            slate.name_of = names.setdefault(ask.base, slate.request)
            self.has_admin |= ask.admin
            slates.append(slate)
        self.requests.append(tuple(slates))
        return min([slate.count for slate in slates])

    def _add_constraints(self, claim_index: int, claim: ResourceClaim) -> None:
        for position, written in enumerate(claim.spec.devices.constraints):
            if written.match_attribute is not None:
                kind = ConstraintKind.MATCH
                attribute = written.match_attribute
            elif written.distinct_attribute is not None:
                kind = ConstraintKind.DISTINCT
                attribute = written.distinct_attribute
            else:
                raise AllocationError(
                    f"claim {claim_name(claim)}, constraint #{position}: "
                    "empty constraint (unsupported constraint type?)"
                )
            number = len(self.constraints)
            requests = frozenset(written.requests)
            self.constraints.append(Constraint(number, claim_index, kind, attribute, requests))
            self.columns.append(self._column(attribute))

    def _column(self, attribute: str) -> Column:
        column = self._shared_columns.get(attribute)
        if column is None:
            features = self.surroundings.features
            column = new_column(attribute, self.devices, features)
            self._shared_columns[attribute] = column
        return column

    def _covering(self, slate: RequestRow) -> Iterator[Constraint]:
        ask = slate.ask
        subrequest = None if ask.parent is None else ask.name
        for constraint in self.constraints:
            if constraint.claim == slate.claim and constraint.covers(ask.base, subrequest):
                yield constraint

    def _all_devices(self, slate: RequestRow) -> Iterator[int]:
        where = f"claim {slate.ask.claim_name}, request {slate.ask.name}: asks for all devices"
        seen = self.sites[slate.claim].pools
        for pool, start, end in self._spans:
            if seen is not None and pool.id not in seen:
                continue
            if pool.incomplete:
                raise AllocationError(
                    f"{where}, but resource pool {pool.id} is currently being updated",
                    remedy="wait until its driver has published the whole pool",
                )
            if pool.invalid:
                raise AllocationError(
                    f"{where}, but resource pool {pool.id} is currently invalid",
                    remedy="correct the slices of the pool",
                )
            for device in range(start, end):
                if self._belongs_to_all(slate, device):
                    yield device

    def _belongs_to_all(self, slate: RequestRow, device: int) -> bool:
        code = self._unselectable(slate, device)
        if code == FAILED:
            raise AllocationError(slate.failures[device], device=str(self.devices[device].id))
        if code or not self.surroundings.features.consumable_capacity:
            return not code
        if self.surroundings.release is Release.V1_36:
            return self.misfit(slate, device) is None
        try:
            return self.misfit(slate, device, allocated={}) is None
        except AllocationError as error:
            name = self.devices[device].device.name
            raise self._capacity_error(slate, name, error) from error

    # The table.

    def judge(self, slate: RequestRow, device: int) -> int:
        """Fill in, and return, what the table says about the ask and the device."""
        code = self._judge(slate, device)
        slate.status[device] = code
        return code

    def _judge(self, slate: RequestRow, device: int) -> int:
        if not slate.ask.takes_all or not slate.all_devices:
            code = self._unselectable(slate, device) or self._unfit(slate, device)
            if code:
                return code
        code = self._drained(device) or self._tainted(slate, device)
        if code or slate.ask.takes_all:
            return code or USABLE
        return self._lacking_attribute(slate, device) or USABLE

    def _unselectable(self, slate: RequestRow, device: int) -> int:
        pooled = self.devices[device]
        features = self.surroundings.features
        if self._are_apart:
            code = self._off_site(slate, device)
            if code:
                return code
        if pooled.device.binding_conditions and not features.device_binding_and_status:
            return Code.GATE_OFF
        code = self._by_selectors(slate, device)
        if code:
            return code
        if pooled.slice.spec.per_device_node_selection and not self._are_apart:
            return self._off_site(slate, device)
        return 0

    def _by_selectors(self, slate: RequestRow, device: int) -> int:
        ask = slate.ask
        selectors = self.surroundings.selectors
        shape = self.devices[device].shape
        verdict = slate.by_class.get(shape)
        if verdict is None:
            verdict = selectors.judge(ask.class_selectors, shape)
        if verdict is not True:
            owner = f"class {ask.device_class.metadata.name}"
            return self._not_selected(slate, device, owner, verdict) or Code.CLASS_SELECTOR
        if not ask.selectors:
            return 0
        verdict = slate.by_request.get(shape)
        if verdict is None:
            verdict = selectors.judge(ask.selectors, shape)
        if verdict is not True:
            owner = f"claim {ask.claim_name}"
            return self._not_selected(slate, device, owner, verdict) or Code.REQUEST_SELECTOR
        return 0

    def _not_selected(
        self, slate: RequestRow, device: int, owner: str, verdict: bool | SelectorFailure
    ) -> int:
        if not isinstance(verdict, SelectorFailure):
            return 0
        place, message = f"selector #{verdict.index}", verdict.message
        if verdict.stage == "runtime" and self.surroundings.release is not Release.V1_36:
            place = f"{place} on device {self.devices[device].id}"
            if "no such key:" in message:
                message += _HINT
        slate.failures[device] = f"{owner}: {place}: CEL {verdict.stage} error: {message}"
        return FAILED

    def _off_site(self, slate: RequestRow, device: int) -> int:
        try:
            here = self.sites[slate.claim].sees(self.devices[device])
        except AllocationError as error:
            slate.failures[device] = str(error)
            return FAILED
        return 0 if here else Code.NODE

    def _unfit(self, slate: RequestRow, device: int) -> int:
        if not self.surroundings.features.consumable_capacity:
            return 0
        offered = self.devices[device].device
        if not offered.capacity and not slate.ask.capacity:
            return 0
        try:
            misfit = self.misfit(slate, device)
        except AllocationError as error:
            named = str(self.devices[device].id)
            slate.failures[device] = str(self._capacity_error(slate, named, error))
            return FAILED
        return _MISFIT[misfit.kind] if misfit else 0

    @staticmethod
    def _capacity_error(slate: RequestRow, device: str, error: AllocationError) -> AllocationError:
        where = f"claim {slate.ask.claim_name}, request {slate.ask.name}"
        return AllocationError(f"{where}: checking capacity for device {device}: {error}")

    def misfit(
        self,
        slate: RequestRow,
        device: int,
        allocated: Mapping[str, Quantity] | None = None,
    ) -> CapacityMisfit | None:
        """What is wrong with the device's capacity, before anything is chosen."""
        pooled = self.devices[device]
        consumed = self._rules.consumption(pooled.device.capacity, slate.ask.capacity)
        if isinstance(consumed, CapacityMisfit):
            return consumed
        if allocated is None:
            allocated = self.surroundings.allocated.capacity.get(pooled.id, {})
        misfit = self._rules.misfit(pooled.device.capacity, consumed, allocated)
        if misfit is None and pooled.device.allow_multiple_allocations:
            slate.needs[device] = tuple(amount.nanos for amount in consumed.values())
        return misfit

    def consumed(self, slate: RequestRow, device: int) -> dict[str, Quantity]:
        """What a share of the device consumes, for the result."""
        capacity = self.devices[device].device.capacity
        consumed = self._rules.consumption(capacity, slate.ask.capacity)
        assert not isinstance(consumed, CapacityMisfit), "the search chose a misfit"
        return consumed

    def room(self, device: int) -> list[int]:
        """What each capacity of a shareable device has left before anything is chosen."""
        pooled = self.devices[device]
        allocated = self.surroundings.allocated.capacity.get(pooled.id, {})
        return [
            each.value.nanos - (allocated[name].nanos if name in allocated else 0)
            for name, each in pooled.device.capacity.items()
        ]

    def shareable(self, device: int) -> bool:
        multiple = self.devices[device].device.allow_multiple_allocations
        return bool(multiple) and self.surroundings.features.consumable_capacity

    def _drained(self, device: int) -> int:
        pooled = self.devices[device]
        if not pooled.device.consumes_counters:
            return 0
        if not self.surroundings.features.partitionable_devices:
            return Code.GATE_OFF
        pool = self.pool_of[device]
        if device not in self.draws:
            self.draws[device] = self.ledger.draw(pool, pooled.device)
        if self.already_counted(device):
            return 0
        left = self.ledger.left
        short = any(left[number] < amount for number, amount in self.draws[device])
        return Code.COUNTER_SHORT if short or self.ledger.overdrawn(pool) else 0

    def already_counted(self, device: int) -> bool:
        """Whether a further share of the device draws no counters, because an earlier one did."""
        return self.shareable(device) and self.surroundings.is_counted(self.devices[device].id)

    def _tainted(self, slate: RequestRow, device: int) -> int:
        offered = self.devices[device].device
        if not offered.taints or not self.surroundings.features.device_taints:
            return 0
        return Code.TAINTED if blocking_taints(offered, slate.ask.tolerations) else 0

    def _lacking_attribute(self, slate: RequestRow, device: int) -> int:
        # Up to 1.36 a device that one constraint admits and another refuses leaves a trace.
        traces = slate.count > 1 or self.surroundings.features.list_type_attributes
        if traces and len(slate.constraints) > 1 and self.surroundings.release is Release.V1_36:
            return 0
        for constraint in slate.constraints:
            if self.columns[constraint.number][device] == MISSING:
                return Code.CONSTRAINT
        return 0


_HINT = (
    ". consider using CEL optional chaining (.? followed by orValue()) "
    "or guarding the check with has() for optional fields"
)
