"""
The client of a cluster: over HTTPS, or in process without a socket.

    from dryrack.client import CLAIMS

    claims = await client.list(CLAIMS)
    await client.update(CLAIMS, claim, subresource="status")

Each constant names a kind in the version that dryrack uses; an `Endpoint` names any other kind.
"""

from typing import TYPE_CHECKING

from dryrack.base.lazy import exports

if TYPE_CHECKING:
    from dryrack.client.client import (
        JSON_PATCH,
        MERGE_PATCH,
        STRATEGIC_PATCH,
        Client,
        Listing,
        Selection,
        WatchEvent,
    )
    from dryrack.client.endpoints import (
        CLAIMS,
        CLASSES,
        COMPUTE_DOMAINS,
        CONFIG_MAPS,
        CONTROLLER_REVISIONS,
        COSCHEDULING_POD_GROUPS,
        CRON_JOBS,
        DAEMON_SETS,
        DEFINITIONS,
        DEPLOYMENTS,
        DRA_CONFIGS,
        ENDPOINT_SLICES,
        ENDPOINTS,
        EVENTS,
        JOBS,
        LEASES,
        NAMESPACES,
        NODE_CLAIMS,
        NODE_OVERLAYS,
        NODE_POOLS,
        NODES,
        POD_DISRUPTION_BUDGETS,
        POD_GROUPS,
        POD_GROUPS_V1BETA1,
        PODS,
        PRIORITY_CLASSES,
        QUOTAS,
        REPLICA_SETS,
        REPLICATION_CONTROLLERS,
        SECRETS,
        SERVICE_ACCOUNTS,
        SERVICES,
        SLICES,
        STATEFUL_SETS,
        STORAGE_CLASSES,
        TAINT_RULES,
        TAINT_RULES_V1,
        TEMPLATES,
        VOLUME_CLAIMS,
        VOLUMES,
        WORKLOADS_V1ALPHA1,
        Endpoint,
    )
    from dryrack.client.errors import (
        AlreadyExistsError,
        ApiError,
        ConflictError,
        ForbiddenError,
        GoneError,
        InvalidError,
        NotFoundError,
        TransportError,
    )
else:
    __getattr__ = exports(
        __name__,
        {
            "client": (
                "JSON_PATCH MERGE_PATCH STRATEGIC_PATCH Client Listing Selection WatchEvent"
            ),
            "endpoints": (
                "CLAIMS CLASSES COMPUTE_DOMAINS CONFIG_MAPS CONTROLLER_REVISIONS "
                "COSCHEDULING_POD_GROUPS CRON_JOBS DAEMON_SETS DEFINITIONS DEPLOYMENTS "
                "DRA_CONFIGS ENDPOINTS ENDPOINT_SLICES EVENTS JOBS LEASES NAMESPACES NODES "
                "NODE_CLAIMS NODE_OVERLAYS NODE_POOLS PODS POD_DISRUPTION_BUDGETS POD_GROUPS "
                "POD_GROUPS_V1BETA1 PRIORITY_CLASSES QUOTAS REPLICATION_CONTROLLERS "
                "REPLICA_SETS SECRETS SERVICES SERVICE_ACCOUNTS SLICES STATEFUL_SETS "
                "STORAGE_CLASSES TAINT_RULES TAINT_RULES_V1 TEMPLATES VOLUMES VOLUME_CLAIMS "
                "WORKLOADS_V1ALPHA1 Endpoint"
            ),
            "errors": (
                "AlreadyExistsError ApiError ConflictError ForbiddenError GoneError "
                "InvalidError NotFoundError TransportError"
            ),
        },
    )

__all__ = [
    "CLAIMS",
    "CLASSES",
    "COMPUTE_DOMAINS",
    "CONFIG_MAPS",
    "CONTROLLER_REVISIONS",
    "COSCHEDULING_POD_GROUPS",
    "CRON_JOBS",
    "DAEMON_SETS",
    "DEFINITIONS",
    "DEPLOYMENTS",
    "DRA_CONFIGS",
    "ENDPOINTS",
    "ENDPOINT_SLICES",
    "EVENTS",
    "JOBS",
    "JSON_PATCH",
    "LEASES",
    "MERGE_PATCH",
    "NAMESPACES",
    "NODES",
    "NODE_CLAIMS",
    "NODE_OVERLAYS",
    "NODE_POOLS",
    "PODS",
    "POD_DISRUPTION_BUDGETS",
    "POD_GROUPS",
    "POD_GROUPS_V1BETA1",
    "PRIORITY_CLASSES",
    "QUOTAS",
    "REPLICATION_CONTROLLERS",
    "REPLICA_SETS",
    "SECRETS",
    "SERVICES",
    "SERVICE_ACCOUNTS",
    "SLICES",
    "STATEFUL_SETS",
    "STORAGE_CLASSES",
    "STRATEGIC_PATCH",
    "TAINT_RULES",
    "TAINT_RULES_V1",
    "TEMPLATES",
    "VOLUMES",
    "VOLUME_CLAIMS",
    "WORKLOADS_V1ALPHA1",
    "AlreadyExistsError",
    "ApiError",
    "Client",
    "ConflictError",
    "Endpoint",
    "ForbiddenError",
    "GoneError",
    "InvalidError",
    "Listing",
    "NotFoundError",
    "Selection",
    "TransportError",
    "WatchEvent",
]
