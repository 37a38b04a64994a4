"""What the kinds with the names of Kubernetes' example driver have in common."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from dryrack.base.numbers import read_int64
from dryrack.kubeletplugin.device_kind import DevicesError, PrepareError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dryrack.kubeletplugin.device_kind import AllocatedDevice, KindOptions, PreparingClaim

COUNT = 8
DEVICES_MAX = 10_000

Parameters = TypeVar("Parameters", bound=msgspec.Struct)


def driver_of(profile: str) -> str:
    return f"{profile}.example.com"


def uuid_of(profile: str, node: str, index: int) -> str:
    """The same for a device of a node whenever it is asked for, and no other device's."""
    # No part can hold a NUL, so different parts never make one text.
    text = "\0".join((driver_of(profile), node, str(index)))
    digest = hashlib.sha256(text.encode()).hexdigest()
    parts = (digest[:8], digest[8:12], digest[12:16], digest[16:20], digest[20:32])
    return f"{profile}-{'-'.join(parts)}"


def variable_of(profile: str, name: str) -> str:
    """`GPU_DEVICE_0`, from what tells the device from others."""
    return f"{profile}_DEVICE_{name}".upper().replace("-", "_")


def common_env(
    profile: str, device: AllocatedDevice, claim: PreparingClaim
) -> Iterator[tuple[str, str]]:
    """What containers get with every device, whatever it is."""
    yield f"{variable_of(profile, device.device)}_RESOURCE_CLAIM", claim.uid
    yield "DRA_ADMIN_ACCESS", "true" if device.has_admin_access else "false"
    yield "KUBERNETES_NODE_NAME", claim.node
    yield "DRA_RESOURCE_DRIVER_NAME", driver_of(profile)


def parameters_of(
    device: AllocatedDevice, kind: str, version: str, form: type[Parameters]
) -> Parameters:
    """
    What was said last: the claim's word over that of the class, and that over the defaults.

    Fields that nobody knows are dropped, as the example driver does.
    """
    if not device.parameters:
        return form()
    whole: Any = device.parameters[-1]
    where = f"request {device.request}, opaque parameters"
    given = (whole.get("kind"), whole.get("apiVersion")) if isinstance(whole, dict) else (whole, "")
    if given != (kind, version):
        raise PrepareError(
            f"{where}: expected {kind} of {version}, got {given[0]!r} of {given[1]!r}"
        )
    try:
        return msgspec.convert(whole, form)
    except msgspec.ValidationError as error:
        raise PrepareError(f"{where}: {error}") from None


def number_of(options: KindOptions, name: str, text: str, least: int, most: int) -> int:
    """An option that is a whole number."""
    number = read_int64(text)
    if number is None or not least <= number <= most:
        raise DevicesError(
            f"--devices {options.kind}: {name}={text!r}: use a number from {least} to {most}"
        )
    return number


def truth_of(options: KindOptions, name: str, text: str) -> bool:
    """An option that is a truth."""
    if text not in ("true", "false"):
        raise DevicesError(f"--devices {options.kind}: {name}={text!r}: use true or false")
    return text == "true"


def count_of(options: KindOptions, devices_of_each: int = 1) -> int:
    """How many there are; `devices_of_each` are published for each of them."""
    count = COUNT if options.count is None else options.count
    if count * devices_of_each > DEVICES_MAX:
        most = DEVICES_MAX // devices_of_each
        raise DevicesError(f"--devices {options.kind}:{count}: a node has at most {most} of these")
    return count
