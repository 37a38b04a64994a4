"""Time and chance for tests: clusters whose clock stands still, and names that a seed decides."""

from dryrack.client.timekeeping import VirtualClock, run_virtual
from dryrack.cluster import PlaneOptions, SeededChance

__all__ = ["PlaneOptions", "SeededChance", "VirtualClock", "run_virtual"]
