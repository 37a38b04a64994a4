"""What is particular about each built-in kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dryrack.apiserver.custom.definition import DefinitionStrategy
from dryrack.apiserver.schemas import schema_of
from dryrack.apiserver.schemas.shape import skeleton
from dryrack.apiserver.strategies.devices import MODELS, DeviceStrategy
from dryrack.apiserver.strategies.pods.strategy import PodStrategy
from dryrack.apiserver.strategy import PlainStrategy
from dryrack.kinds.convert import GROUP

if TYPE_CHECKING:
    from dryrack.apiserver.builtin import Builtin
    from dryrack.apiserver.strategy import Strategy

Raw = dict[str, Any]


def strategy_of(kind: Builtin) -> Strategy:
    """The strategy of a built-in kind; a plain one for those that need no other."""
    if kind.kind == "CustomResourceDefinition":
        return DefinitionStrategy()
    has_status = any(part.name == "status" for part in kind.parts)
    if kind.group == GROUP and kind.kind in MODELS:
        return DeviceStrategy(
            kind.kind, kind.version, namespaced=kind.namespaced, has_status=has_status
        )
    if kind.storage == "pods":
        return PodStrategy()
    return PlainStrategy(
        namespaced=kind.namespaced,
        has_status=has_status,
        empty_status=lambda: empty_status(kind),
    )


def empty_status(kind: Builtin) -> Raw | None:
    """The status that the real server writes of an object that has none."""
    found: Raw | None = skeleton(schema_of(kind.group, kind.version, kind.kind)).get("status")
    return found
