"""
NodePool and NodeClaim: which nodes may be created, and each node that is.

The kinds are Karpenter's (`karpenter.sh/v1`). A NodePool describes nodes that do not exist yet. A
NodeClaim stands for one node, from the decision to create it until the node is gone.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

import msgspec

from dryrack.kinds.core import Taint
from dryrack.kinds.meta import Condition, Int32, Int64, KubernetesObject, Model
from dryrack.kinds.quantity import Quantity

GROUP = "karpenter.sh"
NODE_POOL = f"{GROUP}/nodepool"
CAPACITY_TYPE = f"{GROUP}/capacity-type"
REGISTERED = f"{GROUP}/registered"
INITIALIZED = f"{GROUP}/initialized"
DO_NOT_DISRUPT = f"{GROUP}/do-not-disrupt"
POOL_HASH = f"{GROUP}/nodepool-hash"
DRIVERS = f"{GROUP}/requested-dra-drivers"
FINALIZER = f"{GROUP}/termination"
DISRUPTED_TAINT = f"{GROUP}/disrupted"
UNREGISTERED_TAINT = f"{GROUP}/unregistered"
NEVER = "Never"


class LabelRequirement(Model, frozen=True, kw_only=True):
    """The values that a label of the nodes may have."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()
    min_values: Int32 | None = None


class NodeClassReference(Model, frozen=True, kw_only=True):
    group: str = ""
    kind: str = ""
    name: str = ""


class TemplateMeta(Model, frozen=True, kw_only=True):
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}


class TemplateSpec(Model, frozen=True, kw_only=True):
    node_class_ref: NodeClassReference | None = None
    requirements: tuple[LabelRequirement, ...] = ()
    taints: tuple[Taint, ...] = ()
    startup_taints: tuple[Taint, ...] = ()
    expire_after: str = "720h"
    termination_grace_period: str | None = None


class NodeTemplate(Model, frozen=True, kw_only=True):
    metadata: TemplateMeta = TemplateMeta()
    spec: TemplateSpec = TemplateSpec()


class Budget(Model, frozen=True, kw_only=True):
    """The number of nodes of a pool that may be removed at once, while the schedule is active."""

    nodes: str = "10%"
    schedule: str | None = None
    duration: str | None = None
    reasons: tuple[str, ...] = ()


class Disruption(Model, frozen=True, kw_only=True):
    consolidate_after: str = "0s"
    consolidation_policy: str = "WhenEmptyOrUnderutilized"
    budgets: tuple[Budget, ...] = (Budget(),)


class NodePoolSpec(Model, frozen=True, kw_only=True):
    template: NodeTemplate = NodeTemplate()
    disruption: Disruption = Disruption()
    limits: Mapping[str, Quantity] = {}
    weight: Int32 = 0
    replicas: Int64 | None = None


class NodePoolStatus(Model, frozen=True, kw_only=True):
    resources: Mapping[str, Quantity] = {}
    conditions: tuple[Condition, ...] = ()


class NodePool(KubernetesObject, frozen=True, kw_only=True):
    API_VERSION: ClassVar[str] = f"{GROUP}/v1"

    spec: NodePoolSpec = NodePoolSpec()
    status: NodePoolStatus = NodePoolStatus()


class ClaimResources(Model, frozen=True, kw_only=True):
    requests: Mapping[str, Quantity] = {}


class NodeClaimSpec(Model, frozen=True, kw_only=True):
    node_class_ref: NodeClassReference | None = None
    requirements: tuple[LabelRequirement, ...] = ()
    resources: ClaimResources = ClaimResources()
    taints: tuple[Taint, ...] = ()
    startup_taints: tuple[Taint, ...] = ()
    expire_after: str = "720h"
    termination_grace_period: str | None = None


class NodeClaimStatus(Model, frozen=True, kw_only=True):
    node_name: str = ""
    provider_id: str = msgspec.field(default="", name="providerID")
    capacity: Mapping[str, Quantity] = {}
    allocatable: Mapping[str, Quantity] = {}
    conditions: tuple[Any, ...] = ()
    last_pod_event_time: str | None = None


class NodeClaim(KubernetesObject, frozen=True, kw_only=True):
    API_VERSION: ClassVar[str] = f"{GROUP}/v1"

    spec: NodeClaimSpec = NodeClaimSpec()
    status: NodeClaimStatus = NodeClaimStatus()
