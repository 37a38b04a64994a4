"""The claims of pods: create, wait for, and release them."""

from typing import ClassVar

from dryrack.base.errors import DryrackError


class UnusableClaimError(DryrackError):
    """A claim ("ns/name") cannot be used as decided; report that, and decide again."""

    PLUGIN: ClassVar[str] = "DynamicResources"

    def __init__(self, claim: str, problem: str) -> None:
        super().__init__(problem)
        self.claim = claim

    @property
    def report(self) -> str:
        """Return the error as kube-scheduler reports it, with the plugin that failed."""
        return f'running PreBind plugin "{self.PLUGIN}": {self}'
