"""A scenario with other objects or another fleet, and else as it is."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace as changed

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dryrack.kinds.raw import Raw
    from dryrack.scenario.model import Fleet
    from dryrack.scenario.reading import LoadedScenario

_Key = tuple[str, str, str, str]


def with_objects(loaded: LoadedScenario, objects: Iterable[Raw]) -> LoadedScenario:
    """
    These objects stand in the place of those that have their kind and name.

    One that has no such place is there from the start.
    """
    new = {_key(each): each for each in objects}
    used: set[_Key] = set()

    def swapped(entries: Sequence[Any]) -> tuple[Any, ...]:
        found = loaded.objects_of(entries)
        keys = [_key(each) for each in found]
        used.update(key for key in keys if key in new)
        return tuple(new.get(key, each) for key, each in zip(keys, found, strict=True))

    scenario = loaded.scenario
    before = swapped(scenario.objects)
    steps = tuple(
        changed(step, apply=swapped(step.apply)) if step.apply else step for step in scenario.steps
    )
    added = tuple(each for key, each in new.items() if key not in used)
    return replace(loaded, scenario=changed(scenario, objects=(*added, *before), steps=steps))


def with_fleet(loaded: LoadedScenario, fleet: Fleet) -> LoadedScenario:
    """On these nodes; slices of nodes that are no longer there go with them."""
    names = {name for group in fleet.nodes for name in group.names}

    def stays(obj: Raw) -> bool:
        node = (obj.get("spec") or {}).get("nodeName", "") if _is_slice(obj) else ""
        return not node or (node in names and not fleet.devices and not fleet.catalogue)

    scenario = loaded.scenario
    objects = tuple(filter(stays, loaded.objects_of(scenario.objects)))
    return replace(loaded, scenario=changed(scenario, fleet=fleet, objects=objects))


def _is_slice(obj: Raw) -> bool:
    return obj.get("kind") == "ResourceSlice"


def _key(obj: Raw) -> _Key:
    meta = obj.get("metadata") or {}
    group = str(obj.get("apiVersion", "")).rpartition("/")[0]
    name = str(meta.get("name", ""))
    return group, str(obj.get("kind", "")), str(meta.get("namespace") or "default"), name
