"""
Where a pod goes: the best of the nodes that take it with all its claims.

The plugins of a profile say which nodes do and which are better (see `framework`); where scores are
equal the node with the fewest pods is taken, then the first by name: the same cluster always gives
the same answer. Nodes of which it is known that they refuse are passed over (see `node_queue`).

`decide` does not take long: it asks a few nodes and stops where a long search would be made. Who
calls it again, after other work, or after the search, goes on with the cluster as it is by then,
because what nodes said is remembered. `place` is the same without pauses. The scheduler and the
what-if both decide by this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

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
    from collections.abc import Sequence

    from dryrack.kinds.core import Pod
    from dryrack.kinds.resource import ResourceClaim
    from dryrack.placement.extended_resources import ExtendedResources
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
    "open_nodes",
    "place",
    "place_on",
    "unresolvable_nodes",
]

# Each takes half a second. It is one for all nodes that are alike, and one more for a node that
# changes meanwhile; further nodes count as undecided.
SEARCHES_MAX = 8


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
    Where the pod goes with the claims that it wants and those that it has already.

    `extended` is what it wants beside them by extended resources.
    """
    constraints = PodConstraints.of(pod, wanted, allocated, extended=extended)
    searches_left = SEARCHES_MAX
    while True:
        outcome = attempt(constraints, cluster, profile, searches_left=searches_left)
        if not isinstance(outcome, Unfinished):
            return outcome
        if outcome.search is not None:
            outcome.search.finish()
            searches_left -= 1


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
    """The same as far as it is known soon."""
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
    """The pod on this very node with all its claims, as the books are now, or why not."""
    state = cluster.fleet.get(name)
    if state is None:
        return Refused((f"node {name} not found",))
    constraints = PodConstraints.of(pod, wanted, allocated, extended=extended)
    for searches_left in range(SEARCHES_MAX, -1, -1):
        tried = attempt_on(state, constraints, cluster, profile, searches_left=searches_left)
        if isinstance(tried, Placed | Refused):
            return tried
        if isinstance(tried, Unplaced):
            return Refused((tried.message,))
        if tried.search is None:
            break
        tried.search.finish()
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
    """The nodes that refuse the pod for what no pod that goes can change."""
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
    """The nodes of which it is not known that they refuse such a pod for reasons of their own."""
    plugins = ActivePlugins.of(constraints, cluster.fleet, profile)
    return plugins.queue(cluster.fleet).not_closed()
