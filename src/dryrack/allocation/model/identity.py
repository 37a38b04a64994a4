"""Names of devices, shares, pools and claims in results, errors and reasons."""

from typing import NamedTuple

from dryrack.kinds.resource import ResourceClaim


class PoolId(NamedTuple):
    """A pool of one driver; two nodes that name the same pool share it."""

    driver: str
    pool: str

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}"


class DeviceId(NamedTuple):
    """One device in the whole cluster."""

    driver: str
    pool: str
    device: str

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}/{self.device}"


class SharedDeviceId(NamedTuple):
    """One share of a device that allows multiple allocations."""

    driver: str
    pool: str
    device: str
    share_id: str

    @property
    def whole(self) -> DeviceId:
        return DeviceId(self.driver, self.pool, self.device)

    def __str__(self) -> str:
        share = f"/{self.share_id}" if self.share_id else ""
        return f"{self.driver}/{self.pool}/{self.device}{share}"


def claim_name(claim: ResourceClaim) -> str:
    """Return the claim as Kubernetes prints it: with its namespace, if it has one."""
    metadata = claim.metadata
    return f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name
