"""Replace objects or the fleet of a scenario."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace as changed

from dryrack.kinds.paths import get, metadata_of, spec_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dryrack.kinds.raw import Raw
    from dryrack.scenario.model import Fleet
    from dryrack.scenario.reading import LoadedScenario

_Key = tuple[str, str, str, str]


def with_objects(loaded: LoadedScenario, objects: Iterable[Raw]) -> LoadedScenario:
    """
    Return the scenario with these objects in the place of those with their kind and name.

    An object that replaces none exists from the start.
    """
    new = {_key(each): each for each in objects}

    def swap(entries: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(new.get(_key(each), each) for each in loaded.objects_of(entries))

    scenario = loaded.scenario
    before = swap(scenario.objects)
    steps = tuple(
        changed(step, apply=swap(step.apply)) if step.apply else step for step in scenario.steps
    )
    added = without_place(loaded, new.values())
    return replace(loaded, scenario=changed(scenario, objects=(*added, *before), steps=steps))


def without_place(loaded: LoadedScenario, objects: Iterable[Raw]) -> tuple[Raw, ...]:
    """Return the objects that replace none in the scenario."""
    scenario = loaded.scenario
    places = (scenario.objects, *(step.apply for step in scenario.steps if step.apply))
    there = {_key(each) for entries in places for each in loaded.objects_of(entries)}
    return tuple(each for each in objects if _key(each) not in there)


def with_fleet(loaded: LoadedScenario, fleet: Fleet) -> LoadedScenario:
    """
    Return the scenario on these nodes, without what belongs to other nodes.

    These are the slices and the faults of such nodes, and pods that can run nowhere else, such as
    those of a DaemonSet.
    """
    names = {name for group in fleet.nodes for name in group.names}
    has_devices = fleet.devices or fleet.catalogue or any(group.profile for group in fleet.nodes)

    def stays(obj: Raw) -> bool:
        only = _only_nodes(obj)
        if obj.get("kind") == "ResourceSlice" and only and has_devices:
            return False
        return not only or bool(only & names)

    scenario = loaded.scenario

    def stay(faults: Iterable[str]) -> tuple[str, ...]:
        return tuple(each for each in faults if _node_of(each) in ("", *names))

    steps = tuple(
        changed(
            step, apply=tuple(filter(stays, loaded.objects_of(step.apply))), fail=stay(step.fail)
        )
        if step.apply or step.fail
        else step
        for step in scenario.steps
    )
    objects = tuple(filter(stays, loaded.objects_of(scenario.objects)))
    scenario = changed(
        scenario, fleet=fleet, objects=objects, steps=steps, faults=stay(scenario.faults)
    )
    there = {_key(each)[2:] for step in steps for each in step.apply if each["kind"] == "Pod"}
    recorded = tuple(each for each in scenario.recorded if tuple(each.pod.split("/", 1)) in there)
    return replace(loaded, scenario=changed(scenario, recorded=recorded))


def _only_nodes(obj: Raw) -> set[str]:
    """Return the nodes to which an object is tied: a slice or a pod; empty if it is not."""
    spec = spec_of(obj)
    if obj.get("kind") == "Node":
        return {obj["metadata"]["name"]}
    if obj.get("kind") not in ("Pod", "ResourceSlice"):
        return set()
    if spec.get("nodeName"):
        return {spec["nodeName"]}
    affinity = get(spec, "affinity.nodeAffinity", {})
    required = get(affinity, "requiredDuringSchedulingIgnoredDuringExecution", {})
    named = [_names_in(term) for term in get(required, "nodeSelectorTerms", ())]
    return set().union(*named) if all(named) else set()


def _names_in(term: Raw) -> set[str]:
    fields = get(term, "matchFields", ())
    return {name for each in fields if each["operator"] == "In" for name in each["values"]}


def _node_of(fault: str) -> str:
    """Return the node of a fault; "" if it affects something else."""
    kind, _, rest = fault.partition(" ")
    return rest.partition(" ")[0] if kind == "node" else ""


def _key(obj: Raw) -> _Key:
    meta = metadata_of(obj)
    group = str(obj.get("apiVersion", "")).rpartition("/")[0]
    name = str(meta.get("name", ""))
    return group, str(obj.get("kind", "")), str(meta.get("namespace") or "default"), name
