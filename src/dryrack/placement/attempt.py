"""
One attempt to find the best node for a pod, as far as that is known soon.

Where plugins look at each node by itself, nodes come best first, and the first that takes the pod
is the one. Scores of devices are known only from nodes that were asked; then it is the first that
no other can surpass. Where plugins hold nodes against each other, all that take the pod are scored.

As in kube-scheduler, an error of a claim on any node ends the attempt, even if the pod fits on
other nodes; so does an error of a plugin. kube-scheduler looks at all nodes of a small cluster, and
in a large one until it has found enough that fit. So nodes on which a selector may fail are asked
before the pod is placed, unless there are enough nodes without such devices. Where a search is
given up, other nodes are tried: theirs may be easier.
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
from dryrack.placement.node_queue import Out, UnmetClaims
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

    # What devices, if they are known, and its group add to the score of a node.
    Value = Callable[[DeviceScores | None, Group], int]

_CORRECT = "correct the object (dryrack lint shows the line); no node fits until then"
# SchedulerMessage of nodes that all other filters let pass.
_OF_DEVICES = (NO_DEVICES, NOT_DECIDED, ELSEWHERE)
# More than any score, of a node that has to be asked in any case.
_FIRST = 10**9

# kube-scheduler looks for nodes that fit among all nodes up to the first number, and among more
# until it has found this percentage of them, which falls by one with every so many nodes.
_NODES_MIN = 100
_SHARE_MAX = 50
_SHARE_MIN = 5
_NODES_A_PERCENT = 125

# To ask a node for devices takes up to two milliseconds.
_NODES_A_TURN = 8
# Where all have to be asked, each turn begins with a look at every node.
_NODES_OF_ALL_A_TURN = 128
# Among so many decisions, the message uses one whose node has matching devices.
_DECISIONS_KEPT_MAX = 8


@dataclass(frozen=True, slots=True)
class Refused:
    """A node that does not take the pod."""

    words: tuple[str, ...]
    # What was decided about its devices, if they do not do.
    decision: Unsatisfiable | None = None
    is_unresolvable: bool = False


def attempt(
    pod: PodConstraints, cluster: Cluster, profile: Profile, *, searches_left: int
) -> Placed | Unplaced | Unfinished:
    """Where the pod goes."""
    try:
        plugins = ActivePlugins.of(pod, cluster.fleet, profile)
        return Attempt(plugins, cluster, searches_left).run()
    except PluginError as error:
        return _plugin_failed(pod, error)


def attempt_on(
    node: NodeState,
    pod: PodConstraints,
    cluster: Cluster,
    profile: Profile,
    *,
    searches_left: int,
) -> Placed | Unplaced | Refused | Unfinished:
    """The pod on this very node."""
    try:
        plugins = ActivePlugins.of(pod, cluster.fleet, profile)
        return Attempt(plugins, cluster, searches_left).on(node, plugins.checks)
    except PluginError as error:
        return _plugin_failed(pod, error)


def _plugin_failed(pod: PodConstraints, error: PluginError) -> Unplaced:
    refusal = _for_all(pod.wanted, "", Code.ERROR, str(error), "correct the plugin")
    return Unplaced(str(error), lambda: iter((refusal,)), is_error=True)


def nodes_to_find(nodes: int) -> int:
    """Return how many nodes that fit kube-scheduler looks for among so many, by default."""
    share = max(_SHARE_MAX - nodes // _NODES_A_PERCENT, _SHARE_MIN)
    return min(max(nodes * share // 100, _NODES_MIN), nodes)


class Attempt(msgspec.Struct, frozen=True):
    """One pod, with the plugins that have something to say about it."""

    plugins: ActivePlugins
    cluster: Cluster
    searches_left: int

    @property
    def pod(self) -> PodConstraints:
        return self.plugins.pod

    def run(self) -> Placed | Unplaced | Unfinished:
        only = self._only_node()
        tried = self.on(only, self.plugins.checks) if only is not None else None
        if isinstance(tried, Placed | Unplaced | Unfinished):
            return tried
        refused = {only.name: tried} if only is not None and tried is not None else {}
        failure = self._failure()
        if failure is not None:
            return failure
        if self._needs_all():
            return self._of_all(refused)
        return self._best_first(refused)

    def _failure(self) -> Unplaced | None:
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
            tried = None if state is None else self.on(state, self.plugins.checks)
            if isinstance(tried, Unplaced):
                return tried
        return None

    def _needs_all(self) -> bool:
        """Whether it has to be known of every node if it takes the pod."""
        if self.plugins.cluster_scorers or not self.plugins.cluster_checks:
            return bool(self.plugins.cluster_scorers)
        return any(scorer.is_relative for _, _, scorer in self.plugins.device_scorers)

    def _only_node(self) -> NodeState | None:
        """
        Where the pod or a claim is tied to one node no other can do.

        Pods of daemon sets are: each is a kind of its own, and not worth remembering.
        """
        name = self.pod.only_node
        return self.cluster.fleet.get(name) if name else None

    def _best_first(self, refused: Mapping[str, Refused]) -> Placed | Unplaced | Unfinished:
        """The best of the nodes that take the pod, if none of those that refused."""
        queue = self.plugins.queue(self.cluster.fleet)
        decided: list[Unsatisfiable] = []
        placed: dict[str, Placed] = {}
        asked = 0
        while (best := queue.best(self._value_of_devices(queue), self._out())) is not None:
            node, scores = best
            if scores is not None and node.name in placed:
                return placed[node.name]
            if asked == _NODES_A_TURN:
                return Unfinished()
            tried = refused.get(node.name) or self.on(node, self.plugins.node_checks)
            if isinstance(tried, Refused):
                queue.close(node.name, *tried.words, unresolvable=tried.is_unresolvable)
                _keep(tried.decision, decided)
            elif isinstance(tried, Placed) and self.plugins.device_scorers:
                placed[node.name] = tried
                queue.know(node.name, self.plugins.device_scores(node, tried.allocations))
            else:
                return tried
            asked += isinstance(tried, Placed) or tried.words[0] in _OF_DEVICES
        kind = None if self.plugins.cluster_checks else self.plugins.signature()
        return replace(self._unplaced(queue, decided), kind=kind)

    def _out(self) -> Out | None:
        """The nodes that filters refuse which look at others, too."""
        if not self.plugins.cluster_checks:
            return None
        return Out(self._is_out, by_group=bool(self.plugins.grouped_checks))

    def _is_out(self, node: NodeState) -> bool:
        return first_refusal(self.plugins.cluster_checks, node) is not None

    def _value_of_devices(self, queue: NodeQueue) -> Value | None:
        """What devices add to the score of a node; those that are not known, at most."""
        scorers = self.plugins.device_scorers
        if not scorers:
            return None
        highest = _highest(queue.numbers(), len(scorers))
        most = sum(weight * SCORE_MAX for _, weight, _ in scorers)
        if any(s.is_relative and h < s.most for (_, _, s), h in zip(scorers, highest, strict=True)):
            # What others are worth depends on the best of all.
            most = _FIRST

        def value(scores: DeviceScores | None, _group: Group) -> int:
            return most if scores is None else self.plugins.device_total(scores, highest)

        return value

    def _of_all(self, refused: Mapping[str, Refused]) -> Placed | Unplaced | Unfinished:
        """The same where nodes are held against each other: all that take the pod are scored."""
        queue = self.plugins.queue(self.cluster.fleet)
        placed: dict[str, Placed] = {}
        decided: list[Unsatisfiable] = []
        for node in queue.unknown():
            if len(placed) == _NODES_OF_ALL_A_TURN and self.pod.wanted:
                return Unfinished()
            tried = refused.get(node.name) or self.on(node, self.plugins.node_checks)
            if isinstance(tried, Refused):
                queue.close(node.name, *tried.words, unresolvable=tried.is_unresolvable)
                _keep(tried.decision, decided)
            elif isinstance(tried, Placed):
                placed[node.name] = tried
                queue.know(node.name, self.plugins.device_scores(node, tried.allocations))
            else:
                return tried
        while (best := self._best_of_all(queue)) is not None:
            tried = placed.get(best.name) or self.on(best, self.plugins.node_checks)
            if not isinstance(tried, Refused):
                return tried
            # Devices that it shares with others have been given away.
            queue.close(best.name, *tried.words, unresolvable=tried.is_unresolvable)
        return self._unplaced(queue, decided)

    def _best_of_all(self, queue: NodeQueue) -> NodeState | None:
        if self.plugins.groups:
            out = self._out()
            best = queue.best(self._value_of_groups(queue.numbers(out)), out)
            return None if best is None else best[0]
        feasible = [each for each in queue.known() if not self._is_out(each[0])]
        if not feasible:
            return None
        nodes = [node for node, _, _ in feasible]
        devices = [scores for _, _, scores in feasible]
        highest = tuple(map(max, zip(*devices, strict=True)))
        ranks = [
            (-(score + of_all + self.plugins.device_total(scores, highest)), node.pods, node.name)
            for (node, score, scores), of_all in zip(
                feasible, self.plugins.cluster_scores(nodes), strict=True
            )
        ]
        return self.cluster.fleet.get(min(ranks)[2])

    def _value_of_groups(self, numbers: Mapping[tuple[DeviceScores, Group], int]) -> Value:
        """What devices and groups add to the score of a node, where so many would do."""
        highest = _highest(numbers, len(self.plugins.device_scorers))
        groups: Counter[Group] = Counter()
        for (_, group), number in numbers.items():
            groups[group] += number
        totals = self.plugins.group_totals(groups)

        def value(scores: DeviceScores | None, group: Group) -> int:
            assert scores is not None, "every node has scores"
            return self.plugins.device_total(scores, highest) + totals[group]

        return value

    def on(
        self, node: NodeState, checks: Sequence[tuple[Plugin, Check]]
    ) -> Placed | Unplaced | Refused | Unfinished:
        """The pod on the node, or why not; Unplaced, if no other can do."""
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
            remedy = error.remedy or _CORRECT
            is_of_all = isinstance(error, MissingClassError)
            where = "" if is_of_all else node.name
            refused = _for_all(self.pod.wanted, where, Code.ERROR, str(error), remedy)
            unresolvable = len(self.cluster.fleet) if is_of_all else None
            told = self._undecidable(error)
            return Unplaced(
                told,
                lambda: iter((refused,)),
                unresolvable=unresolvable,
                is_error=not is_of_all,
            )
        if isinstance(outcome, Allocated):
            return Placed(node.name, self.pod.amounts, outcome.results, tuple(wanted))
        if isinstance(outcome, Search) and self.searches_left > 0:
            return Unfinished(outcome)
        if isinstance(outcome, Search | Undecided):
            return Refused((NOT_DECIDED,))
        return Refused((NO_DEVICES,), outcome)

    def _refusals(self) -> Iterator[Refusal]:
        """Why each of the nodes refuses, once all have done so."""
        told: dict[NodeRefusal, tuple[Reason, ...]] = {}
        for node in self.cluster.fleet.states():
            refusal = first_refusal(self.plugins.checks, node)
            if refusal is None:
                yield Refusal(node.name, self._asked(node).reasons)
                continue
            if refusal not in told:
                fact = refusal.fact
                remedy = refusal.remedy
                refused = _for_all(self.pod.wanted, node.name, Code.NODE, fact, remedy)
                told[refusal] = refused.reasons
            yield Refusal(node.name, told[refusal])

    def _unplaced(self, queue: NodeQueue, decided: Sequence[Unsatisfiable]) -> Unplaced:
        nodes = len(self.cluster.fleet)
        words = frozenset(queue.refusals)
        if not nodes:
            return Unplaced("no nodes available to schedule pods", self._refusals, words=words)
        refusals, unresolvable = self._counts(queue)
        counts = ", ".join(
            sorted(f"{count} {refusal}" for refusal, count in refusals.items() if count)
        )
        unmet = self._unmet(queue, decided)
        undecided = self._undecided(queue)
        message = f"0/{nodes} nodes are available: {counts}.{unmet}{undecided}"
        unresolvable += sum(refusals.get(each, 0) for each in _OF_DEVICES)
        # A claim that is allocated elsewhere may be let go when who uses it goes.
        is_helped = unresolvable < nodes or ELSEWHERE in words
        return Unplaced(
            message,
            self._refusals,
            words=words,
            unresolvable=unresolvable,
            is_helped_by_leaving=is_helped,
        )

    def _undecidable(self, error: AllocationError) -> str:
        """What is wrong with a claim or a class, and how to put it right."""
        if isinstance(error, MissingClassError):
            # kube-scheduler looks for classes before it looks at nodes.
            words = f"request {error.request}: device class {error.name} does not exist"
            remedy = f"Create it, or correct the deviceClassName in claim {error.claim}"
            return f"0/{len(self.cluster.fleet)} nodes are available: {words}. {remedy}"
        about = f", about device {error.device}" if error.device not in str(error) else ""
        return f"{error}{about}; {error.remedy or _CORRECT}"

    def _counts(self, queue: NodeQueue) -> tuple[Mapping[str, int], int]:
        """
        How many nodes refuse for what; each says what the first filter has against it.

        And how many of them by a filter that no pod that goes can change.
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

    def _unmet(self, queue: NodeQueue, decided: Sequence[Unsatisfiable]) -> str:
        """Return why the devices of a node do not fit, if possible a node with such devices."""
        node = queue.first_refusing(NO_DEVICES)
        if node is None:
            return ""
        names = tuple(map(claim_name, self.pod.wanted))
        if queue.told is None or not queue.told.serves(names):
            near = next((each for each in decided if has_some(each.reasons)), None)
            decision = near or next(iter(decided), None) or self._asked(node)
            queue.told = UnmetClaims.of(decision.node, names, decision.reasons)
        return queue.told.to(names)

    def _asked(self, node: NodeState) -> Unsatisfiable | Undecided:
        """Return why a node cannot allocate these claims."""
        try:
            outcome = self.cluster.allocator.begin(node.node, self.pod.wanted_on(node.node))
        except AllocationError as error:
            remedy = error.remedy or _CORRECT
            refused = _for_all(self.pod.wanted, node.name, Code.ERROR, str(error), remedy)
            return Unsatisfiable(node.name, "", lambda: refused.reasons)
        if isinstance(outcome, Allocated | Search):
            # A search was given up; how it ended is forgotten, or there is less to search now.
            return Undecided(node.name, "", tuple(map(claim_name, self.pod.wanted)))
        return outcome

    def _undecided(self, queue: NodeQueue) -> str:
        """Return the message about a search that stopped at its limit."""
        node = queue.first_refusing(NOT_DECIDED)
        if node is None:
            return ""
        reason = Undecided(node.name, "", tuple(map(claim_name, self.pod.wanted))).reasons[0]
        about = f", {reason.request}" if reason.request else ""
        return f" Node {node.name}, claim {reason.claim}{about}: {reason.message}"


def _keep(decision: Unsatisfiable | None, decided: list[Unsatisfiable]) -> None:
    """Each holds on to its search."""
    if decision is not None and len(decided) < _DECISIONS_KEPT_MAX:
        decided.append(decision)


def _highest(known: Iterable[tuple[DeviceScores, Group]], count: int) -> DeviceScores:
    """The highest of each of so many scores of devices."""
    scores = [each for each, _ in known]
    return tuple(max((each[place] for each in scores), default=0) for place in range(count))


def _for_all(
    claims: Sequence[ResourceClaim], node: str, code: Code, fact: str, remedy: str
) -> Refusal:
    """The same reason for every claim, or once for a pod that has none."""
    reasons = [
        Reason(claim=name, request="", device="", code=code, fact=fact, remedy=remedy)
        for name in [*map(claim_name, claims)] or [""]
    ]
    return Refusal(node, tuple(reasons))
