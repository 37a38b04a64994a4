"""
Admission in files: the checks and defaults of an API server for pods and claims.

A pod gets its priority from its PriorityClass, and requests and limits from the LimitRanges of its
namespace. A pod or claim that exceeds a ResourceQuota is refused, and so is a pod that violates a
LimitRange or names a PriorityClass that does not exist. A server has admitted the objects that it
stores: they count against quotas, and are not refused.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace as changed

from dryrack.allocation import claim_name
from dryrack.base.text import hint
from dryrack.kinds.core import Pod
from dryrack.kinds.decode import decode, to_builtins
from dryrack.kinds.meta import ObjectMeta
from dryrack.kinds.quota_usage import limits, quotas
from dryrack.kinds.quota_usage.admission_kinds import PriorityClass
from dryrack.kinds.quota_usage.amounts import amounts_to_json
from dryrack.kinds.quota_usage.claims import CLAIMS, ClaimContext, extended_resources
from dryrack.kinds.rules.limit_ranges import LimitRangeRules
from dryrack.kinds.rules.pods.pod_rules import resource_problems
from dryrack.kinds.rules.priorities import SYSTEM_PRIORITIES
from dryrack.kinds.scheduling import PodGroupV1Beta1

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from dryrack.kinds.meta import KubernetesObject
    from dryrack.kinds.quantity import Quantity
    from dryrack.kinds.quota_usage.admission_kinds import LimitRange, ResourceQuota
    from dryrack.kinds.raw import Raw
    from dryrack.kinds.resource import DeviceClass, ResourceClaim
    from dryrack.placement.whatif.cluster_context import ClusterContext
    from dryrack.placement.whatif.world import Party

_PREEMPTS = "PreemptLowerPriority"
_COMPUTE = ("cpu", "memory")
_SYSTEM_CLASSES = tuple(
    PriorityClass(metadata=ObjectMeta(name=name), value=value)
    for name, value in SYSTEM_PRIORITIES.items()
)


@dataclass(frozen=True, slots=True)
class AdmissionRefusal:
    """The reason for which an API server does not create an object, and the remedy."""

    fact: str
    remedy: str


@dataclass(frozen=True, slots=True)
class AdmissionRefusals:
    """The pods and claims that are not created, by namespace and name."""

    pods: Mapping[str, AdmissionRefusal] = field(default_factory=dict)
    claims: Mapping[str, AdmissionRefusal] = field(default_factory=dict)


def is_stored(each: Pod | ResourceClaim) -> bool:
    """Return True if an object is stored in a cluster, False for a manifest to be applied."""
    if each.metadata.uid:
        return True
    if isinstance(each, Pod):
        return bool(each.spec.node_name)
    return each.status.allocation is not None


def set_pod_defaults(
    objects: Sequence[Pod | ResourceClaim], context: ClusterContext
) -> tuple[Pod | ResourceClaim, ...]:
    """Return the objects with the priority of each pod, and the defaults of LimitRanges."""
    classes = context.priority_classes
    ranges = _ranges_by_namespace(context.limit_ranges)
    if not classes and not ranges and not any(map(_names_class, objects)):
        return tuple(objects)
    named = {each.metadata.name: each for each in (*_SYSTEM_CLASSES, *classes)}
    default = min(
        (each for each in classes if each.global_default), key=lambda it: it.value, default=None
    )
    completed: list[Pod | ResourceClaim] = []
    for each in objects:
        if isinstance(each, Pod):
            chosen = named.get(each.spec.priority_class_name, default)
            if each.spec.priority_class_name and chosen is default:
                chosen = None
            pod = each if chosen is None else _with_priority(each, chosen)
            completed.append(_with_limits(pod, ranges[each.metadata.namespace]))
        else:
            completed.append(each)
    return tuple(completed)


def set_group_priorities(
    groups: Iterable[KubernetesObject], classes: Sequence[PriorityClass]
) -> tuple[KubernetesObject, ...]:
    """Return the objects with the priorities that admission gives to PodGroups from 1.37 on."""
    named = {each.metadata.name: each for each in (*_SYSTEM_CLASSES, *classes)}

    def complete(group: KubernetesObject) -> KubernetesObject:
        if not isinstance(group, PodGroupV1Beta1) or group.spec.priority is not None:
            return group
        chosen = named.get(group.spec.priority_class_name)
        if chosen is None:
            return group
        return changed(group, spec=changed(group.spec, priority=chosen.value))

    return tuple(map(complete, groups))


def _names_class(each: Pod | ResourceClaim) -> bool:
    return isinstance(each, Pod) and bool(each.spec.priority_class_name)


def _has_priority(each: Pod | ResourceClaim) -> bool:
    return _names_class(each) or (isinstance(each, Pod) and each.spec.priority is not None)


def _ranges_by_namespace(limit_ranges: Iterable[LimitRange]) -> dict[str, list[Raw]]:
    """Return the LimitRanges of each namespace, as a server stores them."""
    rules = LimitRangeRules()
    ranges = defaultdict(list)
    for each in limit_ranges:
        ranges[each.metadata.namespace].append(rules.default(to_builtins(each)))
    return ranges


def _with_priority(pod: Pod, chosen: PriorityClass) -> Pod:
    if pod.spec.priority is not None:
        return pod
    policy = pod.spec.preemption_policy or chosen.preemption_policy or _PREEMPTS
    spec = changed(
        pod.spec,
        priority=chosen.value,
        preemption_policy=policy,
        priority_class_name=chosen.metadata.name,
    )
    return changed(pod, spec=spec)


def _with_limits(pod: Pod, ranges: Sequence[Raw]) -> Pod:
    if not ranges or is_stored(pod):
        return pod
    raw = to_builtins(pod)
    defaulted = limits.add_defaults(raw, ranges)
    return pod if defaulted is raw else decode(defaulted, Pod)


class Admission:
    """Decides about the pods and claims of a world one by one, in the order of their creation."""

    def __init__(
        self,
        context: ClusterContext,
        classes: Sequence[DeviceClass],
        objects: Sequence[Pod | ResourceClaim],
    ) -> None:
        self._ranges = _ranges_by_namespace(context.limit_ranges)
        self._claim_context = ClaimContext(classes=extended_resources(map(to_builtins, classes)))
        named = (*_SYSTEM_CLASSES, *context.priority_classes)
        self._priorities = {each.metadata.name: each for each in named}
        stored = [each for each in objects if is_stored(each)]
        self._quotas: dict[str, list[Raw]] = defaultdict(list)
        for each in context.quotas:
            own = [it for it in stored if it.metadata.namespace == each.metadata.namespace]
            self._quotas[each.metadata.namespace].append(self._count_usage(each, own))

    def pod(self, pod: Pod) -> AdmissionRefusal | None:
        """Return why a pod is not created; a created pod counts from now on."""
        if is_stored(pod):
            return None
        name = pod.spec.priority_class_name
        if name and name not in self._priorities:
            known = hint(name, self._priorities)
            fact = f"no PriorityClass with name {name} was found"
            return AdmissionRefusal(fact, f"add PriorityClass {name!r}; {known}")
        priority = self._priorities[name].value if name in self._priorities else 0
        if pod.spec.priority not in (None, priority):
            fact = (
                f"the integer value of priority ({pod.spec.priority}) must not be provided in pod "
                f"spec; priority admission controller computed {priority} from the given "
                "PriorityClass name"
            )
            remedy = "remove spec.priority, and name a PriorityClass with this value"
            return AdmissionRefusal(fact, remedy)
        namespace = pod.metadata.namespace
        if not self._ranges[namespace] and not self._quotas[namespace]:
            return None
        raw = _raw_pod(pod)
        if self._ranges[namespace]:
            # A default limit may be below what a container requests.
            for problem in resource_problems(raw["spec"]):
                fact = f"{problem.field}: {problem.message}"
                return AdmissionRefusal(fact, "set requests and limits that go together")
        for limit_range in self._ranges[namespace]:
            broken = limits.broken_by_pod(limit_range, raw["spec"])
            if broken:
                remedy = f"keep to LimitRange {limit_range['metadata']['name']}"
                return AdmissionRefusal(limits.format_broken(broken), remedy)
        return self._charge(quotas.PODS, namespace, raw)

    def claim(self, claim: ResourceClaim) -> AdmissionRefusal | None:
        """Return why a claim is not created; a created claim counts from now on."""
        namespace = claim.metadata.namespace
        if is_stored(claim) or not self._quotas[namespace]:
            return None
        return self._charge(CLAIMS, namespace, to_builtins(claim))

    def _charge(self, resource: str, namespace: str, raw: Raw) -> AdmissionRefusal | None:
        more = quotas.usage_of(resource, raw, context=self._claim_context)
        after: list[tuple[Raw, dict[str, Quantity]]] = []
        for quota in self._quotas[namespace]:
            if not quotas.matches(quota, resource, raw, self._claim_context):
                continue
            name = quota["metadata"]["name"]
            hard = list(quotas.hard_of(quota))
            names = quotas.names_of(resource, hard, self._claim_context)
            complaint = quotas.complaint(resource, names, raw)
            if complaint:
                return AdmissionRefusal(f"failed quota: {name}: {complaint}", "set them")
            used = quotas.charge(quota, more)
            if isinstance(used, str):
                return AdmissionRefusal(used, f"raise ResourceQuota {name}, or request less")
            if used is not None:
                after.append((quota, used))
        for quota, used in after:
            quota["status"]["used"] = amounts_to_json(used)
        return None

    def _count_usage(self, quota: ResourceQuota, stored: Sequence[Pod | ResourceClaim]) -> Raw:
        """Return the quota with what objects of a cluster use of it."""
        raw = to_builtins(quota)
        status: dict[str, Any] = {"hard": {}, "used": {}, **raw.get("status", {})}
        status["hard"] = status["hard"] or raw.get("spec", {}).get("hard", {})
        if stored or not status["used"]:
            of_kind = {
                quotas.PODS: [_raw_pod(each) for each in stored if isinstance(each, Pod)],
                CLAIMS: [to_builtins(each) for each in stored if not isinstance(each, Pod)],
            }
            used = quotas.count_usage(raw, lambda kind: of_kind.get(kind, ()), self._claim_context)
            status["used"] = amounts_to_json(used)
        return {**raw, "status": status}


def _raw_pod(pod: Pod) -> Raw:
    """Return the pod for quotas, which read from its status if it is BestEffort."""
    raw = to_builtins(pod)
    containers = (*pod.spec.containers, *pod.spec.init_containers)
    resources = [each.resources for each in containers if each.resources is not None]
    resources += [] if pod.spec.resources is None else [pod.spec.resources]
    asks = any(
        amount.sign
        for each in resources
        for part in (each.requests, each.limits)
        for name, amount in part.items()
        if name in _COMPUTE
    )
    return {**raw, "status": {**raw.get("status", {}), "qosClass": "" if asks else "BestEffort"}}


def refusals(
    context: ClusterContext,
    classes: Sequence[DeviceClass],
    objects: Sequence[Pod | ResourceClaim],
    party_of: Callable[[Pod], Party],
) -> AdmissionRefusals:
    """Return the objects that are not created; `party_of` returns a pod with its claims."""
    is_limited = context.quotas or context.limit_ranges
    if not is_limited and not any(map(_has_priority, objects)):
        return AdmissionRefusals()
    admission = Admission(context, classes, objects)
    pods: dict[str, AdmissionRefusal] = {}
    claims: dict[str, AdmissionRefusal] = {}
    present = {claim_name(each) for each in objects if not isinstance(each, Pod)}
    for each in objects:
        created: Iterable[ResourceClaim] = ()
        if not isinstance(each, Pod):
            created = (each,)
        elif (refused := admission.pod(each)) is not None:
            pods[each.full_name] = refused
        else:
            created = (it for it in party_of(each).from_templates if claim_name(it) not in present)
        for claim in created:
            present.add(claim_name(claim))
            refused = admission.claim(claim)
            if refused is not None:
                claims[claim_name(claim)] = refused
    return AdmissionRefusals(pods, claims)
