"""The outcome of a what-if: allocations, refusals with reasons, gangs and preemptions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, overload

from dryrack.base.text import NAMES_MAX, listed
from dryrack.kinds.decode import to_builtins
from dryrack.placement.place import Refusal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from dryrack.kinds.resource import AllocationResult
    from dryrack.placement.gangs.dialects import GangKey


@dataclass(frozen=True, slots=True)
class ClaimAllocation:
    """A claim that would be allocated."""

    claim: str
    node: str
    allocation: AllocationResult


class ClaimRefusals(Sequence[Refusal]):
    """The refusal of a claim by each node; claims with equal specs may share the reasons."""

    def __init__(self, shared: Sequence[Refusal], claim: str, *, alone: bool) -> None:
        """If the claim is `alone` in its pod, all reasons are about it."""
        self._shared = shared
        self._claim = claim
        self._alone = alone

    def __len__(self) -> int:
        return len(self._shared)

    @overload
    def __getitem__(self, place: int) -> Refusal: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Refusal]: ...
    def __getitem__(self, place: int | slice) -> Refusal | Sequence[Refusal]:
        if isinstance(place, slice):
            return ClaimRefusals(self._shared[place], self._claim, alone=self._alone)
        refusal = self._shared[place]
        reasons = [
            each if each.claim == self._claim else replace(each, claim=self._claim)
            for each in refusal.reasons
            if self._alone or each.claim == self._claim
        ]
        return replace(refusal, reasons=tuple(reasons))


@dataclass(frozen=True, slots=True)
class UnsatisfiedClaim:
    """A claim that would not be allocated."""

    claim: str
    nodes: Sequence[Refusal]
    # Whether the API server refuses its pod, so that the claim is never created.
    is_with_pod: bool = False


@dataclass(frozen=True, slots=True)
class GangOutcome:
    """The placement or refusal of a gang; without a key, of a pod that names its gang wrongly."""

    gang: str
    key: GangKey | None
    # The pods that would be placed, with their nodes.
    nodes: Mapping[str, str]
    # The pods that would not, with the cause; empty for a pod that only waits for others.
    waiting: Mapping[str, str]
    # Why the gang does not fit, or why that is unknown; empty if it fits.
    message: str = ""
    # Whether the search stopped at its limit, so that the gang may fit all the same.
    is_unknown: bool = False

    @property
    def fits(self) -> bool | None:
        """Return True if the gang fits; None if that is unknown."""
        return None if self.is_unknown else not self.message

    def document(self) -> dict[str, Any]:
        """Return the outcome as programs read it."""
        placed = [{"pod": pod, "node": node} for pod, node in self.nodes.items()]
        waiting = [
            {"pod": pod, "message": message} if message else {"pod": pod}
            for pod, message in self.waiting.items()
        ]
        return {
            "gang": self.gang,
            "fits": self.fits,
            "message": self.message,
            "pods": placed + waiting,
        }


@dataclass(frozen=True, slots=True)
class Preempted:
    """The pods that a pod or a gang preempts, each with its priority."""

    by: str
    victims: Mapping[str, int]
    # The node of the pod; empty for a gang.
    node: str = ""

    @property
    def message(self) -> str:
        """Return the preemption as a sentence."""
        where = f" on node {self.node}" if self.node else ""
        return f"{self.by} fits{where} after preempting {self.victim_names}"

    @property
    def victim_names(self) -> str:
        """Return the names of the preempted pods."""
        named = [f"pod {pod} (priority {priority})" for pod, priority in self.victims.items()]
        more = len(named) - NAMES_MAX
        return listed(named) if more <= 0 else f"{', '.join(named[:NAMES_MAX])} and {more} more"

    def document(self) -> dict[str, Any]:
        """Return the outcome as programs read it."""
        victims = [{"pod": pod, "priority": each} for pod, each in self.victims.items()]
        return {"by": self.by, "node": self.node, "victims": victims}


@dataclass(frozen=True, slots=True)
class WhatIf:
    """The outcome for all parties. `notes` say what was assumed."""

    given: tuple[ClaimAllocation, ...]
    refused: tuple[UnsatisfiedClaim, ...]
    notes: tuple[str, ...] = ()
    # The node of each pod that would be placed, by namespace and name.
    nodes: Mapping[str, str] = field(default_factory=dict)
    # The scheduler's message for each pod that does not fit.
    waiting: Mapping[str, str] = field(default_factory=dict)
    gangs: tuple[GangOutcome, ...] = ()
    # Why the API server does not create a pod, by namespace and name.
    rejected: Mapping[str, str] = field(default_factory=dict)
    preemptions: tuple[Preempted, ...] = ()

    @property
    def preemptors(self) -> Mapping[str, str]:
        """Return the preemptor of each preempted pod."""
        return {pod: each.by for each in self.preemptions for pod in each.victims}

    def document(self) -> dict[str, Any]:
        """Return the outcome as programs read it."""
        return {key: list(entries) for key, entries in self.lists().items()}

    def lists(self) -> Mapping[str, Iterable[Mapping[str, Any]]]:
        """Return the lists of the document, which yield their entries, as there may be many."""
        gangs = [each.document() for each in self.gangs]
        rejected = [{"pod": pod, "message": why} for pod, why in self.rejected.items()]
        preemptions = [each.document() for each in self.preemptions]
        return {
            "allocations": (
                {
                    "claim": each.claim,
                    "node": each.node,
                    "allocation": to_builtins(each.allocation),
                }
                for each in self.given
            ),
            "unsatisfied": (
                {"claim": each.claim, "nodes": [_refusal(node) for node in each.nodes]}
                for each in self.refused
            ),
            **({"gangs": gangs} if gangs else {}),
            **({"rejected": rejected} if rejected else {}),
            **({"preemptions": preemptions} if preemptions else {}),
        }


def _refusal(refusal: Refusal) -> Mapping[str, Any]:
    return {
        "node": refusal.node,
        "reasons": [
            {
                "request": reason.request,
                "device": reason.device,
                "reason": reason.code.text,
                "message": reason.message,
            }
            for reason in refusal.reasons
        ],
    }
