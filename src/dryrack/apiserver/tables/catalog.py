"""Which shape each built-in kind has, by `plural.group`."""

from __future__ import annotations

from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING

from dryrack.apiserver.tables import core, devices, network, registration, storage, workloads
from dryrack.apiserver.tables.pods import PODS
from dryrack.kinds.releases import DEFAULT_RELEASE, Release

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dryrack.apiserver.tables.columns import Shape

SHAPES: Mapping[str, Shape] = MappingProxyType(
    {
        "configmaps": core.CONFIG_MAPS,
        "endpoints": network.ENDPOINTS,
        "events": core.EVENTS,
        "namespaces": core.NAMESPACES,
        "nodes": core.NODES,
        "persistentvolumeclaims": storage.VOLUME_CLAIMS,
        "persistentvolumes": storage.VOLUMES,
        "pods": PODS,
        "podtemplates": core.NAMED,
        "replicationcontrollers": workloads.REPLICATION_CONTROLLERS,
        "resourcequotas": core.QUOTAS,
        "secrets": core.SECRETS,
        "serviceaccounts": core.NAMED,
        "services": network.SERVICES,
        "mutatingadmissionpolicies.admissionregistration.k8s.io": registration.MUTATING_POLICIES,
        "mutatingadmissionpolicybindings.admissionregistration.k8s.io": (
            registration.POLICY_BINDINGS
        ),
        "mutatingwebhookconfigurations.admissionregistration.k8s.io": registration.WEBHOOKS,
        "validatingadmissionpolicies.admissionregistration.k8s.io": (
            registration.VALIDATING_POLICIES
        ),
        "validatingadmissionpolicybindings.admissionregistration.k8s.io": (
            registration.POLICY_BINDINGS
        ),
        "validatingwebhookconfigurations.admissionregistration.k8s.io": registration.WEBHOOKS,
        "apiservices.apiregistration.k8s.io": registration.API_SERVICES,
        "horizontalpodautoscalers.autoscaling": workloads.AUTOSCALERS,
        "flowschemas.flowcontrol.apiserver.k8s.io": core.NAMED,
        "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io": core.NAMED,
        "ingressclasses.networking.k8s.io": network.INGRESS_CLASSES,
        "ingresses.networking.k8s.io": network.INGRESSES,
        "networkpolicies.networking.k8s.io": network.NETWORK_POLICIES,
        "controllerrevisions.apps": core.NAMED,
        "daemonsets.apps": workloads.DAEMON_SETS,
        "deployments.apps": workloads.DEPLOYMENTS,
        "replicasets.apps": workloads.REPLICA_SETS,
        "statefulsets.apps": workloads.STATEFUL_SETS,
        "cronjobs.batch": workloads.CRON_JOBS,
        "jobs.batch": workloads.JOBS,
        "certificatesigningrequests.certificates.k8s.io": core.CERTIFICATE_REQUESTS,
        "leases.coordination.k8s.io": core.LEASES,
        "nodes.metrics.k8s.io": core.USAGE,
        "pods.metrics.k8s.io": core.USAGE,
        "endpointslices.discovery.k8s.io": network.ENDPOINT_SLICES,
        "events.events.k8s.io": core.EVENTS,
        "ipaddresses.networking.k8s.io": core.NAMED,
        "servicecidrs.networking.k8s.io": core.NAMED,
        "runtimeclasses.node.k8s.io": core.RUNTIME_CLASSES,
        "poddisruptionbudgets.policy": devices.DISRUPTION_BUDGETS,
        "clusterrolebindings.rbac.authorization.k8s.io": core.ROLE_BINDINGS,
        "rolebindings.rbac.authorization.k8s.io": core.ROLE_BINDINGS,
        "deviceclasses.resource.k8s.io": core.NAMED,
        "devicetaintrules.resource.k8s.io": devices.TAINT_RULES,
        "resourceclaims.resource.k8s.io": devices.CLAIMS,
        "resourceclaimtemplates.resource.k8s.io": core.NAMED,
        "resourceslices.resource.k8s.io": devices.SLICES,
        "podgroups.scheduling.k8s.io": devices.POD_GROUPS,
        "priorityclasses.scheduling.k8s.io": devices.PRIORITY_CLASSES,
        "workloads.scheduling.k8s.io": core.NAMED,
        "csidrivers.storage.k8s.io": core.NAMED,
        "csinodes.storage.k8s.io": core.NAMED,
        "storageclasses.storage.k8s.io": storage.STORAGE_CLASSES_OF_1_36,
        "volumeattachments.storage.k8s.io": core.NAMED,
        "volumeattributesclasses.storage.k8s.io": core.NAMED,
    }
)


# By release: the shapes that are new in it.
_CHANGES: Mapping[Release, Mapping[str, Shape]] = MappingProxyType(
    {
        Release.V1_37: {
            "clustertrustbundles.certificates.k8s.io": core.TRUST_BUNDLES,
            "compositepodgroups.scheduling.k8s.io": devices.COMPOSITE_POD_GROUPS,
            "customresourcedefinitions.apiextensions.k8s.io": registration.DEFINITIONS,
            "podcertificaterequests.certificates.k8s.io": core.POD_CERTIFICATE_REQUESTS,
            "storageclasses.storage.k8s.io": storage.STORAGE_CLASSES,
            "storageversionmigrations.storagemigration.k8s.io": (
                storage.STORAGE_VERSION_MIGRATIONS
            ),
        }
    }
)


@cache
def _shapes(release: Release) -> Mapping[str, Shape]:
    shapes = dict(SHAPES)
    for since, changes in _CHANGES.items():
        if since <= release:
            shapes |= changes
    return shapes


def shape_of(resource: str, release: Release = DEFAULT_RELEASE) -> Shape:
    """The shape of a resource; kinds without columns of their own show when they were made."""
    return _shapes(release).get(resource, core.CREATED)
