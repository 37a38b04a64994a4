"""
Place a pod on the best of the nodes that take it with all its claims.

The plugins of a profile filter and score nodes (see `framework`). Of nodes with equal scores the
one with the fewest pods is chosen, then the first by name, so that the same cluster always gives
the same answer. Nodes that are known to refuse are skipped (see `node_queue`).

`decide` does not take long: it asks a few nodes and stops before a long search. Another call, after
other work or after the search, continues with the cluster as it is by then, because the answers of
nodes are remembered. `place` is the same without pauses. The scheduler and the what-if both use
these functions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.allocation import AllocationError
from dryrack.placement.active_plugins import ActivePlugins, first_refusal
from dryrack.placement.attempt import Refused, attempt, attempt_on
from dryrack.placement.framework import PluginError
from dryrack.placement.outcomes import (
    NOT_DECIDED,
    Allocates,
    Cluster,
    Placed,
    Refusal,
    Unfinished,
    Unplaced,
)
from dryrack.placement.plugins import DEFAULT_PROFILE
from dryrack.placement.pod_constraints import PodConstraints

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dryrack.kinds.core import Pod
    from dryrack.kinds.resource import ResourceClaim
    from dryrack.placement.extended_resources import ExtendedResources
    from dryrack.placement.fleet import Fleet
    from dryrack.placement.framework import Profile
    from dryrack.placement.node_state import NodeState

__all__ = [
    "SEARCHES_MAX",
    "Allocates",
    "Cluster",
    "Placed",
    "Refusal",
    "Unfinished",
    "Unplaced",
    "decide",
    "node_check",
    "open_nodes",
    "place",
    "place_constraints",
    "place_on",
    "unresolvable_nodes",
]

# A search takes half a second. Equal nodes share one, and a node that changes meanwhile needs one
# more; after the last search, further nodes count as undecided.
SEARCHES_MAX = 8
_ALL_NODES = -1


def place(
    pod: Pod,
    wanted: Sequence[ResourceClaim],
    allocated: Sequence[ResourceClaim],
    cluster: Cluster,
    *,
    extended: ExtendedResources | None = None,
    profile: Profile = DEFAULT_PROFILE,
) -> Placed | Unplaced:
    """
    Place the pod with claims that are to be allocated and claims that are allocated already.

    `extended` is the additional claim for its extended resources.
    """
    constraints = PodConstraints.of(pod, wanted, allocated, extended=extended)
    return place_constraints(constraints, cluster, profile)


def place_constraints(
    constraints: PodConstraints, cluster: Cluster, profile: Profile = DEFAULT_PROFILE
) -> Placed | Unplaced:
    """Place a pod whose requirements are parsed already."""
    searches_left = SEARCHES_MAX
    while True:
        outcome = attempt(
            constraints, cluster, profile, searches_left=searches_left, nodes_a_turn=_ALL_NODES
        )
        if not isinstance(outcome, Unfinished):
            return outcome
        if outcome.search is not None:
            outcome.search.finish()
            searches_left -= 1


def node_check(
    constraints: PodConstraints, fleet: Fleet, profile: Profile = DEFAULT_PROFILE
) -> Callable[[NodeState], bool]:
    """
    Return a check that is False for nodes which refuse the pod by a filter or for lack of devices.

    A node that passes may refuse all the same. The check stays valid when pods come and go, if no
    filter depends on pods of other nodes.
    """
    plugins = ActivePlugins.of(constraints, fleet, profile)

    def check(node: NodeState) -> bool:
        try:
            if plugins.check_node(node) is not None:
                return False
            wanted = constraints.wanted_on(node.node)
            return not wanted or fleet.books is None or not fleet.books.lacks(node.node, wanted)
        except (PluginError, AllocationError):
            # The error is for the attempt to report.
            return True

    return check


def decide(
    pod: Pod,
    wanted: Sequence[ResourceClaim],
    allocated: Sequence[ResourceClaim],
    cluster: Cluster,
    *,
    extended: ExtendedResources | None = None,
    profile: Profile = DEFAULT_PROFILE,
    searches_left: int = SEARCHES_MAX,
) -> Placed | Unplaced | Unfinished:
    """Place the pod, or return Unfinished before a long search or after some nodes."""
    constraints = PodConstraints.of(pod, wanted, allocated, extended=extended)
    return attempt(constraints, cluster, profile, searches_left=searches_left)


def place_on(
    name: str,
    pod: Pod,
    wanted: Sequence[ResourceClaim],
    allocated: Sequence[ResourceClaim],
    cluster: Cluster,
    *,
    extended: ExtendedResources | None = None,
    profile: Profile = DEFAULT_PROFILE,
) -> Placed | Refused:
    """Place the pod with all its claims on this node, or return why the node refuses it."""
    state = cluster.fleet.get(name)
    if state is None:
        return Refused((f"node {name} not found",))
    constraints = PodConstraints.of(pod, wanted, allocated, extended=extended)
    for searches_left in range(SEARCHES_MAX, -1, -1):
        outcome = attempt_on(state, constraints, cluster, profile, searches_left=searches_left)
        if isinstance(outcome, Placed | Refused):
            return outcome
        if isinstance(outcome, Unplaced):
            return Refused((outcome.message,))
        if outcome.search is None:
            break
        outcome.search.finish()
    return Refused((NOT_DECIDED,))


def unresolvable_nodes(
    pod: Pod,
    wanted: Sequence[ResourceClaim],
    allocated: Sequence[ResourceClaim],
    cluster: Cluster,
    *,
    extended: ExtendedResources | None = None,
    profile: Profile = DEFAULT_PROFILE,
) -> frozenset[str]:
    """Return the nodes that refuse the pod even if all pods leave them."""
    constraints = PodConstraints.of(pod, wanted, allocated, extended=extended)
    states = cluster.fleet.states()
    try:
        checks = ActivePlugins.of(constraints, cluster.fleet, profile).checks
        refusals = {state.name: first_refusal(checks, state) for state in states}
    except PluginError:
        return frozenset(state.name for state in states)
    return frozenset(name for name, each in refusals.items() if each and each.is_unresolvable)


def open_nodes(
    constraints: PodConstraints, cluster: Cluster, profile: Profile
) -> Sequence[NodeState]:
    """Return the nodes that have not refused a pod with this signature."""
    plugins = ActivePlugins.of(constraints, cluster.fleet, profile)
    return plugins.queue(cluster.fleet).not_closed()
