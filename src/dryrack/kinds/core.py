"""
The core kinds that devices touch: nodes, pods, namespaces, config maps.

Only what scheduling and device allocation read is modelled.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

import msgspec

from dryrack.kinds.meta import Int32, Int64, KubernetesObject, LabelSelector, Model
from dryrack.kinds.quantity import Quantity


class NodeSelectorRequirement(Model, frozen=True, kw_only=True):
    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class NodeSelectorTerm(Model, frozen=True, kw_only=True):
    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
    match_fields: tuple[NodeSelectorRequirement, ...] = ()


class NodeSelector(Model, frozen=True, kw_only=True):
    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class PreferredSchedulingTerm(Model, frozen=True, kw_only=True):
    weight: Int32 = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


class NodeAffinity(Model, frozen=True, kw_only=True):
    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: tuple[PreferredSchedulingTerm, ...] = ()


class PodAffinityTerm(Model, frozen=True, kw_only=True):
    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    topology_key: str = ""
    namespace_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()


class WeightedPodAffinityTerm(Model, frozen=True, kw_only=True):
    weight: Int32 = 0
    pod_affinity_term: PodAffinityTerm = PodAffinityTerm()


class PodAffinity(Model, frozen=True, kw_only=True):
    required_during_scheduling_ignored_during_execution: tuple[PodAffinityTerm, ...] = ()
    preferred_during_scheduling_ignored_during_execution: tuple[WeightedPodAffinityTerm, ...] = ()


class PodAntiAffinity(PodAffinity, frozen=True, kw_only=True):
    pass


class Affinity(Model, frozen=True, kw_only=True):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAntiAffinity | None = None


class Toleration(Model, frozen=True, kw_only=True):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: Int64 | None = None


class Taint(Model, frozen=True, kw_only=True):
    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: str | None = None


class NodeSpec(Model, frozen=True, kw_only=True):
    UNMODELLED: ClassVar[frozenset[str]] = frozenset(["podCIDRs", "configSource", "externalID"])

    pod_cidr: str = msgspec.field(default="", name="podCIDR")
    provider_id: str = msgspec.field(default="", name="providerID")
    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class NodeCondition(Model, frozen=True, kw_only=True):
    type: str = ""
    status: str = ""
    last_heartbeat_time: str | None = None
    last_transition_time: str | None = None
    reason: str = ""
    message: str = ""


class NodeAddress(Model, frozen=True, kw_only=True):
    type: str = ""
    address: str = ""


class ContainerImage(Model, frozen=True, kw_only=True):
    """An image that a node has."""

    names: tuple[str, ...] = ()
    size_bytes: Int64 = 0


class NodeStatus(Model, frozen=True, kw_only=True):
    UNMODELLED: ClassVar[frozenset[str]] = frozenset(
        [
            "phase",
            "daemonEndpoints",
            "nodeInfo",
            "volumesInUse",
            "volumesAttached",
            "config",
            "runtimeHandlers",
            "features",
        ]
    )

    capacity: Mapping[str, Quantity] = {}
    allocatable: Mapping[str, Quantity] = {}
    conditions: tuple[NodeCondition, ...] = ()
    addresses: tuple[NodeAddress, ...] = ()
    images: tuple[ContainerImage, ...] = ()
    declared_features: tuple[str, ...] = ()


class Node(KubernetesObject, frozen=True, kw_only=True):
    API_VERSION: ClassVar[str] = "v1"

    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class ContainerResourceClaim(Model, frozen=True, kw_only=True):
    """A claim of the pod that a container uses (`ResourceClaim` of core/v1)."""

    name: str = ""
    request: str = ""


class ResourceRequirements(Model, frozen=True, kw_only=True):
    limits: Mapping[str, Quantity] = {}
    requests: Mapping[str, Quantity] = {}
    claims: tuple[ContainerResourceClaim, ...] = ()


class EnvVar(Model, frozen=True, kw_only=True):
    name: str = ""
    value: str = ""
    value_from: Any = None


class ContainerPort(Model, frozen=True, kw_only=True):
    name: str = ""
    host_port: Int32 = 0
    container_port: Int32 = 0
    protocol: str = ""
    host_ip: str = msgspec.field(default="", name="hostIP")


class Container(Model, frozen=True, kw_only=True):
    UNMODELLED: ClassVar[frozenset[str]] = frozenset(
        [
            "workingDir",
            "envFrom",
            "resizePolicy",
            "restartPolicyRules",
            "volumeMounts",
            "volumeDevices",
            "livenessProbe",
            "readinessProbe",
            "startupProbe",
            "lifecycle",
            "terminationMessagePath",
            "terminationMessagePolicy",
            "imagePullPolicy",
            "securityContext",
            "stdin",
            "stdinOnce",
            "tty",
        ]
    )

    name: str = ""
    image: str = ""
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    ports: tuple[ContainerPort, ...] = ()
    env: tuple[EnvVar, ...] = ()
    resources: ResourceRequirements = ResourceRequirements()
    restart_policy: str | None = None


class PodResourceClaim(Model, frozen=True, kw_only=True):
    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodResourceClaimStatus(Model, frozen=True, kw_only=True):
    name: str = ""
    resource_claim_name: str | None = None


class ContainerExtendedResourceRequest(Model, frozen=True, kw_only=True):
    container_name: str = ""
    resource_name: str = ""
    request_name: str = ""


class PodExtendedResourceClaimStatus(Model, frozen=True, kw_only=True):
    request_mappings: tuple[ContainerExtendedResourceRequest, ...] = ()
    resource_claim_name: str = ""


class PodSchedulingGroup(Model, frozen=True, kw_only=True):
    """The gang of a pod, from 1.36 on."""

    pod_group_name: str | None = None


class WorkloadReference(Model, frozen=True, kw_only=True):
    """The gang of a pod in 1.35."""

    name: str = ""
    pod_group: str = ""
    pod_group_replica_key: str = ""


class PodSchedulingGate(Model, frozen=True, kw_only=True):
    name: str = ""


class TopologySpreadConstraint(Model, frozen=True, kw_only=True):
    max_skew: Int32 = 0
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: LabelSelector | None = None
    min_domains: Int32 | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: tuple[str, ...] = ()


class PersistentVolumeClaimVolumeSource(Model, frozen=True, kw_only=True):
    claim_name: str = ""
    read_only: bool = False


class EphemeralVolumeSource(Model, frozen=True, kw_only=True):
    """A claim that comes and goes with its pod; what it asks for is not modelled."""

    UNMODELLED: ClassVar[frozenset[str]] = frozenset({"volumeClaimTemplate"})


class ImageVolumeSource(Model, frozen=True, kw_only=True):
    reference: str = ""
    pull_policy: str = ""


class Volume(Model, frozen=True, kw_only=True):
    UNMODELLED: ClassVar[frozenset[str]] = frozenset(
        [
            "hostPath",
            "emptyDir",
            "gcePersistentDisk",
            "awsElasticBlockStore",
            "gitRepo",
            "secret",
            "nfs",
            "iscsi",
            "glusterfs",
            "rbd",
            "flexVolume",
            "cinder",
            "cephfs",
            "flocker",
            "downwardAPI",
            "fc",
            "azureFile",
            "configMap",
            "vsphereVolume",
            "quobyte",
            "azureDisk",
            "photonPersistentDisk",
            "projected",
            "portworxVolume",
            "scaleIO",
            "storageos",
            "csi",
        ]
    )

    name: str = ""
    persistent_volume_claim: PersistentVolumeClaimVolumeSource | None = None
    ephemeral: EphemeralVolumeSource | None = None
    image: ImageVolumeSource | None = None


class PodSpec(Model, frozen=True, kw_only=True):
    UNMODELLED: ClassVar[frozenset[str]] = frozenset(
        [
            "ephemeralContainers",
            "activeDeadlineSeconds",
            "dnsPolicy",
            "serviceAccount",
            "automountServiceAccountToken",
            "hostPID",
            "hostIPC",
            "shareProcessNamespace",
            "securityContext",
            "imagePullSecrets",
            "hostname",
            "subdomain",
            "hostAliases",
            "dnsConfig",
            "readinessGates",
            "runtimeClassName",
            "enableServiceLinks",
            "setHostnameAsFQDN",
            "os",
            "hostUsers",
            "hostnameOverride",
        ]
    )

    volumes: tuple[Volume, ...] = ()
    init_containers: tuple[Container, ...] = ()
    containers: tuple[Container, ...] = ()
    restart_policy: str = ""
    termination_grace_period_seconds: Int64 | None = None
    node_selector: Mapping[str, str] = {}
    service_account_name: str = ""
    node_name: str = ""
    host_network: bool = False
    affinity: Affinity | None = None
    scheduler_name: str = ""
    tolerations: tuple[Toleration, ...] = ()
    priority_class_name: str = ""
    priority: Int32 | None = None
    preemption_policy: str | None = None
    overhead: Mapping[str, Quantity] = {}
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    scheduling_gates: tuple[PodSchedulingGate, ...] = ()
    resource_claims: tuple[PodResourceClaim, ...] = ()
    resources: ResourceRequirements | None = None
    scheduling_group: PodSchedulingGroup | None = None
    workload_ref: WorkloadReference | None = None


class PodCondition(Model, frozen=True, kw_only=True):
    type: str = ""
    observed_generation: Int64 = 0
    status: str = ""
    last_probe_time: str | None = None
    last_transition_time: str | None = None
    reason: str = ""
    message: str = ""


class PodStatus(Model, frozen=True, kw_only=True):
    UNMODELLED: ClassVar[frozenset[str]] = frozenset(
        [
            "observedGeneration",
            "hostIP",
            "hostIPs",
            "podIP",
            "podIPs",
            "initContainerStatuses",
            "containerStatuses",
            "qosClass",
            "ephemeralContainerStatuses",
            "resize",
            "allocatedResources",
            "resources",
            "nodeAllocatableResourceClaimStatuses",
        ]
    )

    phase: str = ""
    conditions: tuple[PodCondition, ...] = ()
    message: str = ""
    reason: str = ""
    nominated_node_name: str = ""
    start_time: str | None = None
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] = ()
    extended_resource_claim_status: PodExtendedResourceClaimStatus | None = None


class Pod(KubernetesObject, frozen=True, kw_only=True):
    API_VERSION: ClassVar[str] = "v1"

    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class VolumeNodeAffinity(Model, frozen=True, kw_only=True):
    required: NodeSelector | None = None


class VolumeClaimReference(Model, frozen=True, kw_only=True):
    """The claim that a volume is bound to (`ObjectReference` of core/v1)."""

    namespace: str = ""
    name: str = ""
    uid: str = ""


class PersistentVolumeSpec(Model, frozen=True, kw_only=True):
    """The spec of a volume, without the storage backend."""

    access_modes: tuple[str, ...] = ()
    capacity: Mapping[str, Quantity] = {}
    storage_class_name: str | None = None
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None
    claim_ref: VolumeClaimReference | None = None
    node_affinity: VolumeNodeAffinity | None = None


class PersistentVolumeStatus(Model, frozen=True, kw_only=True):
    phase: str = ""


class PersistentVolume(KubernetesObject, frozen=True, kw_only=True):
    API_VERSION: ClassVar[str] = "v1"

    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: PersistentVolumeStatus = PersistentVolumeStatus()


class VolumeResourceRequirements(Model, frozen=True, kw_only=True):
    limits: Mapping[str, Quantity] = {}
    requests: Mapping[str, Quantity] = {}


class PersistentVolumeClaimSpec(Model, frozen=True, kw_only=True):
    """Which volume a claim is bound to, and which it may be if it is not."""

    volume_name: str = ""
    access_modes: tuple[str, ...] = ()
    resources: VolumeResourceRequirements = VolumeResourceRequirements()
    selector: LabelSelector | None = None
    storage_class_name: str | None = None
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None


class PersistentVolumeClaimStatus(Model, frozen=True, kw_only=True):
    phase: str = ""


class PersistentVolumeClaim(KubernetesObject, frozen=True, kw_only=True):
    API_VERSION: ClassVar[str] = "v1"

    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: PersistentVolumeClaimStatus = PersistentVolumeClaimStatus()


class StorageClass(KubernetesObject, frozen=True, kw_only=True):
    """When claims of a class are bound; how their volumes are made is not modelled."""

    API_VERSION: ClassVar[str] = "storage.k8s.io/v1"

    provisioner: str = ""
    volume_binding_mode: str | None = None


class PodOwnerSpec(Model, frozen=True, kw_only=True):
    selector: LabelSelector | None = None


class PodOwner(KubernetesObject, frozen=True, kw_only=True):
    """A Service or a workload, as far as it says which pods are its own."""

    spec: PodOwnerSpec = PodOwnerSpec()


class EventObjectReference(Model, frozen=True, kw_only=True):
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""


class Event(KubernetesObject, frozen=True, kw_only=True):
    """An event, as far as it says what happened to which object."""

    involved_object: EventObjectReference = EventObjectReference()
    reason: str = ""
    message: str = ""
    type: str = ""
    first_timestamp: str | None = None
    last_timestamp: str | None = None
    event_time: str | None = None

    @property
    def time(self) -> str:
        """The last time that it happened, as text that sorts."""
        created = self.metadata.creation_timestamp or ""
        return self.last_timestamp or self.event_time or self.first_timestamp or created


class NamespaceSpec(Model, frozen=True, kw_only=True):
    finalizers: tuple[str, ...] = ()


class NamespaceStatus(Model, frozen=True, kw_only=True):
    UNMODELLED: ClassVar[frozenset[str]] = frozenset({"conditions"})

    phase: str = ""


class Namespace(KubernetesObject, frozen=True, kw_only=True):
    API_VERSION: ClassVar[str] = "v1"

    spec: NamespaceSpec = NamespaceSpec()
    status: NamespaceStatus = NamespaceStatus()


class ConfigMap(KubernetesObject, frozen=True, kw_only=True):
    API_VERSION: ClassVar[str] = "v1"

    data: Mapping[str, str] = {}
    binary_data: Mapping[str, str] = {}
    immutable: bool | None = None
