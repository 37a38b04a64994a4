"""Which pod goes where: what a pod asks of a node, which nodes can give it, and which is taken."""

from dryrack.placement.claim_problems import (
    RESERVATIONS_MAX,
    claim_not_found,
    claim_problem,
)
from dryrack.placement.configuration.model import LeaderElectionSettings
from dryrack.placement.configuration.profiles import profile_of
from dryrack.placement.configuration.reading import Configuration, read_configuration
from dryrack.placement.demand import ONE, PODS
from dryrack.placement.extended_resources import ExtendedResources
from dryrack.placement.fleet import Fleet
from dryrack.placement.framework import (
    Args,
    Check,
    ClusterScorer,
    DeviceScorer,
    GroupedCheck,
    NodeGroups,
    NodeScorer,
    Plugin,
    PluginError,
    Profile,
    Scorer,
    TieRule,
    Ties,
)
from dryrack.placement.gangs.configurations import (
    Configurations,
    Counts,
    Effort,
    MemberKind,
    is_part,
    kinds_of,
)
from dryrack.placement.gangs.dialects import (
    MINIMUM_LABELS,
    Definition,
    Dialect,
    Flaw,
    Gang,
    GangKey,
    Membership,
    definitions,
    gang_of,
    membership,
)
from dryrack.placement.gangs.exact import place_exactly
from dryrack.placement.gangs.group_reports import (
    GroupReport,
    count_members,
    find_group_problem,
    group_texts,
    report_group,
)
from dryrack.placement.gangs.members import Member, MemberPlaced, MemberRefused, PlacementScope
from dryrack.placement.gangs.search import GangPlaced, GangRefused, place_gang, place_gang_now
from dryrack.placement.index.affinity_terms import queueing_hint
from dryrack.placement.index.volume_matching import Unbindable, VolumeOffers
from dryrack.placement.index.volumes import (
    SELECTED_NODE,
    VolumeProblem,
    WaitingClass,
)
from dryrack.placement.node_state import NodeRefusal, NodeState
from dryrack.placement.occupant import Occupant
from dryrack.placement.place import (
    SEARCHES_MAX,
    Cluster,
    Placed,
    Unfinished,
    Unplaced,
    decide,
    place,
    place_constraints,
    place_on,
    unresolvable_nodes,
)
from dryrack.placement.plugins import DEFAULT_PROFILE, IN_TREE, profile_named
from dryrack.placement.plugins.workloads import is_backfill
from dryrack.placement.pod_constraints import PodConstraints
from dryrack.placement.preemption import (
    NATIVE_DIALECTS,
    DisruptionBudget,
    DisruptionGroup,
    NoPreemption,
    Preemption,
    Preemptor,
    disruption_group,
    no_victims,
    preempt_anywhere,
    preempt_for_pod,
    preempt_on_node,
)
from dryrack.placement.reservations import Reservation, Reservations
from dryrack.placement.simulation import Simulation
from dryrack.placement.trace import DecisionTrace, NodeTrace
from dryrack.placement.views.claims import ClaimView, claims_of
from dryrack.placement.views.devices import (
    DeviceState,
    DeviceView,
    ModelSummary,
    devices_of,
    free_at_once,
    skipped_devices,
    summary_of,
)
from dryrack.placement.views.gangs import GangStatus, GangView, gangs_of
from dryrack.placement.whatif.answers import ClaimAllocation, GangOutcome, WhatIf
from dryrack.placement.whatif.catalogue_devices import SuppliedDevices, supply_devices
from dryrack.placement.whatif.explain import Explanation, NodeExplanation, explain_nodes
from dryrack.placement.whatif.explain_documents import (
    ExplainDocument,
    ExplainDocuments,
    SchedulerMessage,
    claim_document,
    document_of_gangs,
    explain_gang_claims,
    find_gang,
    find_gang_outcomes,
    pending_gang_of,
    scheduler_message_of,
    world_of_gang,
)
from dryrack.placement.whatif.hypothetical import as_if_unbound, with_only_pending
from dryrack.placement.whatif.pod_explanation import (
    PodExplanation,
    describe_siblings,
    explain_claim,
    explain_pod,
    party_of,
    pods_of_workload,
)
from dryrack.placement.whatif.reported import creation_failure, preparation_failure
from dryrack.placement.whatif.templates import (
    asks_for_devices,
    what_if_files,
    with_template_as_claim,
)
from dryrack.placement.whatif.what_if import Settings, nodes_of, what_if
from dryrack.placement.whatif.world import Party, World, with_namespace

__all__ = [
    "DEFAULT_PROFILE",
    "IN_TREE",
    "MINIMUM_LABELS",
    "NATIVE_DIALECTS",
    "ONE",
    "PODS",
    "RESERVATIONS_MAX",
    "SEARCHES_MAX",
    "SELECTED_NODE",
    "Args",
    "Check",
    "ClaimAllocation",
    "ClaimView",
    "Cluster",
    "ClusterScorer",
    "Configuration",
    "Configurations",
    "Counts",
    "DecisionTrace",
    "Definition",
    "DeviceScorer",
    "DeviceState",
    "DeviceView",
    "Dialect",
    "DisruptionBudget",
    "DisruptionGroup",
    "Effort",
    "ExplainDocument",
    "ExplainDocuments",
    "Explanation",
    "ExtendedResources",
    "Flaw",
    "Fleet",
    "Gang",
    "GangKey",
    "GangOutcome",
    "GangPlaced",
    "GangRefused",
    "GangStatus",
    "GangView",
    "GroupReport",
    "GroupedCheck",
    "LeaderElectionSettings",
    "Member",
    "MemberKind",
    "MemberPlaced",
    "MemberRefused",
    "Membership",
    "ModelSummary",
    "NoPreemption",
    "NodeExplanation",
    "NodeGroups",
    "NodeRefusal",
    "NodeScorer",
    "NodeState",
    "NodeTrace",
    "Occupant",
    "Party",
    "Placed",
    "PlacementScope",
    "Plugin",
    "PluginError",
    "PodConstraints",
    "PodExplanation",
    "Preemption",
    "Preemptor",
    "Profile",
    "Reservation",
    "Reservations",
    "SchedulerMessage",
    "Scorer",
    "Settings",
    "Simulation",
    "SuppliedDevices",
    "TieRule",
    "Ties",
    "Unbindable",
    "Unfinished",
    "Unplaced",
    "VolumeOffers",
    "VolumeProblem",
    "WaitingClass",
    "WhatIf",
    "World",
    "as_if_unbound",
    "asks_for_devices",
    "claim_document",
    "claim_not_found",
    "claim_problem",
    "claims_of",
    "count_members",
    "creation_failure",
    "decide",
    "definitions",
    "describe_siblings",
    "devices_of",
    "disruption_group",
    "document_of_gangs",
    "explain_claim",
    "explain_gang_claims",
    "explain_nodes",
    "explain_pod",
    "find_gang",
    "find_gang_outcomes",
    "find_group_problem",
    "free_at_once",
    "gang_of",
    "gangs_of",
    "group_texts",
    "is_backfill",
    "is_part",
    "kinds_of",
    "membership",
    "no_victims",
    "nodes_of",
    "party_of",
    "pending_gang_of",
    "place",
    "place_constraints",
    "place_exactly",
    "place_gang",
    "place_gang_now",
    "place_on",
    "pods_of_workload",
    "preempt_anywhere",
    "preempt_for_pod",
    "preempt_on_node",
    "preparation_failure",
    "profile_named",
    "profile_of",
    "queueing_hint",
    "read_configuration",
    "report_group",
    "scheduler_message_of",
    "skipped_devices",
    "summary_of",
    "supply_devices",
    "unresolvable_nodes",
    "what_if",
    "what_if_files",
    "with_namespace",
    "with_only_pending",
    "with_template_as_claim",
    "world_of_gang",
]
