"""
Constraints of a claim: devices that must share a value, or must differ in it.

Values are numbered per attribute, so that the search compares ints. A device that lacks the
attribute cannot serve a request that the constraint covers. An attribute of a type that is
not known here is a value that equals nothing, not even itself.

The state changes exactly as in the release. Up to 1.36 that includes two defects that show in
results: `distinctAttribute` remembers only the last device of each request, and
forgets even that one when it is taken back; `matchAttribute` over lists keeps what it
narrowed down although the device that narrowed it was taken back.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from enum import Enum

from dryrack.allocation.model.features import Features
from dryrack.allocation.supply.pools import PooledDevice
from dryrack.kinds.releases import AllocationBehaviour
from dryrack.kinds.resource import DeviceAttribute

MISSING = -1
# A value of unknown type; one number for each device, because it equals nothing.
_UNKNOWN = -2

Values = frozenset[tuple[str, object]]


class ConstraintKind(Enum):
    MATCH = "matchAttribute"
    DISTINCT = "distinctAttribute"


@dataclass(frozen=True, slots=True)
class Constraint:
    """One constraint of one claim, with the place its state has in the search."""

    number: int
    claim: int
    kind: ConstraintKind
    attribute: str
    requests: frozenset[str]

    def covers(self, request: str, subrequest: str | None) -> bool:
        """Return whether the constraint covers the request; a request includes its subrequests."""
        if not self.requests or request in self.requests:
            return True
        return subrequest is not None and f"{request}/{subrequest}" in self.requests


class Column:
    """The values of one attribute, by device: at least 0, `MISSING`, or of unknown type."""

    def __init__(self, attribute: str, devices: Sequence[PooledDevice], *, lists: bool) -> None:
        self.lists = lists
        # The members of each value; a value that is not a list has one.
        self.members: list[Values] = []
        self._longest = 0
        self._attribute = attribute
        self._devices = devices
        self._numbers: dict[Values, int] = {}
        self._known: list[int | None] = [None] * len(devices)

    def __getitem__(self, device: int) -> int:
        value = self._known[device]
        if value is None:
            value = self._known[device] = self._value(device)
        return value

    def complete(self) -> None:
        """Number the values of all devices."""
        for device in range(len(self._known)):
            self[device]

    @property
    def scalar(self) -> bool:
        """Return whether every value seen so far has one member."""
        return self._longest <= 1

    def _attribute_of(self, device: int) -> DeviceAttribute | None:
        return lookup_attribute(self._devices[device], self._attribute)

    def _value(self, device: int) -> int:
        attribute = self._attribute_of(device)
        if attribute is None:
            return MISSING
        members = _members(attribute, lists=self.lists)
        if members is None:
            return _UNKNOWN - device
        number = self._numbers.get(members)
        if number is None:
            number = self._numbers[members] = len(self.members)
            self.members.append(members)
            self._longest = max(self._longest, len(members))
        return number


class DerivedColumn(Column):
    """
    The values of an attribute that a request derives, numbered together with those of devices.

    An expression is evaluated when the search comes to the device. If it fails, the attempt ends.
    """

    def __init__(self, column: Column, derive: Callable[[int], DeviceAttribute]) -> None:
        """`derive` evaluates the expression on a device, or raises `AllocationError`."""
        super().__init__(column._attribute, column._devices, lists=column.lists)
        self.members = column.members
        self._numbers = column._numbers
        self._derive = derive

    def _attribute_of(self, device: int) -> DeviceAttribute | None:
        return self._derive(device)


def lookup_attribute(pooled: PooledDevice, name: str) -> DeviceAttribute | None:
    """Return the attribute by its full name, or its short name if the domain is the driver's."""
    attributes = pooled.device.attributes
    attribute = attributes.get(name)
    if attribute is not None:
        return attribute
    domain, slash, identifier = name.partition("/")
    return attributes.get(identifier) if slash and domain == pooled.id.driver else None


def _members(attribute: DeviceAttribute, *, lists: bool) -> Values | None:
    if lists:
        for kind, values in (
            ("int", attribute.int_values),
            ("bool", attribute.bool_values),
            ("string", attribute.string_values),
            ("version", attribute.version_values),
        ):
            if values:
                return frozenset((kind, value) for value in values)
    for kind, value in (
        ("string", attribute.string_value),
        ("int", attribute.int_value),
        ("bool", attribute.bool_value),
        ("version", attribute.version_value),
    ):
        if value is not None:
            return frozenset(((kind, value),))
    return None


class MatchState:
    """All devices share a value; with lists, a member common to all."""

    __slots__ = ("_column", "_keeps", "_path", "count", "shared")

    def __init__(self, column: Column, behaviour: AllocationBehaviour) -> None:
        self._column = column
        # Whether taking a device back leaves the narrowed intersection in place.
        self._keeps = column.lists and not behaviour.match_is_restored
        self._path: list[Values] = []
        self.count = 0
        self.shared: Values = frozenset()

    def add(self, request: int, value: int) -> bool:
        """Admit a device with this value, or return False and change nothing."""
        if value < 0:
            if self._column.lists or self.count:
                return False
            # A first device of unknown type is admitted; nothing can be added to it.
            return self._push(frozenset())
        members = self._column.members[value]
        if not self.count:
            return self._push(members)
        common = members & self.shared
        return bool(common) and self._push(common)

    def remove(self, request: int) -> None:
        self.count -= 1
        before = self._path.pop()
        if not self._keeps:
            self.shared = before

    def _push(self, shared: Values) -> bool:
        self._path.append(self.shared)
        self.shared = shared
        self.count += 1
        return True

    def key(self, request: int) -> object:
        """Return the state that decides about further devices of the request and of later ones."""
        return self.shared if self.count else None


class DistinctState:
    """No two devices share a value; with lists, a member."""

    __slots__ = ("_column", "values")

    def __init__(self, column: Column) -> None:
        self._column = column
        self.values: list[int] = []

    def add(self, request: int, value: int) -> bool:
        if not differs(self._column, value, self.values):
            return False
        self.values.append(value)
        return True

    def remove(self, request: int) -> None:
        self.values.pop()

    def key(self, request: int) -> object:
        return tuple(sorted(self.values))

    def others(self, *requests: int) -> list[int]:
        """Return the values of other requests, from which a further device must differ."""
        return self.values


class LastDistinctState:
    """No device shares a value with the last device of another request."""

    __slots__ = ("_column", "count", "last")

    def __init__(self, column: Column) -> None:
        self._column = column
        self.last: dict[int, int] = {}
        self.count = 0

    def add(self, request: int, value: int) -> bool:
        if self.count and not differs(self._column, value, self.last.values()):
            return False
        self.last[request] = value
        self.count += 1
        return True

    def remove(self, request: int) -> None:
        self.last.pop(request, None)
        self.count -= 1

    def key(self, request: int) -> object:
        # The request's own value can be forgotten, the others stay, in any order.
        return self.last.get(request), tuple(sorted(self.others(request)))

    def others(self, *requests: int) -> list[int]:
        return [value for other, value in self.last.items() if other not in requests]


ConstraintState = MatchState | DistinctState | LastDistinctState


def initial_state(
    constraint: Constraint, column: Column, behaviour: AllocationBehaviour
) -> ConstraintState:
    """Return the state before any device is chosen."""
    if constraint.kind is ConstraintKind.MATCH:
        return MatchState(column, behaviour)
    distinct = DistinctState if behaviour.distinct_compares_all else LastDistinctState
    return distinct(column)


def differs(column: Column, value: int, others: Collection[int]) -> bool:
    """Return whether a device with the value may be beside devices with the others."""
    if value < 0:
        # Compared by type when there is something to compare with; lists ask at once.
        return not column.lists and not others
    if not column.lists:
        return value not in others
    members = column.members[value]
    for other in others:
        if other >= 0 and not members.isdisjoint(column.members[other]):
            return False
    return True


def new_column(attribute: str, devices: Sequence[PooledDevice], features: Features) -> Column:
    return Column(attribute, devices, lists=features.list_type_attributes)
