"""
The document formats for devices on nodes, read into one form.

The formats are the configuration of Karpenter's driver in a ConfigMap, in both ways of writing it;
a NodeOverlay with slices in it; a DRAConfig. The result is valid for the API. Loose writing is
read, and reported as a warning with its line and a fix. A value that cannot be read is a problem,
and then nothing of the document is used.
"""

from __future__ import annotations

from dryrack.hardware.config_formats.document_readers import (
    read_config,
    read_config_map,
    read_dra_config,
    read_overlay,
    remarked_config,
    remarked_dra_config,
    remarked_overlay,
)
from dryrack.hardware.config_formats.report import Read, Reading, Rest, Topic
from dryrack.hardware.config_formats.writing import (
    DeviceConfiguration,
    DevicePool,
    Rewritten,
    format_of,
    read_configuration,
    write_configuration,
)

__all__ = [
    "DeviceConfiguration",
    "DevicePool",
    "Read",
    "Reading",
    "Rest",
    "Rewritten",
    "Topic",
    "format_of",
    "read_config",
    "read_config_map",
    "read_configuration",
    "read_dra_config",
    "read_overlay",
    "remarked_config",
    "remarked_dra_config",
    "remarked_overlay",
    "write_configuration",
]
