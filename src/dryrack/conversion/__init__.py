"""
Manifests of other versions and systems, converted to current objects.

A conversion changes as little text as possible, and reports what the result does not contain, with
its line.
"""

from dryrack.conversion.api_versions import TARGETS, convert_versions, upgrade
from dryrack.conversion.manifests import Conversion, ConvertedFile, convert_manifests
from dryrack.conversion.workspace import Workspace
from dryrack.conversion.yaml_printing import print_object

__all__ = [
    "TARGETS",
    "Conversion",
    "ConvertedFile",
    "Workspace",
    "convert_manifests",
    "convert_versions",
    "print_object",
    "upgrade",
]
