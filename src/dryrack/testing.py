"""Time and chance for tests: clusters whose clock stands still, and names that a seed decides."""

from dryrack.client.timekeeping import VirtualClock, run_virtual
from dryrack.cluster.control_plane import PlaneOptions
from dryrack.cluster.seeded_chance import SeededChance

__all__ = ["PlaneOptions", "SeededChance", "VirtualClock", "run_virtual"]
