"""
The explanation of a pod, a claim or a gang as a document for programs and the dashboard.

On a cluster, the code of the scheduler decides for the cluster as it is now, and nothing is
written. `dryrack explain -o json` prints these documents, and the dashboard shows them.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from dryrack.allocation import Code, claim_name
from dryrack.base.errors import ContentError
from dryrack.base.text import hint
from dryrack.kinds.decode import to_builtins
from dryrack.placement.views.claims import claims_of
from dryrack.placement.views.gangs import GangView, gangs_of
from dryrack.placement.whatif.explain import (
    Explanation,
    explain_claim_alone,
    explain_nodes,
    texts_of,
)
from dryrack.placement.whatif.gang_remedies import helpful_to_gang
from dryrack.placement.whatif.hypothetical import with_only_pending
from dryrack.placement.whatif.pod_explanation import (
    describe_siblings,
    explain_claim,
    explain_pod,
    party_of,
)
from dryrack.placement.whatif.what_if import UNKNOWN_GANG, on_any_node, what_if

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dryrack.allocation import Obstacle
    from dryrack.kinds.core import Pod
    from dryrack.placement.whatif.answers import GangOutcome, WhatIf
    from dryrack.placement.whatif.explain import NodeExplanation
    from dryrack.placement.whatif.pod_explanation import PodExplanation
    from dryrack.placement.whatif.what_if import Settings
    from dryrack.placement.whatif.world import World

_Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class SchedulerMessage:
    """The message of a scheduler in the condition of a pod, and its time."""

    scheduler: str
    message: str
    since: str


@dataclass(frozen=True, slots=True)
class ExplainDocument:
    """The explanation of an object as programs read it."""

    document: _Document
    # Whether the object waits for nothing.
    is_served: bool
    # Notes for persons.
    notes: tuple[str, ...] = ()
    # The world after a change of `helps`, by its text; some changes can only be made by persons.
    changes: Mapping[str, World] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainDocuments:
    """Documents about a world; `settings` returns the settings of one decision."""

    world: World
    settings: Callable[[], Settings]
    # Whether to add the answers of every plugin about every node.
    is_traced: bool = False
    # Whether the world is of files, whose objects are placed in their order.
    is_of_files: bool = False

    def of(self, kind: str, name: str) -> ExplainDocument:
        """Explain a `pod`, a `claim` or a `gang`, by "namespace/name"."""
        if kind == "pod":
            return self.of_pod(name)
        return self.of_claim(name) if kind == "claim" else self.of_gang(find_gang(self.world, name))

    def of_pod(self, name: str) -> ExplainDocument:
        """Explain a pod, or its gang if it waits with the gang."""
        pod = party_of(self.world, name).pod
        assert pod is not None, "the party has a pod"
        gang = pending_gang_of(self.world, pod)
        if gang is not None:
            return self.of_gang(gang)
        world = self.world if self.is_of_files else with_only_pending(self.world, {name})
        explanation = explain_pod(world, name, self.settings(), traced=self.is_traced)
        is_served = bool(explanation.node or (self.is_of_files and explanation.chosen))
        document = _pod_document(explanation, pod)
        siblings = "" if is_served else describe_siblings(self.world, pod, self.settings())
        document |= {"siblings": siblings} if siblings else {}
        return ExplainDocument(document, is_served, changes=explanation.changes)

    def of_claim(self, name: str) -> ExplainDocument:
        """Describe an allocated claim, or explain the pod that a claim waits for."""
        claims = claims_of(self.world.claims, self.world.pods)
        views = {f"{each.namespace}/{each.name}": each for each in claims}
        if name not in views:
            raise ContentError(f"claim {name!r} not found; {hint(name, views)}")
        view = views[name]
        if view.devices or view.node:
            return ExplainDocument(view.document(), True)
        if view.pods:
            pod = self.of_pod(f"{view.namespace}/{view.pods[0]}")
            note = f"claim {name} is not allocated, because its pod has no node:"
            return replace(pod, notes=(note, *pod.notes))
        note = f"claim {name} is not allocated, because no pod uses it. For a pod that uses it:"
        world = with_only_pending(self.world, (), {name})
        explanation = explain_claim(world, name, self.settings())
        document = claim_document(explanation)
        return ExplainDocument(document, False, (note,), explanation.changes)

    def of_gang(self, gang: GangView) -> ExplainDocument:
        """Describe a placed gang, or explain where its members fit, and why the next does not."""
        if not gang.waiting:
            return ExplainDocument({"gangs": [gang.document()]}, gang.is_placed)
        return gang_document(world_of_gang(self.world, gang), gang, self.settings)


def gang_document(
    world: World, gang: GangView, settings: Callable[[], Settings]
) -> ExplainDocument:
    """Return the document of a gang for its placement or refusal in this world."""
    name = (gang.key.namespace, gang.key.name)
    return document_of_gangs(world, find_gang_outcomes(what_if(world, settings()), name), settings)


def find_gang_outcomes(outcome: WhatIf, name: tuple[str, str]) -> list[GangOutcome]:
    """Return the outcomes of the gang; raise `ContentError` with similar names."""
    gangs = [each for each in outcome.gangs if each.key and each.key[1:3] == name]
    if not gangs:
        full = "/".join(name)
        keys = (each.key for each in outcome.gangs if each.key is not None)
        names = {f"{key.namespace}/{key.name}": None for key in keys}
        raise ContentError(f"gang {full!r} not found; {hint(full, names)}")
    return gangs


def document_of_gangs(
    world: World, found: list[GangOutcome], settings: Callable[[], Settings]
) -> ExplainDocument:
    """Return the document of gangs with these outcomes."""
    documents = []
    changes: dict[str, World] = {}
    for each in found:
        claims = explain_gang_claims(world, each, settings)
        documents.append({**each.document(), "claims": [claim_document(it) for it in claims]})
        for claim in claims:
            changes |= claim.changes
    is_served = not any(each.message for each in found)
    return ExplainDocument({"gangs": documents}, is_served, changes=changes)


def explain_gang_claims(
    world: World, gang: GangOutcome, settings: Callable[[], Settings]
) -> list[Explanation]:
    """Explain the claims of the first pod that does not fit, with changes that would help."""
    first = next((pod for pod, message in gang.waiting.items() if message), "")
    claims = [
        claim
        for party in world.in_order()
        if party.pod is not None and party.pod.full_name == first
        for claim in party.claims
    ]
    changes = tuple(helpful_to_gang(world, gang, settings))
    explained = [explain_claim_alone(world, each, settings(), more=changes) for each in claims]
    holders = {
        claim_name(claim): party.pod.full_name
        for party in world.in_order()
        if party.pod is not None and party.pod.full_name in gang.waiting
        for claim in party.claims
    }
    lacking = [_without_holders(each, holders) for each in explained if each.nodes]
    if not lacking and changes:
        nodes = (
            explain_nodes([on_any_node("", Code.UNDECIDED, *UNKNOWN_GANG)])
            if gang.is_unknown
            else ()
        )
        worlds = {each.text: each.world for each in changes}
        return [Explanation(f"pod {first}", None, False, nodes, texts_of(changes), (), worlds)]
    return lacking


def _without_holders(explanation: Explanation, holders: Mapping[str, str]) -> Explanation:
    """Return the explanation without gang members as holders: they have no devices yet."""

    def replace_holder(obstacle: Obstacle) -> Obstacle:
        name = obstacle.fact.removeprefix("in use by claim ")
        if obstacle.code is not Code.IN_USE or name not in holders:
            return obstacle
        return replace(obstacle, fact=f"needed for pod {holders[name]} of the gang", remedy="")

    nodes = (
        replace(each, obstacles=tuple(map(replace_holder, each.obstacles)))
        for each in explanation.nodes
    )
    return replace(explanation, nodes=tuple(nodes))


def find_gang(world: World, name: str) -> GangView:
    """Return the gang of this name; raise `ContentError` with similar names."""
    views = {f"{e.key.namespace}/{e.name}": e for e in gangs_of(world.pods, world.groups)}
    if name not in views:
        raise ContentError(f"gang {name!r} not found; {hint(name, views)}")
    return views[name]


def pending_gang_of(world: World, pod: Pod) -> GangView | None:
    """Return the gang that a pod waits with; None if it does not wait with a gang."""
    for gang in gangs_of(world.pods, world.groups):
        if gang.key.namespace == pod.metadata.namespace and pod.metadata.name in gang.waiting:
            return None if gang.is_placed else gang
    return None


def world_of_gang(world: World, gang: GangView) -> World:
    """Return the world in which only the members of the gang are pending."""
    members = {f"{gang.key.namespace}/{name}" for name in (*gang.placed, *gang.waiting)}
    return with_only_pending(world, members)


def scheduler_message_of(pod: Pod) -> SchedulerMessage | None:
    """Return the message in the pod's condition; None if no scheduler has tried the pod."""
    scheduler = pod.spec.scheduler_name or "default-scheduler"
    for each in pod.status.conditions:
        if each.type == "PodScheduled" and each.status == "False":
            return SchedulerMessage(scheduler, each.message, each.last_transition_time or "")
    return None


def claim_document(story: Explanation) -> _Document:
    """Return the explanation of a claim as programs read it."""
    given = story.given
    return {
        "claim": story.claim,
        "allocated": bool(given or story.settled),
        "node": given.node if given else None,
        "allocation": to_builtins(given.allocation) if given else None,
        "nodes": [_node(each) for each in story.nodes],
        "helps": list(story.helps),
    }


def _pod_document(story: PodExplanation, pod: Pod) -> _Document:
    message = scheduler_message_of(pod)
    document: _Document = {
        "pod": story.pod,
        "schedulerName": story.scheduler,
        "node": story.node,
        "wouldGoTo": story.chosen,
        "message": story.message,
        "cause": story.cause,
        **({"refused": True} if story.is_refused else {}),
        **({"preempts": story.preempted} if story.preempted else {}),
        "claims": {name: to_builtins(each) for name, each in story.devices.items()},
        "nodes": [_node(each) for each in story.nodes],
        "helps": list(story.helps),
        **({"inTheWay": list(story.in_the_way)} if story.in_the_way else {}),
    }
    if pod.spec.scheduling_gates:
        document["schedulingGates"] = [each.name for each in pod.spec.scheduling_gates]
    if message is not None:
        document["said"] = {
            "by": message.scheduler,
            "message": message.message,
            "since": message.since,
        }
    if story.trace is not None:
        document["trace"] = story.trace.document()
    return document


def _node(explanation: NodeExplanation) -> _Document:
    reasons = []
    for obstacle in explanation.obstacles:
        data = asdict(obstacle)
        code = data.pop("code")
        reasons.append({**data, "reason": code.text, "devices": list(obstacle.devices)})
    return {"node": explanation.node, "alike": list(explanation.alike), "reasons": reasons}
