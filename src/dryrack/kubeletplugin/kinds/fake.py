"""
Fake devices: nothing but a UUID, which containers get as environment variables.

A device can be split: opaque parameters of kind FakeClaimParameters with `split: 2` give the
container two children with UUIDs of their own in place of the device. With the option `split=2`
the children are on offer as devices, which draw on the same counter as the whole.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from dryrack.kinds.quantity import Quantity
from dryrack.kinds.resource import (
    Counter,
    CounterSet,
    Device,
    DeviceAttribute,
    DeviceCounterConsumption,
)
from dryrack.kubeletplugin.device_kind import ContainerEdits, DevicesError, PrepareError
from dryrack.kubeletplugin.kinds.example import number_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dryrack.kubeletplugin.device_kind import AllocatedDevice, KindOptions, PreparingClaim

DRIVER = "fake.resource.3-shake.com"
PARAMETERS_KIND = "FakeClaimParameters"
PARAMETERS_VERSION = f"{DRIVER}/v1alpha1"
SKIP_OPTION = "skip-node-operations"
SKIP_ALL = "*"
COUNT = 8
COUNT_MAX = 10_000
# More children than this would make a CDI spec that no container runtime was tried with.
SPLIT_MAX = 1_000


class _Selector(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    model: str = ""


class _Parameters(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    count: int | None = None
    split: int | None = None
    selector: _Selector = _Selector()


@dataclass(frozen=True, slots=True)
class FakeKind:
    """As many as one likes, on every node with other UUIDs."""

    count: int = COUNT
    model: str = "LATEST-FAKE-MODEL"
    driver: str = DRIVER
    device_class: str = "fake.3-shake.com"
    cdi_kind: str = f"k8s.{DRIVER}/fake"
    split: int = 1
    """How many children each is on offer as, beside the whole; 1 is the whole alone."""
    skip_node_operations: tuple[str, ...] = ()
    """The calls that a kubelet leaves out: none, or all."""

    def devices(self, node: str) -> tuple[Device, ...]:
        return tuple(each for index in range(self.count) for each in self._devices_of(node, index))

    def counter_sets(self) -> tuple[CounterSet, ...]:
        if self.split == 1:
            return ()
        counters = _children(self.split)
        return tuple(
            CounterSet(name=_counter_set(index), counters=counters) for index in range(self.count)
        )

    def _devices_of(self, node: str, index: int) -> Iterator[Device]:
        name = f"fake-{index}"
        if self.split == 1:
            yield Device(name=name, attributes=self._attributes(node, name, index))
            return
        parent = DeviceAttribute(string_value=uuid_of(node, name))
        for place in range(self.split):
            child = f"{name}-child-{place}"
            attributes = self._attributes(node, child, index) | {"parentUUID": parent}
            yield Device(
                name=child, attributes=attributes, consumes_counters=_consumption(index, 1)
            )
        yield Device(
            name=name,
            attributes=self._attributes(node, name, index),
            consumes_counters=_consumption(index, self.split),
        )

    def _attributes(self, node: str, name: str, index: int) -> dict[str, DeviceAttribute]:
        return {
            "index": DeviceAttribute(int_value=index),
            "model": DeviceAttribute(string_value=self.model),
            "uuid": DeviceAttribute(string_value=uuid_of(node, name)),
        }

    def host_files(self) -> tuple[str, ...]:
        return ()

    def edits(self, device: AllocatedDevice, claim: PreparingClaim, number: int) -> ContainerEdits:
        parameters = _parameters(device)
        wanted = parameters.selector.model
        if wanted and wanted != self.model:
            raise PrepareError(
                f"device {device.device}: its model is {self.model}, but the parameters select "
                f"{wanted!r}; add a CEL selector for the model to the request"
            )
        uuids = uuids_of(claim.node, device.device, parameters.split or 1)
        env = (
            *((f"FAKE_DEVICE_{number + place}", uuid) for place, uuid in enumerate(uuids)),
            ("FAKE_NODE_NAME", claim.node),
            ("DRA_RESOURCE_DRIVER_NAME", self.driver),
        )
        return ContainerEdits(env=env, numbers=len(uuids))


def fake_kind(options: KindOptions) -> FakeKind:
    """`fake:8`, `fake:8,model=ULTRA_10`, `fake:8,split=2`, `fake:8,skip-node-operations=all`."""
    defaults = {"model": "LATEST-FAKE-MODEL", "split": "1", SKIP_OPTION: "none"}
    taken = options.take(defaults)
    skipped = {"none": (), "all": (SKIP_ALL,)}.get(taken[SKIP_OPTION])
    if skipped is None:
        raise DevicesError(
            f"--devices fake: {SKIP_OPTION}={taken[SKIP_OPTION]}: unknown value; use none or all"
        )
    split = number_of(options, "split", taken["split"], 1, SPLIT_MAX)
    count = COUNT if options.count is None else options.count
    most = COUNT_MAX if split == 1 else COUNT_MAX // (split + 1)
    if count > most:
        raise DevicesError(f"--devices fake:{count}: a node has at most {most}")
    return FakeKind(count, taken["model"], split=split, skip_node_operations=skipped)


def _counter_set(index: int) -> str:
    return f"fake-{index}-counters"


def _children(count: int) -> dict[str, Counter]:
    return {"children": Counter(value=Quantity.parse(str(count)))}


def _consumption(index: int, children: int) -> tuple[DeviceCounterConsumption, ...]:
    set_ = _counter_set(index)
    return (DeviceCounterConsumption(counter_set=set_, counters=_children(children)),)


def uuid_of(*parts: str) -> str:
    """Return the UUID of a node and a device, or of a parent and a child."""
    # No part can hold a NUL, so different parts never make one text.
    digest = hashlib.sha256("\0".join((DRIVER, *parts)).encode()).hexdigest()
    parts = (digest[:8], digest[8:12], digest[12:16], digest[16:20], digest[20:32])
    return f"FAKE-{'-'.join(parts)}"


def uuids_of(node: str, device: str, split: int) -> tuple[str, ...]:
    """Return the UUIDs in a container: of the device, or of the children that it is split into."""
    parent = uuid_of(node, device)
    if split == 1:
        return (parent,)
    return tuple(uuid_of(parent, str(place)) for place in range(split))


def split_of(device: AllocatedDevice) -> int:
    """Return the number of children that replace a device; 1 is the device itself."""
    return _parameters(device).split or 1


def _parameters(device: AllocatedDevice) -> _Parameters:
    """Return the last parameters: those of the claim, or else of the class."""
    if not device.parameters:
        return _Parameters()
    whole = device.parameters[-1]
    where = f"request {device.request}, opaque parameters"
    if not isinstance(whole, dict) or whole.get("kind") != PARAMETERS_KIND:
        given = whole.get("kind") if isinstance(whole, dict) else whole
        raise PrepareError(f"{where}: expected kind {PARAMETERS_KIND}, got {given!r}")
    if whole.get("apiVersion") != PARAMETERS_VERSION:
        raise PrepareError(
            f"{where}: expected apiVersion {PARAMETERS_VERSION}, got {whole.get('apiVersion')!r}"
        )
    outside = {key: whole[key] for key in whole if key not in ("apiVersion", "kind", "metadata")}
    content = outside.get("spec", outside)
    try:
        parameters = msgspec.convert(content, _Parameters)
    except msgspec.ValidationError as error:
        raise PrepareError(
            f"{where}: {error}; the fields are count, split and selector.model"
        ) from None
    count = parameters.count
    split = parameters.split
    if count is not None and count < 1:
        raise PrepareError(
            f"{where}: invalid number of Fakes requested: count={count}; use 1 or more"
        )
    if count is not None and count != device.devices_of_request:
        raise PrepareError(
            f"{where}: count={count}, but the request has {device.devices_of_request} devices; "
            "use the same count as the request"
        )
    if split is not None and not 1 <= split <= SPLIT_MAX:
        raise PrepareError(
            f"{where}: invalid number of children: split={split}; use 1 to {SPLIT_MAX}"
        )
    return parameters
