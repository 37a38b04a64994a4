"""
Our plugins and kube-scheduler's on the same cases, and where they differ.

    python -m tests.placement.kube_scheduler.compare CASES [SEED]

A plugin of ours that has nothing to say must not prefer any node in kube-scheduler either.
"""

from __future__ import annotations

import sys
from itertools import islice
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import msgspec
import yaml
from tests.golang import build
from tests.oracle.oracles import Oracle
from tests.placement.kube_scheduler.generator import Generator, Storing

from dryrack.allocation import LiveAllocator
from dryrack.cluster.ports import SystemChance
from dryrack.kinds.core import Node, PersistentVolume, PersistentVolumeClaim, Pod
from dryrack.kinds.decode import decode
from dryrack.kinds.meta import LabelSelector
from dryrack.kinds.releases import Release
from dryrack.placement import Cluster, Fleet, Occupant, Placed, Unplaced, place
from dryrack.placement.active_plugins import ActivePlugins, first_refusal
from dryrack.placement.framework import ClusterScorer, NodeScorer, Profile
from dryrack.placement.plugins import profile_named
from dryrack.placement.pod_constraints import PodConstraints
from dryrack.scheduler.cluster_facts import waiting_class

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from tests.placement.kube_scheduler.generator import Raw

    from dryrack.placement.node_state import NodeState

MODULE = Path(__file__).parents[2] / "oracle" / "scheduler"

RELEASE = Release.V1_37
PROFILE = profile_named("default-scheduler", RELEASE)
STORY_LENGTH = 25
SHOWN_MAX = 3


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a case."""

    # Where we would place the pod.
    node: str = ""

    unschedulable: str = ""
    refusals: dict[str, list[str]] = {}
    # Nodes that preemption cannot help.
    unresolvable: list[str] | None = None
    scores: dict[str, dict[str, int]] = {}
    message: str = ""
    error: str = ""
    panic: str = ""


def scheduler_oracle() -> Oracle[Answer]:
    """Kube-scheduler's framework with its own plugins, built if need be."""
    return Oracle(build(MODULE).path("place"), Answer)


def cases(seed: int) -> Iterator[Raw]:
    """Every eighth pod has volumes that are bound when it has a node."""
    chance = Random(seed)
    while True:
        yield from (Generator(chance).case() for _ in range(7))
        yield Storing(chance).case()


def story(seed: int, length: int) -> Iterator[tuple[Raw, Answer]]:
    """One cluster as it goes on, with our answers from books that are kept as it does."""
    generator = Generator(Random(seed))
    case = generator.case()
    fleet = fleet_of(case)
    for number in range(length):
        answer = ours(case, fleet)
        yield case, answer
        pods = case["pods"]
        if answer.node:
            pod = case["pod"]
            metadata = {**pod["metadata"], "name": f"placed-{number}", "uid": f"placed-{number}"}
            spec = {**pod["spec"], "nodeName": answer.node}
            pods = [*pods, {**pod, "metadata": metadata, "spec": spec}]
        before = case
        case = generator.change({**case, "pods": pods})
        _follow(fleet, before, case)


def _follow(fleet: Fleet, before: Raw, after: Raw) -> None:
    """The fleet hears of what has changed, and of nothing else."""
    nodes = {raw["metadata"]["name"]: raw for raw in after["nodes"]}
    for raw in before["nodes"]:
        if raw["metadata"]["name"] not in nodes:
            fleet.drop(raw["metadata"]["name"])
    for raw in after["nodes"]:
        if raw not in before["nodes"]:
            fleet.put(decode(raw, Node))
    pods = {raw["metadata"]["name"] for raw in after["pods"]}
    for raw in before["pods"]:
        if raw["metadata"]["name"] not in pods:
            fleet.remove_pod(raw["metadata"]["name"])
    for raw in after["pods"]:
        if raw not in before["pods"]:
            pod = decode(raw, Pod)
            fleet.add_pod(pod.metadata.name, pod.spec.node_name, Occupant.of(pod))
    fleet.namespaces.clear()
    for raw in after["namespaces"]:
        fleet.namespaces[raw["metadata"]["name"]] = raw["metadata"]["labels"]


def ours(case: Mapping[str, Any], fleet: Fleet | None = None) -> Answer:
    """Our answer to a case; `fleet` is one that knows its cluster, if there is one."""
    fleet = fleet or fleet_of(case)
    pod = PodConstraints.of(decode(case["pod"], Pod))
    profile = profile_of(case)
    problem = fleet.volumes.problem(pod.pod)
    if problem is not None:
        return Answer(unschedulable=problem.message)
    checks = ActivePlugins.of(pod, fleet, profile).checks
    refusals = {}
    unresolvable = []
    feasible = []
    for state in fleet.states():
        refusal = first_refusal(checks, state)
        if refusal is None:
            feasible.append(state)
        else:
            refusals[state.name] = [refusal.words, *refusal.further]
            unresolvable += [state.name] if refusal.is_unresolvable else []
    scores = _scores(pod, fleet, profile, feasible)
    outcome = _placed(pod.pod, fleet, profile)
    answer = Answer(refusals=refusals, unresolvable=unresolvable, scores=scores)
    if isinstance(outcome, Placed):
        return msgspec.structs.replace(answer, node=outcome.node)
    return msgspec.structs.replace(answer, message=outcome.message)


def _placed(pod: Pod, fleet: Fleet, profile: Profile) -> Placed | Unplaced:
    cluster = Cluster(fleet, LiveAllocator(chance=SystemChance()))
    return place(pod, (), (), cluster, profile=profile)


def differences(ours: Answer, theirs: Answer) -> Iterator[str]:
    """Return the difference of two answers."""
    if theirs.panic or theirs.error:
        yield f"they fail: {theirs.panic or theirs.error}"
    elif theirs.unschedulable != ours.unschedulable:
        yield f"ours {ours.unschedulable!r}, theirs {theirs.unschedulable!r}"
    elif not ours.unschedulable:
        yield from _refusal_differences(ours, theirs)
        yield from _score_differences(ours.scores, theirs.scores)
        yield from _choice_differences(ours, theirs)


def _refusal_differences(ours: Answer, theirs: Answer) -> Iterator[str]:
    for node in sorted({*ours.refusals, *ours.scores, *theirs.refusals}):
        our = ours.refusals.get(node)
        their = theirs.refusals.get(node)
        if (our is None) != (their is None) or sorted(our or ()) != sorted(their or ()):
            yield f"{node}: ours {our}, theirs {their}"
    if (ours.unresolvable or []) != (theirs.unresolvable or []):
        yield f"unresolvable: ours {ours.unresolvable}, theirs {theirs.unresolvable}"


def _choice_differences(ours: Answer, theirs: Answer) -> Iterator[str]:
    """Kube-scheduler takes any of the best nodes, we one of them, or say the same."""
    if ours.message != theirs.message:
        yield f"ours {ours.message!r}, theirs {theirs.message!r}"
    totals = {node: sum(scores.values()) for node, scores in theirs.scores.items()}
    if totals and ours.node not in (n for n in totals if totals[n] == max(totals.values())):
        yield f"ours takes {ours.node!r}, theirs one of the best of {totals}"


def _score_differences(
    ours: Mapping[str, Mapping[str, int]], theirs: Mapping[str, Mapping[str, int]]
) -> Iterator[str]:
    if ours.keys() != theirs.keys():
        return
    plugins = {plugin for plugin, _ in PROFILE.scores}
    for name in sorted(plugin.name for plugin in plugins):
        our = {node: scores.get(name) for node, scores in ours.items()}
        their = {node: scores.get(name, 0) for node, scores in theirs.items()}
        if None in our.values():
            if len(set(their.values())) > 1:
                yield f"{name}: ours says nothing, theirs {their}"
        elif our != their:
            yield f"{name}: ours {our}, theirs {their}"


def _scores(
    pod: PodConstraints, fleet: Fleet, profile: Profile, nodes: Sequence[NodeState]
) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {node.name: {} for node in nodes}
    for plugin, weight in profile.scores if nodes else ():
        assert plugin.score is not None
        match plugin.score(pod, fleet, profile.args_of(plugin)):
            case ClusterScorer(scores):
                answers: Iterable[int] = scores(nodes)
            case NodeScorer(score):
                answers = map(score, nodes)
            case _:
                continue
        for node, answer in zip(nodes, answers, strict=True):
            found[node.name][plugin.name] = weight * answer
    return found


def profile_of(case: Mapping[str, Any]) -> Profile:
    if "configuration" not in case:
        return PROFILE
    (profile,) = case["configuration"]["profiles"]
    args = {each["name"]: each["args"] for each in profile["pluginConfig"]}
    return Profile(filters=PROFILE.filters, scores=PROFILE.scores, args=args)


def fleet_of(case: Mapping[str, Any]) -> Fleet:
    fleet = Fleet(RELEASE)
    for raw in case["nodes"]:
        fleet.put(decode(raw, Node))
    for raw in case["pods"]:
        pod = decode(raw, Pod)
        fleet.add_pod(pod.metadata.name, pod.spec.node_name, Occupant.of(pod))
    for raw in case["namespaces"]:
        fleet.namespaces[raw["metadata"]["name"]] = raw["metadata"]["labels"]
    for kind, raw in _owners(case):
        metadata = raw["metadata"]
        selector = raw["spec"].get("selector")
        if selector is not None and kind in ("Service", "ReplicationController"):
            selector = {"matchLabels": selector}
        parsed = None if selector is None else decode(selector, LabelSelector)
        fleet.owners.put(kind, metadata["namespace"], metadata["name"], parsed)
    fleet.volumes.are_stored = True
    for raw in case.get("storageClasses", ()):
        if raw["volumeBindingMode"] == "WaitForFirstConsumer":
            fleet.volumes.waiting_classes[raw["metadata"]["name"]] = waiting_class(raw)
    for raw in case.get("volumeClaims", ()):
        claim = decode(raw, PersistentVolumeClaim)
        fleet.volumes.claims[claim.metadata.namespace, claim.metadata.name] = claim
    for raw in case.get("volumes", ()):
        volume = decode(raw, PersistentVolume)
        fleet.volumes.volumes[volume.metadata.name] = volume
    return fleet


def _owners(case: Mapping[str, Any]) -> Iterator[tuple[str, Raw]]:
    for key, kind in (
        ("services", "Service"),
        ("replicaSets", "ReplicaSet"),
        ("statefulSets", "StatefulSet"),
        ("replicationControllers", "ReplicationController"),
    ):
        for raw in case.get(key, ()):
            yield kind, raw


def asked(count: int, seed: int) -> Iterator[tuple[Raw, Answer]]:
    """Cases with our answers: single ones, and clusters as they go on."""
    for case in islice(cases(seed), count // 2):
        yield case, ours(case)
    for number in range(count // 2 // STORY_LENGTH):
        yield from story(seed * 10**6 + number, STORY_LENGTH)


def differing(count: int, seed: int) -> Iterator[str]:
    """The cases on which the two differ, each as text, and how."""
    with scheduler_oracle() as oracle:
        questions = ({**case, "ours": answer} for case, answer in asked(count, seed))
        for case, theirs in oracle.ask(questions):
            found = "\n".join(differences(case.pop("ours"), theirs))
            if found:
                yield f"{yaml.safe_dump(case)}\n{found}"


def main(count: int, seed: int) -> None:
    """Prints the cases that differ."""
    found = list(differing(count, seed))
    sys.stdout.write("\n---\n".join([*found[:SHOWN_MAX], f"{len(found)} of {count} differ\n"]))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0)
