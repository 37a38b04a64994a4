"""
The plugins of dryrack by name, and kube-scheduler's default profile.

A plugin is one file here and one line in `IN_TREE`. Users add their own by entry point.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from dryrack.kinds.releases import DEFAULT_RELEASE, SCHEDULING, Release
from dryrack.placement.framework import Profile
from dryrack.placement.plugins.device_scores import DEVICE_FRAGMENTATION, DEVICE_GROUPS
from dryrack.placement.plugins.dynamic_resources import DYNAMIC_RESOURCES
from dryrack.placement.plugins.image_locality import IMAGE_LOCALITY
from dryrack.placement.plugins.inter_pod_affinity import INTER_POD_AFFINITY
from dryrack.placement.plugins.node_affinity import NODE_AFFINITY, NODE_NAME
from dryrack.placement.plugins.node_resources import (
    NODE_PORTS,
    NODE_RESOURCES_BALANCED_ALLOCATION,
    NODE_RESOURCES_FIT,
)
from dryrack.placement.plugins.numa_topology import NUMA_TOPOLOGY
from dryrack.placement.plugins.pod_topology_spread import POD_TOPOLOGY_SPREAD
from dryrack.placement.plugins.taint_toleration import NODE_UNSCHEDULABLE, TAINT_TOLERATION
from dryrack.placement.plugins.volumes import VOLUME_BINDING, VOLUME_ZONE
from dryrack.placement.plugins.workloads import BACKFILL, TOPOLOGY_SPREAD, WORKLOAD_AWARE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dryrack.placement.framework import Plugin

IN_TREE: Mapping[str, Plugin] = {
    plugin.name: plugin
    for plugin in (
        NODE_UNSCHEDULABLE,
        NODE_NAME,
        TAINT_TOLERATION,
        NODE_AFFINITY,
        NODE_PORTS,
        NODE_RESOURCES_FIT,
        VOLUME_BINDING,
        VOLUME_ZONE,
        POD_TOPOLOGY_SPREAD,
        INTER_POD_AFFINITY,
        DYNAMIC_RESOURCES,
        NODE_RESOURCES_BALANCED_ALLOCATION,
        IMAGE_LOCALITY,
        WORKLOAD_AWARE,
        TOPOLOGY_SPREAD,
        BACKFILL,
        NUMA_TOPOLOGY,
        DEVICE_FRAGMENTATION,
        DEVICE_GROUPS,
    )
}

# The default plugins with the weights of their scores, in the order of their calls after those that
# the release calls first.
DEFAULT_PLUGINS: Mapping[str, int] = {
    "NodeUnschedulable": 1,
    "NodeName": 1,
    "TaintToleration": 3,
    "NodeAffinity": 2,
    "NodePorts": 1,
    "NodeResourcesFit": 1,
    "VolumeBinding": 1,
    "VolumeZone": 1,
    "PodTopologySpread": 2,
    "InterPodAffinity": 2,
    "DynamicResources": 2,
    "NodeResourcesBalancedAllocation": 1,
    "ImageLocality": 1,
}

# Plugins that the scheduler itself implements, with upstream's extension point.
SCHEDULER_PLUGINS: Mapping[str, str] = {
    "Coscheduling": "permit",
    "DefaultPreemption": "postFilter",
    "GangPreemption": "postFilter",
    "GangScheduling": "permit",
    "ResourceReservation": "reserve",
}

# All of these are on by default except this one, which reserves capacity.
DEFAULT_SCHEDULER_PLUGINS = frozenset(SCHEDULER_PLUGINS) - {"ResourceReservation"}
# The additional plugins in the profile of kubenexus.
_KUBENEXUS = "kubenexus-scheduler"
_SEED_PLUGINS = {"WorkloadAware": 1, "TopologySpread": 1, "Backfill": 1, "NUMATopology": 1}


def _profile(
    name: str, plugins: Mapping[str, int], scheduler_plugins: frozenset[str], release: Release
) -> Profile:
    names = dict.fromkeys((*SCHEDULING[release].first_filters, *plugins))
    weighted = [(IN_TREE[each], plugins[each]) for each in names]
    return Profile(
        scheduler_name=name,
        filters=tuple(plugin for plugin, _ in weighted if plugin.filter),
        scores=tuple((plugin, weight) for plugin, weight in weighted if plugin.score),
        scheduler_plugins=scheduler_plugins,
    )


@cache
def _default_profile(release: Release) -> Profile:
    return _profile("default-scheduler", DEFAULT_PLUGINS, DEFAULT_SCHEDULER_PLUGINS, release)


@cache
def _kubenexus_profile(release: Release) -> Profile:
    """Return all seven plugins of kubenexus, in addition to kube-scheduler's defaults."""
    plugins = {**DEFAULT_PLUGINS, **_SEED_PLUGINS}
    return _profile(_KUBENEXUS, plugins, frozenset(SCHEDULER_PLUGINS), release)


def profile_named(name: str, release: Release = DEFAULT_RELEASE) -> Profile:
    """Return the default profile of a scheduler of this name in a release."""
    return _kubenexus_profile(release) if name == _KUBENEXUS else _default_profile(release)


DEFAULT_PROFILE = _default_profile(DEFAULT_RELEASE)
