"""
The built-in kinds: one row for each kind, with its names, scope, versions, parts and flags.

Everything that depends on a kind by name is derived from these rows: discovery, endpoints of
clients, and which kinds a file may contain. Defaults, validation and columns are code and live
elsewhere. The rows of a group are in the order of discovery. A row holds for the releases from
`since` to `until`; a kind that changes with a release has a row for each form.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from enum import Enum
from functools import cache

from dryrack.kinds.releases import NEWEST, OLDEST, Release

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
STATUS_VERBS = ("get", "patch", "update")


class Depth(Enum):
    """
    The extent to which the API server and the controllers implement a kind.

    Kinds with `STORED` exist for programs that list and watch them, such as kube-scheduler.
    """

    FULL = "full"
    SIMULATED = "simulated"
    STORED = "stored"


@dataclass(frozen=True, slots=True)
class Part:
    """A subresource; kind, group and version are set if they differ from the object's."""

    name: str
    verbs: tuple[str, ...] = STATUS_VERBS
    kind: str = ""
    group: str = ""
    version: str = ""
    has_table: bool = True
    """Whether kubectl can print the subresource as a table."""
    since: Release = OLDEST


@dataclass(frozen=True, slots=True)
class Kind:
    """A built-in kind in one version; `group` is "" for the core."""

    kind: str
    _: KW_ONLY
    group: str = ""
    version: str = "v1"
    older_versions: tuple[str, ...] = ()
    plural: str = ""
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS
    parts: tuple[Part, ...] = ()
    depth: Depth = Depth.FULL
    storage_version: str = ""
    """The version in which objects are stored; `builtin_kinds` sets that of the row if empty."""
    stored_in: str = ""
    """The `plural.group` that stores the objects, if it is another kind's."""
    hashed_as: str = ""
    """The apiVersion in which a real server stores the kind, if it is not the served one."""
    hashed_until: Release = NEWEST
    """The last release in which `hashed_as` holds."""
    deletion_shows_object: bool = False
    """Whether a deletion is answered with the object instead of a `Status`."""
    kept_by_status: tuple[str, ...] = ("spec",)
    """The fields that a write of the status does not change."""
    pod_template: str = ""
    """The path of the template of the pods that the object creates."""
    lacks_controller: bool = False
    """Whether Kubernetes or an add-on acts on the kind, and dryrack does not."""
    gate: str = ""
    """The feature gate without which the server does not serve the kind in any version."""
    since: Release = OLDEST
    until: Release = NEWEST

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def storage(self) -> str:
        """The name among all groups: "pods", "resourceclaims.resource.k8s.io"."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def has_status(self) -> bool:
        return any(part.name == "status" for part in self.parts)


_CREATE = ("create",)
_CONNECT = ("create", "get")
_PROXY = ("create", "delete", "get", "patch", "update")
_ALL = ("all",)
_STATUS = (Part("status"),)
_STATUS_WITHOUT_TABLE = (Part("status", has_table=False),)
_SCALE_AND_STATUS = (Part("scale", kind="Scale", group="autoscaling", version="v1"), *_STATUS)
_TEMPLATE = "spec.template"
_METADATA_AND_SPEC = ("metadata", "spec")
_SIMULATED = Depth.SIMULATED
_STORED = Depth.STORED


def _group(group: str, *kinds: Kind) -> tuple[Kind, ...]:
    return tuple(
        replace(kind, group=group, plural=kind.plural or _plural(kind.kind.lower()))
        for kind in kinds
    )


def _plural(word: str) -> str:
    if word.endswith("y"):
        return f"{word[:-1]}ies"
    return f"{word}es" if word.endswith("s") else f"{word}s"


def _cluster_wide(*kinds: Kind) -> tuple[Kind, ...]:
    return tuple(replace(kind, namespaced=False) for kind in kinds)


def _api_extensions(*kinds: Kind) -> tuple[Kind, ...]:
    return tuple(replace(kind, categories=("api-extensions",)) for kind in _cluster_wide(*kinds))


KINDS: tuple[Kind, ...] = (
    *_group(
        "",
        Kind("Binding", verbs=_CREATE),
        Kind("ConfigMap", short_names=("cm",)),
        Kind("Event", short_names=("ev",)),
        Kind(
            "Namespace",
            namespaced=False,
            short_names=("ns",),
            verbs=tuple(verb for verb in ALL_VERBS if verb != "deletecollection"),
            parts=(Part("finalize", ("update",)), *_STATUS),
            deletion_shows_object=True,
        ),
        Kind(
            "Node",
            namespaced=False,
            short_names=("no",),
            parts=(Part("proxy", _PROXY, "NodeProxyOptions"), *_STATUS),
        ),
        Kind(
            "Pod",
            short_names=("po",),
            categories=_ALL,
            parts=(
                Part("attach", _CONNECT, "PodAttachOptions"),
                Part("binding", _CREATE, "Binding"),
                Part("ephemeralcontainers", has_table=False),
                Part("eviction", _CREATE, "Eviction", "policy", "v1"),
                Part("exec", _CONNECT, "PodExecOptions"),
                Part("log", ("get",)),
                Part("portforward", _CONNECT, "PodPortForwardOptions"),
                Part("proxy", _PROXY, "PodProxyOptions"),
                Part("resize", has_table=False),
                *_STATUS,
            ),
            deletion_shows_object=True,
            kept_by_status=("spec", "metadata.deletionTimestamp", "metadata.ownerReferences"),
        ),
        Kind("Secret"),
        Kind(
            "ServiceAccount",
            short_names=("sa",),
            parts=(Part("token", _CREATE, "TokenRequest", "authentication.k8s.io", "v1"),),
            deletion_shows_object=True,
        ),
        # All components are one process, so clients cannot create them.
        Kind(
            "ComponentStatus",
            namespaced=False,
            short_names=("cs",),
            verbs=("get", "list"),
            depth=_STORED,
        ),
        Kind("Endpoints", plural="endpoints", short_names=("ep",), depth=_SIMULATED),
        Kind("LimitRange", short_names=("limits",)),
        Kind(
            "PersistentVolumeClaim",
            short_names=("pvc",),
            parts=_STATUS,
            depth=_SIMULATED,
            deletion_shows_object=True,
        ),
        Kind(
            "PersistentVolume",
            namespaced=False,
            short_names=("pv",),
            parts=_STATUS,
            depth=_SIMULATED,
            deletion_shows_object=True,
        ),
        Kind("PodTemplate", depth=_STORED, deletion_shows_object=True, pod_template="template"),
        Kind(
            "ReplicationController",
            short_names=("rc",),
            categories=_ALL,
            parts=_SCALE_AND_STATUS,
            pod_template=_TEMPLATE,
        ),
        Kind("ResourceQuota", short_names=("quota",), parts=_STATUS, deletion_shows_object=True),
        Kind(
            "Service",
            short_names=("svc",),
            categories=_ALL,
            parts=(Part("proxy", _PROXY, "ServiceProxyOptions"), *_STATUS),
            depth=_SIMULATED,
            deletion_shows_object=True,
        ),
    ),
    *_group(
        "apps",
        Kind(
            "DaemonSet",
            short_names=("ds",),
            categories=_ALL,
            parts=_STATUS,
            pod_template=_TEMPLATE,
        ),
        Kind(
            "Deployment",
            short_names=("deploy",),
            categories=_ALL,
            parts=_SCALE_AND_STATUS,
            kept_by_status=("spec", "metadata.labels"),
            pod_template=_TEMPLATE,
        ),
        Kind(
            "ReplicaSet",
            short_names=("rs",),
            categories=_ALL,
            parts=_SCALE_AND_STATUS,
            pod_template=_TEMPLATE,
        ),
        Kind(
            "StatefulSet",
            short_names=("sts",),
            categories=_ALL,
            parts=_SCALE_AND_STATUS,
            pod_template=_TEMPLATE,
        ),
        Kind("ControllerRevision", depth=_SIMULATED),
    ),
    *_group(
        "batch",
        Kind("Job", categories=_ALL, parts=_STATUS, pod_template=_TEMPLATE),
        Kind(
            "CronJob",
            short_names=("cj",),
            categories=_ALL,
            parts=_STATUS,
            pod_template="spec.jobTemplate.spec.template",
        ),
    ),
    *_group(
        "authentication.k8s.io",
        *_cluster_wide(
            Kind("SelfSubjectReview", verbs=_CREATE),
            Kind("TokenReview", verbs=_CREATE),
        ),
    ),
    *_group(
        "authorization.k8s.io",
        Kind("LocalSubjectAccessReview", verbs=_CREATE),
        *_cluster_wide(
            Kind("SelfSubjectAccessReview", verbs=_CREATE),
            Kind("SelfSubjectRulesReview", verbs=_CREATE),
            Kind("SubjectAccessReview", verbs=_CREATE),
        ),
    ),
    *_group(
        "resource.k8s.io",
        Kind(
            "DeviceClass",
            older_versions=("v1beta2", "v1beta1"),
            namespaced=False,
            deletion_shows_object=True,
        ),
        Kind(
            "ResourceClaim",
            older_versions=("v1beta2", "v1beta1"),
            parts=_STATUS_WITHOUT_TABLE,
            deletion_shows_object=True,
            kept_by_status=_METADATA_AND_SPEC,
        ),
        Kind(
            "ResourceClaimTemplate",
            older_versions=("v1beta2", "v1beta1"),
            deletion_shows_object=True,
        ),
        Kind(
            "ResourceSlice",
            older_versions=("v1beta2", "v1beta1"),
            namespaced=False,
            deletion_shows_object=True,
        ),
        Kind(
            "DeviceTaintRule",
            version="v1beta2",
            namespaced=False,
            parts=_STATUS_WITHOUT_TABLE,
            hashed_as="resource.k8s.io/v1alpha3",
            deletion_shows_object=True,
            kept_by_status=_METADATA_AND_SPEC,
            until=Release.V1_36,
        ),
        *(
            Kind(
                "DeviceTaintRule",
                version=version,
                older_versions=older,
                storage_version="v1beta2",
                namespaced=False,
                parts=_STATUS_WITHOUT_TABLE,
                deletion_shows_object=version != "v1",
                kept_by_status=_METADATA_AND_SPEC,
                since=Release.V1_37,
            )
            for version, older in (("v1", ()), ("v1beta2", ("v1alpha3",)))
        ),
    ),
    *_group(
        "events.k8s.io",
        Kind("Event", short_names=("ev",), stored_in="events", hashed_as="v1"),
    ),
    *_group("policy", Kind("PodDisruptionBudget", short_names=("pdb",), parts=_STATUS)),
    *_group(
        "apiextensions.k8s.io",
        *_api_extensions(
            Kind(
                "CustomResourceDefinition",
                short_names=("crd", "crds"),
                parts=_STATUS,
                hashed_as="apiextensions.k8s.io/v1beta1",
            ),
        ),
    ),
    *_group(
        "scheduling.k8s.io",
        Kind("PriorityClass", namespaced=False, short_names=("pc",)),
        Kind(
            "PodGroup",
            version="v1alpha2",
            parts=_STATUS_WITHOUT_TABLE,
            kept_by_status=_METADATA_AND_SPEC,
            until=Release.V1_36,
        ),
        Kind("Workload", version="v1alpha2", until=Release.V1_36),
        Kind(
            "PodGroup",
            version="v1beta1",
            older_versions=("v1alpha3",),
            parts=_STATUS_WITHOUT_TABLE,
            kept_by_status=_METADATA_AND_SPEC,
            gate="GenericWorkload",
            since=Release.V1_37,
        ),
        Kind(
            "Workload",
            version="v1beta1",
            older_versions=("v1alpha3",),
            gate="GenericWorkload",
            since=Release.V1_37,
        ),
        Kind(
            "CompositePodGroup",
            version="v1alpha3",
            parts=_STATUS_WITHOUT_TABLE,
            kept_by_status=_METADATA_AND_SPEC,
            gate="CompositePodGroup",
            since=Release.V1_37,
        ),
    ),
    *_group("coordination.k8s.io", Kind("Lease")),
    *_group(
        "admissionregistration.k8s.io",
        *_api_extensions(
            Kind(
                "MutatingAdmissionPolicy",
                hashed_as="admissionregistration.k8s.io/v1beta1",
                hashed_until=Release.V1_36,
            ),
            Kind(
                "MutatingAdmissionPolicyBinding",
                hashed_as="admissionregistration.k8s.io/v1beta1",
                hashed_until=Release.V1_36,
            ),
            Kind("MutatingWebhookConfiguration", depth=_SIMULATED),
            Kind("ValidatingAdmissionPolicy", parts=_STATUS),
            Kind("ValidatingAdmissionPolicyBinding"),
            Kind("ValidatingWebhookConfiguration", depth=_SIMULATED),
        ),
    ),
    *_group(
        "apiregistration.k8s.io", *_api_extensions(Kind("APIService", parts=_STATUS, depth=_STORED))
    ),
    *_group(
        "autoscaling",
        Kind(
            "HorizontalPodAutoscaler",
            version="v2",
            older_versions=("v1",),
            short_names=("hpa",),
            categories=_ALL,
            parts=_STATUS,
            depth=_STORED,
            lacks_controller=True,
        ),
    ),
    *_group(
        "certificates.k8s.io",
        Kind(
            "CertificateSigningRequest",
            namespaced=False,
            short_names=("csr",),
            parts=(Part("approval"), *_STATUS),
            depth=_STORED,
            lacks_controller=True,
        ),
        Kind(
            "ClusterTrustBundle",
            namespaced=False,
            depth=_STORED,
            hashed_as="certificates.k8s.io/v1beta1",
            since=Release.V1_37,
        ),
        Kind(
            "PodCertificateRequest",
            parts=_STATUS,
            depth=_STORED,
            hashed_as="certificates.k8s.io/v1beta1",
            lacks_controller=True,
            since=Release.V1_37,
        ),
    ),
    *_group("discovery.k8s.io", Kind("EndpointSlice", depth=_SIMULATED)),
    *_group(
        "flowcontrol.apiserver.k8s.io",
        *_cluster_wide(
            Kind("FlowSchema", parts=_STATUS, depth=_STORED, lacks_controller=True),
            Kind("PriorityLevelConfiguration", parts=_STATUS, depth=_STORED, lacks_controller=True),
        ),
    ),
    *_group(
        "networking.k8s.io",
        Kind("IngressClass", namespaced=False, depth=_STORED),
        Kind("Ingress", short_names=("ing",), parts=_STATUS, depth=_STORED, lacks_controller=True),
        Kind("NetworkPolicy", short_names=("netpol",), depth=_STORED, lacks_controller=True),
        Kind("IPAddress", namespaced=False, short_names=("ip",), depth=_STORED),
        Kind("ServiceCIDR", namespaced=False, parts=_STATUS, depth=_STORED, lacks_controller=True),
    ),
    *_group("node.k8s.io", Kind("RuntimeClass", namespaced=False, depth=_SIMULATED)),
    *_group(
        "rbac.authorization.k8s.io",
        *_cluster_wide(Kind("ClusterRoleBinding"), Kind("ClusterRole")),
        Kind("RoleBinding"),
        Kind("Role"),
    ),
    *_group(
        "storage.k8s.io",
        Kind("CSIDriver", namespaced=False, depth=_STORED, deletion_shows_object=True),
        Kind(
            "CSINode",
            namespaced=False,
            parts=(Part("status", since=Release.V1_37),),
            depth=_STORED,
            deletion_shows_object=True,
        ),
        Kind("CSIStorageCapacity", depth=_STORED),
        *_cluster_wide(
            Kind(
                "StorageClass",
                short_names=("sc",),
                depth=_SIMULATED,
                deletion_shows_object=True,
            ),
            Kind(
                "VolumeAttachment",
                parts=_STATUS,
                depth=_STORED,
                deletion_shows_object=True,
                lacks_controller=True,
            ),
            Kind(
                "VolumeAttributesClass",
                short_names=("vac",),
                depth=_STORED,
                deletion_shows_object=True,
            ),
        ),
    ),
    *_group(
        "storagemigration.k8s.io",
        Kind(
            "StorageVersionMigration",
            namespaced=False,
            parts=_STATUS,
            depth=_STORED,
            hashed_as="storagemigration.k8s.io/v1beta1",
            lacks_controller=True,
            since=Release.V1_37,
        ),
    ),
)


@cache
def builtin_kinds(release: Release) -> tuple[Kind, ...]:
    """Return every kind in every version that a server of the release recognises."""
    return tuple(
        replace(
            kind,
            version=version,
            storage_version=kind.storage_version or kind.version,
            parts=tuple(part for part in kind.parts if part.since <= release),
            hashed_as=kind.hashed_as if release <= kind.hashed_until else "",
        )
        for kind in KINDS
        if kind.since <= release <= kind.until
        for version in (kind.version, *kind.older_versions)
    )
