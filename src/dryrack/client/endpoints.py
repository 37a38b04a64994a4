"""The paths of the kinds that controllers, the scheduler and the CLI read and write."""

from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import quote

from dryrack.kinds.registry import KINDS


@lru_cache(maxsize=4096)
def _quoted(part: str) -> str:
    # Kinds repeat in every request, and the name of an object in some.
    return quote(part, safe="")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A plural in a version of a group; `group` is "" for the core."""

    group: str
    version: str
    plural: str
    kind: str
    is_namespaced: bool = True

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def resource(self) -> str:
        """The name among all groups: "pods", "resourceclaims.resource.k8s.io"."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """The path of a collection, an object, or a part of one."""
        parts = ["apis", self.group, self.version] if self.group else ["api", self.version]
        if self.is_namespaced and namespace:
            parts += ["namespaces", namespace]
        parts += [self.plural, *(part for part in (name, subresource) if part)]
        return "/" + "/".join([_quoted(part) for part in parts])


# The page of a virtual cluster with the prepared claims.
PREPARED_CLAIMS = "/dryrack/prepared-claims"
_BUILT_IN = {kind.kind: kind for kind in reversed(KINDS)}


def _built_in(kind: str) -> Endpoint:
    """Return the endpoint of a built-in kind; for events that of the core group."""
    row = _BUILT_IN[kind]
    return Endpoint(row.group, row.version, row.plural, kind, row.namespaced)


NAMESPACES = _built_in("Namespace")
NODES = _built_in("Node")
PODS = _built_in("Pod")
CONFIG_MAPS = _built_in("ConfigMap")
SECRETS = _built_in("Secret")
SERVICE_ACCOUNTS = _built_in("ServiceAccount")
EVENTS = _built_in("Event")
SERVICES = _built_in("Service")
ENDPOINTS = _built_in("Endpoints")
ENDPOINT_SLICES = _built_in("EndpointSlice")
REPLICATION_CONTROLLERS = _built_in("ReplicationController")
VOLUMES = _built_in("PersistentVolume")
VOLUME_CLAIMS = _built_in("PersistentVolumeClaim")
QUOTAS = _built_in("ResourceQuota")
DEPLOYMENTS = _built_in("Deployment")
REPLICA_SETS = _built_in("ReplicaSet")
DAEMON_SETS = _built_in("DaemonSet")
STATEFUL_SETS = _built_in("StatefulSet")
CONTROLLER_REVISIONS = _built_in("ControllerRevision")
POD_DISRUPTION_BUDGETS = _built_in("PodDisruptionBudget")
JOBS = _built_in("Job")
CRON_JOBS = _built_in("CronJob")
LEASES = _built_in("Lease")
STORAGE_CLASSES = _built_in("StorageClass")
CLAIMS = _built_in("ResourceClaim")
TEMPLATES = _built_in("ResourceClaimTemplate")
SLICES = _built_in("ResourceSlice")
CLASSES = _built_in("DeviceClass")
TAINT_RULES = _built_in("DeviceTaintRule")
TAINT_RULES_V1 = Endpoint(
    "resource.k8s.io", "v1", "devicetaintrules", "DeviceTaintRule", is_namespaced=False
)
TAINT_RULE_VERSIONS = (TAINT_RULES_V1, TAINT_RULES)
"""The versions that releases serve, the newest first."""
PRIORITY_CLASSES = _built_in("PriorityClass")
POD_GROUPS = _built_in("PodGroup")
POD_GROUPS_V1BETA1 = Endpoint("scheduling.k8s.io", "v1beta1", "podgroups", "PodGroup")
POD_GROUP_VERSIONS = (POD_GROUPS_V1BETA1, POD_GROUPS)
"""The versions that releases serve, the newest first."""
WORKLOADS_V1ALPHA1 = Endpoint("scheduling.k8s.io", "v1alpha1", "workloads", "Workload")
COSCHEDULING_POD_GROUPS = Endpoint("scheduling.x-k8s.io", "v1alpha1", "podgroups", "PodGroup")
DEFINITIONS = _built_in("CustomResourceDefinition")
NODE_OVERLAYS = Endpoint(
    "karpenter.sh", "v1alpha1", "nodeoverlays", "NodeOverlay", is_namespaced=False
)
NODE_POOLS = Endpoint("karpenter.sh", "v1", "nodepools", "NodePool", is_namespaced=False)
NODE_CLAIMS = Endpoint("karpenter.sh", "v1", "nodeclaims", "NodeClaim", is_namespaced=False)
COMPUTE_DOMAINS = Endpoint("resource.nvidia.com", "v1beta1", "computedomains", "ComputeDomain")
DRA_CONFIGS = Endpoint(
    "test.karpenter.sh", "v1alpha1", "draconfigs", "DRAConfig", is_namespaced=False
)
