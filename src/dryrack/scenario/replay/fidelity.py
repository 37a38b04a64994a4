"""Compare the nodes of pods in a recording with those at the end of a replay."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dryrack.scenario.model import RecordedPod
    from dryrack.scenario.replay.placements import PodPlacement


@dataclass(frozen=True, slots=True, kw_only=True)
class Fidelity:
    """The result of comparing a replay with its recording; pods are named by namespace and name."""

    placed_then: int
    placed_now: int
    lost: tuple[str, ...] = ()
    """Pods that had a node in the recording and have none now, with the reason."""
    gained: tuple[str, ...] = ()
    """Pods that waited in the recording and have a node now."""
    moved: tuple[str, ...] = ()
    """Pods on another node, or with another number of devices, than in the recording."""

    @property
    def summary(self) -> str:
        """Return one line for people."""
        moved = f", {len(self.moved)} of them elsewhere or with other devices" if self.moved else ""
        return f"pods placed: {self.placed_then} in the recording, {self.placed_now} now{moved}"

    def document(self) -> dict[str, Any]:
        """Return the comparison as plain data."""
        return {
            "placedThen": self.placed_then,
            "placedNow": self.placed_now,
            "lost": list(self.lost),
            "gained": list(self.gained),
            "moved": list(self.moved),
        }


def fidelity_of(
    recorded: Iterable[RecordedPod], placements: Iterable[PodPlacement]
) -> Fidelity | None:
    """Compare the pods of a recording with a run; None if the scenario is no recording."""
    then = {each.pod: each for each in recorded}
    if not then:
        return None
    now = {each.pod: each for each in placements if each.pod in then}
    placed_now = {pod: each for pod, each in now.items() if each.node}
    lost = []
    gained = []
    moved = []
    for pod, before in sorted(then.items()):
        after = placed_now.get(pod)
        if before.node and after is None:
            lost.append(f"{pod}: {_reason(now.get(pod))}")
        elif after is not None and not before.node:
            gained.append(pod)
        elif after is not None and (after.node, len(after.devices)) != (
            before.node,
            before.devices,
        ):
            moved.append(pod)
    return Fidelity(
        placed_then=sum(bool(each.node) for each in then.values()),
        placed_now=len(placed_now),
        lost=tuple(lost),
        gained=tuple(gained),
        moved=tuple(moved),
    )


def _reason(placement: PodPlacement | None) -> str:
    if placement is None:
        return "the pod does not exist at the end of the replay"
    return placement.message or "no scheduler of the replay has tried the pod"
