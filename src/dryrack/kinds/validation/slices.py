"""ResourceSlices."""

from collections.abc import Iterator, Mapping
from functools import partial

from dryrack.kinds.resource import (
    Counter,
    CounterSet,
    Device,
    DeviceAttribute,
    DeviceCounterConsumption,
    NodeAllocatableResourceMapping,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from dryrack.kinds.text.quoting import quoted
from dryrack.kinds.validation.capacity import (
    RangeLimits,
    exclusive_capacity,
    shared_capacity,
)
from dryrack.kinds.validation.meta import SUBDOMAIN, metadata, metadata_change, unchanged
from dryrack.kinds.validation.names import (
    LABEL_BYTES_MAX,
    checked,
    device_label,
    driver_name,
    fully_qualified_name,
    is_semver,
    pool_name,
    qualified_name,
    subdomain,
)
from dryrack.kinds.validation.node_resources import node_allocatable_resources
from dryrack.kinds.validation.parts import (
    Judging,
    binding_conditions,
    distinct,
    entries,
    items,
    node_selector,
    skipped_operations,
    taint,
)
from dryrack.kinds.validation.problems import (
    FieldProblem,
    Reason,
    Token,
    byte_length,
    invalid,
    required,
    too_long,
    too_many,
)

DEVICES_MAX = 128
# Taints, counters and lists make devices so large that fewer fit into an object in etcd.
DEVICES_MAX_WITH_ADVANCED_FEATURES = 64
COUNTER_SETS_MAX = 8
COUNTERS_MAX = 32
COUNTER_CONSUMPTIONS_MAX = 2
ATTRIBUTES_AND_CAPACITIES_MAX = 32
ATTRIBUTE_VALUES_MAX = 48
ATTRIBUTE_VALUE_BYTES_MAX = 64
TAINTS_MAX = 16

_NAME_BYTES_SHOWN = 63 + len("/") + 32
_PLACES = "`nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection`"
_DEVICE_PLACES = (
    "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when "
    "`perDeviceNodeSelection` is set to true in the ResourceSlice spec"
)
_EMPTY_SLICE_NODE = "must be either unset or set to a non-empty string"
_EMPTY_DEVICE_NODE = "must not be empty"
_UNSET_OR_TRUE = "must be either unset or set to true"


def created(obj: ResourceSlice, judging: Judging) -> Iterator[FieldProblem]:
    yield from metadata(obj.metadata, SUBDOMAIN, namespaced=False, behaviour=judging.behaviour)
    yield from _spec(obj.spec, None, judging)


def updated(obj: ResourceSlice, old: ResourceSlice, judging: Judging) -> Iterator[FieldProblem]:
    yield from metadata_change(obj.metadata, old.metadata, judging.behaviour)
    yield from _spec(obj.spec, old.spec, judging)


def slice_warnings(driver: str) -> Iterator[str]:
    """Yield what the server accepts with a warning."""
    if driver != driver.lower():
        shown = quoted(driver)
        yield (
            f"spec.driver: driver names should be lowercase; {shown} contains uppercase characters"
        )


def _spec(
    spec: ResourceSliceSpec, old: ResourceSliceSpec | None, judging: Judging
) -> Iterator[FieldProblem]:
    yield from driver_name("spec.driver", spec.driver)
    yield from _pool("spec.pool", spec.pool)
    if old is not None:
        yield from unchanged("spec.pool.name", spec.pool.name, old.pool.name)
        yield from unchanged("spec.driver", spec.driver, old.driver)
        yield from unchanged(
            "spec.nodeName", _as_pointer(spec.node_name), _as_pointer(old.node_name)
        )
    yield from _node_name("spec.nodeName", spec.node_name, _EMPTY_SLICE_NODE)
    if spec.node_selector is not None:
        yield from _slice_node_selector(spec)
    yield from _unset_or_true("spec.allNodes", spec.all_nodes)
    yield from _unset_or_true("spec.perDeviceNodeSelection", spec.per_device_node_selection)
    places = _set(
        nodeName=bool(spec.node_name),
        nodeSelector=spec.node_selector is not None,
        allNodes=bool(spec.all_nodes),
        perDeviceNodeSelection=bool(spec.per_device_node_selection),
    )
    if not places:
        yield required("spec", f"exactly one of {_PLACES} is required")
    elif len(places) > 1:
        detail = f"exactly one of {_PLACES} is required, but multiple fields are set"
        yield invalid("spec", f"{{{', '.join(places)}}}", detail)
    if spec.shared_counters and spec.devices:
        yield devices_and_counters()
    yield from _devices(spec, old, judging)
    yield from distinct(
        "spec.sharedCounters",
        spec.shared_counters,
        _counter_set,
        key=lambda counter_set: counter_set.name,
        count_max=COUNTER_SETS_MAX,
    )
    if spec.partition_type_attribute is not None:
        yield from _partition_type(spec, spec.partition_type_attribute)
    yield from skipped_operations("spec.skipNodeOperations", spec.skip_node_operations)


def _partition_type(spec: ResourceSliceSpec, name: str) -> Iterator[FieldProblem]:
    """Check that the devices that consume counters have the attribute, as a string."""
    field = "spec.partitionTypeAttribute"
    if not any(device.consumes_counters for device in spec.devices):
        detail = "may only be set on a slice which declares devices that consume counters"
        yield invalid(field, name, detail)
        return
    if any(fully_qualified_name(field, name)):
        # The declared check reports the name.
        return
    bare = name.removeprefix(f"{spec.driver}/")
    for position, device in enumerate(spec.devices):
        if not device.consumes_counters:
            continue
        at = f"spec.devices[{position}].attributes[{name}]"
        attribute = device.attributes.get(name) or device.attributes.get(bare)
        if attribute is None:
            detail = (
                "device consumes counters and `partitionTypeAttribute` names this attribute, "
                "so it must be set"
            )
            yield required(at, detail)
        elif attribute.string_value is None:
            detail = "must be a string value because `partitionTypeAttribute` names this attribute"
            yield invalid(at, attribute, detail)


def devices_and_counters() -> FieldProblem:
    detail = "only one of `sharedCounters` or `devices` is allowed"
    fix = "put the shared counters into a separate slice"
    return invalid("spec", "", detail, fix=fix)


def _as_pointer(text: str | None) -> Token | None:
    return None if text is None else Token(text)


def _pool(field: str, pool: ResourcePool) -> Iterator[FieldProblem]:
    yield from pool_name(f"{field}.name", pool.name)
    if pool.resource_slice_count <= 0:
        yield invalid(
            f"{field}.resourceSliceCount",
            pool.resource_slice_count,
            "must be greater than zero",
            fix="set it to the number of slices of the pool",
        )
    if pool.generation < 0:
        detail = "must be greater than or equal to zero"
        yield invalid(f"{field}.generation", pool.generation, detail)


def _set(**fields: bool) -> list[str]:
    return [f"`{name}`" for name, is_set in fields.items() if is_set]


def _node_name(field: str, name: str | None, if_empty: str) -> Iterator[FieldProblem]:
    if name == "":
        yield invalid(field, name, if_empty)
    elif name is not None:
        yield from checked(field, name, subdomain)


def _slice_node_selector(spec: ResourceSliceSpec) -> Iterator[FieldProblem]:
    assert spec.node_selector is not None
    yield from node_selector("spec.nodeSelector", spec.node_selector)
    terms = spec.node_selector.node_selector_terms
    if len(terms) != 1:
        detail = "must have exactly one node selector term"
        yield invalid("spec.nodeSelector.nodeSelectorTerms", terms, detail)


def _unset_or_true(field: str, flag: bool | None) -> Iterator[FieldProblem]:
    if flag is False:
        yield invalid(field, False, _UNSET_OR_TRUE, fix="leave it out")


def _devices(
    spec: ResourceSliceSpec, old: ResourceSliceSpec | None, judging: Judging
) -> Iterator[FieldProblem]:
    advanced = any(map(is_advanced, spec.devices))
    before = {device.name: device for device in reversed(old.devices)} if old else {}

    def check(at: str, device: Device) -> Iterator[FieldProblem]:
        placed_here = bool(spec.per_device_node_selection)
        yield from _device(at, device, before.get(device.name), judging)
        yield from (_device_place if placed_here else _no_device_place)(at, device)
        yield from binding_conditions(
            at, device.binding_conditions, device.binding_failure_conditions
        )
        if judging.behaviour.has_node_allocatable_resources:
            yield from node_allocatable_resources(f"{at}.nodeAllocatableResources", device)
        else:
            yield from _node_allocatable(f"{at}.nodeAllocatableResourceMappings", device)

    return distinct(
        "spec.devices",
        spec.devices,
        check,
        key=lambda device: device.name,
        count_max=DEVICES_MAX_WITH_ADVANCED_FEATURES if advanced else DEVICES_MAX,
    )


def is_advanced(device: Device) -> bool:
    """Return whether a device lowers the limit of devices in its slice."""
    return bool(device.taints or device.consumes_counters) or any(
        values is not None for attr in device.attributes.values() for _, values in _lists(attr)
    )


def _lists(attribute: DeviceAttribute) -> tuple[tuple[str, tuple[object, ...] | None], ...]:
    return (
        ("bools", attribute.bool_values),
        ("ints", attribute.int_values),
        ("strings", attribute.string_values),
        ("versions", attribute.version_values),
    )


def _counter_set(field: str, counter_set: CounterSet) -> Iterator[FieldProblem]:
    yield from _counter_set_name(f"{field}.name", counter_set.name)
    yield from _counters(f"{field}.counters", counter_set.counters)


def _consumption(field: str, consumption: DeviceCounterConsumption) -> Iterator[FieldProblem]:
    yield from _counter_set_name(f"{field}.counterSet", consumption.counter_set)
    yield from _counters(f"{field}.counters", consumption.counters)


def _counter_set_name(field: str, name: str) -> Iterator[FieldProblem]:
    if not name:
        yield required(field)
    else:
        yield from device_label(field, name)


def _counters(field: str, counters: Mapping[str, Counter]) -> Iterator[FieldProblem]:
    if not counters:
        yield required(field)
    elif len(counters) > COUNTERS_MAX:
        yield too_many(field, len(counters), COUNTERS_MAX)
    else:
        yield from entries(
            field, counters, _any_counter, key=device_label, key_bytes_shown=LABEL_BYTES_MAX
        )


def _any_counter(field: str, counter: Counter) -> Iterator[FieldProblem]:
    # Any quantity is valid, even a negative one.
    return iter(())


def _device(
    field: str, device: Device, before: Device | None, judging: Judging
) -> Iterator[FieldProblem]:
    yield from device_label(f"{field}.name", device.name)
    count = len(device.attributes) + len(device.capacity)
    if count > ATTRIBUTES_AND_CAPACITIES_MAX:
        detail = (
            "the total number of attributes and capacities must not exceed "
            f"{ATTRIBUTES_AND_CAPACITIES_MAX}"
        )
        yield invalid(field, count, detail)
    values = sum(map(_value_count, device.attributes.values()))
    if values > ATTRIBUTE_VALUES_MAX:
        detail = f"the total number of attribute values must not exceed {ATTRIBUTE_VALUES_MAX}"
        yield invalid(field, values, detail)
    yield from entries(
        f"{field}.attributes",
        device.attributes,
        _attribute,
        key=qualified_name,
        key_bytes_shown=_NAME_BYTES_SHOWN,
    )
    checks_stored = judging.behaviour.checks_stored_capacity
    if before is None or checks_stored or before.capacity != device.capacity:
        yield from _capacity(f"{field}.capacity", device, judging)
    if before is None or before.taints != device.taints:
        yield from items(f"{field}.taints", device.taints, taint, count_max=TAINTS_MAX)
    yield from distinct(
        f"{field}.consumesCounters",
        device.consumes_counters,
        _consumption,
        key=lambda consumption: consumption.counter_set,
        count_max=COUNTER_CONSUMPTIONS_MAX,
    )


def _capacity(field: str, device: Device, judging: Judging) -> Iterator[FieldProblem]:
    limits = RangeLimits(
        judging.behaviour.limits_ranges, judging.features.is_on("DRAFractionalCapacityRange")
    )
    shared = partial(shared_capacity, limits=limits)
    yield from entries(
        field,
        device.capacity,
        shared if device.allow_multiple_allocations else exclusive_capacity,
        key=qualified_name,
        key_bytes_shown=_NAME_BYTES_SHOWN,
    )


def _value_count(attribute: DeviceAttribute) -> int:
    return sum(len(values or ()) for _, values in _lists(attribute)) or 1


def _attribute(field: str, attribute: DeviceAttribute) -> Iterator[FieldProblem]:
    if attribute.string_value is not None:
        yield from _string(f"{field}.string", attribute.string_value)
    if attribute.version_value is not None:
        yield from _version(f"{field}.version", attribute.version_value)
    for name, values in _lists(attribute):
        if values == ():
            yield invalid(f"{field}.{name}", (), "must not be empty if specified")
    yield from items(f"{field}.strings", attribute.string_values or (), _string)
    yield from items(f"{field}.versions", attribute.version_values or (), _version)
    scalars = (attribute.bool_value, attribute.int_value)
    texts = (attribute.string_value, attribute.version_value)
    lists = (values for _, values in _lists(attribute))
    given = sum(value is not None for value in (*scalars, *texts, *lists))
    if given != 1:
        yield invalid(field, attribute if given else "", "exactly one value must be specified")


def _string(field: str, text: str) -> Iterator[FieldProblem]:
    if byte_length(text) > ATTRIBUTE_VALUE_BYTES_MAX:
        yield too_long(field, ATTRIBUTE_VALUE_BYTES_MAX)


def _version(field: str, text: str) -> Iterator[FieldProblem]:
    if not is_semver(text):
        yield invalid(
            field,
            text,
            "must be a string compatible with semver.org spec 2.0.0",
            fix="write three numbers, as in '12.4.0', or make it a string",
        )
    yield from _string(field, text)


def _device_place(field: str, device: Device) -> Iterator[FieldProblem]:
    yield from _node_name(f"{field}.nodeName", device.node_name, _EMPTY_DEVICE_NODE)
    if device.node_selector is not None:
        # One term only is documented, but the server takes any number.
        yield from node_selector(f"{field}.nodeSelector", device.node_selector)
    yield from _unset_or_true(f"{field}.allNodes", device.all_nodes)
    places = _set(
        nodeName=bool(device.node_name),
        nodeSelector=device.node_selector is not None,
        allNodes=bool(device.all_nodes),
    )
    if not places:
        yield required(field, _DEVICE_PLACES)
    elif len(places) > 1:
        yield invalid(field, f"{{{', '.join(places)}}}", _DEVICE_PLACES)


def _no_device_place(field: str, device: Device) -> Iterator[FieldProblem]:
    places = (device.node_name, device.node_selector, device.all_nodes)
    if any(place is not None for place in places):
        detail = (
            "`nodeName`, `nodeSelector` and `allNodes` can only be set if "
            "`perDeviceNodeSelection` is set to true in the ResourceSlice spec"
        )
        yield invalid(field, None, detail)


def _node_allocatable(field: str, device: Device) -> Iterator[FieldProblem]:
    mappings = device.node_allocatable_resource_mappings
    for name in sorted(mappings):
        at = f"{field}[{name}]"
        if "/" in name and "kubernetes.io/" not in name:
            yield invalid(at, Token(name), "must be a node allocatable resource name")
        yield from _mapping_problems(at, mappings[name], device)


def _mapping_problems(
    field: str, mapping: NodeAllocatableResourceMapping, device: Device
) -> Iterator[FieldProblem]:
    multiplier = mapping.allocation_multiplier
    if multiplier is not None and multiplier.sign <= 0:
        yield invalid(f"{field}.allocationMultiplier", str(multiplier), "must be positive")
    key = mapping.capacity_key
    if key == "":
        yield invalid(f"{field}.capacityKey", "", "capacityKey must not be an empty string")
    elif key is not None and key not in device.capacity:
        yield FieldProblem(Reason.NOT_FOUND, f"{field}.capacityKey", Token(key))
