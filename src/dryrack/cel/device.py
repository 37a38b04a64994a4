"""
A device as selectors see it: driver, attributes, capacity, and whether it can be shared.

An attribute that has no usable value makes every expression fail on the device, used or not.
Which attributes are usable depends on whether attributes can be lists.
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from dryrack.cel.evaluation.values import DomainMap, Err, OwnQuantity, StringMap, Value, Version
from dryrack.kinds.semver import Semver, SemverError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dryrack.kinds.resource import DeviceAttribute, DeviceCapacity


# Many devices have no capacity. It is never changed.
_NOTHING = DomainMap()


class Device:
    """A device as selectors see it. Its values are converted for CEL when they are first read."""

    def __init__(
        self,
        driver: str,
        attributes: Mapping[str, DeviceAttribute],
        capacity: Mapping[str, DeviceCapacity],
        allow_multiple_allocations: bool | None = None,
    ) -> None:
        self.driver = driver
        self.attributes = attributes
        self.capacity = capacity
        self.is_shareable = bool(allow_multiple_allocations)
        self._variables: dict[bool, dict[str, Value] | Err] = {}

    @cached_property
    def is_irregular(self) -> bool:
        """Return whether an attribute may have no usable value."""
        return any(map(_is_irregular, self.attributes.values()))

    def variable(self, *, lists: bool) -> dict[str, Value] | Err:
        """Return the value of the variable `device`, or why no expression can be evaluated."""
        variable = self._variables.get(lists)
        if variable is None:
            variable = self._variables[lists] = self._convert(lists)
        return variable

    def _convert(self, lists: bool) -> dict[str, Value] | Err:
        attributes: dict[str, Value] = {}
        for name in sorted(self.attributes):
            value = attributes[name] = _value(self.attributes[name], lists=lists)
            if isinstance(value, Err):
                return Err(f"attribute {name}: {value.message}")
        amounts = {name: each.value for name, each in self.capacity.items()}
        return {
            "driver": self.driver,
            "allowMultipleAllocations": self.is_shareable,
            "attributes": _by_domain(attributes, self.driver),
            "capacity": _by_domain(amounts, self.driver),
        }


def with_own_quantities(variable: dict[str, Value]) -> dict[str, Value]:
    """Return the variable with quantities that belong to one evaluation."""
    capacity = DomainMap()
    for domain, amounts in variable["capacity"].items():
        own = ((name, OwnQuantity.from_quantity(amount)) for name, amount in amounts.items())
        capacity[domain] = StringMap(own)
    return {**variable, "capacity": capacity}


def _is_irregular(attribute: DeviceAttribute) -> bool:
    if attribute.version_values is not None:
        return True
    if attribute.string_value is not None or attribute.int_value is not None:
        return False
    version = attribute.version_value
    return attribute.bool_value is None and (version is None or type(_version(version)) is Err)


def _by_domain(values: Mapping[str, Value], driver: str) -> DomainMap:
    """
    Sort by domain and then by id; a name without a domain is the driver's.

    A device may name one thing twice, with and without its driver's domain. Upstream keeps the
    one that it meets last, in an order that varies; this is the order that it takes most often,
    because an API server hands out names sorted.
    """
    if not values:
        return _NOTHING
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


def _value(attribute: DeviceAttribute, *, lists: bool) -> Value:
    if lists:
        for values in (attribute.int_values, attribute.bool_values, attribute.string_values):
            if values is not None:
                return list(values)
        if attribute.version_values is not None:
            versions = [_version(text) for text in attribute.version_values]
            return next((each for each in versions if isinstance(each, Err)), versions)
    for value in (attribute.int_value, attribute.bool_value, attribute.string_value):
        if value is not None:
            return value
    if attribute.version_value is not None:
        return _version(attribute.version_value)
    return Err("unsupported attribute value")


# A fleet has few versions.
@lru_cache(maxsize=4096)
def _version(text: str) -> Version | Err:
    try:
        return Version(Semver.parse(text))
    except SemverError as error:
        return Err(f"parse semantic version: {error}")
