"""Common parts of the kinds with the names of Kubernetes' example driver."""

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
    """Return the UUID of a device of a node, which is always the same."""
    # No part can hold a NUL, so different parts never make one text.
    text = "\0".join((driver_of(profile), node, str(index)))
    digest = hashlib.sha256(text.encode()).hexdigest()
    parts = (digest[:8], digest[8:12], digest[12:16], digest[16:20], digest[20:32])
    return f"{profile}-{'-'.join(parts)}"


def variable_of(profile: str, name: str) -> str:
    """Return the variable of a device, such as `GPU_DEVICE_0`."""
    return f"{profile}_DEVICE_{name}".upper().replace("-", "_")


def common_env(
    profile: str, device: AllocatedDevice, claim: PreparingClaim
) -> Iterator[tuple[str, str]]:
    """Yield the variables that containers have with every device."""
    yield f"{variable_of(profile, device.device)}_RESOURCE_CLAIM", claim.uid
    yield "DRA_ADMIN_ACCESS", "true" if device.has_admin_access else "false"
    yield "KUBERNETES_NODE_NAME", claim.node
    yield "DRA_RESOURCE_DRIVER_NAME", driver_of(profile)


def parameters_of(
    device: AllocatedDevice, kind: str, version: str, form: type[Parameters]
) -> Parameters:
    """
    Return the last parameters: those of the claim, or else of the class, or else the defaults.

    Unknown fields are ignored, as in the example driver.
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
    """Return an option that is an integer."""
    number = read_int64(text)
    if number is None or not least <= number <= most:
        raise DevicesError(
            f"--devices {options.kind}: {name}={text!r}: use a number from {least} to {most}"
        )
    return number


def boolean_of(options: KindOptions, name: str, text: str) -> bool:
    """Return an option that is a boolean."""
    if text not in ("true", "false"):
        raise DevicesError(f"--devices {options.kind}: {name}={text!r}: use true or false")
    return text == "true"


def count_of(options: KindOptions, devices_of_each: int = 1) -> int:
    """Return the count; `devices_of_each` devices are published for each."""
    count = COUNT if options.count is None else options.count
    if count * devices_of_each > DEVICES_MAX:
        most = DEVICES_MAX // devices_of_each
        raise DevicesError(f"--devices {options.kind}:{count}: a node has at most {most} of these")
    return count
