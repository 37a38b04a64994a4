"""Where objects of a kind are: the kinds that engines of ours read and write, by name."""

from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import quote


@lru_cache(maxsize=4096)
def _quoted(part: str) -> str:
    """Kinds repeat in every request, and an object's name in some before it is gone."""
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


NAMESPACES = Endpoint("", "v1", "namespaces", "Namespace", is_namespaced=False)
NODES = Endpoint("", "v1", "nodes", "Node", is_namespaced=False)
PODS = Endpoint("", "v1", "pods", "Pod")
CONFIG_MAPS = Endpoint("", "v1", "configmaps", "ConfigMap")
SECRETS = Endpoint("", "v1", "secrets", "Secret")
SERVICE_ACCOUNTS = Endpoint("", "v1", "serviceaccounts", "ServiceAccount")
EVENTS = Endpoint("", "v1", "events", "Event")
SERVICES = Endpoint("", "v1", "services", "Service")
REPLICATION_CONTROLLERS = Endpoint("", "v1", "replicationcontrollers", "ReplicationController")
VOLUMES = Endpoint("", "v1", "persistentvolumes", "PersistentVolume", is_namespaced=False)
VOLUME_CLAIMS = Endpoint("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
QUOTAS = Endpoint("", "v1", "resourcequotas", "ResourceQuota")
DEPLOYMENTS = Endpoint("apps", "v1", "deployments", "Deployment")
REPLICA_SETS = Endpoint("apps", "v1", "replicasets", "ReplicaSet")
DAEMON_SETS = Endpoint("apps", "v1", "daemonsets", "DaemonSet")
STATEFUL_SETS = Endpoint("apps", "v1", "statefulsets", "StatefulSet")
CONTROLLER_REVISIONS = Endpoint("apps", "v1", "controllerrevisions", "ControllerRevision")
POD_DISRUPTION_BUDGETS = Endpoint("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget")
JOBS = Endpoint("batch", "v1", "jobs", "Job")
CRON_JOBS = Endpoint("batch", "v1", "cronjobs", "CronJob")
LEASES = Endpoint("coordination.k8s.io", "v1", "leases", "Lease")
STORAGE_CLASSES = Endpoint(
    "storage.k8s.io", "v1", "storageclasses", "StorageClass", is_namespaced=False
)
CLAIMS = Endpoint("resource.k8s.io", "v1", "resourceclaims", "ResourceClaim")
TEMPLATES = Endpoint("resource.k8s.io", "v1", "resourceclaimtemplates", "ResourceClaimTemplate")
SLICES = Endpoint("resource.k8s.io", "v1", "resourceslices", "ResourceSlice", is_namespaced=False)
CLASSES = Endpoint("resource.k8s.io", "v1", "deviceclasses", "DeviceClass", is_namespaced=False)
TAINT_RULES = Endpoint(
    "resource.k8s.io", "v1beta2", "devicetaintrules", "DeviceTaintRule", is_namespaced=False
)
PRIORITY_CLASSES = Endpoint(
    "scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", is_namespaced=False
)
POD_GROUPS = Endpoint("scheduling.k8s.io", "v1alpha2", "podgroups", "PodGroup")
POD_GROUPS_V1BETA1 = Endpoint("scheduling.k8s.io", "v1beta1", "podgroups", "PodGroup")
WORKLOADS_V1ALPHA1 = Endpoint("scheduling.k8s.io", "v1alpha1", "workloads", "Workload")
COSCHEDULING_POD_GROUPS = Endpoint("scheduling.x-k8s.io", "v1alpha1", "podgroups", "PodGroup")
DEFINITIONS = Endpoint(
    "apiextensions.k8s.io",
    "v1",
    "customresourcedefinitions",
    "CustomResourceDefinition",
    is_namespaced=False,
)
NODE_OVERLAYS = Endpoint(
    "karpenter.sh", "v1alpha1", "nodeoverlays", "NodeOverlay", is_namespaced=False
)
COMPUTE_DOMAINS = Endpoint("resource.nvidia.com", "v1beta1", "computedomains", "ComputeDomain")
DRA_CONFIGS = Endpoint(
    "test.karpenter.sh", "v1alpha1", "draconfigs", "DRAConfig", is_namespaced=False
)
