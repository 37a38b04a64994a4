"""The kubelet's side of the protocol of DRA drivers, for virtual nodes."""

from dryrack.kubelet.claims import CheckpointError
from dryrack.kubelet.drivers import RegisteredDrivers

__all__ = ["CheckpointError", "RegisteredDrivers"]
