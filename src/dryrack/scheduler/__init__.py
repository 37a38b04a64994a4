"""The cycle: take a pod from the queue, place it, reserve its claims, bind it; or say why not."""

from dryrack.scheduler.cycle import NAMES, PROFILES, Scheduler
from dryrack.scheduler.reporting import DEFAULT_NAME

__all__ = ["DEFAULT_NAME", "NAMES", "PROFILES", "Scheduler"]
