"""The nodes and devices of pods at the end of a run."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dryrack.client.timekeeping import seconds_of
from dryrack.kinds.paths import get, status_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from dryrack.kinds.raw import Raw


@dataclass(frozen=True, slots=True, kw_only=True)
class PodPlacement:
    """One pod, by namespace and name; a controller's pod, by its owner and a number."""

    pod: str
    node: str = ""
    waited: float = 0.0
    """The time from its creation until it had a node, in whole seconds."""
    devices: tuple[str, ...] = ()
    message: str = ""
    """The reason if it has no node."""

    def document(self) -> dict[str, Any]:
        """Return the placement as plain data."""
        found: dict[str, Any] = {"pod": self.pod, "node": self.node}
        if self.node:
            return found | {"waited": self.waited, "devices": list(self.devices)}
        return found | {"message": self.message}

    @classmethod
    def of_document(cls, document: Mapping[str, Any]) -> PodPlacement:
        return cls(
            pod=str(document["pod"]),
            node=str(document.get("node") or ""),
            waited=float(document.get("waited") or 0.0),
            devices=tuple(map(str, get(document, "devices", ()))),
            message=str(document.get("message") or ""),
        )


def placements_of(pods: Iterable[Raw], claims: Iterable[Raw]) -> tuple[PodPlacement, ...]:
    """Return the placements of all pods, ordered by name."""
    held = devices_by_claim(claims)
    numbers: Counter[str] = Counter()
    ordered = sorted(pods, key=_order)
    found = [placement_of(pod, _stable_names(pod, numbers), held) for pod in ordered]
    return tuple(sorted(found, key=lambda each: each.pod))


def placement_of(
    pod: Raw, name: str, held: Mapping[tuple[str, str], Sequence[str]]
) -> PodPlacement:
    """Return the placement of a pod, with this name; `held` are devices by claim."""
    meta = pod["metadata"]
    conditions = get(pod, "status.conditions", ())
    told: Raw = next((each for each in conditions if each["type"] == "PodScheduled"), {})
    node = get(pod, "spec.nodeName") or ""
    if not node:
        return PodPlacement(pod=name, message=str(told.get("message", "")))
    created = meta.get("creationTimestamp")
    since = told.get("lastTransitionTime") or created
    waited = seconds_of(since) - seconds_of(created) if created else 0.0
    devices = sorted(
        device
        for claim in _claims(pod)
        for device in held.get((meta.get("namespace", ""), claim), ())
    )
    return PodPlacement(pod=name, node=node, waited=max(waited, 0.0), devices=tuple(devices))


def _claims(pod: Raw) -> set[str]:
    status = status_of(pod)
    names = {each.get("resourceClaimName") for each in get(pod["spec"], "resourceClaims", ())}
    names |= {each.get("resourceClaimName") for each in get(status, "resourceClaimStatuses", ())}
    names.add(get(status, "extendedResourceClaimStatus.resourceClaimName"))
    return {name for name in names if name}


def devices_by_claim(claims: Iterable[Raw]) -> dict[tuple[str, str], list[str]]:
    """Return the devices of each claim, by its namespace and name."""
    found = {}
    for claim in claims:
        allocation = get(claim, "status.allocation", {})
        results = get(allocation, "devices.results", ())
        meta = claim["metadata"]
        found[meta.get("namespace", ""), meta["name"]] = [
            f"{each['driver']}/{each['pool']}/{each['device']}" for each in results
        ]
    return found


def _stable_names(pod: Raw, numbers: Counter[str]) -> str:
    """Return names for pods of controllers, whose own names are random, by number."""
    meta = pod["metadata"]
    owner = next((o for o in get(meta, "ownerReferences", ()) if o.get("controller")), None)
    if owner is None or owner["kind"] == "StatefulSet":
        return f"{meta.get('namespace', '')}/{meta['name']}"
    called = f"{meta.get('namespace', '')}/{owner['name']}"
    numbers[called] += 1
    return f"{called}#{numbers[called]}"


def _order(pod: Raw) -> tuple[str, str, str]:
    meta = pod["metadata"]
    node = get(pod, "spec.nodeName") or "~"
    return str(meta.get("creationTimestamp", "")), node, meta["name"]
