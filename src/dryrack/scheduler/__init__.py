"""The cycle: take a pod from the queue, place it, reserve its claims, bind it; or say why not."""

from dryrack.scheduler.cycle import Scheduler
from dryrack.scheduler.reporting import DEFAULT_NAME
from dryrack.scheduler.settings import NAMES, SchedulerSettings

__all__ = ["DEFAULT_NAME", "NAMES", "Scheduler", "SchedulerSettings"]
