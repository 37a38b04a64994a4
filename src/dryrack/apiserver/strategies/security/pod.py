"""A pod as the Pod Security rules read it, and the violations that they report."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from dryrack.kinds.paths import get

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dryrack.kinds.raw import Raw


_LISTS = ("initContainers", "containers", "ephemeralContainers")


class Finding(NamedTuple):
    """A reason, and the details that are needed to correct the pod."""

    reason: str
    detail: str

    def __str__(self) -> str:
        return f"{self.reason} ({self.detail})" if self.detail else self.reason


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


def describe_findings(found: Iterable[Finding]) -> str:
    return ", ".join(map(str, found))


def quote_all(items: Iterable[str]) -> str:
    return ", ".join(f'"{each}"' for each in items)


def name_items(one: str, items: Sequence[str]) -> str:
    """`container "a"`, or `containers "a", "b"`."""
    return f"{plural(one, items)} {quote_all(items)}"


def plural(one: str, items: Sequence[object], many: str = "") -> str:
    return one if len(items) == 1 else many or f"{one}s"


def setters(names: Sequence[str], *, pod: bool = False) -> str:
    """The pod, containers of it, or both, as the source of a violation."""
    found = ["pod"] if pod else []
    return " and ".join([*found, *([name_items("container", names)] if names else [])])
