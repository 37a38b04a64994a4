"""The cycle: take a pod from the queue, place it, reserve its claims, bind it; or say why not."""

from dryrack.scheduler.cycle import Scheduler

__all__ = ["Scheduler"]
