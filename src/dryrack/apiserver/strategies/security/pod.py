"""A pod as the rules look at it: who in it sets what about its own safety."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from dryrack.apiserver.strategies.security.findings import Finding, setters
from dryrack.kinds.paths import get

if TYPE_CHECKING:
    from dryrack.kinds.raw import Raw

_LISTS = ("initContainers", "containers", "ephemeralContainers")


class Container(NamedTuple):
    """A container, and its security context."""

    name: str
    raw: Raw
    context: Raw


class ForbiddenProfiles(NamedTuple):
    """The pod and containers that set a forbidden profile, and the types of the profiles."""

    who: str
    types: list[str]


@dataclass(frozen=True, slots=True)
class Pod:
    """The metadata and spec of a pod, or of the template of one."""

    meta: Raw
    spec: Raw

    @property
    def annotations(self) -> Raw:
        return get(self.meta, "annotations", {})

    @property
    def context(self) -> Raw:
        return get(self.spec, "securityContext", {})

    @property
    def containers(self) -> list[Container]:
        listed = [each for key in _LISTS for each in self.spec.get(key) or ()]
        return [
            Container(each.get("name") or "", each, get(each, "securityContext", {}))
            for each in listed
        ]

    def containers_where(self, test: Callable[[Raw], bool]) -> list[str]:
        """Return the names of containers whose security context passes a test."""
        return [each.name for each in self.containers if test(each.context)]

    def find_forbidden(self, field: str, allowed: tuple[str, ...]) -> ForbiddenProfiles:
        """Return who sets profiles of types that are not allowed."""

        def types(context: Raw) -> list[str]:
            profile = context.get(field)
            type_ = "" if profile is None else profile.get("type") or ""
            return [] if profile is None or type_ in allowed else [type_]

        contexts = (self.context, *(each.context for each in self.containers))
        who = setters(
            self.containers_where(lambda given: bool(types(given))), pod=bool(types(self.context))
        )
        return ForbiddenProfiles(
            who, sorted({found for given in contexts for found in types(given)})
        )


Check: TypeAlias = Callable[[Pod], Finding | None]
