"""
Where an empty list is not the same as none.

A typed object does not know whether a list was left out or written as `[]`. The server does, and
refuses some of the latter. These rules read the document itself.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from dryrack.kinds.meta import KubernetesObject
from dryrack.kinds.paths import metadata_of
from dryrack.kinds.resource import ResourceClaimTemplate, ResourceSlice
from dryrack.kinds.validation.meta import not_in_template
from dryrack.kinds.validation.problems import FieldProblem
from dryrack.kinds.validation.slices import devices_and_counters


def empty_lists(obj: KubernetesObject, document: Mapping[str, Any]) -> Iterator[FieldProblem]:
    """Problems of lists that are there but empty."""
    spec = document.get("spec") or {}
    if isinstance(obj, ResourceSlice):
        lists = (spec.get("devices"), spec.get("sharedCounters"))
        if [] in lists and None not in lists:
            yield devices_and_counters()
    elif isinstance(obj, ResourceClaimTemplate):
        meta = metadata_of(spec)
        for name in ("ownerReferences", "finalizers", "managedFields"):
            if meta.get(name) == []:
                yield not_in_template(f"spec.metadata.{name}")
