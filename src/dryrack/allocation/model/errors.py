"""
The one thing that is raised: an error that stops the whole scheduling attempt.

Kubernetes gives up on a pod when its allocator returns an error, even if another node would
do, so an error is not an outcome of one node. The text is the one Kubernetes prints.
"""

from dryrack.base.errors import DryrackError


class AllocationError(DryrackError):
    """The claims, classes or slices are such that Kubernetes refuses to decide."""
