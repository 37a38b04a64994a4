"""Which pod goes where: what a pod asks of a node, which nodes can give it, and which is taken."""

from dryrack.placement.claim_problems import (
    RESERVATIONS_MAX,
    claim_not_found,
    claim_problem,
)
from dryrack.placement.configuration.model import LeaderElectionSettings
from dryrack.placement.configuration.profiles import profile_of
from dryrack.placement.configuration.reading import Configuration, read_configuration
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
from dryrack.placement.gangs.members import Member, MemberPlaced, MemberRefused
from dryrack.placement.gangs.search import GangPlaced, GangRefused, place_gang, place_gang_now
from dryrack.placement.index.pod_hints import helped_by
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
    place_on,
    unresolvable_nodes,
)
from dryrack.placement.plugins import IN_TREE, profile_named
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
    nobody_to_preempt,
    preempt_anywhere,
    preempt_for_pod,
    preempt_on_node,
)
from dryrack.placement.reservations import Reservation, Reservations
from dryrack.placement.trace import DecisionTrace, NodeTrace
from dryrack.placement.trial import Trial
from dryrack.placement.views.claims import ClaimView, claims_of
from dryrack.placement.views.devices import (
    DeviceState,
    DeviceView,
    ModelSummary,
    devices_of,
    passed_over,
    summary_of,
)
from dryrack.placement.views.gangs import GangStatus, GangView, gangs_of
from dryrack.placement.whatif.answers import GangOutcome, Given, WhatIf
from dryrack.placement.whatif.cases import (
    CaseDocument,
    CaseDocuments,
    Said,
    find_gang,
    gang_outcomes,
    lacking,
    outcomes_of,
    said_to,
    story_document,
    waiting_gang,
    world_of_gang,
)
from dryrack.placement.whatif.catalogue_devices import Supply, supply_devices
from dryrack.placement.whatif.explain import Explanation, NodeStory, stories
from dryrack.placement.whatif.pod_explanation import (
    PodExplanation,
    explain_claim,
    explain_pod,
    party_of,
    pods_of_workload,
    siblings_of,
)
from dryrack.placement.whatif.present import as_before, as_now_for
from dryrack.placement.whatif.reported import failed_creation, failed_preparation
from dryrack.placement.whatif.templates import (
    asks_for_devices,
    what_if_files,
    with_template_as_claim,
)
from dryrack.placement.whatif.what_if import Settings, nodes_of, what_if
from dryrack.placement.whatif.world import World, with_namespace

__all__ = [
    "IN_TREE",
    "MINIMUM_LABELS",
    "NATIVE_DIALECTS",
    "RESERVATIONS_MAX",
    "SEARCHES_MAX",
    "SELECTED_NODE",
    "Args",
    "CaseDocument",
    "CaseDocuments",
    "Check",
    "ClaimView",
    "Cluster",
    "ClusterScorer",
    "Configuration",
    "DecisionTrace",
    "Definition",
    "DeviceScorer",
    "DeviceState",
    "DeviceView",
    "Dialect",
    "DisruptionBudget",
    "DisruptionGroup",
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
    "Given",
    "GroupedCheck",
    "LeaderElectionSettings",
    "Member",
    "MemberPlaced",
    "MemberRefused",
    "Membership",
    "ModelSummary",
    "NoPreemption",
    "NodeGroups",
    "NodeRefusal",
    "NodeScorer",
    "NodeState",
    "NodeStory",
    "NodeTrace",
    "Occupant",
    "Placed",
    "Plugin",
    "PluginError",
    "PodConstraints",
    "PodExplanation",
    "Preemption",
    "Preemptor",
    "Profile",
    "Reservation",
    "Reservations",
    "Said",
    "Settings",
    "Supply",
    "Trial",
    "Unbindable",
    "Unfinished",
    "Unplaced",
    "VolumeOffers",
    "VolumeProblem",
    "WaitingClass",
    "WhatIf",
    "World",
    "as_before",
    "as_now_for",
    "asks_for_devices",
    "claim_not_found",
    "claim_problem",
    "claims_of",
    "decide",
    "definitions",
    "devices_of",
    "disruption_group",
    "explain_claim",
    "explain_pod",
    "failed_creation",
    "failed_preparation",
    "find_gang",
    "gang_of",
    "gang_outcomes",
    "gangs_of",
    "helped_by",
    "is_backfill",
    "lacking",
    "membership",
    "nobody_to_preempt",
    "nodes_of",
    "outcomes_of",
    "party_of",
    "passed_over",
    "place",
    "place_gang",
    "place_gang_now",
    "place_on",
    "pods_of_workload",
    "preempt_anywhere",
    "preempt_for_pod",
    "preempt_on_node",
    "profile_named",
    "profile_of",
    "read_configuration",
    "said_to",
    "siblings_of",
    "stories",
    "story_document",
    "summary_of",
    "supply_devices",
    "unresolvable_nodes",
    "waiting_gang",
    "what_if",
    "what_if_files",
    "with_namespace",
    "with_template_as_claim",
    "world_of_gang",
]
