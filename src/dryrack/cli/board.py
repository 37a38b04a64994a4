"""A cluster at a glance: every node, every device on it, and the pod that has it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

Raw = dict[str, Any]
Row = tuple[str, str, str, str, str]

COLUMNS = ("NODE", "STATUS", "DEVICE", "CLAIM", "POD")
NOBODY = "-"


@dataclass(frozen=True, slots=True)
class Sight:
    """What was read of a cluster."""

    nodes: Sequence[Raw]
    slices: Sequence[Raw]
    claims: Sequence[Raw]
    pods: Sequence[Raw]


def rows(sight: Sight) -> list[Row]:
    """A line for each device, and one for each node that has none."""
    held = _held(sight.claims)
    phases = {_full_name(pod): pod.get("status", {}).get("phase", "") for pod in sight.pods}
    return [row for node in sight.nodes for row in _node_rows(node, sight.slices, held, phases)]


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


def _node_rows(
    node: Raw,
    slices: Iterable[Raw],
    held: Mapping[str, tuple[str, list[str]]],
    phases: Mapping[str, str],
) -> list[Row]:
    name, status = node["metadata"]["name"], _status(node)
    made: list[Row] = []
    for each in slices:
        spec = each["spec"]
        if spec.get("nodeName") != name:
            continue
        for device in spec.get("devices", []):
            place = f"{spec['driver']}/{spec['pool']['name']}/{device['name']}"
            claim, pods = held.get(place, (NOBODY, []))
            users = ", ".join(f"{pod} {phases.get(pod, '')}".strip() for pod in pods)
            made.append((name, status, device["name"], claim, users or NOBODY))
    return made or [(name, status, NOBODY, NOBODY, NOBODY)]


def _status(node: Raw) -> str:
    conditions = node.get("status", {}).get("conditions", [])
    ready = any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
    return "Ready" if ready else "NotReady"


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
