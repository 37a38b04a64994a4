"""
Policies by name: profiles of the decider that have one scorer and a tie rule.

All of them use the filters of kube-scheduler. `kubernetes` is its default profile, with the tie
rule of dryrack's scheduler.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from dryrack.base.errors import DryrackError
from dryrack.base.text import hint
from dryrack.placement import DEFAULT_PROFILE, Plugin, Profile, TieRule, Ties
from dryrack.simulation.policies.devices import DeviceSight
from dryrack.simulation.policies.drawing import DeviceDraw
from dryrack.simulation.policies.fragmentation import Fragmentation
from dryrack.simulation.policies.scores import (
    CLASS_LABEL,
    Workload,
    best_fit,
    class_of,
    dot_product,
    fgd,
    gpu_clustering,
    gpu_packing,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = [
    "CLASS_LABEL",
    "KUBERNETES",
    "POLICIES",
    "DeviceSight",
    "Fragmentation",
    "Policy",
    "PolicyError",
    "Workload",
    "check_policy",
    "class_of",
    "policy_named",
]

KUBERNETES = "kubernetes"
_RANDOM = "random"
_SCORERS: Mapping[str, Callable[[Workload], Plugin]] = {
    "best-fit": best_fit,
    "dot-product": dot_product,
    "fgd": fgd,
    "gpu-clustering": gpu_clustering,
    "gpu-packing": gpu_packing,
}
POLICIES = (*sorted((*_SCORERS, _RANDOM)), KUBERNETES)


class PolicyError(DryrackError):
    """A policy does not exist."""


class Policy(NamedTuple):
    """A profile with the name that a user gives it."""

    name: str
    profile: Profile
    # Chooses the device of a share; None if the allocator does.
    draw: DeviceDraw | None = None


def check_policy(name: str, plugins: Mapping[str, Plugin]) -> None:
    """Raise `PolicyError` unless a policy, or a scoring plugin of the user, has the name."""
    plugin = plugins.get(name)
    if name in POLICIES or (plugin is not None and plugin.score is not None):
        return
    if plugin is not None:
        raise PolicyError(f"policy {name!r}: this plugin has no score; name a plugin that has one")
    known = [*POLICIES, *(each for each, plugin in plugins.items() if plugin.score)]
    raise PolicyError(f"unknown policy {name!r}; {hint(name, known)}")


def policy_named(
    name: str,
    workload: Workload,
    seed: int,
    *,
    ties: TieRule | None = None,
    plugins: Mapping[str, Plugin] | None = None,
) -> Policy:
    """Return a policy for a workload; `plugins` are those of the user, by name."""
    plugins = plugins or {}
    check_policy(name, plugins)
    rule = TieRule.FIXED
    scores: tuple[tuple[Plugin, int], ...] = ()
    if name == KUBERNETES:
        rule = TieRule.FEWEST_PODS
        scores = DEFAULT_PROFILE.scores
    elif name == _RANDOM:
        rule = TieRule.RANDOM
    elif name in _SCORERS:
        scores = ((_SCORERS[name](workload), 1),)
    else:
        scores = ((plugins[name], 1),)
    profile = Profile(
        scheduler_name=name,
        filters=DEFAULT_PROFILE.filters,
        scores=scores,
        scheduler_plugins=DEFAULT_PROFILE.scheduler_plugins,
        ties=Ties(ties or rule, seed),
    )
    return Policy(name, profile, DeviceDraw(workload.sight(), seed) if name == _RANDOM else None)
