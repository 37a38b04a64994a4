"""The definitions of the kinds that a publisher reads and Kubernetes does not have."""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING

import yaml

if TYPE_CHECKING:
    from dryrack.kinds.raw import Raw


def definitions() -> tuple[Raw, ...]:
    """CustomResourceDefinitions of NodeOverlay and DRAConfig, as a server takes them."""
    folder = resources.files("dryrack.cluster") / "manifests"
    names = ("nodeoverlays.yaml", "draconfigs.yaml")
    return tuple(yaml.safe_load((folder / name).read_text()) for name in names)
