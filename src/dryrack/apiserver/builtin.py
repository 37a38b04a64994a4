"""
The resources of the built-in kinds.

`kinds.registry` says what each kind is called and where it lives; how it behaves is its
strategy's. This module brings the two together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from dryrack.apiserver.registry import Resource, Subresource
from dryrack.kinds.registry import BUILTINS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dryrack.apiserver.registry import Handler
    from dryrack.apiserver.strategy import Strategy
    from dryrack.kinds.registry import Kind, Part


class Behaviours(Protocol):
    """How kinds behave: everything about them that is not data."""

    def strategy(self, kind: Kind) -> Strategy: ...

    def handlers(self, kind: Kind, subresource: str) -> Mapping[str, Handler]:
        """By verb: what answers instead of what is usual; "" is the resource itself."""
        ...


def builtin_resources(behaviours: Behaviours) -> tuple[Resource, ...]:
    """Every built-in kind, ready to be served."""
    return tuple(_resource(each, behaviours) for each in BUILTINS)


def _resource(kind: Kind, behaviours: Behaviours) -> Resource:
    return Resource(
        group=kind.group,
        version=kind.version,
        kind=kind.kind,
        plural=kind.plural,
        namespaced=kind.namespaced,
        strategy=behaviours.strategy(kind),
        singular=kind.kind.lower(),
        short_names=kind.short_names,
        categories=kind.categories,
        verbs=kind.verbs,
        subresources={part.name: _subresource(kind, part, behaviours) for part in kind.parts},
        handlers=behaviours.handlers(kind, ""),
        storage_version=kind.storage_version,
        stored_in=kind.stored_in,
        hashed_as=kind.hashed_as,
        deletion_shows_object=kind.deletion_shows_object,
        kept_by_status=tuple(tuple(path.split(".")) for path in kind.kept_by_status),
        deprecation=_deprecation(kind),
    )


# When a version of resource.k8s.io was deprecated, and when it will be gone.
_DEPRECATED = {"v1beta1": ("1.35", "1.38"), "v1beta2": ("1.36", "1.39")}


def _deprecation(kind: Kind) -> str:
    if kind.kind == "ComponentStatus":
        return "v1 ComponentStatus is deprecated in v1.19+"
    if kind.group != "resource.k8s.io" or kind.version not in _DEPRECATED:
        return ""
    if kind.kind == "DeviceTaintRule":
        # It is new in its version.
        return ""
    since, until = _DEPRECATED[kind.version]
    shown = f"{kind.group}/{kind.version} {kind.kind}"
    return f"{shown} is deprecated in v{since}+, unavailable in v{until}+"


def _subresource(kind: Kind, part: Part, behaviours: Behaviours) -> Subresource:
    return Subresource(
        name=part.name,
        verbs=part.verbs,
        kind=part.kind,
        group=part.group,
        version=part.version,
        has_table=part.has_table,
        handlers=behaviours.handlers(kind, part.name),
    )
