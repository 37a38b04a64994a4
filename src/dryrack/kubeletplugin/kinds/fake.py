"""
Fake devices: nothing but a UUID, which containers get as environment variables.

A device can be split: opaque parameters of kind FakeClaimParameters with `split: 2` give the
container two children with UUIDs of their own in place of the device.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from dryrack.kinds.resource import Device, DeviceAttribute
from dryrack.kubeletplugin.device_kind import ContainerEdits, DevicesError, PrepareError

if TYPE_CHECKING:
    from dryrack.kubeletplugin.device_kind import AllocatedDevice, KindOptions, PreparingClaim

DRIVER = "fake.resource.3-shake.com"
PARAMETERS_KIND = "FakeClaimParameters"
PARAMETERS_VERSION = f"{DRIVER}/v1alpha1"
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

    def devices(self, node: str) -> tuple[Device, ...]:
        return tuple(
            Device(
                name=f"fake-{index}",
                attributes={
                    "index": DeviceAttribute(int_value=index),
                    "model": DeviceAttribute(string_value=self.model),
                    "uuid": DeviceAttribute(string_value=uuid_of(node, f"fake-{index}")),
                },
            )
            for index in range(self.count)
        )

    def host_files(self) -> tuple[str, ...]:
        return ()

    def edits(self, device: AllocatedDevice, claim: PreparingClaim, number: int) -> ContainerEdits:
        parameters = _parameters(device)
        wanted = parameters.selector.model
        if wanted and wanted != self.model:
            raise PrepareError(
                f"device {device.device}: its model is {self.model}, and the parameters select "
                f"{wanted!r}; select it in the request too, by CEL"
            )
        uuids = uuids_of(claim.node, device.device, parameters.split or 1)
        env = (
            *((f"FAKE_DEVICE_{number + place}", uuid) for place, uuid in enumerate(uuids)),
            ("FAKE_DEVICE_MODEL", self.model),
            ("FAKE_NODE_NAME", claim.node),
            ("DRA_RESOURCE_DRIVER_NAME", self.driver),
        )
        return ContainerEdits(env=env, numbers=len(uuids))


def fake_kind(options: KindOptions) -> FakeKind:
    """`fake:8`, `fake:8,model=ULTRA_10`."""
    taken = options.take({"model": "LATEST-FAKE-MODEL"})
    count = COUNT if options.count is None else options.count
    if count > COUNT_MAX:
        raise DevicesError(f"--devices fake:{count}: a node has {COUNT_MAX} at most")
    return FakeKind(count, taken["model"])


def uuid_of(*parts: str) -> str:
    """A UUID that the same node and device, or the same parent and place, always have."""
    # No part can hold a NUL, so different parts never make one text.
    digest = hashlib.sha256("\0".join((DRIVER, *parts)).encode()).hexdigest()
    parts = (digest[:8], digest[8:12], digest[12:16], digest[16:20], digest[20:32])
    return f"FAKE-{'-'.join(parts)}"


def uuids_of(node: str, device: str, split: int) -> tuple[str, ...]:
    """What a container gets: the device itself, or the children that it is split into."""
    parent = uuid_of(node, device)
    if split == 1:
        return (parent,)
    return tuple(uuid_of(parent, str(place)) for place in range(split))


def split_of(device: AllocatedDevice) -> int:
    """How many children containers get in place of a device; 1 is the device itself."""
    return _parameters(device).split or 1


def _parameters(device: AllocatedDevice) -> _Parameters:
    """What was said last; parameters of the class come before those of the claim."""
    if not device.parameters:
        return _Parameters()
    whole = device.parameters[-1]
    where = f"request {device.request}, opaque parameters"
    if not isinstance(whole, dict) or whole.get("kind") != PARAMETERS_KIND:
        given = whole.get("kind") if isinstance(whole, dict) else whole
        raise PrepareError(f"{where}: kind {given!r}; it is {PARAMETERS_KIND}")
    if whole.get("apiVersion") != PARAMETERS_VERSION:
        raise PrepareError(
            f"{where}: apiVersion {whole.get('apiVersion')!r}; it is {PARAMETERS_VERSION}"
        )
    outside = {key: whole[key] for key in whole if key not in ("apiVersion", "kind", "metadata")}
    content = outside.get("spec", outside)
    try:
        parameters = msgspec.convert(content, _Parameters)
    except msgspec.ValidationError as error:
        raise PrepareError(f"{where}: {error}; there are count, split and selector.model") from None
    return _checked(parameters, device, where)


def _checked(parameters: _Parameters, device: AllocatedDevice, where: str) -> _Parameters:
    count, split = parameters.count, parameters.split
    if count is not None and count < 1:
        raise PrepareError(f"{where}: invalid number of Fakes requested: count={count}; 1 or more")
    if count is not None and count != device.devices_of_request:
        raise PrepareError(
            f"{where}: count={count}, but the request was given {device.devices_of_request}; "
            "the request's own count decides, so make them the same"
        )
    if split is not None and not 1 <= split <= SPLIT_MAX:
        raise PrepareError(f"{where}: invalid number of children: split={split}; 1 to {SPLIT_MAX}")
    return parameters
