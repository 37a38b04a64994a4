"""
The resources of the built-in kinds.

`kinds.registry` says what each kind is called and where it lives; how it behaves is its
strategy's. This module brings the two together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.apiserver.registry import Resource, Subresource
from dryrack.kinds.registry import builtin_kinds

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dryrack.apiserver.registry import Handler
    from dryrack.apiserver.strategy import Strategy
    from dryrack.kinds.registry import Kind
    from dryrack.kinds.releases import FeatureSet


def builtin_resources(
    features: FeatureSet,
    strategy_of: Callable[[Kind, FeatureSet], Strategy],
    handlers: Mapping[tuple[str, str], Mapping[str, Handler]],
) -> tuple[Resource, ...]:
    """
    Return the resources of every built-in kind, in the order of `builtin_kinds`.

    `handlers` answer instead of the usual treatment of stored objects, by the kind's storage name
    and the subresource ("" for the object itself), and then by verb.
    """
    return tuple(
        Resource(
            group=kind.group,
            version=kind.version,
            kind=kind.kind,
            plural=kind.plural,
            namespaced=kind.namespaced,
            strategy=strategy_of(kind, features),
            singular=kind.kind.lower(),
            short_names=kind.short_names,
            categories=kind.categories,
            verbs=kind.verbs,
            subresources={
                part.name: Subresource(
                    name=part.name,
                    verbs=part.verbs,
                    kind=part.kind,
                    group=part.group,
                    version=part.version,
                    has_table=part.has_table,
                    handlers=handlers.get((kind.storage, part.name), {}),
                )
                for part in kind.parts
            },
            handlers=handlers.get((kind.storage, ""), {}),
            storage_version=kind.storage_version,
            stored_in=kind.stored_in,
            hashed_as=kind.hashed_as,
            deletion_shows_object=kind.deletion_shows_object,
            kept_by_status=tuple(tuple(path.split(".")) for path in kind.kept_by_status),
            release=features.release,
            deprecation=_deprecation(kind),
        )
        for kind in builtin_kinds(features.release)
    )


# The releases in which a version of resource.k8s.io is deprecated and removed.
_DEPRECATED = {"v1beta1": ("1.35", "1.38"), "v1beta2": ("1.36", "1.39")}


def _deprecation(kind: Kind) -> str:
    if kind.kind == "ComponentStatus":
        return "v1 ComponentStatus is deprecated in v1.19+"
    if kind.group != "resource.k8s.io" or kind.version not in _DEPRECATED:
        return ""
    if kind.kind == "DeviceTaintRule":
        # It has no newer version.
        return ""
    since, until = _DEPRECATED[kind.version]
    shown = f"{kind.group}/{kind.version} {kind.kind}"
    return f"{shown} is deprecated in v{since}+, unavailable in v{until}+"
