"""The scheduler: find a node for each pod, reserve its claims, and bind it; or report why not."""

from dryrack.scheduler.cycle import Scheduler
from dryrack.scheduler.reporting import DEFAULT_NAME
from dryrack.scheduler.settings import NAMES, SchedulerSettings

__all__ = ["DEFAULT_NAME", "NAMES", "Scheduler", "SchedulerSettings"]
