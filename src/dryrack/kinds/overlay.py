"""
NodeOverlay: what a kind of node will offer before it exists.

The kind is Karpenter's (`karpenter.sh/v1alpha1`). `resourceSlices` is an extension that
embeds the slices of the node. They are kept as they were written: people write them in a
dialect of their own (plain values as attributes, a driver in each device), and what they mean
is for `hardware` to say.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from dryrack.kinds.core import NodeSelectorRequirement
from dryrack.kinds.meta import Condition, Int32, KubernetesObject, Model
from dryrack.kinds.quantity import Quantity


class NodeOverlaySpec(Model, frozen=True, kw_only=True):
    """The overlay with the highest weight wins; between equals, the name decides."""

    requirements: tuple[NodeSelectorRequirement, ...] = ()
    price: str | None = None
    price_adjustment: str | None = None
    capacity: Mapping[str, Quantity] = {}
    weight: Int32 | None = None
    resource_slices: tuple[Any, ...] = ()


class NodeOverlayStatus(Model, frozen=True, kw_only=True):
    conditions: tuple[Condition, ...] = ()


class NodeOverlay(KubernetesObject, frozen=True, kw_only=True):
    API_VERSION: ClassVar[str] = "karpenter.sh/v1alpha1"

    spec: NodeOverlaySpec = NodeOverlaySpec()
    status: NodeOverlayStatus = NodeOverlayStatus()
