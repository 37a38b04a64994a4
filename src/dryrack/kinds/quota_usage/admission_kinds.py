"""
The kinds that decide about the admission of pods and claims, and about preemption.

Only the fields that admission and preemption read are modelled.
"""

from collections.abc import Mapping
from typing import ClassVar

from dryrack.kinds.meta import Int32, KubernetesObject, LabelSelector, Model
from dryrack.kinds.quantity import Quantity


class ScopedResourceSelectorRequirement(Model, frozen=True, kw_only=True):
    scope_name: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class ScopeSelector(Model, frozen=True, kw_only=True):
    match_expressions: tuple[ScopedResourceSelectorRequirement, ...] = ()


class ResourceQuotaSpec(Model, frozen=True, kw_only=True):
    hard: Mapping[str, Quantity] = {}
    scopes: tuple[str, ...] = ()
    scope_selector: ScopeSelector | None = None


class ResourceQuotaStatus(Model, frozen=True, kw_only=True):
    hard: Mapping[str, Quantity] = {}
    used: Mapping[str, Quantity] = {}


class ResourceQuota(KubernetesObject, frozen=True, kw_only=True):
    """Limits for the objects of a namespace, and their usage."""

    API_VERSION: ClassVar[str] = "v1"

    spec: ResourceQuotaSpec = ResourceQuotaSpec()
    status: ResourceQuotaStatus = ResourceQuotaStatus()


class LimitRangeItem(Model, frozen=True, kw_only=True):
    type: str = ""
    max: Mapping[str, Quantity] = {}
    min: Mapping[str, Quantity] = {}
    default: Mapping[str, Quantity] = {}
    default_request: Mapping[str, Quantity] = {}
    max_limit_request_ratio: Mapping[str, Quantity] = {}


class LimitRangeSpec(Model, frozen=True, kw_only=True):
    limits: tuple[LimitRangeItem, ...] = ()


class LimitRange(KubernetesObject, frozen=True, kw_only=True):
    """The requests and limits that pods of a namespace may have, and have by default."""

    API_VERSION: ClassVar[str] = "v1"

    spec: LimitRangeSpec = LimitRangeSpec()


class PriorityClass(KubernetesObject, frozen=True, kw_only=True):
    """The priority of the pods that name the class."""

    API_VERSION: ClassVar[str] = "scheduling.k8s.io/v1"

    value: Int32 = 0
    global_default: bool = False
    preemption_policy: str | None = None


class PodDisruptionBudgetSpec(Model, frozen=True, kw_only=True):
    selector: LabelSelector | None = None
    min_available: int | str | None = None
    max_unavailable: int | str | None = None


class PodDisruptionBudgetStatus(Model, frozen=True, kw_only=True):
    disruptions_allowed: Int32 | None = None
    disrupted_pods: Mapping[str, str] = {}


class PodDisruptionBudget(KubernetesObject, frozen=True, kw_only=True):
    """The number of selected pods that may be disrupted at once."""

    API_VERSION: ClassVar[str] = "policy/v1"

    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()
