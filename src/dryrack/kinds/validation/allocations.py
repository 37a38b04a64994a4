"""The status of ResourceClaims."""

from collections.abc import Iterator

from dryrack.kinds.releases import ValidationBehaviour
from dryrack.kinds.resource import (
    AllocatedDeviceStatus,
    AllocationResult,
    DeviceAllocationConfiguration,
    DeviceRequestAllocationResult,
    NetworkDeviceData,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimStatus,
)
from dryrack.kinds.validation.addresses import interface_address
from dryrack.kinds.validation.claims import (
    CONFIG_MAX,
    RequestNames,
    admin_access_granted,
    references,
)
from dryrack.kinds.validation.meta import conditions, metadata_change, unchanged
from dryrack.kinds.validation.names import device_label, driver_name, pool_name, repeated, share_id
from dryrack.kinds.validation.parts import (
    PARAMETERS_BYTES_MAX,
    Judging,
    binding_conditions,
    configuration,
    distinct,
    items,
    json_object,
    node_selector,
    skipped_operations,
    toleration,
)
from dryrack.kinds.validation.problems import (
    FieldProblem,
    Token,
    byte_length,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
    too_long,
    too_many,
)

RESULTS_MAX = 32
RESERVED_FOR_MAX = 256
CONDITIONS_MAX = 8
IPS_MAX = 16
INTERFACE_NAME_BYTES_MAX = 256
HARDWARE_ADDRESS_BYTES_MAX = 128

_SOURCES = ("FromClaim", "FromClass")

DeviceKey = tuple[str, str, str, str]


def status_updated(
    obj: ResourceClaim, old: ResourceClaim, judging: Judging
) -> Iterator[FieldProblem]:
    status = obj.status
    names = RequestNames(obj.spec.devices)
    given = _admin_results(status.allocation)
    if given and not _admin_results(old.status.allocation):
        field = f"status.allocation.devices.results[{given[0]}].adminAccess"
        yield from admin_access_granted(field, judging.namespace_labels)
    yield from metadata_change(obj.metadata, old.metadata, judging.behaviour)
    yield from distinct(
        "status.reservedFor",
        status.reserved_for,
        _consumer,
        key=lambda consumer: Token(consumer.uid),
        count_max=RESERVED_FOR_MAX,
    )
    yield from _devices("status.devices", status, judging.behaviour)
    yield from _reservations(obj, old)
    if old.status.allocation is not None and status.allocation is not None:
        yield from unchanged("status.allocation", status.allocation, old.status.allocation)
    elif status.allocation is not None:
        yield from _allocation("status.allocation", status.allocation, names, judging.behaviour)


def _admin_results(allocation: AllocationResult | None) -> list[int]:
    results = allocation.devices.results if allocation else ()
    return [position for position, result in enumerate(results) if result.admin_access]


def _consumer(field: str, consumer: ResourceClaimConsumerReference) -> Iterator[FieldProblem]:
    for name in ("resource", "name", "uid"):
        if not getattr(consumer, name):
            yield required(f"{field}.{name}")


def _key(device: DeviceRequestAllocationResult | AllocatedDeviceStatus) -> DeviceKey:
    return (device.driver, device.pool, device.device, device.share_id or "")


def _devices(
    field: str, status: ResourceClaimStatus, behaviour: ValidationBehaviour
) -> Iterator[FieldProblem]:
    results = status.allocation.devices.results if status.allocation else ()
    given = set(map(_key, results))
    for position, device in enumerate(status.devices):
        at = f"{field}[{position}]"
        yield from _device(at, device, given)
        yield from conditions(f"{at}.conditions", device.conditions, behaviour)
        if device.data is not None:
            yield from json_object(f"{at}.data", device.data, bytes_max=PARAMETERS_BYTES_MAX)
        if device.network_data is not None:
            yield from _network(f"{at}.networkData", device.network_data)
    keys = tuple(map(_key, status.devices))
    for position in repeated(map("\0".join, keys)):
        yield duplicate(f"{field}[{position}]", _show_key(keys[position]))


def _show_key(key: DeviceKey) -> dict[str, str]:
    return dict(zip(("driver", "pool", "device", "shareID"), key, strict=True))


def _device(
    field: str, device: AllocatedDeviceStatus, given: set[DeviceKey]
) -> Iterator[FieldProblem]:
    yield from driver_name(f"{field}.driver", device.driver)
    yield from pool_name(f"{field}.pool", device.pool)
    yield from device_label(f"{field}.device", device.device)
    if device.share_id is not None:
        yield from share_id(f"{field}.shareID", device.share_id)
    key = _key(device)
    if key not in given:
        yield invalid(field, _show_key(key), "must be an allocated device in the claim")
    if len(device.conditions) > CONDITIONS_MAX:
        yield too_many(f"{field}.conditions", len(device.conditions), CONDITIONS_MAX)


def _network(field: str, data: NetworkDeviceData) -> Iterator[FieldProblem]:
    if byte_length(data.interface_name) > INTERFACE_NAME_BYTES_MAX:
        yield too_long(f"{field}.interfaceName", INTERFACE_NAME_BYTES_MAX)
    if byte_length(data.hardware_address) > HARDWARE_ADDRESS_BYTES_MAX:
        yield too_long(f"{field}.hardwareAddress", HARDWARE_ADDRESS_BYTES_MAX)
    yield from distinct(f"{field}.ips", data.ips, interface_address, key=str, count_max=IPS_MAX)


def _reservations(obj: ResourceClaim, old: ResourceClaim) -> Iterator[FieldProblem]:
    field = "status.reservedFor"
    status = obj.status
    if not status.reserved_for:
        return
    if status.allocation is None:
        yield forbidden(field, "may not be specified when `allocated` is not set")
    elif obj.metadata.deletion_timestamp and set(status.reserved_for) - set(
        old.status.reserved_for
    ):
        detail = (
            "new entries may not be added while `deallocationRequested` or `deletionTimestamp` "
            "are set"
        )
        yield forbidden(field, detail)


def _allocation(
    field: str, allocation: AllocationResult, names: RequestNames, behaviour: ValidationBehaviour
) -> Iterator[FieldProblem]:
    def result(at: str, given: DeviceRequestAllocationResult) -> Iterator[FieldProblem]:
        yield from _result(at, given, names)
        if behaviour.checks_allocated_tolerations:
            yield from items(f"{at}.tolerations", given.tolerations, toleration)
        yield from skipped_operations(f"{at}.skipNodeOperations", given.skip_node_operations)

    def config(at: str, given: DeviceAllocationConfiguration) -> Iterator[FieldProblem]:
        field = f"{at}.source"
        source = given.source
        if not source:
            yield required(field)
        elif source not in _SOURCES:
            yield not_supported(field, source, _SOURCES)
        yield from references(f"{at}.requests", given.requests, names)
        yield from configuration(at, given.opaque, stored=False)

    devices = allocation.devices
    yield from items(f"{field}.devices.results", devices.results, result, count_max=RESULTS_MAX)
    # As much as the class and the claim may bring, each.
    yield from items(f"{field}.devices.config", devices.config, config, count_max=2 * CONFIG_MAX)
    if allocation.node_selector is not None:
        yield from node_selector(f"{field}.nodeSelector", allocation.node_selector)


def _result(
    field: str, result: DeviceRequestAllocationResult, names: RequestNames
) -> Iterator[FieldProblem]:
    yield from names.problems(f"{field}.request", result.request)
    yield from driver_name(f"{field}.driver", result.driver)
    yield from pool_name(f"{field}.pool", result.pool)
    yield from device_label(f"{field}.device", result.device)
    yield from binding_conditions(
        field, result.binding_conditions, result.binding_failure_conditions
    )
    if result.share_id is not None:
        yield from share_id(f"{field}.shareID", result.share_id)
