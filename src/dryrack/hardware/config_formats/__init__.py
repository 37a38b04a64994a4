"""
What people write about devices on nodes, read and put into one form.

Four dialects: the configuration of Karpenter's driver in a ConfigMap, in both ways of writing it;
a NodeOverlay with slices in it; a DRAConfig. Whatever comes out is what the API takes. Loose
writing is understood and told as a warning, with line and fix; what cannot be understood is a
problem, and then nothing of the document is used.
"""

from __future__ import annotations

from dryrack.hardware.config_formats.reading import (
    read_config,
    read_config_map,
    read_dra_config,
    read_overlay,
    remarked_config,
    remarked_dra_config,
    remarked_overlay,
)
from dryrack.hardware.config_formats.report import Read, Reading, Rest, Topic

__all__ = [
    "Read",
    "Reading",
    "Rest",
    "Topic",
    "read_config",
    "read_config_map",
    "read_dra_config",
    "read_overlay",
    "remarked_config",
    "remarked_dra_config",
    "remarked_overlay",
]
