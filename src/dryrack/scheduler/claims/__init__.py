"""Claims of the pods that are scheduled: made, waited for, shared by a group, let go."""

from typing import ClassVar

from dryrack.base.errors import DryrackError


class UnusableClaimError(DryrackError):
    """A claim, "ns/name", cannot be used as it was decided; the pod is told, and decided anew."""

    PLUGIN: ClassVar[str] = "DynamicResources"

    def __init__(self, claim: str, problem: str) -> None:
        super().__init__(problem)
        self.claim = claim

    @property
    def report(self) -> str:
        """Return the error as kube-scheduler reports it, with the plugin that failed."""
        return f'running PreBind plugin "{self.PLUGIN}": {self}'
