"""
Gangs, in every dialect that pods may use.

Four releases spell the same idea in four ways: `scheduling.k8s.io` v1alpha1 (1.35: a Workload
that holds its pod groups), v1alpha2 (1.36: PodGroups of their own), v1beta1 and v1alpha3
(1.37), and the `scheduling.x-k8s.io` PodGroup of the coscheduling plugin. The plain names are
those of 1.36; the others carry what sets them apart.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

import msgspec

from dryrack.kinds.meta import Condition, Int32, KubernetesObject, Model
from dryrack.kinds.quantity import Quantity


class TypedLocalObjectReference(Model, frozen=True, kw_only=True):
    api_group: str = ""
    kind: str = ""
    name: str = ""


class BasicSchedulingPolicy(Model, frozen=True, kw_only=True):
    """Pods one by one, as without a gang."""


class GangSchedulingPolicy(Model, frozen=True, kw_only=True):
    min_count: Int32 = msgspec.field(default_factory=int)


class PodGroupSchedulingPolicy(Model, frozen=True, kw_only=True):
    basic: BasicSchedulingPolicy | None = None
    gang: GangSchedulingPolicy | None = None


class TopologyConstraint(Model, frozen=True, kw_only=True):
    key: str = ""


class PodGroupSchedulingConstraints(Model, frozen=True, kw_only=True):
    topology: tuple[TopologyConstraint, ...] = ()


class PodGroupResourceClaim(Model, frozen=True, kw_only=True):
    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodGroupResourceClaimStatus(Model, frozen=True, kw_only=True):
    name: str = ""
    resource_claim_name: str | None = None


class PodGroupStatus(Model, frozen=True, kw_only=True):
    conditions: tuple[Condition, ...] = ()
    resource_claim_statuses: tuple[PodGroupResourceClaimStatus, ...] = ()


class PodGroupTemplate(Model, frozen=True, kw_only=True):
    name: str = ""
    scheduling_policy: PodGroupSchedulingPolicy = PodGroupSchedulingPolicy()
    scheduling_constraints: PodGroupSchedulingConstraints | None = None
    resource_claims: tuple[PodGroupResourceClaim, ...] = ()
    disruption_mode: str | None = None
    priority_class_name: str = ""
    priority: Int32 | None = None


class WorkloadSpec(Model, frozen=True, kw_only=True):
    controller_ref: TypedLocalObjectReference | None = None
    pod_group_templates: tuple[PodGroupTemplate, ...] = ()


class Workload(KubernetesObject, frozen=True, kw_only=True):
    """Templates of pod groups (1.36)."""

    API_VERSION: ClassVar[str] = "scheduling.k8s.io/v1alpha2"

    spec: WorkloadSpec = WorkloadSpec()


class WorkloadPodGroupTemplateReference(Model, frozen=True, kw_only=True):
    workload_name: str = ""
    pod_group_template_name: str = ""


class PodGroupTemplateReference(Model, frozen=True, kw_only=True):
    workload: WorkloadPodGroupTemplateReference | None = None


class PodGroupSpec(Model, frozen=True, kw_only=True):
    pod_group_template_ref: PodGroupTemplateReference | None = None
    scheduling_policy: PodGroupSchedulingPolicy = PodGroupSchedulingPolicy()
    scheduling_constraints: PodGroupSchedulingConstraints | None = None
    resource_claims: tuple[PodGroupResourceClaim, ...] = ()
    disruption_mode: str | None = None
    priority_class_name: str = ""
    priority: Int32 | None = None


class PodGroup(KubernetesObject, frozen=True, kw_only=True):
    """A gang (1.36)."""

    API_VERSION: ClassVar[str] = "scheduling.k8s.io/v1alpha2"

    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()


class EmbeddedPodGroup(Model, frozen=True, kw_only=True):
    """A pod group inside a Workload of 1.35 (`PodGroup` of v1alpha1)."""

    name: str = ""
    policy: PodGroupSchedulingPolicy = PodGroupSchedulingPolicy()


class WorkloadV1Alpha1Spec(Model, frozen=True, kw_only=True):
    controller_ref: TypedLocalObjectReference | None = None
    pod_groups: tuple[EmbeddedPodGroup, ...] = ()


class WorkloadV1Alpha1(KubernetesObject, frozen=True, kw_only=True):
    """The gangs of 1.35."""

    API_VERSION: ClassVar[str] = "scheduling.k8s.io/v1alpha1"
    KIND: ClassVar[str] = "Workload"

    spec: WorkloadV1Alpha1Spec = WorkloadV1Alpha1Spec()


class WorkloadTemplateReference(Model, frozen=True, kw_only=True):
    """Which template of which Workload (`WorkloadReference` of 1.37)."""

    workload_name: str = ""
    template_name: str = ""


class EmptyMode(Model, frozen=True, kw_only=True):
    """A choice that is made by being there."""


class DisruptionMode(Model, frozen=True, kw_only=True):
    single: EmptyMode | None = None
    all: EmptyMode | None = None


class PodGroupTemplateV1Beta1(Model, frozen=True, kw_only=True):
    name: str = ""
    scheduling_policy: PodGroupSchedulingPolicy = PodGroupSchedulingPolicy()
    scheduling_constraints: PodGroupSchedulingConstraints | None = None
    resource_claims: tuple[PodGroupResourceClaim, ...] = ()
    disruption_mode: DisruptionMode | None = None
    priority_class_name: str = ""
    priority: Int32 | None = None
    preemption_policy: str | None = None


class WorkloadV1Beta1Spec(Model, frozen=True, kw_only=True):
    controller_ref: TypedLocalObjectReference | None = None
    pod_group_templates: tuple[PodGroupTemplateV1Beta1, ...] = ()
    # Templates within templates, up to four deep; kept as they are.
    composite_pod_group_templates: tuple[Any, ...] = ()


class WorkloadV1Beta1(KubernetesObject, frozen=True, kw_only=True):
    """Templates of pod groups (1.37)."""

    API_VERSION: ClassVar[str] = "scheduling.k8s.io/v1beta1"
    KIND: ClassVar[str] = "Workload"

    spec: WorkloadV1Beta1Spec = WorkloadV1Beta1Spec()


class PodGroupV1Beta1Spec(Model, frozen=True, kw_only=True):
    parent_composite_pod_group_name: str | None = None
    workload_ref: WorkloadTemplateReference | None = None
    scheduling_policy: PodGroupSchedulingPolicy = PodGroupSchedulingPolicy()
    scheduling_constraints: PodGroupSchedulingConstraints | None = None
    resource_claims: tuple[PodGroupResourceClaim, ...] = ()
    disruption_mode: DisruptionMode | None = None
    priority_class_name: str = ""
    priority: Int32 | None = None
    preemption_policy: str | None = None


class PodGroupV1Beta1(KubernetesObject, frozen=True, kw_only=True):
    """A gang (1.37)."""

    API_VERSION: ClassVar[str] = "scheduling.k8s.io/v1beta1"
    KIND: ClassVar[str] = "PodGroup"

    spec: PodGroupV1Beta1Spec = PodGroupV1Beta1Spec()
    status: PodGroupStatus = PodGroupStatus()


class CompositeGangSchedulingPolicy(Model, frozen=True, kw_only=True):
    min_group_count: Int32 = msgspec.field(default_factory=int)


class CompositePodGroupSchedulingPolicy(Model, frozen=True, kw_only=True):
    basic: EmptyMode | None = None
    gang: CompositeGangSchedulingPolicy | None = None


class CompositePodGroupSpec(Model, frozen=True, kw_only=True):
    parent_composite_pod_group_name: str | None = None
    workload_ref: WorkloadTemplateReference | None = None
    scheduling_policy: CompositePodGroupSchedulingPolicy = CompositePodGroupSchedulingPolicy()
    scheduling_constraints: PodGroupSchedulingConstraints | None = None
    disruption_mode: DisruptionMode | None = None
    priority_class_name: str = ""
    priority: Int32 | None = None
    preemption_policy: str | None = None


class CompositePodGroupStatus(Model, frozen=True, kw_only=True):
    conditions: tuple[Condition, ...] = ()


class CompositePodGroup(KubernetesObject, frozen=True, kw_only=True):
    """A gang of gangs (1.37)."""

    API_VERSION: ClassVar[str] = "scheduling.k8s.io/v1alpha3"

    spec: CompositePodGroupSpec = CompositePodGroupSpec()
    status: CompositePodGroupStatus = CompositePodGroupStatus()


class CoschedulingPodGroupSpec(Model, frozen=True, kw_only=True):
    min_member: Int32 = 0
    min_resources: Mapping[str, Quantity] = {}
    schedule_timeout_seconds: Int32 | None = None


class CoschedulingPodGroupStatus(Model, frozen=True, kw_only=True):
    phase: str = ""
    occupied_by: str = ""
    running: Int32 = 0
    succeeded: Int32 = 0
    failed: Int32 = 0
    schedule_start_time: str | None = None


class CoschedulingPodGroup(KubernetesObject, frozen=True, kw_only=True):
    """A gang of the coscheduling plugin; pods name it in a label."""

    API_VERSION: ClassVar[str] = "scheduling.x-k8s.io/v1alpha1"
    KIND: ClassVar[str] = "PodGroup"
    POD_LABEL: ClassVar[str] = "scheduling.x-k8s.io/pod-group"

    spec: CoschedulingPodGroupSpec = CoschedulingPodGroupSpec()
    status: CoschedulingPodGroupStatus = CoschedulingPodGroupStatus()
