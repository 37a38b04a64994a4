"""
The kinds that are built in, as data.

What each is called, where it lives and which verbs it answers is the real server's; how it
behaves is its strategy's, and `resources` brings the two together. The depth of a kind states what
has an effect in dryrack. Kinds with `STORED` exist for programs that list and watch them, such as
kube-scheduler and kube-controller-manager.
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
    SIMULATED = "simulated"
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
    short_names: tuple[str, ...]
    categories: tuple[str, ...]
    verbs: tuple[str, ...]
    parts: tuple[Part, ...]
    storage_version: str
    depth: Depth

    @property
    def storage(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural


# Kind, version, scope, depth, short names, subresources; in the order of discovery.
_TABLE = """
Binding v1 namespaced full
ConfigMap v1 namespaced full cm
Event v1 namespaced full ev
Namespace v1 cluster full ns finalize,status
Node v1 cluster full no proxy,status
Pod v1 namespaced full po attach,binding,ephemeralcontainers,eviction,exec,log,\
portforward,proxy,resize,status
Secret v1 namespaced full
ServiceAccount v1 namespaced full sa token
DaemonSet apps/v1 namespaced full ds status
Deployment apps/v1 namespaced full deploy scale,status
ReplicaSet apps/v1 namespaced full rs scale,status
StatefulSet apps/v1 namespaced full sts scale,status
Job batch/v1 namespaced full - status
SelfSubjectReview authentication.k8s.io/v1 cluster full
TokenReview authentication.k8s.io/v1 cluster full
LocalSubjectAccessReview authorization.k8s.io/v1 namespaced full
SelfSubjectAccessReview authorization.k8s.io/v1 cluster full
SelfSubjectRulesReview authorization.k8s.io/v1 cluster full
SubjectAccessReview authorization.k8s.io/v1 cluster full
DeviceClass resource.k8s.io/v1 cluster full
ResourceClaim resource.k8s.io/v1 namespaced full - status
ResourceClaimTemplate resource.k8s.io/v1 namespaced full
ResourceSlice resource.k8s.io/v1 cluster full
DeviceClass resource.k8s.io/v1beta2 cluster full
ResourceClaim resource.k8s.io/v1beta2 namespaced full - status
ResourceClaimTemplate resource.k8s.io/v1beta2 namespaced full
ResourceSlice resource.k8s.io/v1beta2 cluster full
DeviceClass resource.k8s.io/v1beta1 cluster full
ResourceClaim resource.k8s.io/v1beta1 namespaced full - status
ResourceClaimTemplate resource.k8s.io/v1beta1 namespaced full
ResourceSlice resource.k8s.io/v1beta1 cluster full
DeviceTaintRule resource.k8s.io/v1beta2 cluster full - status
Event events.k8s.io/v1 namespaced full ev
PodDisruptionBudget policy/v1 namespaced full pdb status
CustomResourceDefinition apiextensions.k8s.io/v1 cluster full crd,crds status
PriorityClass scheduling.k8s.io/v1 cluster full pc
PodGroup scheduling.k8s.io/v1alpha2 namespaced full - status
Workload scheduling.k8s.io/v1alpha2 namespaced full
Lease coordination.k8s.io/v1 namespaced full
MutatingAdmissionPolicy admissionregistration.k8s.io/v1 cluster full
MutatingAdmissionPolicyBinding admissionregistration.k8s.io/v1 cluster full
MutatingWebhookConfiguration admissionregistration.k8s.io/v1 cluster simulated
ValidatingAdmissionPolicy admissionregistration.k8s.io/v1 cluster full - status
ValidatingAdmissionPolicyBinding admissionregistration.k8s.io/v1 cluster full
ValidatingWebhookConfiguration admissionregistration.k8s.io/v1 cluster simulated
APIService apiregistration.k8s.io/v1 cluster stored - status
ComponentStatus v1 cluster stored cs
Endpoints v1 namespaced stored ep
LimitRange v1 namespaced full limits
PersistentVolumeClaim v1 namespaced simulated pvc status
PersistentVolume v1 cluster simulated pv status
PodTemplate v1 namespaced stored
ReplicationController v1 namespaced simulated rc scale,status
ResourceQuota v1 namespaced full quota status
Service v1 namespaced simulated svc proxy,status
ControllerRevision apps/v1 namespaced simulated
HorizontalPodAutoscaler autoscaling/v2 namespaced stored hpa status
HorizontalPodAutoscaler autoscaling/v1 namespaced stored hpa status
CronJob batch/v1 namespaced full cj status
CertificateSigningRequest certificates.k8s.io/v1 cluster stored csr approval,status
EndpointSlice discovery.k8s.io/v1 namespaced stored
FlowSchema flowcontrol.apiserver.k8s.io/v1 cluster stored - status
PriorityLevelConfiguration flowcontrol.apiserver.k8s.io/v1 cluster stored - status
IngressClass networking.k8s.io/v1 cluster stored
Ingress networking.k8s.io/v1 namespaced stored ing status
NetworkPolicy networking.k8s.io/v1 namespaced stored netpol
IPAddress networking.k8s.io/v1 cluster stored ip
ServiceCIDR networking.k8s.io/v1 cluster stored - status
RuntimeClass node.k8s.io/v1 cluster simulated
ClusterRoleBinding rbac.authorization.k8s.io/v1 cluster full
ClusterRole rbac.authorization.k8s.io/v1 cluster full
RoleBinding rbac.authorization.k8s.io/v1 namespaced full
Role rbac.authorization.k8s.io/v1 namespaced full
CSIDriver storage.k8s.io/v1 cluster stored
CSINode storage.k8s.io/v1 cluster stored
CSIStorageCapacity storage.k8s.io/v1 namespaced stored
StorageClass storage.k8s.io/v1 cluster simulated sc
VolumeAttachment storage.k8s.io/v1 cluster stored - status
VolumeAttributesClass storage.k8s.io/v1 cluster stored vac
"""
_PARTS = {
    "attach": Part("attach", _CONNECT, "PodAttachOptions"),
    "binding": Part("binding", _CREATE, "Binding"),
    "eviction": Part("eviction", _CREATE, "Eviction", "policy", "v1"),
    "exec": Part("exec", _CONNECT, "PodExecOptions"),
    "finalize": Part("finalize", ("update",)),
    "log": Part("log", ("get",)),
    "portforward": Part("portforward", _CONNECT, "PodPortForwardOptions"),
    "scale": Part("scale", kind="Scale", group="autoscaling", version="v1"),
    "token": Part("token", _CREATE, "TokenRequest", "authentication.k8s.io", "v1"),
}
_VERBS = {
    "Binding": _CREATE,
    # There are none: all components are one process, and it answers.
    "ComponentStatus": ("get", "list"),
    "Namespace": tuple(verb for verb in ALL_VERBS if verb != "deletecollection"),
}
# What `kubectl get all` shows.
_IN_ALL = (
    *("CronJob", "DaemonSet", "Deployment", "HorizontalPodAutoscaler", "Job", "Pod"),
    *("ReplicaSet", "ReplicationController", "Service", "StatefulSet"),
)
_EXTENDING = ("admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io")


def _builtin(kind: str, version: str, scope: str, depth: str, *more: str) -> Builtin:
    """A row of the table."""
    group, _, version = version.rpartition("/")
    short, parts = (*(each.split(",") for each in more), [], [])[:2]
    return Builtin(
        group=group,
        version=version,
        kind=kind,
        plural=_plural(kind.lower()),
        namespaced=scope == "namespaced",
        short_names=tuple(name for name in short if name != "-"),
        categories=_categories(group, kind),
        verbs=_CREATE if kind.endswith("Review") else _VERBS.get(kind, ALL_VERBS),
        parts=tuple(_part(kind, name) for name in parts),
        storage_version=_storage_version(group, kind),
        depth=Depth(depth),
    )


def _plural(word: str) -> str:
    if word == "endpoints":
        return word
    if word.endswith("y"):
        return f"{word[:-1]}ies"
    return f"{word}es" if word.endswith("s") else f"{word}s"


def _categories(group: str, kind: str) -> tuple[str, ...]:
    if group in _EXTENDING:
        return ("api-extensions",)
    return ("all",) if kind in _IN_ALL else ()


def _part(kind: str, name: str) -> Part:
    return (
        Part(name, _PROXY, f"{kind}ProxyOptions")
        if name == "proxy"
        else _PARTS.get(name, Part(name))
    )


def _storage_version(group: str, kind: str) -> str:
    if kind == "HorizontalPodAutoscaler":
        return "v2"
    return "v1" if group == "resource.k8s.io" and kind != "DeviceTaintRule" else ""


BUILTINS = tuple(_builtin(*row.split()) for row in _TABLE.strip().split("\n"))


class Behaviours(Protocol):
    """How kinds behave: everything about them that is not data."""

    def strategy(self, kind: Builtin) -> Strategy: ...

    def handlers(self, kind: Builtin, subresource: str) -> Mapping[str, Handler]:
        """By verb: what answers instead of what is usual; "" is the resource itself."""
        ...


def builtin_resources(behaviours: Behaviours) -> tuple[Resource, ...]:
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
