"""
Preemption's victims, ours and kube-scheduler's, on the same cases.

    python -m tests.placement.kube_scheduler.victims CASES [SEED]

Every node is compared, not only the one that is taken. Devices are not in these cases: unlike
kube-scheduler, we count what victims give back.
"""

from __future__ import annotations

import sys
from functools import partial
from itertools import islice
from random import Random
from typing import TYPE_CHECKING, Any

import msgspec
import yaml
from tests.golang import build
from tests.oracle.oracles import Oracle
from tests.placement.kube_scheduler.compare import MODULE, SHOWN_MAX, fleet_of, ours, profile_of
from tests.placement.kube_scheduler.generator import Crowded

from dryrack.allocation import LiveAllocator
from dryrack.cluster.ports import SystemChance
from dryrack.kinds.core import Pod
from dryrack.kinds.decode import decode
from dryrack.placement import (
    Cluster,
    NoPreemption,
    Preemptor,
    place_on,
    preempt_on_node,
    unresolvable_nodes,
)
from dryrack.scheduler.post_filter import NEVER
from dryrack.scheduler.preemption import disruption_budgets

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.placement.kube_scheduler.generator import Raw


class Victims(msgspec.Struct, frozen=True):
    """The victims on one node, the more important first."""

    pods: list[str]
    violations: int


class Preempted(msgspec.Struct, frozen=True, kw_only=True):
    """Return the preemption for a pod that does not fit."""

    candidates: dict[str, Victims] = {}
    # The nodes that may be taken; ours is one.
    nominated: list[str] | None = None
    message: str = ""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """Return the answer of the oracle."""

    preemption: Preempted | None = None
    error: str = ""
    panic: str = ""


def cases(seed: int) -> Iterator[Raw]:
    """Those in which no node takes the pod."""
    chance = Random(seed)
    while True:
        case = Crowded(chance).case()
        answer = ours(case)
        if not answer.scores and not answer.unschedulable:
            yield case


def preempted(case: Mapping[str, Any]) -> Preempted:
    """Our answer: each node by itself, and the one that is taken of all."""
    if case["pod"]["spec"].get("preemptionPolicy") == "Never":
        return Preempted(message=f"preemption: {NEVER}")
    asked: dict[str, Any] = {
        "pod": decode(case["pod"], Pod),
        "wanted": (),
        "allocated": (),
        "cluster": Cluster(fleet_of(case), LiveAllocator(chance=SystemChance())),
        "profile": profile_of(case),
    }
    fleet = asked["cluster"].fleet
    started = {each["metadata"]["name"]: each["status"].get("startTime") for each in case["pods"]}
    preemptor = Preemptor(
        case["pod"]["spec"].get("priority", 0), started=lambda pod: started[pod.name[1]]
    )
    preempt = partial(
        preempt_on_node,
        asked["cluster"],
        preemptor,
        lambda node: place_on(node, **asked),
        disruption_budgets(case["budgets"]),
    )
    unresolvable = unresolvable_nodes(**asked)
    names = {state.name for state in fleet.states()}
    candidates: dict[str, Victims] = {}
    for name in sorted(names - unresolvable):
        found = preempt(unresolvable=names - {name})
        if not isinstance(found, NoPreemption):
            pods = [each.occupant.name[1] for each in found.victims]
            candidates[name] = Victims(pods, found.violations)
    taken = preempt(unresolvable=unresolvable)
    if isinstance(taken, NoPreemption):
        return Preempted(candidates=candidates, message=taken.message)
    return Preempted(candidates=candidates, nominated=[taken.node])


def differences(ours: Preempted, theirs: Answer) -> Iterator[str]:
    """Return the difference of two answers."""
    if theirs.preemption is None:
        yield f"they fail: {theirs.panic or theirs.error}"
        return
    their = theirs.preemption
    for node in sorted({*ours.candidates, *their.candidates}):
        if ours.candidates.get(node) != their.candidates.get(node):
            yield f"{node}: {ours.candidates.get(node)}, theirs {their.candidates.get(node)}"
    if not set(ours.nominated or ()) <= set(their.nominated or ()):
        yield f"ours takes {ours.nominated}, theirs one of {their.nominated}"
    if ours.message != their.message:
        yield f"ours {ours.message!r}, theirs {their.message!r}"


def differing(count: int, seed: int) -> Iterator[str]:
    """The cases on which the two differ, each as text, and how."""
    with Oracle(build(MODULE).path("place"), Answer) as oracle:
        for case, theirs in oracle.ask(islice(cases(seed), count)):
            found = "\n".join(differences(preempted(case), theirs))
            if found:
                yield f"{yaml.safe_dump(case)}\n{found}"


def main(count: int, seed: int) -> None:
    """Prints the cases that differ."""
    found = list(differing(count, seed))
    sys.stdout.write("\n---\n".join([*found[:SHOWN_MAX], f"{len(found)} of {count} differ\n"]))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0)
