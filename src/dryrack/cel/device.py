"""
A device as selectors see it, made ready once for any number of expressions.

An attribute that has no usable value makes every expression fail on the device, used or not.
Which attributes are usable depends on whether attributes may be lists, so both views are kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.cel.evaluation.values import DomainMap, Err, OwnQuantity, StringMap, Value, Version
from dryrack.kinds.semver import Semver, SemverError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dryrack.kinds.resource import DeviceAttribute, DeviceCapacity


# Most devices have no capacity. It is never changed.
_NOTHING = DomainMap()


class View:
    """The device for expressions of one kind: the variable `device`, or why there is none."""

    __slots__ = ("attributes", "capacity", "driver", "error", "multiple")

    def __init__(
        self, driver: str, attributes: DomainMap | Err, capacity: DomainMap, *, multiple: bool
    ) -> None:
        self.error = attributes.message if isinstance(attributes, Err) else ""
        self.driver = driver
        self.multiple = multiple
        self.attributes = _NOTHING if isinstance(attributes, Err) else attributes
        self.capacity = capacity

    @property
    def variable(self) -> dict[str, Value]:
        """All of it as one value, which few expressions use."""
        return {
            "driver": self.driver,
            "allowMultipleAllocations": self.multiple,
            "attributes": self.attributes,
            "capacity": self.capacity,
        }

    def own(self) -> dict[str, Value]:
        """The variable with quantities that belong to one evaluation."""
        capacity = DomainMap()
        for domain, amounts in self.capacity.items():
            own = ((name, OwnQuantity.from_quantity(amount)) for name, amount in amounts.items())
            capacity[domain] = StringMap(own)
        return {**self.variable, "capacity": capacity}


class Device:
    __slots__ = ("lists", "scalars")

    def __init__(
        self,
        driver: str,
        attributes: Mapping[str, DeviceAttribute],
        capacity: Mapping[str, DeviceCapacity],
        allow_multiple_allocations: bool | None = None,
    ) -> None:
        amounts = _NOTHING
        if capacity:
            amounts = _by_domain({name: item.value for name, item in capacity.items()}, driver)
        multiple = bool(allow_multiple_allocations)
        scalars = _attributes(attributes, driver, lists=False)
        self.scalars = View(driver, scalars, amounts, multiple=multiple)
        self.lists = self.scalars
        if any(_list(attribute) is not None for attribute in attributes.values()):
            values = _attributes(attributes, driver, lists=True)
            self.lists = View(driver, values, amounts, multiple=multiple)


def _by_domain(values: Mapping[str, Value], driver: str) -> DomainMap:
    """
    Sort by domain and then by id; a name without a domain is the driver's.

    A device may name one thing twice, with and without its driver's domain. Upstream keeps the
    one that it meets last, in an order that varies; this is the order that it takes most often,
    because an API server hands out names sorted.
    """
    domains: dict[str, dict[str, Value]] = {}
    for name in sorted(values):
        domain, slash, identifier = name.partition("/")
        if not slash:
            domain = driver
            identifier = name
        domains.setdefault(domain, {})[identifier] = values[name]
    ordered = DomainMap()
    for domain in sorted(domains):
        ordered[domain] = StringMap(sorted(domains[domain].items()))
    return ordered


def _attributes(
    attributes: Mapping[str, DeviceAttribute], driver: str, *, lists: bool
) -> DomainMap | Err:
    values: dict[str, Value] = {}
    for name in sorted(attributes):
        value = values[name] = _value(attributes[name], lists=lists)
        if isinstance(value, Err):
            return Err(f"attribute {name}: {value.message}")
    return _by_domain(values, driver)


def _list(attribute: DeviceAttribute) -> tuple[Value, ...] | None:
    if attribute.int_values is not None:
        return attribute.int_values
    if attribute.bool_values is not None:
        return attribute.bool_values
    if attribute.string_values is not None:
        return attribute.string_values
    return attribute.version_values


def _value(attribute: DeviceAttribute, *, lists: bool) -> Value:
    values = _list(attribute) if lists else None
    if values is not None:
        return _versions(values) if values is attribute.version_values else list(values)
    if attribute.int_value is not None:
        return attribute.int_value
    if attribute.bool_value is not None:
        return attribute.bool_value
    if attribute.string_value is not None:
        return attribute.string_value
    if attribute.version_value is not None:
        return _version(attribute.version_value)
    return Err("unsupported attribute value")


def _versions(texts: tuple[str, ...]) -> Value:
    versions = [_version(text) for text in texts]
    return next((version for version in versions if isinstance(version, Err)), versions)


def _version(text: str) -> Value:
    try:
        return Version(Semver.parse(text))
    except SemverError as error:
        return Err(f"parse semantic version: {error}")
