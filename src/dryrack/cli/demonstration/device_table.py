"""A cluster at a glance: every node, every device on it, and the pod that has it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from dryrack.kinds.raw import Raw

Row = tuple[str, str, str, str, str]

SliceRow = tuple[str, str, str, str, str, str]

COLUMNS = ("NODE", "STATUS", "DEVICE", "CLAIM", "POD")
SLICE_COLUMNS = ("SLICE", "NODE", "DRIVER", "POOL", "GENERATION", "DEVICES")
NOBODY = "-"
READY = "Ready"
ALL_NODES = "all nodes"
SOME_NODES = "some nodes"
# Of a slice's devices that nobody has, these tell enough.
_FREE_SHOWN = 8


@dataclass(frozen=True, slots=True)
class Sight:
    """What was read of a cluster."""

    nodes: Sequence[Raw]
    slices: Sequence[Raw]
    claims: Sequence[Raw]
    pods: Sequence[Raw]
    events: Sequence[Raw] = ()


def rows(sight: Sight) -> list[Row]:
    """A line for each device, and one for each node that has none."""
    held = _held(sight.claims)
    phases = {_full_name(pod): pod.get("status", {}).get("phase", "") for pod in sight.pods}
    places = [(node["metadata"]["name"], _status(node)) for node in sight.nodes]
    places += [(place, NOBODY) for place in (ALL_NODES, SOME_NODES)]
    made = [row for place in places for row in _place_rows(place, sight.slices, held, phases)]
    shown = [row for row in made if row[0] not in (ALL_NODES, SOME_NODES) or row[2] != NOBODY]
    return [*shown, *_lost_rows(sight, held)]


def slice_rows(sight: Sight) -> list[SliceRow]:
    """A line for each slice, as kubectl has it, and how many devices it has."""
    return [
        (
            each["metadata"]["name"],
            _place(each["spec"]),
            each["spec"]["driver"],
            each["spec"]["pool"]["name"],
            str(each["spec"]["pool"]["generation"]),
            str(len(each["spec"].get("devices") or ())),
        )
        for each in sight.slices
    ]


def ready_nodes(sight: Sight) -> list[str]:
    return [node["metadata"]["name"] for node in sight.nodes if _status(node) == READY]


def published(sight: Sight) -> dict[str, list[str]]:
    """By node, or where else they are: every device."""
    found: dict[str, list[str]] = {}
    for each in sight.slices:
        spec = each["spec"]
        devices = found.setdefault(_place(spec), [])
        devices += (_device(spec, device) for device in spec.get("devices") or ())
    return found


def slices_of(sight: Sight) -> dict[str, list[str]]:
    """By node, or where else they are: the names of the slices."""
    found: dict[str, list[str]] = {}
    for each in sight.slices:
        found.setdefault(_place(each["spec"]), []).append(each["metadata"]["name"])
    return found


def events_of(sight: Sight) -> list[str]:
    """What was told about objects, each once."""
    told = (
        f"{each['involvedObject']['kind']} {each['involvedObject']['name']}: {each['message']}"
        for each in sight.events
    )
    return list(dict.fromkeys(told))


def devices_of(sight: Sight) -> dict[str, list[str]]:
    """By pod: the devices it has."""
    found: dict[str, list[str]] = {}
    for device, (_, pods) in _held(sight.claims).items():
        for pod in pods:
            found.setdefault(pod, []).append(device)
    return found


def running_on(sight: Sight) -> dict[str, str]:
    """By pod that runs: its node."""
    return {
        _full_name(pod): pod["spec"].get("nodeName", "")
        for pod in sight.pods
        if pod.get("status", {}).get("phase") == "Running"
    }


def _place_rows(
    place: tuple[str, str],
    slices: Iterable[Raw],
    held: Mapping[str, tuple[str, list[str]]],
    phases: Mapping[str, str],
) -> list[Row]:
    made: list[Row] = []
    for each in slices:
        spec = each["spec"]
        if _place(spec) != place[0]:
            continue
        free = 0
        for device in spec.get("devices") or ():
            claim, pods = held.get(_device(spec, device), (NOBODY, []))
            free += claim == NOBODY
            if claim == NOBODY and free > _FREE_SHOWN:
                continue
            users = ", ".join(f"{pod} {phases.get(pod, '')}".strip() for pod in pods)
            made.append((*place, device["name"], claim, users or NOBODY))
        if free > _FREE_SHOWN:
            made.append((*place, f"and {free - _FREE_SHOWN} more", NOBODY, NOBODY))
    return made or [(*place, NOBODY, NOBODY, NOBODY)]


def _lost_rows(sight: Sight, held: Mapping[str, tuple[str, list[str]]]) -> list[Row]:
    """Devices that somebody has and nobody publishes any more."""
    known = {device for devices in published(sight).values() for device in devices}
    where = running_on(sight)
    return [
        (
            ", ".join(where.get(pod, NOBODY) for pod in pods) or NOBODY,
            "-",
            f"{device.rpartition('/')[2]} (withdrawn)",
            claim,
            ", ".join(f"{pod} {'Running' if pod in where else ''}".strip() for pod in pods),
        )
        for device, (claim, pods) in held.items()
        if device not in known
    ]


def _place(spec: Raw) -> str:
    """Whose devices these are."""
    return str(spec.get("nodeName") or (ALL_NODES if spec.get("allNodes") else SOME_NODES))


def _device(spec: Raw, device: Raw) -> str:
    return f"{spec['driver']}/{spec['pool']['name']}/{device['name']}"


def _status(node: Raw) -> str:
    conditions = node.get("status", {}).get("conditions", [])
    ready = any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
    return READY if ready else "NotReady"


def _held(claims: Iterable[Raw]) -> dict[str, tuple[str, list[str]]]:
    """By device: the claim that has it, and the pods that use the claim."""
    held: dict[str, tuple[str, list[str]]] = {}
    for claim in claims:
        status = claim.get("status", {})
        namespace = claim["metadata"]["namespace"]
        pods = [f"{namespace}/{user['name']}" for user in status.get("reservedFor", [])]
        for each in status.get("allocation", {}).get("devices", {}).get("results", []):
            place = f"{each['driver']}/{each['pool']}/{each['device']}"
            held[place] = (_full_name(claim), pods)
    return held


def _full_name(obj: Raw) -> str:
    return f"{obj['metadata']['namespace']}/{obj['metadata']['name']}"
