"""
Differences between releases that no feature gate switches, as one value per release.

Each value is that of the release before with what changed, so a new release is one `replace` and
one entry in `ALLOCATION`, `CEL` and `SCHEDULING`. Message texts that changed are here, too.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from dryrack.kinds.releases.release import Release


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocationBehaviour:
    """The behaviour of the allocator of a release."""

    # distinctAttribute compares a device with all others, and not only with the last of a request.
    distinct_compares_all: bool
    # matchAttribute over lists forgets what a device narrowed when that device is taken back.
    match_is_restored: bool
    # "All" devices include those that have too little capacity left.
    all_includes_full: bool
    # Amounts that cannot be represented, and negative ones, end the attempt.
    capacity_errors_are_fatal: bool
    # A rounded amount is written in the format of the step, and not in BinarySI.
    rounds_in_format_of_step: bool
    # A further share of a device is known by its share ID alone, and draws no counters.
    shares_are_counted_once: bool
    # A configuration appears once, and has no `requests` if it is for all of them.
    configs_are_merged: bool
    # Slices with counters are relevant for all nodes, and not only for those that they select.
    counters_are_everywhere: bool
    # Devices can have compatibility groups, slices skipNodeOperations, and requests derived
    # attributes; in earlier releases the API server drops these fields.
    has_alpha_fields_of_1_37: bool
    # The limit of results is checked with each request, and not after all of them.
    limit_is_checked_by_request: bool
    # The error about too many results, with the fields claim, request, count, before, and limit.
    limit_text: str
    # The place of a selector that fails on a device; with the fields index and device.
    failing_selector_text: str
    # The text that is added to an error about a missing key.
    missing_key_hint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CelBehaviour:
    """The behaviour of expressions about devices in a release."""

    # Attributes have the type `dyn` in stored expressions, whether or not the gate for lists is on.
    stored_attributes_are_dyn: bool
    # A selector may have the type `any` although attributes are `dyn`.
    any_is_a_result: bool
    # A selector may have the type of a message that wraps a bool.
    wrapped_bool_is_a_result: bool
    # A message is made with the name of its type, whatever variable has the same name.
    types_are_not_variables: bool
    # The name `optional_type` stands for the type of optional dynamic values.
    optional_type_is_dyn: bool
    # A list attribute is a value even if the gate for lists is off.
    evaluates_lists: bool
    # A name in backquotes is a field, for names that are no identifiers.
    has_escaped_names: bool
    # A path that starts from an optional sees its value as it is, and not converted to Go and back.
    optionals_keep_values: bool
    # `or` and `orValue` fail if what they are called on is no optional.
    or_needs_optional: bool
    # Overloads that behave or cost differently from 1.36, by their ID in 1.36, and the ID that
    # stands for the new behaviour; empty if the release has no such overload.
    overloads: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchBehaviour:
    """The answers of the API server of a release to writes that it cannot read or track."""

    # What an apply is called: "YAML" or "patch".
    applied: str
    # A text that is no JSON or no YAML is refused before the patch is read for its type.
    checks_syntax_first: bool
    # An update whose fields cannot be tracked keeps the managedFields, and does not remove them.
    keeps_owners_on_failure: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidationBehaviour:
    """The handwritten checks of the API server; `declared_types` has the others."""

    # A problem of an owner reference has the position of the reference in its path.
    owners_have_positions: bool
    # A condition without type or status lacks a value, and a repeated one is named as a whole.
    conditions_are_required: bool
    # Expressions that are stored already are compiled again.
    checks_stored_expressions: bool
    # The capacity of a device is checked again if it does not change.
    checks_stored_capacity: bool
    # A default outside of a range is a problem of the default, and steps have limits.
    limits_ranges: bool
    # Tolerations in the results of an allocation are checked.
    checks_allocated_tolerations: bool
    # Devices map capacity to resources of nodes by `nodeAllocatableResources`.
    has_node_allocatable_resources: bool
    # A problem that two checks find is reported twice.
    repeats_problems: bool
    # An update of an immutable field of a StatefulSet is a problem of the field, not of the spec.
    names_immutable_fields_of_stateful_sets: bool
    # `metadata.generation` of a HorizontalPodAutoscaler counts the changes of its spec.
    counts_generations_of_autoscalers: bool
    # The requests of a pod follow its limits when it is created, and not when it is decoded.
    completes_pods_at_creation: bool
    # The resources of a container with resource claims can be resized.
    resizes_beside_claims: bool
    # The ends of paths that 1.36 reports wrongly, and what they are now.
    corrected_paths: Mapping[str, str]
    # The fields of a pod's status that stay if an update of the status leaves them out.
    kept_pod_statuses: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupTexts:
    """The messages of kube-scheduler about a PodGroup, which it decides about as one."""

    # Precedes the message about the group in that of a pod which would fit.
    unschedulable: str = "pod group is unschedulable"
    # Too few members are left; with the fields minimum, scheduled and remaining.
    hopeless: str = (
        "minCount ({minimum}) cannot be satisfied: {scheduled} scheduled, {remaining} remaining"
    )
    # The plugin DynamicResources has done its part.
    deallocation: str = "deallocation and deletion of ResourceClaims completed"
    # Precedes the result of preemption.
    preemption: str = "pod group preemption: "
    # With the field victims.
    found: str = "found a placement for podgroup, preempting {victims} victims"
    no_victims: str = "No preemption victims found for incoming preemptor"
    ongoing: str = "ongoing preemption on nominated nodes"
    # Members differ from the first one, or from the group; with the value of the member, and the
    # other one.
    schedulers: str = (
        "all pods in a single pod group should have the same .spec.schedulerName set, "
        'got: "{}" and "{}"'
    )
    priorities: str = (
        "all pods in a single pod group should have the same priority as the pod group's "
        "priority, got {} and {}"
    )
    policies: str = (
        "all pods in a single pod group should have the same preemption policy, got {} and {}"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulingBehaviour:
    """The behaviour of kube-scheduler in a release."""

    # The default plugins that filter nodes first, in their order.
    first_filters: tuple[str, ...]
    # An affinity term matches pods in the namespaces that its selector matches, and no others. In
    # earlier releases a selector with only negative conditions matches every namespace.
    has_exact_namespace_selectors: bool
    # VolumeBinding prefers nodes whose volumes are larger than the pod needs.
    scores_storage_capacity: bool
    # A group of pods is a more important victim than a single pod, and a large group than a small.
    ranks_victims_by_group: bool
    # The part of the message by DynamicResources if a pod has no claims, and if it has some.
    no_deallocation_texts: tuple[str, str]
    # The message about a successful preemption, with the fields node and victims; "": none.
    preemption_text: str
    # The delays after which a binding is retried that the server could not make for now.
    bind_retry_seconds: tuple[float, ...]
    # The messages about PodGroups; None if kube-scheduler decides about their pods one by one.
    group_texts: GroupTexts | None


_ALLOCATION_1_36 = AllocationBehaviour(
    distinct_compares_all=False,
    match_is_restored=False,
    all_includes_full=False,
    capacity_errors_are_fatal=False,
    rounds_in_format_of_step=False,
    shares_are_counted_once=False,
    configs_are_merged=False,
    counters_are_everywhere=True,
    has_alpha_fields_of_1_37=False,
    limit_is_checked_by_request=False,
    limit_text="claim {claim}: number of requested devices {count} exceeds the claim limit "
    "of {limit}",
    failing_selector_text="selector #{index}",
    missing_key_hint="",
)
_ALLOCATION_1_37 = replace(
    _ALLOCATION_1_36,
    distinct_compares_all=True,
    match_is_restored=True,
    all_includes_full=True,
    capacity_errors_are_fatal=True,
    rounds_in_format_of_step=True,
    shares_are_counted_once=True,
    configs_are_merged=True,
    counters_are_everywhere=False,
    has_alpha_fields_of_1_37=True,
    limit_is_checked_by_request=True,
    limit_text="claim {claim}, request {request}: adding {count} devices exceeds the claim limit "
    "of {limit}, with {before} already accounted for",
    failing_selector_text="selector #{index} on device {device}",
    missing_key_hint=". consider using CEL optional chaining (.? followed by orValue()) "
    "or guarding the check with has() for optional fields",
)

_CEL_1_36 = CelBehaviour(
    stored_attributes_are_dyn=False,
    any_is_a_result=True,
    wrapped_bool_is_a_result=False,
    types_are_not_variables=False,
    optional_type_is_dyn=False,
    evaluates_lists=False,
    has_escaped_names=False,
    optionals_keep_values=False,
    or_needs_optional=False,
    overloads=MappingProxyType({}),
)
_CEL_1_37 = replace(
    _CEL_1_36,
    stored_attributes_are_dyn=True,
    any_is_a_result=False,
    wrapped_bool_is_a_result=True,
    types_are_not_variables=True,
    optional_type_is_dyn=True,
    evaluates_lists=True,
    has_escaped_names=True,
    optionals_keep_values=True,
    or_needs_optional=True,
    overloads=MappingProxyType(
        {
            # A list of any length; it costs the size of what it goes through.
            "dra_includes_dyn_dyn": "list_includes_dyn",
            # The argument costs, and not the target.
            "starts_with_string": "starts_with_string_by_argument",
            "ends_with_string": "ends_with_string_by_argument",
            # It costs as much as `text.matches(pattern)`.
            "matches": "matches_by_size",
            # Sizes below zero and above a million are errors.
            "lists_range": "lists_range_limited",
            "int64_to_duration": "",
            # A depth below zero costs as much as one.
            "list_flatten_int": "list_flatten_depth",
            # An offset below zero is an error, and one behind the end is the end, for "" too.
            "string_last_index_of_string_int": "string_last_index_within",
            # A large quantity does not change.
            "quantity_add": "quantity_add_copy",
            "quantity_add_int": "quantity_add_int_copy",
            "quantity_sub": "quantity_sub_copy",
            "quantity_sub_int": "quantity_sub_int_copy",
        }
    ),
)

_VALIDATION_1_36 = ValidationBehaviour(
    owners_have_positions=False,
    conditions_are_required=False,
    checks_stored_expressions=True,
    checks_stored_capacity=True,
    limits_ranges=False,
    checks_allocated_tolerations=False,
    has_node_allocatable_resources=False,
    repeats_problems=True,
    names_immutable_fields_of_stateful_sets=False,
    counts_generations_of_autoscalers=False,
    completes_pods_at_creation=False,
    resizes_beside_claims=False,
    corrected_paths=MappingProxyType({}),
    kept_pod_statuses=(),
)
_VALIDATION_1_37 = replace(
    _VALIDATION_1_36,
    owners_have_positions=True,
    conditions_are_required=True,
    checks_stored_expressions=False,
    checks_stored_capacity=False,
    limits_ranges=True,
    checks_allocated_tolerations=True,
    has_node_allocatable_resources=True,
    repeats_problems=False,
    names_immutable_fields_of_stateful_sets=True,
    counts_generations_of_autoscalers=True,
    completes_pods_at_creation=True,
    resizes_beside_claims=True,
    corrected_paths=MappingProxyType(
        {".securityContext.shareProcessNamespace": ".shareProcessNamespace"}
    ),
    kept_pod_statuses=(
        "resourceClaimStatuses",
        "extendedResourceClaimStatus",
        "nodeAllocatableResourceClaimStatuses",
    ),
)

_SCHEDULING_1_36 = SchedulingBehaviour(
    first_filters=("NodeUnschedulable", "NodeName"),
    has_exact_namespace_selectors=False,
    scores_storage_capacity=False,
    ranks_victims_by_group=False,
    no_deallocation_texts=("no new claims to deallocate", "still not schedulable"),
    preemption_text="",
    bind_retry_seconds=(),
    group_texts=None,
)
_SCHEDULING_1_37 = replace(
    _SCHEDULING_1_36,
    first_filters=("NodeName", "NodeUnschedulable"),
    has_exact_namespace_selectors=True,
    scores_storage_capacity=True,
    ranks_victims_by_group=True,
    no_deallocation_texts=("", ""),
    preemption_text="preemption: found a potential placement for pod on node {node}, "
    "preempting {victims} victims",
    bind_retry_seconds=(0.01, 0.05, 0.25),
    group_texts=GroupTexts(),
)

ALLOCATION: Mapping[Release, AllocationBehaviour] = MappingProxyType(
    {Release.V1_36: _ALLOCATION_1_36, Release.V1_37: _ALLOCATION_1_37}
)
CEL: Mapping[Release, CelBehaviour] = MappingProxyType(
    {Release.V1_36: _CEL_1_36, Release.V1_37: _CEL_1_37}
)
PATCHES: Mapping[Release, PatchBehaviour] = MappingProxyType(
    {
        Release.V1_36: PatchBehaviour(
            applied="YAML", checks_syntax_first=False, keeps_owners_on_failure=False
        ),
        Release.V1_37: PatchBehaviour(
            applied="patch", checks_syntax_first=True, keeps_owners_on_failure=True
        ),
    }
)
VALIDATION: Mapping[Release, ValidationBehaviour] = MappingProxyType(
    {Release.V1_36: _VALIDATION_1_36, Release.V1_37: _VALIDATION_1_37}
)
SCHEDULING: Mapping[Release, SchedulingBehaviour] = MappingProxyType(
    {Release.V1_36: _SCHEDULING_1_36, Release.V1_37: _SCHEDULING_1_37}
)
# The fields of ResourceSlices that a field selector may name besides metadata.name.
SLICE_FIELD_SELECTORS: Mapping[Release, tuple[str, ...]] = MappingProxyType(
    {
        Release.V1_36: ("spec.nodeName", "spec.driver"),
        Release.V1_37: ("spec.nodeName", "spec.driver", "spec.pool.name"),
    }
)
