"""
One attempt, ready to be searched: the claims of a pod against the devices of a node.

Checks of a request and a device that do not depend on other choices are made here, once, when the
search first needs them. The result is a small number in a table: usable, refused for a reason, or
an error. The search itself checks only what changes while it chooses. A refusal has no other
effect than to keep the device from the request; an error stops the attempt when the search comes
to it, and only then.
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
    DerivedColumn,
    new_column,
)
from dryrack.allocation.demand.requests import RESULTS_MAX, Ask, asks_of, check_gates
from dryrack.allocation.model.errors import AllocationError
from dryrack.allocation.model.identity import claim_name
from dryrack.allocation.model.reasons import Code
from dryrack.allocation.supply.capacity import CapacityMisfit, CapacityRules, Misfit
from dryrack.allocation.supply.compatibility import GroupLedger, meet
from dryrack.allocation.supply.counters import CounterLedger
from dryrack.allocation.supply.taints import blocking_taints
from dryrack.cel.selectors import SelectorFailure, SelectorTable, Verdict
from dryrack.kinds.releases import ALLOCATION, DEFAULT_RELEASE, AllocationBehaviour, Release

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence

    from dryrack.allocation.model.features import Features
    from dryrack.allocation.model.identity import DeviceId, PoolId
    from dryrack.allocation.proof.search_memo import SearchMemo
    from dryrack.allocation.supply.compatibility import Groups
    from dryrack.allocation.supply.pools import Pool, PooledDevice
    from dryrack.allocation.supply.usage import Taken
    from dryrack.kinds.core import Node
    from dryrack.kinds.quantity import Quantity
    from dryrack.kinds.resource import (
        DeviceAttribute,
        DeviceClass,
        DeviceRequest,
        ResourceClaim,
    )

# Results for an ask and a device; the codes of refusals are above these.
UNKNOWN = 0
USABLE = 1
FAILED = 2

# What a node declares that prepares no devices whose slices say so.
OPTIONAL_OPERATIONS = "DRAOptionalNodeOperations"

# Keeps usable and failed, and makes all refusals equal.
FOLD = bytes(code if code in (USABLE, FAILED) else 0 for code in range(256))

_MISFIT = {
    Misfit.ABSENT: Code.CAPACITY_ABSENT,
    Misfit.POLICY: Code.CAPACITY_POLICY,
    Misfit.SHORT: Code.CAPACITY_SHORT,
}


def selector_compiler(
    features: Features, release: Release = DEFAULT_RELEASE
) -> Callable[[str], cel.Program | cel.CompileError]:
    """Return the compiler of a scheduler, which takes selectors that are stored already."""
    return partial(cel.compile_expression, env=stored_environment(features, release))


def stored_environment(features: Features, release: Release) -> cel.Environment:
    """Return the environment in which a scheduler compiles expressions."""
    return cel.Environment(
        consumable_capacity=features.consumable_capacity,
        list_type_attributes=features.list_type_attributes,
        new_expressions=False,
        release=release,
    )


@dataclass(frozen=True, slots=True)
class AllocatorContext:
    """Everything that all attempts of one allocator share."""

    features: Features
    release: Release
    classes: Mapping[str, DeviceClass]
    allocated: Taken
    selectors: SelectorTable
    derived: cel.DerivedTable
    memo: SearchMemo

    @property
    def behaviour(self) -> AllocationBehaviour:
        return ALLOCATION[self.release]

    @property
    def rules(self) -> CapacityRules:
        return CapacityRules.of(self.release, self.features)

    def is_counted(self, device: DeviceId) -> bool:
        """Return whether further shares of a device that is in use draw no counters."""
        if device in self.allocated.capacity:
            return True
        # Otherwise only a share that consumes capacity is seen to have drawn already.
        return self.behaviour.shares_are_counted_once and self.allocated.is_shared(device)


@dataclass(frozen=True, slots=True)
class Site:
    """
    The nodes on which a claim is to be used: all of them, or any of them if that is open.

    `pools` are those of which one of the nodes sees something; None for all pools.
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
        """Return whether a claim that is used there can have the device."""
        if self.is_open:
            # A lookup by name is fast also for many nodes.
            name = pooled.where.node_name
            return name in self.names if name else any(map(pooled.is_for, self.nodes))
        return all(map(pooled.is_for, self.nodes)) and (len(self.nodes) == 1 or not pooled.is_tied)


class RequestRow:
    """A way to satisfy a request, with its row of the table: a status for each device."""

    __slots__ = (
        "all_devices",
        "ask",
        "by_class",
        "by_request",
        "claim",
        "columns",
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
        # The verdicts of its class's selectors and its own for each shape so far.
        self.by_class: dict[cel.Device, Verdict] = {}
        self.by_request: dict[cel.Device, Verdict] = {}
        self.claim = claim
        # The number of the request, counted over all claims.
        self.request = request
        # The first request of the claim with this name; the API allows no second.
        self.name_of = request
        self.sub = sub
        self.count = ask.count
        self.constraints: tuple[Constraint, ...] = ()
        # By the number of a constraint: the values that count for this request.
        self.columns: Sequence[Column] = ()
        self.all_devices: list[int] = []
        self.status = status
        self.failures: dict[int, str] = {}
        # The amounts that a share of each shareable device consumes, in the order of its capacity.
        self.needs: dict[int, tuple[int, ...]] = {}
        # The devices to look at, in order.
        self.order: Sequence[int] = range(len(status))

    def share_status(self, rows: dict[Hashable, RequestRow]) -> None:
        """Use the status of another row of the claim for which all checks have the same results."""
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
            bool(ask.derived),
        )
        other = rows.setdefault(key, self)
        self.status = other.status
        self.failures = other.failures
        self.needs = other.needs


class Problem:
    """The attempt. Building it raises what Kubernetes refuses before it searches."""

    def __init__(
        self,
        context: AllocatorContext,
        node: Node,
        pools: Sequence[Pool],
        claims: Sequence[ResourceClaim],
        sites: Sequence[Site] = (),
    ) -> None:
        """`sites` are those of the claims, if not all claims are to be used on the node."""
        self.context = context
        self.node = node
        self.pools = pools
        self.claims = claims
        self._are_apart = bool(sites)
        self.sites = sites or (Site((node,)),) * len(claims)
        self.devices: list[PooledDevice] = []
        self.pool_of: list[Pool] = []
        # Each pool with the range of its devices.
        self._spans: list[tuple[Pool, int, int]] = []
        start = 0
        for pool in pools:
            end = start + len(pool.devices)
            self.devices += pool.devices
            self.pool_of += [pool] * len(pool.devices)
            self._spans.append((pool, start, end))
            start = end
        self._status = self._status_in_use()
        self.ledger = CounterLedger(context.allocated.in_use)
        self.draws: dict[int, tuple[tuple[int, int], ...]] = {}
        self.group_ledger = GroupLedger(context.allocated.in_use)
        # The compatibility groups of a device by counter set, if its pool has any.
        self.groups: dict[int, tuple[tuple[int, Groups], ...]] = {}
        self.constraints: list[Constraint] = []
        self.columns: list[Column] = []
        # One entry per request of all claims: the ways to satisfy it.
        self.requests: list[tuple[RequestRow, ...]] = []
        self.has_admin = False
        self.has_derived = False
        self._rules = context.rules
        self._behaviour = context.behaviour
        self._shared_columns: dict[str, Column] = {}
        for index, claim in enumerate(claims):
            self._add_claim(index, claim)

    def freeze(self) -> None:
        """Ignore later changes of the devices in use."""
        allocated = self.context.allocated.snapshot(each.id for each in self.devices)
        self.context = replace(self.context, allocated=allocated)

    def _status_in_use(self) -> bytearray:
        """Return a row of the table in which only the devices in use are refused."""
        allocated = self.context.allocated
        status = bytearray(len(self.devices))
        for pool, start, end in self._spans:
            in_use = allocated.in_use(pool.id)
            for index in range(start, end) if in_use else ():
                device = self.devices[index]
                if device.device.name in in_use and device.id in allocated.devices:
                    status[index] = Code.IN_USE
        return status

    def _add_claim(self, index: int, claim: ResourceClaim) -> None:
        first = len(self.requests)
        names: dict[str, int] = {}
        total = 0
        for request in claim.spec.devices.requests:
            least = self._add_request(index, request, names)
            if self._behaviour.limit_is_checked_by_request:
                self._check_limit(claim, request.name, before=total, count=least)
            total += least
        self._check_limit(claim, "", before=0, count=total)
        if claim.spec.devices.constraints:
            self._add_constraints(index, claim)
        rows = [row for rows in self.requests[first:] for row in rows]
        if self.constraints:
            for row in rows:
                row.constraints = tuple(self._constraints_of(row))
                row.columns = self._columns_of(row)
        if len(rows) > 1:
            known: dict[Hashable, RequestRow] = {}
            for row in rows:
                row.share_status(known)

    def _check_limit(self, claim: ResourceClaim, request: str, *, before: int, count: int) -> None:
        if before + count > RESULTS_MAX:
            raise AllocationError(
                self._behaviour.limit_text.format(
                    claim=claim_name(claim),
                    request=request,
                    count=count,
                    before=before,
                    limit=RESULTS_MAX,
                )
            )

    def _add_request(self, claim_index: int, request: DeviceRequest, names: dict[str, int]) -> int:
        """Add a request, and return the fewest devices that satisfy it."""
        claim = self.claims[claim_index]
        context = self.context
        check_gates(claim, request, context.features)
        rows: list[RequestRow] = []
        for sub, draft in enumerate(asks_of(claim, request, context.classes)):
            ask = draft.check(context.features, self._behaviour)
            row = RequestRow(
                ask,
                claim=claim_index,
                request=len(self.requests),
                sub=sub,
                status=bytearray(len(self.devices)) if ask.admin else bytearray(self._status),
            )
            row.by_class = context.selectors.verdicts(ask.class_selectors)
            row.by_request = context.selectors.verdicts(ask.selectors)
            if ask.takes_all:
                row.all_devices = list(self._all_devices(row))
                row.count = len(row.all_devices)
            row.name_of = names.setdefault(ask.base, row.request)
            self.has_admin |= ask.admin
            self.has_derived |= bool(ask.derived)
            rows.append(row)
        self.requests.append(tuple(rows))
        return min([row.count for row in rows])

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
            features = self.context.features
            column = new_column(attribute, self.devices, features)
            self._shared_columns[attribute] = column
        return column

    def _columns_of(self, row: RequestRow) -> Sequence[Column]:
        """Return the columns in which attributes that the request derives replace others."""
        derived = row.ask.derived
        if not derived:
            return self.columns
        return [
            DerivedColumn(column, partial(self._derive, row, constraint.attribute))
            if constraint.attribute in derived
            else column
            for constraint, column in zip(self.constraints, self.columns, strict=True)
        ]

    def _derive(self, row: RequestRow, name: str, device: int) -> DeviceAttribute:
        """Return the attribute of a device that the request derives."""
        pooled = self.devices[device]
        value = self.context.derived.attribute(row.ask.derived[name], pooled.shape)
        if isinstance(value, cel.CompileError):
            raise AllocationError(f"compile derived attribute {name} failed: {value.message}")
        if isinstance(value, cel.EvaluationError):
            raise AllocationError(
                f"evaluate derived attribute {name} on device {pooled.id} failed: {value.message}",
                device=str(pooled.id),
            )
        return value

    def _constraints_of(self, row: RequestRow) -> Iterator[Constraint]:
        ask = row.ask
        subrequest = None if ask.parent is None else ask.name
        for constraint in self.constraints:
            if constraint.claim == row.claim and constraint.covers(ask.base, subrequest):
                yield constraint

    def _all_devices(self, row: RequestRow) -> Iterator[int]:
        where = f"claim {row.ask.claim_name}, request {row.ask.name}: asks for all devices"
        seen = self.sites[row.claim].pools
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
                if self._belongs_to_all(row, device):
                    yield device

    def _belongs_to_all(self, row: RequestRow, device: int) -> bool:
        code = self._check_selection(row, device)
        if code == FAILED:
            raise AllocationError(row.failures[device], device=str(self.devices[device].id))
        if code or not self.context.features.consumable_capacity:
            return not code
        if not self._behaviour.all_includes_full:
            return self.misfit(row, device) is None
        try:
            return self.misfit(row, device, allocated={}) is None
        except AllocationError as error:
            name = self.devices[device].device.name
            raise self._capacity_error(row, name, error) from error

    # The table.

    def judge(self, row: RequestRow, device: int) -> int:
        """Check the device for the ask, enter the result into the table, and return it."""
        code = 0
        if not row.ask.takes_all or not row.all_devices:
            code = self._check_selection(row, device) or self._check_capacity(row, device)
        if not code:
            code = (
                self._check_node_operations(row, device)
                or self._check_counters(device)
                or self._check_taints(row, device)
            )
        if not code and not row.ask.takes_all:
            code = self._check_attributes(row, device)
        row.status[device] = code or USABLE
        return code or USABLE

    def check_without_use(self, row: RequestRow, device: int) -> int:
        """Check what does not depend on devices in use; return 0, a code of refusal, or FAILED."""
        return (
            self._check_selection(row, device)
            or self._check_capacity(row, device)
            or self._check_taints(row, device)
        )

    def _check_selection(self, row: RequestRow, device: int) -> int:
        pooled = self.devices[device]
        features = self.context.features
        if self._are_apart:
            code = self._check_site(row, device)
            if code:
                return code
        if pooled.device.binding_conditions and not features.device_binding_and_status:
            return Code.GATE_OFF
        code = self._check_selectors(row, device)
        if code:
            return code
        if pooled.slice.spec.per_device_node_selection and not self._are_apart:
            return self._check_site(row, device)
        return 0

    def _check_selectors(self, row: RequestRow, device: int) -> int:
        ask = row.ask
        selectors = self.context.selectors
        shape = self.devices[device].shape
        verdict = row.by_class.get(shape)
        if verdict is None:
            verdict = selectors.judge(ask.class_selectors, shape)
        if verdict is not True:
            owner = f"class {ask.device_class.metadata.name}"
            return self._not_selected(row, device, owner, verdict) or Code.CLASS_SELECTOR
        if not ask.selectors:
            return 0
        verdict = row.by_request.get(shape)
        if verdict is None:
            verdict = selectors.judge(ask.selectors, shape)
        if verdict is not True:
            owner = f"claim {ask.claim_name}"
            return self._not_selected(row, device, owner, verdict) or Code.REQUEST_SELECTOR
        return 0

    def _not_selected(
        self, row: RequestRow, device: int, owner: str, verdict: bool | SelectorFailure
    ) -> int:
        if not isinstance(verdict, SelectorFailure):
            return 0
        place, message = f"selector #{verdict.index}", verdict.message
        if verdict.stage == "runtime":
            place = self._behaviour.failing_selector_text.format(
                index=verdict.index, device=self.devices[device].id
            )
            if "no such key:" in message:
                message += self._behaviour.missing_key_hint
        row.failures[device] = f"{owner}: {place}: CEL {verdict.stage} error: {message}"
        return FAILED

    def _check_site(self, row: RequestRow, device: int) -> int:
        try:
            here = self.sites[row.claim].sees(self.devices[device])
        except AllocationError as error:
            row.failures[device] = str(error)
            return FAILED
        return 0 if here else Code.NODE

    def _check_capacity(self, row: RequestRow, device: int) -> int:
        if not self.context.features.consumable_capacity:
            return 0
        offered = self.devices[device].device
        if not offered.capacity and not row.ask.capacity:
            return 0
        try:
            misfit = self.misfit(row, device)
        except AllocationError as error:
            named = str(self.devices[device].id)
            row.failures[device] = str(self._capacity_error(row, named, error))
            return FAILED
        return _MISFIT[misfit.kind] if misfit else 0

    @staticmethod
    def _capacity_error(row: RequestRow, device: str, error: AllocationError) -> AllocationError:
        where = f"claim {row.ask.claim_name}, request {row.ask.name}"
        return AllocationError(f"{where}: checking capacity for device {device}: {error}")

    def misfit(
        self,
        row: RequestRow,
        device: int,
        allocated: Mapping[str, Quantity] | None = None,
    ) -> CapacityMisfit | None:
        """Return the capacity that does not fit before anything is chosen, if there is one."""
        pooled = self.devices[device]
        consumed = self._rules.consumption(pooled.device.capacity, row.ask.capacity)
        if isinstance(consumed, CapacityMisfit):
            return consumed
        if allocated is None:
            allocated = self.context.allocated.capacity.get(pooled.id, {})
        misfit = self._rules.misfit(pooled.device.capacity, consumed, allocated)
        if misfit is None and pooled.device.allow_multiple_allocations:
            row.needs[device] = tuple(amount.nanos for amount in consumed.values())
        return misfit

    def consumed(self, row: RequestRow, device: int) -> dict[str, Quantity]:
        """Return the capacity that a share of the device consumes, for the result."""
        capacity = self.devices[device].device.capacity
        consumed = self._rules.consumption(capacity, row.ask.capacity)
        assert not isinstance(consumed, CapacityMisfit), "the search chose a misfit"
        return consumed

    def room(self, device: int) -> list[int]:
        """Return the amount left of each capacity before anything is chosen."""
        pooled = self.devices[device]
        allocated = self.context.allocated.capacity.get(pooled.id, {})
        return [
            each.value.nanos - (allocated[name].nanos if name in allocated else 0)
            for name, each in pooled.device.capacity.items()
        ]

    def shareable(self, device: int) -> bool:
        multiple = self.devices[device].device.allow_multiple_allocations
        return bool(multiple) and self.context.features.consumable_capacity

    def _check_node_operations(self, row: RequestRow, device: int) -> int:
        skipped = self.devices[device].slice.spec.skip_node_operations
        if not skipped or not self._behaviour.has_alpha_fields_of_1_37:
            return 0
        if not self.context.features.optional_node_operations:
            return Code.GATE_OFF
        site = self.sites[row.claim]
        declared = [OPTIONAL_OPERATIONS in node.status.declared_features for node in site.nodes]
        return 0 if (any if site.is_open else all)(declared) else Code.NODE

    def _check_counters(self, device: int) -> int:
        pooled = self.devices[device]
        if not pooled.device.consumes_counters:
            return 0
        if not self.context.features.partitionable_devices:
            return Code.GATE_OFF
        pool = self.pool_of[device]
        if device not in self.draws:
            self.draws[device] = self.ledger.draw(pool, pooled.device)
        if self.already_counted(device):
            return 0
        if self.context.features.compatibility_groups:
            groups = self.group_ledger.groups_of(pool, pooled.device)
            if groups:
                self.groups[device] = groups
            if not all(meet(self.group_ledger.left[number], own) for number, own in groups):
                return Code.INCOMPATIBLE
        left = self.ledger.left
        short = any(left[number] < amount for number, amount in self.draws[device])
        return Code.COUNTER_SHORT if short or self.ledger.overdrawn(pool) else 0

    def already_counted(self, device: int) -> bool:
        """Return whether a further share draws no counters, because an earlier one did."""
        return self.shareable(device) and self.context.is_counted(self.devices[device].id)

    def _check_taints(self, row: RequestRow, device: int) -> int:
        offered = self.devices[device].device
        if not offered.taints or not self.context.features.device_taints:
            return 0
        return Code.TAINTED if blocking_taints(offered, row.ask.tolerations) else 0

    def _check_attributes(self, row: RequestRow, device: int) -> int:
        # A device that one constraint admits and another refuses can leave a trace.
        traces = row.count > 1 or self.context.features.list_type_attributes
        if traces and len(row.constraints) > 1 and not self._behaviour.distinct_compares_all:
            return 0
        # An expression is evaluated only if the search comes so far.
        for constraint in () if row.ask.derived else row.constraints:
            if self.columns[constraint.number][device] == MISSING:
                return Code.CONSTRAINT
        return 0
