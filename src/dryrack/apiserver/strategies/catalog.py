"""The strategies of the built-in kinds, by what they store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.apiserver.strategies.certificates import CertificateRequestStrategy
from dryrack.apiserver.strategies.events import EventStrategy, NewEventStrategy
from dryrack.apiserver.strategies.extension import traffic
from dryrack.apiserver.strategies.extension.api_services import ApiServiceStrategy
from dryrack.apiserver.strategies.extension.traffic import TrafficStrategy
from dryrack.apiserver.strategies.extension.webhooks import WebhookStrategy
from dryrack.apiserver.strategies.namespaces import NamespaceStrategy
from dryrack.apiserver.strategies.nodes import NodeStrategy
from dryrack.apiserver.strategies.pod_certificates import (
    PodCertificateRequestStrategy,
    TrustBundleStrategy,
)
from dryrack.apiserver.strategies.pods.strategy import PodStrategy
from dryrack.apiserver.strategies.quotas.strategy import QuotaStrategy
from dryrack.apiserver.strategies.services.strategy import ServiceStrategy
from dryrack.apiserver.strategies.small_kinds import (
    ConfigMapStrategy,
    LeaseStrategy,
    PodGroupStrategy,
    PriorityClassStrategy,
    RoleBindingStrategy,
    RoleStrategy,
    SecretStrategy,
    ServiceAccountStrategy,
    StorageVersionMigrationStrategy,
    WorkloadObjectStrategy,
)
from dryrack.apiserver.strategies.validated_as_new import ValidatedAsNewStrategy
from dryrack.apiserver.strategies.volumes import (
    StorageClassStrategy,
    VolumeClaimStrategy,
    VolumeStrategy,
)
from dryrack.apiserver.strategies.workloads.autoscalers import (
    AutoscalerStrategy,
    OldAutoscalerStrategy,
)
from dryrack.apiserver.strategies.workloads.job_strategy import CronJobStrategy, JobStrategy
from dryrack.apiserver.strategies.workloads.strategy import (
    DaemonSetStrategy,
    DeploymentStrategy,
    ReplicaSetStrategy,
    ReplicationControllerStrategy,
    StatefulSetStrategy,
)
from dryrack.apiserver.strategy import Strategy
from dryrack.kinds.convert import GROUP
from dryrack.kinds.rules.accounts import RBAC
from dryrack.kinds.rules.budgets import BudgetRules
from dryrack.kinds.rules.kind_rules import KindRules
from dryrack.kinds.rules.limit_ranges import LimitRangeRules
from dryrack.kinds.rules.pods.network import address
from dryrack.kinds.schemas import schema_of
from dryrack.kinds.schemas.shape import skeleton
from dryrack.kinds.validation.meta import Naming

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dryrack.kinds.raw import Raw
    from dryrack.kinds.registry import Kind
    from dryrack.kinds.releases import FeatureSet, Release


def _policy() -> Strategy:
    from dryrack.apiserver.strategies.extension.policies import PolicyStrategy

    return PolicyStrategy()


def _policy_binding() -> Strategy:
    from dryrack.apiserver.strategies.extension.policies import PolicyBindingStrategy

    return PolicyBindingStrategy()


def _mutating_policy() -> Strategy:
    from dryrack.apiserver.strategies.extension.policies import MutatingPolicyStrategy

    return MutatingPolicyStrategy()


def _mutating_policy_binding() -> Strategy:
    from dryrack.apiserver.strategies.extension.policies import MutatingPolicyBindingStrategy

    return MutatingPolicyBindingStrategy()


def _limit_range() -> Strategy:
    made = Strategy(LimitRangeRules())
    made.creates_on_update = True
    return made


def _budget() -> Strategy:
    made = ValidatedAsNewStrategy(BudgetRules())
    made.counts_generations = True
    made.updates_unconditionally = False
    return made


def _address_name(text: str) -> tuple[str, ...]:
    """Return the problems of the name of an IPAddress, which is the address."""
    return tuple(each.detail for each in address("metadata.name", text))


def _definition() -> Strategy:
    from dryrack.apiserver.custom.definition import DefinitionStrategy

    return DefinitionStrategy()


_ADMISSION = "admissionregistration.k8s.io"
# The versions of native gangs from Kubernetes 1.37 on.
_NATIVE_GROUPS = (("scheduling.k8s.io", "v1beta1"), ("scheduling.k8s.io", "v1alpha3"))
_FLOW = "flowcontrol.apiserver.k8s.io"
_BY_STORAGE: Mapping[str, Callable[[], Strategy]] = {
    "apiservices.apiregistration.k8s.io": ApiServiceStrategy,
    "certificatesigningrequests.certificates.k8s.io": CertificateRequestStrategy,
    "clustertrustbundles.certificates.k8s.io": TrustBundleStrategy,
    "configmaps": ConfigMapStrategy,
    "cronjobs.batch": CronJobStrategy,
    "customresourcedefinitions.apiextensions.k8s.io": _definition,
    "daemonsets.apps": DaemonSetStrategy,
    "deployments.apps": DeploymentStrategy,
    "events": EventStrategy,
    "events.events.k8s.io": NewEventStrategy,
    f"flowschemas.{_FLOW}": lambda: TrafficStrategy(
        traffic.flow_schema, namespaced=False, has_status=True
    ),
    "horizontalpodautoscalers.autoscaling": AutoscalerStrategy,
    "ingressclasses.networking.k8s.io": lambda: TrafficStrategy(
        traffic.ingress_class, namespaced=False
    ),
    "ingresses.networking.k8s.io": lambda: TrafficStrategy(namespaced=True, has_status=True),
    "ipaddresses.networking.k8s.io": lambda: Strategy(
        KindRules(namespaced=False, naming=Naming(_address_name, _address_name))
    ),
    "jobs.batch": JobStrategy,
    "leases.coordination.k8s.io": LeaseStrategy,
    "limitranges": _limit_range,
    f"mutatingadmissionpolicies.{_ADMISSION}": _mutating_policy,
    f"mutatingadmissionpolicybindings.{_ADMISSION}": _mutating_policy_binding,
    f"mutatingwebhookconfigurations.{_ADMISSION}": lambda: WebhookStrategy(mutates=True),
    "namespaces": NamespaceStrategy,
    "networkpolicies.networking.k8s.io": lambda: TrafficStrategy(
        traffic.network_policy, namespaced=True
    ),
    "nodes": NodeStrategy,
    "persistentvolumeclaims": VolumeClaimStrategy,
    "persistentvolumes": VolumeStrategy,
    "poddisruptionbudgets.policy": _budget,
    "podcertificaterequests.certificates.k8s.io": PodCertificateRequestStrategy,
    "podgroups.scheduling.k8s.io": PodGroupStrategy,
    "pods": PodStrategy,
    "priorityclasses.scheduling.k8s.io": PriorityClassStrategy,
    f"prioritylevelconfigurations.{_FLOW}": lambda: TrafficStrategy(
        traffic.priority_level, namespaced=False, has_status=True
    ),
    "replicasets.apps": ReplicaSetStrategy,
    "replicationcontrollers": ReplicationControllerStrategy,
    "resourcequotas": QuotaStrategy,
    "secrets": SecretStrategy,
    "serviceaccounts": ServiceAccountStrategy,
    "services": ServiceStrategy,
    "statefulsets.apps": StatefulSetStrategy,
    "storageclasses.storage.k8s.io": StorageClassStrategy,
    "storageversionmigrations.storagemigration.k8s.io": StorageVersionMigrationStrategy,
    f"validatingadmissionpolicies.{_ADMISSION}": _policy,
    f"validatingadmissionpolicybindings.{_ADMISSION}": _policy_binding,
    f"validatingwebhookconfigurations.{_ADMISSION}": lambda: WebhookStrategy(mutates=False),
    "workloads.scheduling.k8s.io": WorkloadObjectStrategy,
    f"clusterrolebindings.{RBAC}": lambda: RoleBindingStrategy(namespaced=False),
    f"clusterroles.{RBAC}": lambda: RoleStrategy(namespaced=False),
    f"rolebindings.{RBAC}": lambda: RoleBindingStrategy(namespaced=True),
    f"roles.{RBAC}": lambda: RoleStrategy(namespaced=True),
}

# The fields that field selectors may name, for kinds without a strategy of their own.
_SELECTABLE: Mapping[str, tuple[str, ...]] = {
    "clustertrustbundles.certificates.k8s.io": ("spec.signerName",),
    "podcertificaterequests.certificates.k8s.io": (
        "spec.signerName",
        "spec.podName",
        "spec.nodeName",
    ),
}
_UNSUPPORTED = "field label not supported: {label}"


def strategy_of(kind: Kind, features: FeatureSet) -> Strategy:
    """Return the strategy of a built-in kind; `Strategy` itself if the kind needs no other."""
    if kind.group == GROUP:
        from dryrack.apiserver.strategies.devices import DeviceStrategy

        return DeviceStrategy(kind, features=features)
    found = _BY_STORAGE.get(kind.storage)
    if found is AutoscalerStrategy and kind.version == "v1":
        found = OldAutoscalerStrategy
    if (kind.group, kind.version) in _NATIVE_GROUPS:
        from dryrack.apiserver.strategies.native_groups import group_strategy

        made = group_strategy(kind)
    elif found is None:
        made = Strategy(KindRules(namespaced=kind.namespaced, has_status=kind.has_status))
        if kind.storage in _SELECTABLE:
            made.selectable_fields = _SELECTABLE[kind.storage]
            made.field_refusal = _UNSUPPORTED
    else:
        made = found()
    made.rules.follow(features, kind.group, kind.kind)
    made.empty_status = lambda: empty_status(kind, features.release)
    if kind.lacks_controller:
        made.notice = f"no controller of dryrack acts on {kind.plural}; the object is only stored"
    return made


def empty_status(kind: Kind, release: Release) -> Raw | None:
    """Return the status that the real server gives to a new object."""
    schema = schema_of(kind.group, kind.version, kind.kind, release)
    found: Raw | None = skeleton(schema).get("status")
    return found
