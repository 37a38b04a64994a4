"""
The kinds that are built in, as data.

What each is called, where it lives and which verbs it answers is the real server's; how it
behaves is its strategy's, and `resources` brings the two together. Kinds with `depth` `STORED` are
there for programs that expect to list and watch them (the real scheduler and controller manager
do): they are kept and handed out, and nothing checks or fills in their specs.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Protocol

from dryrack.apiserver.registry import ALL_VERBS, STATUS_VERBS, Resource, Subresource

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dryrack.apiserver.registry import Handler
    from dryrack.apiserver.strategy import Strategy

_CREATE = ("create",)
_CONNECT = ("create", "get")
_PROXY = ("create", "delete", "get", "patch", "update")


class Depth(Enum):
    """How much the server does about a kind."""

    FULL = "full"
    STORED = "stored"


@dataclass(frozen=True, slots=True)
class Part:
    """A subresource; kind, group and version if they are not the object's."""

    name: str
    verbs: tuple[str, ...] = STATUS_VERBS
    kind: str = ""
    group: str = ""
    version: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Builtin:
    """One plural in one version."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS
    parts: tuple[Part, ...] = ()
    storage_version: str = ""
    depth: Depth = Depth.FULL

    @property
    def storage(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural


_STATUS = Part("status")
_SCALE = Part("scale", kind="Scale", group="autoscaling", version="v1")
_ALL = ("all",)

_CORE = (
    Builtin(
        group="",
        version="v1",
        kind="Binding",
        plural="bindings",
        namespaced=True,
        verbs=_CREATE,
    ),
    Builtin(
        group="",
        version="v1",
        kind="ConfigMap",
        plural="configmaps",
        namespaced=True,
        short_names=("cm",),
    ),
    Builtin(
        group="",
        version="v1",
        kind="Event",
        plural="events",
        namespaced=True,
        short_names=("ev",),
    ),
    Builtin(
        group="",
        version="v1",
        kind="Namespace",
        plural="namespaces",
        namespaced=False,
        short_names=("ns",),
        verbs=tuple(verb for verb in ALL_VERBS if verb != "deletecollection"),
        parts=(Part("finalize", ("update",)), _STATUS),
    ),
    Builtin(
        group="",
        version="v1",
        kind="Node",
        plural="nodes",
        namespaced=False,
        short_names=("no",),
        parts=(Part("proxy", _PROXY, "NodeProxyOptions"), _STATUS),
    ),
    Builtin(
        group="",
        version="v1",
        kind="Pod",
        plural="pods",
        namespaced=True,
        short_names=("po",),
        categories=_ALL,
        parts=(
            Part("attach", _CONNECT, "PodAttachOptions"),
            Part("binding", _CREATE, "Binding"),
            Part("ephemeralcontainers"),
            Part("eviction", _CREATE, "Eviction", "policy", "v1"),
            Part("exec", _CONNECT, "PodExecOptions"),
            Part("log", ("get",)),
            Part("portforward", _CONNECT, "PodPortForwardOptions"),
            Part("proxy", _PROXY, "PodProxyOptions"),
            Part("resize"),
            _STATUS,
        ),
    ),
    Builtin(group="", version="v1", kind="Secret", plural="secrets", namespaced=True),
    Builtin(
        group="",
        version="v1",
        kind="ServiceAccount",
        plural="serviceaccounts",
        namespaced=True,
        short_names=("sa",),
        parts=(Part("token", _CREATE, "TokenRequest", "authentication.k8s.io", "v1"),),
    ),
)


def _workload(kind: str, short: str, *parts: Part) -> Builtin:
    return Builtin(
        group="apps",
        version="v1",
        kind=kind,
        plural=f"{kind.lower()}s",
        namespaced=True,
        short_names=(short,),
        categories=_ALL,
        parts=parts,
    )


_WORKLOADS = (
    _workload("DaemonSet", "ds", _STATUS),
    _workload("Deployment", "deploy", _SCALE, _STATUS),
    _workload("ReplicaSet", "rs", _SCALE, _STATUS),
    _workload("StatefulSet", "sts", _SCALE, _STATUS),
    Builtin(
        group="batch",
        version="v1",
        kind="Job",
        plural="jobs",
        namespaced=True,
        categories=_ALL,
        parts=(_STATUS,),
    ),
)


def _review(group: str, kind: str, *, namespaced: bool = False) -> Builtin:
    return Builtin(
        group=group,
        version="v1",
        kind=kind,
        plural=f"{kind.lower()}s",
        namespaced=namespaced,
        verbs=_CREATE,
    )


_REVIEWS = (
    _review("authentication.k8s.io", "SelfSubjectReview"),
    _review("authentication.k8s.io", "TokenReview"),
    _review("authorization.k8s.io", "LocalSubjectAccessReview", namespaced=True),
    _review("authorization.k8s.io", "SelfSubjectAccessReview"),
    _review("authorization.k8s.io", "SelfSubjectRulesReview"),
    _review("authorization.k8s.io", "SubjectAccessReview"),
)


def _device(version: str, kind: str, plural: str, *, namespaced: bool) -> Builtin:
    return Builtin(
        group="resource.k8s.io",
        version=version,
        kind=kind,
        plural=plural,
        namespaced=namespaced,
        parts=(_STATUS,) if kind == "ResourceClaim" else (),
        storage_version="v1",
    )


_DEVICES = (
    *(
        each
        for version in ("v1", "v1beta2", "v1beta1")
        for each in (
            _device(version, "DeviceClass", "deviceclasses", namespaced=False),
            _device(version, "ResourceClaim", "resourceclaims", namespaced=True),
            _device(version, "ResourceClaimTemplate", "resourceclaimtemplates", namespaced=True),
            _device(version, "ResourceSlice", "resourceslices", namespaced=False),
        )
    ),
    Builtin(
        group="resource.k8s.io",
        version="v1beta2",
        kind="DeviceTaintRule",
        plural="devicetaintrules",
        namespaced=False,
        parts=(_STATUS,),
    ),
)

_OTHERS = (
    Builtin(
        group="events.k8s.io",
        version="v1",
        kind="Event",
        plural="events",
        namespaced=True,
        short_names=("ev",),
    ),
    Builtin(
        group="policy",
        version="v1",
        kind="PodDisruptionBudget",
        plural="poddisruptionbudgets",
        namespaced=True,
        short_names=("pdb",),
        parts=(_STATUS,),
    ),
    Builtin(
        group="apiextensions.k8s.io",
        version="v1",
        kind="CustomResourceDefinition",
        plural="customresourcedefinitions",
        namespaced=False,
        short_names=("crd", "crds"),
        categories=("api-extensions",),
        parts=(_STATUS,),
    ),
    Builtin(
        group="scheduling.k8s.io",
        version="v1",
        kind="PriorityClass",
        plural="priorityclasses",
        namespaced=False,
        short_names=("pc",),
    ),
    Builtin(
        group="scheduling.k8s.io",
        version="v1alpha2",
        kind="PodGroup",
        plural="podgroups",
        namespaced=True,
        parts=(_STATUS,),
    ),
    Builtin(
        group="scheduling.k8s.io",
        version="v1alpha2",
        kind="Workload",
        plural="workloads",
        namespaced=True,
    ),
    Builtin(
        group="coordination.k8s.io",
        version="v1",
        kind="Lease",
        plural="leases",
        namespaced=True,
    ),
)


def _stored(path: str, kind: str, *short: str, namespaced: bool = True) -> Builtin:
    """`path` is `group/version/plural` and, with a slash at the end, has a status."""
    group, version, plural, *rest = path.split("/")
    return Builtin(
        group=group,
        version=version,
        kind=kind,
        plural=plural,
        namespaced=namespaced,
        short_names=short,
        categories=_categories(group, kind),
        parts=_MORE_PARTS.get(kind, ()) + ((_STATUS,) if rest else ()),
        storage_version="v2" if kind == "HorizontalPodAutoscaler" else "",
        depth=Depth.FULL if group == _RBAC or kind in _DEEP else Depth.STORED,
    )


def _categories(group: str, kind: str) -> tuple[str, ...]:
    if group in (_ADMISSION, _AGGREGATION):
        return ("api-extensions",)
    return _ALL if kind in _IN_ALL else ()


_RBAC = "rbac.authorization.k8s.io"
_ADMISSION = "admissionregistration.k8s.io"
_AGGREGATION = "apiregistration.k8s.io"
_FLOW = "flowcontrol.apiserver.k8s.io"
_MORE_PARTS = {
    "ReplicationController": (_SCALE,),
    "Service": (Part("proxy", _PROXY, "ServiceProxyOptions"),),
}
_DEEP = (
    *("LimitRange", "ResourceQuota", "Service"),
    *("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"),
)
_IN_ALL = ("CronJob", "HorizontalPodAutoscaler", "ReplicationController", "Service")

_STORED = (
    *(
        _stored(f"{_ADMISSION}/v1/{plural}", kind, namespaced=False)
        for plural, kind in (
            ("mutatingadmissionpolicies", "MutatingAdmissionPolicy"),
            ("mutatingadmissionpolicybindings", "MutatingAdmissionPolicyBinding"),
            ("mutatingwebhookconfigurations", "MutatingWebhookConfiguration"),
            ("validatingadmissionpolicies/", "ValidatingAdmissionPolicy"),
            ("validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding"),
            ("validatingwebhookconfigurations", "ValidatingWebhookConfiguration"),
        )
    ),
    _stored(f"{_AGGREGATION}/v1/apiservices/", "APIService", namespaced=False),
    Builtin(
        group="",
        version="v1",
        kind="ComponentStatus",
        plural="componentstatuses",
        namespaced=False,
        short_names=("cs",),
        # There are none: all components are one process, and it answers.
        verbs=("get", "list"),
        depth=Depth.STORED,
    ),
    _stored("/v1/endpoints", "Endpoints", "ep"),
    _stored("/v1/limitranges", "LimitRange", "limits"),
    _stored("/v1/persistentvolumeclaims/", "PersistentVolumeClaim", "pvc"),
    _stored("/v1/persistentvolumes/", "PersistentVolume", "pv", namespaced=False),
    _stored("/v1/podtemplates", "PodTemplate"),
    _stored("/v1/replicationcontrollers/", "ReplicationController", "rc"),
    _stored("/v1/resourcequotas/", "ResourceQuota", "quota"),
    _stored("/v1/services/", "Service", "svc"),
    _stored("apps/v1/controllerrevisions", "ControllerRevision"),
    _stored("autoscaling/v2/horizontalpodautoscalers/", "HorizontalPodAutoscaler", "hpa"),
    _stored("autoscaling/v1/horizontalpodautoscalers/", "HorizontalPodAutoscaler", "hpa"),
    _stored("batch/v1/cronjobs/", "CronJob", "cj"),
    _stored(
        "certificates.k8s.io/v1/certificatesigningrequests/",
        "CertificateSigningRequest",
        "csr",
        namespaced=False,
    ),
    _stored("discovery.k8s.io/v1/endpointslices", "EndpointSlice"),
    _stored(f"{_FLOW}/v1/flowschemas/", "FlowSchema", namespaced=False),
    _stored(
        f"{_FLOW}/v1/prioritylevelconfigurations/", "PriorityLevelConfiguration", namespaced=False
    ),
    _stored("networking.k8s.io/v1/ingressclasses", "IngressClass", namespaced=False),
    _stored("networking.k8s.io/v1/ingresses/", "Ingress", "ing"),
    _stored("networking.k8s.io/v1/networkpolicies", "NetworkPolicy", "netpol"),
    _stored("networking.k8s.io/v1/ipaddresses", "IPAddress", "ip", namespaced=False),
    _stored("networking.k8s.io/v1/servicecidrs/", "ServiceCIDR", namespaced=False),
    _stored("node.k8s.io/v1/runtimeclasses", "RuntimeClass", namespaced=False),
    *(
        _stored(f"{_RBAC}/v1/{kind.lower()}s", kind, namespaced=namespaced)
        for kind, namespaced in (
            ("ClusterRoleBinding", False),
            ("ClusterRole", False),
            ("RoleBinding", True),
            ("Role", True),
        )
    ),
    _stored("storage.k8s.io/v1/csidrivers", "CSIDriver", namespaced=False),
    _stored("storage.k8s.io/v1/csinodes", "CSINode", namespaced=False),
    _stored("storage.k8s.io/v1/csistoragecapacities", "CSIStorageCapacity"),
    _stored("storage.k8s.io/v1/storageclasses", "StorageClass", "sc", namespaced=False),
    _stored("storage.k8s.io/v1/volumeattachments/", "VolumeAttachment", namespaced=False),
    _stored(
        "storage.k8s.io/v1/volumeattributesclasses",
        "VolumeAttributesClass",
        "vac",
        namespaced=False,
    ),
)

BUILTINS: tuple[Builtin, ...] = (
    *_CORE,
    *_WORKLOADS,
    *_REVIEWS,
    *_DEVICES,
    *_OTHERS,
    *_STORED,
)


class Behaviours(Protocol):
    """How kinds behave: everything about them that is not data."""

    def strategy(self, kind: Builtin) -> Strategy: ...

    def handlers(self, kind: Builtin, subresource: str) -> Mapping[str, Handler]:
        """By verb: what answers instead of what is usual; "" is the resource itself."""
        ...


def resources(behaviours: Behaviours) -> tuple[Resource, ...]:
    """Every built-in kind, ready to be served."""
    return tuple(_resource(each, behaviours) for each in BUILTINS)


# Both kinds of events are one.
_STORED_IN = {"events.events.k8s.io": "events"}


def _resource(kind: Builtin, behaviours: Behaviours) -> Resource:
    return Resource(
        group=kind.group,
        version=kind.version,
        kind=kind.kind,
        plural=kind.plural,
        namespaced=kind.namespaced,
        strategy=behaviours.strategy(kind),
        singular=kind.kind.lower(),
        short_names=kind.short_names,
        categories=kind.categories,
        verbs=kind.verbs,
        subresources={part.name: _subresource(kind, part, behaviours) for part in kind.parts},
        handlers=behaviours.handlers(kind, ""),
        storage_version=kind.storage_version,
        stored_in=_STORED_IN.get(kind.storage, ""),
        deprecation=_deprecation(kind),
    )


# When a version of resource.k8s.io was deprecated, and when it will be gone.
_DEPRECATED = {"v1beta1": ("1.35", "1.38"), "v1beta2": ("1.36", "1.39")}


def _deprecation(kind: Builtin) -> str:
    if kind.kind == "ComponentStatus":
        return "v1 ComponentStatus is deprecated in v1.19+"
    if kind.group != "resource.k8s.io" or kind.version not in _DEPRECATED:
        return ""
    if kind.kind == "DeviceTaintRule":
        # It is new in its version.
        return ""
    since, until = _DEPRECATED[kind.version]
    shown = f"{kind.group}/{kind.version} {kind.kind}"
    return f"{shown} is deprecated in v{since}+, unavailable in v{until}+"


def _subresource(kind: Builtin, part: Part, behaviours: Behaviours) -> Subresource:
    return Subresource(
        name=part.name,
        verbs=part.verbs,
        kind=part.kind,
        group=part.group,
        version=part.version,
        handlers=behaviours.handlers(kind, part.name),
    )
