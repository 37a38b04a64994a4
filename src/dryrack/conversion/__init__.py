"""
Manifests of other versions and systems, converted to current objects.

A conversion changes as little text as possible, and reports what the result does not contain, with
its line.
"""

from dryrack.conversion.api_versions import conversion_fix, convert_versions, upgrade
from dryrack.conversion.device_plugins import add_extended_resources, convert_to_claims
from dryrack.conversion.gang_formats import convert_gangs, note_scheduler_names, set_scheduler_name
from dryrack.conversion.manifests import Conversion, ConvertedFile, convert_manifests
from dryrack.conversion.publishers import convert_publishers
from dryrack.conversion.workspace import Workspace

__all__ = [
    "Conversion",
    "ConvertedFile",
    "Workspace",
    "add_extended_resources",
    "conversion_fix",
    "convert_gangs",
    "convert_manifests",
    "convert_publishers",
    "convert_to_claims",
    "convert_versions",
    "note_scheduler_names",
    "set_scheduler_name",
    "upgrade",
]
