"""The clock, the chance and the options of a cluster, for tests of their own."""

from dryrack.client.timekeeping import VirtualClock, run_virtual
from dryrack.cluster import ControlPlaneOptions, SeededChance

# The name in release 0.2.
PlaneOptions = ControlPlaneOptions

__all__ = ["ControlPlaneOptions", "PlaneOptions", "SeededChance", "VirtualClock", "run_virtual"]
