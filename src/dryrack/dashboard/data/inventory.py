"""The lists of ResourceSlices and DeviceClasses."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from dryrack.kinds.paths import get, spec_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dryrack.kinds.raw import Raw

Document = dict[str, Any]


def slice_documents(slices: Iterable[Raw]) -> list[Document]:
    """Return every slice, with the state of its pool, sorted by pool and name."""
    documents = [_slice(each) for each in slices]
    pools: dict[tuple[str, str], list[Document]] = defaultdict(list)
    for each in documents:
        pools[each["driver"], each["pool"]].append(each)
    for pool in pools.values():
        newest = max(each["generation"] for each in pool)
        current = [each for each in pool if each["generation"] == newest]
        is_whole = all(each["sliceCount"] == len(current) for each in current)
        for each in pool:
            each["isCurrent"] = each["generation"] == newest
            each["isPoolComplete"] = is_whole
    return sorted(documents, key=lambda each: (each["driver"], each["pool"], each["name"]))


def _slice(raw: Raw) -> Document:
    spec = raw["spec"]
    pool = get(spec, "pool", {})
    devices = get(spec, "devices", ())
    where = spec.get("nodeName") or ("all nodes" if spec.get("allNodes") else "some nodes")
    return {
        "name": raw["metadata"]["name"],
        "driver": spec.get("driver", ""),
        "pool": pool.get("name", ""),
        "generation": pool.get("generation", 0),
        "sliceCount": pool.get("resourceSliceCount", 0),
        "node": where,
        "isOfNode": bool(spec.get("nodeName")),
        "devices": len(devices),
        "tainted": sum(bool(each.get("taints")) for each in devices),
        "counterSets": [each["name"] for each in get(spec, "sharedCounters", ())],
        "created": raw["metadata"].get("creationTimestamp") or "",
    }


def class_documents(classes: Iterable[Raw]) -> list[Document]:
    """Return every class with its selectors, sorted by name."""
    return sorted(map(_class, classes), key=lambda each: str(each["name"]))


def _class(raw: Raw) -> Document:
    spec = spec_of(raw)
    selectors = [get(each, "cel.expression") for each in get(spec, "selectors", ())]
    configs = [get(each, "opaque.driver") for each in get(spec, "config", ())]
    return {
        "name": raw["metadata"]["name"],
        "selectors": [each for each in selectors if each],
        "extendedResourceName": spec.get("extendedResourceName") or "",
        "configuredDrivers": [each for each in configs if each],
        "created": raw["metadata"].get("creationTimestamp") or "",
    }
