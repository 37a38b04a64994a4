"""
KubeSchedulerConfiguration (kubescheduler.config.k8s.io/v1): the configuration of a scheduler.

It is a file and never stored in a cluster. Fields without effect, such as the settings of a
connection, are not decoded.
"""

from collections.abc import Mapping
from typing import Any

from dryrack.kinds.core import NodeAffinity, TopologySpreadConstraint
from dryrack.kinds.meta import Int32, Int64, Model

API_VERSION = "kubescheduler.config.k8s.io/v1"
KIND = "KubeSchedulerConfiguration"


class PluginEntry(Model, frozen=True, kw_only=True):
    name: str = ""
    weight: Int32 | None = None


class PluginSet(Model, frozen=True, kw_only=True):
    enabled: tuple[PluginEntry, ...] = ()
    disabled: tuple[PluginEntry, ...] = ()


class Plugins(Model, frozen=True, kw_only=True):
    pre_enqueue: PluginSet = PluginSet()
    queue_sort: PluginSet = PluginSet()
    pre_filter: PluginSet = PluginSet()
    filter: PluginSet = PluginSet()
    post_filter: PluginSet = PluginSet()
    pre_score: PluginSet = PluginSet()
    score: PluginSet = PluginSet()
    reserve: PluginSet = PluginSet()
    permit: PluginSet = PluginSet()
    pre_bind: PluginSet = PluginSet()
    bind: PluginSet = PluginSet()
    post_bind: PluginSet = PluginSet()
    multi_point: PluginSet = PluginSet()
    placement_generate: PluginSet = PluginSet()
    placement_score: PluginSet = PluginSet()


class PluginConfig(Model, frozen=True, kw_only=True):
    name: str = ""
    args: Mapping[str, Any] = {}


class SchedulerProfile(Model, frozen=True, kw_only=True):
    scheduler_name: str | None = None
    percentage_of_nodes_to_score: Int32 | None = None
    plugins: Plugins = Plugins()
    plugin_config: tuple[PluginConfig, ...] = ()


class LeaderElectionSettings(Model, frozen=True, kw_only=True):
    leader_elect: bool | None = None
    lease_duration: str = ""
    renew_deadline: str = ""
    retry_period: str = ""
    resource_lock: str = ""
    resource_name: str = ""
    resource_namespace: str = ""


class KubeSchedulerConfiguration(Model, frozen=True, kw_only=True):
    api_version: str = ""
    kind: str = ""
    parallelism: Int32 | None = None
    leader_election: LeaderElectionSettings = LeaderElectionSettings()
    client_connection: Any = None
    enable_profiling: bool | None = None
    enable_contention_profiling: bool | None = None
    percentage_of_nodes_to_score: Int32 | None = None
    pod_initial_backoff_seconds: Int64 | None = None
    pod_max_backoff_seconds: Int64 | None = None
    profiles: tuple[SchedulerProfile, ...] = ()
    extenders: tuple[Any, ...] = ()
    delay_cache_until_active: bool | None = None


class PluginArgs(Model, frozen=True, kw_only=True):
    """The fields that the arguments of all plugins may have."""

    api_version: str = ""
    kind: str = ""


class ResourceWeight(Model, frozen=True, kw_only=True):
    name: str = ""
    weight: Int64 = 1


class UtilizationShapePoint(Model, frozen=True, kw_only=True):
    utilization: Int32 = 0
    score: Int32 = 0


class RequestedToCapacityRatio(Model, frozen=True, kw_only=True):
    shape: tuple[UtilizationShapePoint, ...] = ()


class ScoringStrategy(Model, frozen=True, kw_only=True):
    type: str = ""
    resources: tuple[ResourceWeight, ...] = ()
    requested_to_capacity_ratio: RequestedToCapacityRatio | None = None


class NodeResourcesFitArgs(PluginArgs, frozen=True, kw_only=True):
    ignored_resources: tuple[str, ...] = ()
    ignored_resource_groups: tuple[str, ...] = ()
    scoring_strategy: ScoringStrategy | None = None


class NodeResourcesBalancedAllocationArgs(PluginArgs, frozen=True, kw_only=True):
    resources: tuple[ResourceWeight, ...] = ()


class InterPodAffinityArgs(PluginArgs, frozen=True, kw_only=True):
    hard_pod_affinity_weight: Int32 | None = None
    ignore_preferred_terms_of_existing_pods: bool = False


class NodeAffinityArgs(PluginArgs, frozen=True, kw_only=True):
    added_affinity: NodeAffinity | None = None


class PodTopologySpreadArgs(PluginArgs, frozen=True, kw_only=True):
    default_constraints: tuple[TopologySpreadConstraint, ...] = ()
    defaulting_type: str = ""


class DefaultPreemptionArgs(PluginArgs, frozen=True, kw_only=True):
    min_candidate_nodes_percentage: Int32 | None = None
    min_candidate_nodes_absolute: Int32 | None = None


class VolumeBindingArgs(PluginArgs, frozen=True, kw_only=True):
    bind_timeout_seconds: Int64 | None = None
    shape: tuple[UtilizationShapePoint, ...] = ()


class DynamicResourcesArgs(PluginArgs, frozen=True, kw_only=True):
    filter_timeout: str = ""
    binding_timeout: str = ""


class CoschedulingArgs(PluginArgs, frozen=True, kw_only=True):
    permit_waiting_time_seconds: Int64 | None = None
    pod_group_backoff_seconds: Int64 | None = None


class DeviceGroupsArgs(PluginArgs, frozen=True, kw_only=True):
    attribute: str = ""


class ResourceReservationArgs(PluginArgs, frozen=True, kw_only=True):
    ttl_seconds: Int64 | None = None


# By the name of the plugin.
PLUGIN_ARGS: Mapping[str, type[PluginArgs]] = {
    "Backfill": PluginArgs,
    "Coscheduling": CoschedulingArgs,
    "DefaultPreemption": DefaultPreemptionArgs,
    "DeviceFragmentation": PluginArgs,
    "DeviceGroups": DeviceGroupsArgs,
    "DynamicResources": DynamicResourcesArgs,
    "GangPreemption": PluginArgs,
    "GangScheduling": PluginArgs,
    "InterPodAffinity": InterPodAffinityArgs,
    "NUMATopology": PluginArgs,
    "NodeAffinity": NodeAffinityArgs,
    "NodeResourcesBalancedAllocation": NodeResourcesBalancedAllocationArgs,
    "NodeResourcesFit": NodeResourcesFitArgs,
    "PodTopologySpread": PodTopologySpreadArgs,
    "ResourceReservation": ResourceReservationArgs,
    "TopologySpread": PluginArgs,
    "VolumeBinding": VolumeBindingArgs,
    "WorkloadAware": PluginArgs,
}
