"""
One attempt to find the best node for a pod, as far as a few questions to the allocator decide it.

If plugins score each node by itself, nodes are asked in the order of their scores, and the first
that takes the pod is the best. Scores of devices are known only of nodes that were asked: then the
search ends at a node that no other can surpass. If plugins compare nodes with each other, all nodes
that take the pod are scored.

As in kube-scheduler, an error of a claim on any node ends the attempt, even if the pod fits on
other nodes; so does an error of a plugin. kube-scheduler looks at all nodes of a small cluster, and
in a large one until it has found enough that fit. So nodes on which a selector may fail are asked
before the pod is placed, unless there are enough nodes without such devices. If a search stops at
its limit, other nodes are tried, because theirs may be easier.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import msgspec

from dryrack.allocation import (
    Allocated,
    AllocationError,
    Code,
    MissingClassError,
    Reason,
    Search,
    Undecided,
    Unsatisfiable,
    claim_name,
    has_some,
)
from dryrack.placement.active_plugins import ActivePlugins, first_refusal
from dryrack.placement.framework import SCORE_MAX, PluginError
from dryrack.placement.node_queue import Exclusion, UnmetClaims
from dryrack.placement.outcomes import (
    ELSEWHERE,
    NO_DEVICES,
    NOT_DECIDED,
    FindsDoubtfulNodes,
    Placed,
    Refusal,
    Unfinished,
    Unplaced,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from dryrack.kinds.resource import ResourceClaim
    from dryrack.placement.active_plugins import DeviceScores, Group
    from dryrack.placement.framework import Check, Plugin, Profile
    from dryrack.placement.node_queue import NodeQueue
    from dryrack.placement.node_state import NodeRefusal, NodeState
    from dryrack.placement.outcomes import Cluster
    from dryrack.placement.pod_constraints import PodConstraints

    # From the scores of its devices, if they are known, and its group: what both add to its score.
    Value = Callable[[DeviceScores | None, Group], int]

_CORRECT = "correct the object (dryrack lint shows the line); no node fits until then"
# SchedulerMessage of nodes that all other filters let pass.
_OF_DEVICES = (NO_DEVICES, NOT_DECIDED, ELSEWHERE)
# More than any score: for a node that has to be asked in any case.
_FIRST = 10**9

# kube-scheduler looks for nodes that fit among all nodes up to the first number, and among more
# until it has found this percentage of them, which falls by one with every so many nodes.
_NODES_MIN = 100
_SHARE_MAX = 50
_SHARE_MIN = 5
_NODES_A_PERCENT = 125

# The allocator takes up to two milliseconds for a node.
NODES_A_TURN = 8
# If all nodes have to be asked, each turn begins with a look at every node.
_NODES_OF_ALL_A_TURN = 128
# The message uses the first of these whose node has matching devices.
_DECISIONS_KEPT_MAX = 8


@dataclass(frozen=True, slots=True)
class Refused:
    """The node does not take the pod."""

    words: tuple[str, ...]
    # The decision about its devices, if they are the cause.
    decision: Unsatisfiable | None = None
    is_unresolvable: bool = False


def attempt(
    pod: PodConstraints,
    cluster: Cluster,
    profile: Profile,
    *,
    searches_left: int,
    nodes_a_turn: int = NODES_A_TURN,
) -> Placed | Unplaced | Unfinished:
    """Find the best node for the pod, or return Unfinished after so many nodes."""
    try:
        plugins = ActivePlugins.of(pod, cluster.fleet, profile)
        return Attempt(plugins, cluster, searches_left, nodes_a_turn).run()
    except PluginError as error:
        return _fail_with_plugin(pod, error)


def attempt_on(
    node: NodeState,
    pod: PodConstraints,
    cluster: Cluster,
    profile: Profile,
    *,
    searches_left: int,
) -> Placed | Unplaced | Refused | Unfinished:
    """Try to place the pod on this node."""
    try:
        plugins = ActivePlugins.of(pod, cluster.fleet, profile)
        return Attempt(plugins, cluster, searches_left).on(node, plugins.checks)
    except PluginError as error:
        return _fail_with_plugin(pod, error)


def _fail_with_plugin(pod: PodConstraints, error: PluginError) -> Unplaced:
    refusal = _refuse_all_claims(pod.wanted, "", Code.ERROR, str(error), "correct the plugin")
    return Unplaced(str(error), lambda: iter((refusal,)), is_error=True)


def nodes_to_find(nodes: int) -> int:
    """Return how many feasible nodes kube-scheduler looks for among so many, by default."""
    share = max(_SHARE_MAX - nodes // _NODES_A_PERCENT, _SHARE_MIN)
    return min(max(nodes * share // 100, _NODES_MIN), nodes)


class Attempt(msgspec.Struct, frozen=True):
    """One pod, with the plugins that apply to it."""

    plugins: ActivePlugins
    cluster: Cluster
    searches_left: int
    nodes_a_turn: int = NODES_A_TURN

    @property
    def pod(self) -> PodConstraints:
        return self.plugins.pod

    def run(self) -> Placed | Unplaced | Unfinished:
        """Return the best node for the pod, or why no node takes it."""
        plugins = self.plugins
        refused: dict[str, Refused] = {}
        name = self.pod.only_node
        only = self.cluster.fleet.get(name) if name else None
        if only is not None:
            # Pods of a daemon set are tied to one node: each has a signature of its own, for which
            # a queue is not worth it.
            outcome = self.on(only, plugins.checks)
            if not isinstance(outcome, Refused):
                return outcome
            refused[name] = outcome
        failure = self._find_failure()
        if failure is not None:
            return failure
        needs_all_nodes = plugins.cluster_scorers or (
            plugins.cluster_checks and any(s.is_relative for _, _, s in plugins.device_scorers)
        )
        if needs_all_nodes:
            return self._place_after_scoring_all(refused)
        return self._place_best_first(refused)

    def _find_failure(self) -> Unplaced | None:
        """Return the error that kube-scheduler meets on a node, whichever nodes fit."""
        allocator = self.cluster.allocator
        fleet = self.cluster.fleet
        if not self.pod.wanted or not isinstance(allocator, FindsDoubtfulNodes):
            return None
        doubtful = allocator.doubtful_nodes(
            self.pod.wanted,
            lambda: (state.node for state in fleet.states()),
            enough=nodes_to_find(len(fleet)),
            version=fleet.nodes_version,
        )
        for node in doubtful:
            state = fleet.get(node.metadata.name)
            outcome = None if state is None else self.on(state, self.plugins.checks)
            if isinstance(outcome, Unplaced):
                return outcome
        return None

    def _place_best_first(self, refused: Mapping[str, Refused]) -> Placed | Unplaced | Unfinished:
        """Ask nodes in the order of their scores, except those that have refused already."""
        plugins = self.plugins
        queue = plugins.queue(self.cluster.fleet)
        decisions: list[Unsatisfiable] = []
        placed: dict[str, Placed] = {}
        asked = 0
        while (best := queue.best(self._value_devices(queue), self._exclusion())) is not None:
            node, scores = best
            if scores is not None and node.name in placed:
                return placed[node.name]
            if asked == self.nodes_a_turn:
                return Unfinished()
            # The queue has called the checks of the node.
            outcome = refused.get(node.name) or self.on(node, ())
            if isinstance(outcome, Refused):
                queue.close(node.name, *outcome.words, unresolvable=outcome.is_unresolvable)
                _keep_decision(outcome.decision, decisions)
            elif isinstance(outcome, Placed):
                queue.raise_score_error(node.name)
                if not plugins.device_scorers:
                    return outcome
                placed[node.name] = outcome
                queue.know(node.name, plugins.device_scores(node, outcome.allocations))
            else:
                return outcome
            asked += isinstance(outcome, Placed) or outcome.words[0] in _OF_DEVICES
        kind = None if plugins.cluster_checks else plugins.signature()
        return replace(self._refuse_on_all_nodes(queue, decisions), kind=kind)

    def _exclusion(self) -> Exclusion | None:
        """Return the nodes that filters refuse which also look at other nodes."""
        if not self.plugins.cluster_checks:
            return None
        return Exclusion(self._is_excluded, by_group=bool(self.plugins.grouped_checks))

    def _is_excluded(self, node: NodeState) -> bool:
        return first_refusal(self.plugins.cluster_checks, node) is not None

    def _value_devices(self, queue: NodeQueue) -> Value | None:
        """Return what devices add to the score of a node; the maximum for unknown devices."""
        scorers = self.plugins.device_scorers
        if not scorers:
            return None
        highest = _highest_scores(queue.numbers(), len(scorers))
        most = sum(weight * SCORE_MAX for _, weight, _ in scorers)
        if any(s.is_relative and h < s.most for (_, _, s), h in zip(scorers, highest, strict=True)):
            # The score of each node depends on the best of all, so that all have to be asked.
            most = _FIRST

        def value(scores: DeviceScores | None, _group: Group) -> int:
            return most if scores is None else self.plugins.device_total(scores, highest)

        return value

    def _place_after_scoring_all(
        self, refused: Mapping[str, Refused]
    ) -> Placed | Unplaced | Unfinished:
        """Compare all nodes that take the pod, because a score of one depends on the others."""
        plugins = self.plugins
        queue = plugins.queue(self.cluster.fleet)
        placed: dict[str, Placed] = {}
        decisions: list[Unsatisfiable] = []
        for node in queue.unknown():
            if len(placed) == _NODES_OF_ALL_A_TURN and self.pod.wanted:
                return Unfinished()
            outcome = refused.get(node.name) or self.on(node, plugins.node_checks)
            if isinstance(outcome, Refused):
                queue.close(node.name, *outcome.words, unresolvable=outcome.is_unresolvable)
                _keep_decision(outcome.decision, decisions)
            elif isinstance(outcome, Placed):
                queue.raise_score_error(node.name)
                placed[node.name] = outcome
                queue.know(node.name, plugins.device_scores(node, outcome.allocations))
            else:
                return outcome
        while (best := self._best_of_all(queue)) is not None:
            outcome = placed.get(best.name) or self.on(best, plugins.node_checks)
            if not isinstance(outcome, Refused):
                return outcome
            # Devices that the node shares with others have been allocated since.
            queue.close(best.name, *outcome.words, unresolvable=outcome.is_unresolvable)
        return self._refuse_on_all_nodes(queue, decisions)

    def _best_of_all(self, queue: NodeQueue) -> NodeState | None:
        """Return the node with the highest total score; None if no node is left."""
        plugins = self.plugins
        if plugins.groups:
            exclusion = self._exclusion()
            numbers = queue.numbers(exclusion)
            highest = _highest_scores(numbers, len(plugins.device_scorers))
            groups: Counter[Group] = Counter()
            for (_, group), number in numbers.items():
                groups[group] += number
            totals = plugins.group_totals(groups)

            def value(scores: DeviceScores | None, group: Group) -> int:
                assert scores is not None, "every node has scores"
                return plugins.device_total(scores, highest) + totals[group]

            best = queue.best(value, exclusion)
            return None if best is None else best[0]
        feasible = [each for each in queue.known() if not self._is_excluded(each[0])]
        if not feasible:
            return None
        nodes = [node for node, _, _ in feasible]
        highest = tuple(map(max, zip(*(scores for _, _, scores in feasible), strict=True)))
        ranks = [
            (score - of_all - plugins.device_total(scores, highest), tie, name)
            for (_, (score, tie, name), scores), of_all in zip(
                feasible, plugins.cluster_scores(nodes), strict=True
            )
        ]
        return self.cluster.fleet.get(min(ranks)[2])

    def on(
        self, node: NodeState, checks: Sequence[tuple[Plugin, Check]]
    ) -> Placed | Unplaced | Refused | Unfinished:
        """Try the node; return Unplaced if no other node can take the pod either."""
        refusal = first_refusal(checks, node)
        if refusal is not None:
            words = (refusal.words, *refusal.further)
            return Refused(words, is_unresolvable=refusal.is_unresolvable)
        wanted = self.pod.wanted_on(node.node)
        if not wanted:
            return Placed(node.name, self.pod.amounts, ())
        try:
            outcome = self.cluster.allocator.begin(node.node, wanted)
        except AllocationError as error:
            return self._fail_with_claim(node, error)
        if isinstance(outcome, Allocated):
            return Placed(node.name, self.pod.amounts, outcome.results, tuple(wanted))
        if isinstance(outcome, Search) and self.searches_left > 0:
            return Unfinished(outcome)
        if isinstance(outcome, Search | Undecided):
            return Refused((NOT_DECIDED,))
        return Refused((NO_DEVICES,), outcome)

    def _fail_with_claim(self, node: NodeState, error: AllocationError) -> Unplaced:
        """Return what is wrong with a claim or a class, and the remedy."""
        remedy = error.remedy or _CORRECT
        if isinstance(error, MissingClassError):
            # kube-scheduler looks for classes before it looks at nodes.
            nodes = len(self.cluster.fleet)
            refusal = _refuse_all_claims(self.pod.wanted, "", Code.ERROR, str(error), remedy)
            message = (
                f"0/{nodes} nodes are available: request {error.request}: device class "
                f"{error.name} does not exist. Create it, or correct the deviceClassName in claim "
                f"{error.claim}"
            )
            return Unplaced(message, lambda: iter((refusal,)), unresolvable=nodes)
        refusal = _refuse_all_claims(self.pod.wanted, node.name, Code.ERROR, str(error), remedy)
        about = f", about device {error.device}" if error.device not in str(error) else ""
        return Unplaced(f"{error}{about}; {remedy}", lambda: iter((refusal,)), is_error=True)

    def _refuse_on_all_nodes(
        self, queue: NodeQueue, decisions: Sequence[Unsatisfiable]
    ) -> Unplaced:
        nodes = len(self.cluster.fleet)
        words = frozenset(queue.refusals)
        if not nodes:
            return Unplaced("no nodes available to schedule pods", self._explain_nodes, words=words)
        refusals, unresolvable = self._count_refusals(queue)
        counts = ", ".join(
            sorted(f"{count} {refusal}" for refusal, count in refusals.items() if count)
        )
        devices = self._explain_devices(queue, decisions)
        unresolvable += sum(refusals.get(each, 0) for each in _OF_DEVICES)
        # A claim that is allocated elsewhere may be deallocated when its users end.
        is_helped = unresolvable < nodes or ELSEWHERE in words
        return Unplaced(
            f"0/{nodes} nodes are available: {counts}.{devices}",
            self._explain_nodes,
            words=words,
            unresolvable=unresolvable,
            is_helped_by_leaving=is_helped,
        )

    def _count_refusals(self, queue: NodeQueue) -> tuple[Mapping[str, int], int]:
        """
        Count the nodes by the message of the first filter that refuses.

        The second value counts the nodes that refuse even if all pods leave them.
        """
        if not self.plugins.cluster_checks:
            return queue.refusals, queue.unresolvable
        counts: Counter[str] = Counter()
        unresolvable = queue.unresolvable
        for node in self.cluster.fleet.states():
            words = queue.refusals_of(node.name)
            if not words or words[0] in _OF_DEVICES:
                refusal = first_refusal(self.plugins.checks, node)
                words = words if refusal is None else (refusal.words, *refusal.further)
                unresolvable += refusal is not None and refusal.is_unresolvable
            counts.update(words)
        return counts, unresolvable

    def _explain_devices(self, queue: NodeQueue, decisions: Sequence[Unsatisfiable]) -> str:
        """Return why the devices of a node do not fit, and which search stopped at its limit."""
        names = tuple(map(claim_name, self.pod.wanted))
        message = ""
        node = queue.first_refusing(NO_DEVICES)
        if node is not None:
            if queue.unmet is None or not queue.unmet.applies_to(names):
                # A node with devices of the kind explains more than one without.
                near = next((each for each in decisions if has_some(each.reasons)), None)
                decision = near or next(iter(decisions), None) or self._diagnose(node)
                queue.unmet = UnmetClaims.of(decision.node, names, decision.reasons)
            message += queue.unmet.message(names)
        node = queue.first_refusing(NOT_DECIDED)
        if node is not None:
            reason = Undecided(node.name, "", names).reasons[0]
            about = f", {reason.request}" if reason.request else ""
            message += f" Node {node.name}, claim {reason.claim}{about}: {reason.message}"
        return message

    def _explain_nodes(self) -> Iterator[Refusal]:
        """Yield why each node refuses, once all have refused."""
        reasons: dict[NodeRefusal, tuple[Reason, ...]] = {}
        for node in self.cluster.fleet.states():
            refusal = first_refusal(self.plugins.checks, node)
            if refusal is None:
                yield Refusal(node.name, self._diagnose(node).reasons)
                continue
            if refusal not in reasons:
                reasons[refusal] = _refuse_all_claims(
                    self.pod.wanted, node.name, Code.NODE, refusal.fact, refusal.remedy
                ).reasons
            yield Refusal(node.name, reasons[refusal])

    def _diagnose(self, node: NodeState) -> Unsatisfiable | Undecided:
        """Return why the node cannot allocate these claims."""
        try:
            outcome = self.cluster.allocator.begin(node.node, self.pod.wanted_on(node.node))
        except AllocationError as error:
            remedy = error.remedy or _CORRECT
            refusal = _refuse_all_claims(self.pod.wanted, node.name, Code.ERROR, str(error), remedy)
            return Unsatisfiable(node.name, "", lambda: refusal.reasons)
        if isinstance(outcome, Allocated | Search):
            # A search stopped at its limit; its end is forgotten, or there is less to search now.
            return Undecided(node.name, "", tuple(map(claim_name, self.pod.wanted)))
        return outcome


def _keep_decision(decision: Unsatisfiable | None, decisions: list[Unsatisfiable]) -> None:
    # Each decision keeps its whole search in memory.
    if decision is not None and len(decisions) < _DECISIONS_KEPT_MAX:
        decisions.append(decision)


def _highest_scores(known: Iterable[tuple[DeviceScores, Group]], count: int) -> DeviceScores:
    """Return the highest score by each of so many device scorers."""
    scores = [each for each, _ in known]
    return tuple(max((each[place] for each in scores), default=0) for place in range(count))


def _refuse_all_claims(
    claims: Sequence[ResourceClaim], node: str, code: Code, fact: str, remedy: str
) -> Refusal:
    """Return the same reason for every claim, or once for a pod that has none."""
    reasons = [
        Reason(claim=name, request="", device="", code=code, fact=fact, remedy=remedy)
        for name in [*map(claim_name, claims)] or [""]
    ]
    return Refusal(node, tuple(reasons))
