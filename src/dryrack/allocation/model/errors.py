"""
The one thing that is raised: an error that stops the whole scheduling attempt.

Kubernetes gives up on a pod when its allocator returns an error, even if another node would
do, so an error is not an outcome of one node. The text is the one Kubernetes prints.
"""

from dryrack.base.errors import DryrackError


class AllocationError(DryrackError):
    """The claims, classes or slices are such that Kubernetes refuses to decide."""

    def __init__(self, text: str, *, device: str = "", remedy: str = "") -> None:
        """`device` is the one that was looked at; `remedy` is said if the claim is not to blame."""
        super().__init__(text)
        self.device = device
        self.remedy = remedy


class MissingClassError(AllocationError):
    """A request names a DeviceClass that is not there."""

    def __init__(self, claim: str, request: str, name: str) -> None:
        super().__init__(
            f"claim {claim}, request {request}: could not retrieve device class {name}: "
            f'deviceclass.resource.k8s.io "{name}" not found'
        )
        self.claim = claim
        self.request = request
        self.name = name
