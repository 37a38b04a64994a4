"""
What a cluster needs to be published on: manifests that can be applied as they are.

The rights of an account, under the usual names; `publisher` puts others in their places. And the
definitions of the kinds that are read beside the ConfigMap, for clusters that want them.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dryrack.client.informer import Name

MANIFESTS = Path(__file__).parent / "manifests"
PUBLISHER = MANIFESTS / "publisher.yaml"
_NAMESPACE = "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: {}\n---\n"
DEFINITIONS = (MANIFESTS / "draconfigs.yaml", MANIFESTS / "nodeoverlays.yaml")


@dataclass(frozen=True, slots=True, kw_only=True)
class Publisher:
    """Where the publisher finds what it reads, and its lease."""

    config_map: Name
    lease: Name


def publisher(where: Publisher) -> str:
    """The manifests, in YAML."""
    lines = {
        # The longer one first: it begins like the other.
        "namespace: karpenter-lease\n": f"namespace: {where.lease.namespace}\n",
        "namespace: karpenter\n": f"namespace: {where.config_map.namespace}\n",
        "resourceNames: [dra-kwok-configmap]\n": f"resourceNames: [{where.config_map.name}]\n",
        "resourceNames: [dryrack-publisher]\n": f"resourceNames: [{where.lease.name}]\n",
    }
    text = PUBLISHER.read_text()
    for usual, actual in lines.items():
        assert usual in text, f"{PUBLISHER.name} has lost the line {usual!r}"
        text = text.replace(usual, actual)
    # They come first: a cluster that is new has none of them.
    names = sorted({where.config_map.namespace, where.lease.namespace})
    return "".join(_NAMESPACE.format(name) for name in names) + text


def definitions() -> str:
    """The definitions of NodeOverlay and DRAConfig, in YAML."""
    return "---\n".join(path.read_text() for path in DEFINITIONS)
