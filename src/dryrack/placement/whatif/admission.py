"""
Admission in files: what an API server does to pods and claims when it creates them.

A pod gets its priority from its PriorityClass, and requests and limits from the LimitRanges of its
namespace. A pod or claim that exceeds a ResourceQuota, a pod that does not keep to a LimitRange or
names a PriorityClass that does not exist is refused. Objects that a server has stored were admitted
there: they count against quotas, and nothing refuses them.
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
from dryrack.kinds.quota_usage.admission_kinds import LimitRange, PriorityClass, ResourceQuota
from dryrack.kinds.quota_usage.amounts import written
from dryrack.kinds.quota_usage.claims import CLAIMS, ClaimContext, extended_resources
from dryrack.kinds.rules.limit_ranges import LimitRangeRules
from dryrack.kinds.rules.pods.pod_rules import resource_problems
from dryrack.kinds.rules.priorities import SYSTEM_PRIORITIES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from dryrack.kinds.meta import KubernetesObject
    from dryrack.kinds.quantity import Quantity
    from dryrack.kinds.raw import Raw
    from dryrack.kinds.resource import DeviceClass, ResourceClaim
    from dryrack.placement.whatif.world import Party

_PREEMPTS = "PreemptLowerPriority"
_COMPUTE = ("cpu", "memory")
_SYSTEM_CLASSES = tuple(
    PriorityClass(metadata=ObjectMeta(name=name), value=value)
    for name, value in SYSTEM_PRIORITIES.items()
)


@dataclass(frozen=True, slots=True)
class AdmissionRefusal:
    """Why an API server does not create an object, and what would help."""

    fact: str
    remedy: str


@dataclass(frozen=True, slots=True)
class AdmissionRefusals:
    """The pods and claims that are not created, by namespace and name."""

    pods: Mapping[str, AdmissionRefusal] = field(default_factory=dict)
    claims: Mapping[str, AdmissionRefusal] = field(default_factory=dict)


def is_stored(each: Pod | ResourceClaim) -> bool:
    """Return whether an object is one of a cluster, and no manifest that has yet to be applied."""
    if each.metadata.uid:
        return True
    if isinstance(each, Pod):
        return bool(each.spec.node_name)
    return each.status.allocation is not None


def completed_pods(objects: Sequence[KubernetesObject]) -> list[KubernetesObject]:
    """Return the objects, where each pod has its priority and what LimitRanges give it."""
    classes = [each for each in objects if isinstance(each, PriorityClass)]
    ranges = _ranges(objects)
    if not classes and not ranges and not any(map(_names_class, objects)):
        return list(objects)
    named = {each.metadata.name: each for each in (*_SYSTEM_CLASSES, *classes)}
    default = min(
        (each for each in classes if each.global_default), key=lambda it: it.value, default=None
    )
    made: list[KubernetesObject] = []
    for each in objects:
        if isinstance(each, Pod):
            chosen = named.get(each.spec.priority_class_name, default)
            if each.spec.priority_class_name and chosen is default:
                chosen = None
            pod = each if chosen is None else _with_priority(each, chosen)
            made.append(_with_limits(pod, ranges[each.metadata.namespace]))
        else:
            made.append(each)
    return made


def _names_class(each: KubernetesObject) -> bool:
    return isinstance(each, Pod) and bool(each.spec.priority_class_name)


def _has_priority(each: KubernetesObject) -> bool:
    return _names_class(each) or (isinstance(each, Pod) and each.spec.priority is not None)


def _ranges(objects: Iterable[KubernetesObject]) -> dict[str, list[Raw]]:
    """Return the LimitRanges of each namespace, as a server stores them."""
    rules = LimitRangeRules()
    found = defaultdict(list)
    for each in objects:
        if isinstance(each, LimitRange):
            found[each.metadata.namespace].append(rules.default(to_builtins(each)))
    return found


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
    made = limits.add_defaults(raw, ranges)
    return pod if made is raw else decode(made, Pod)


class Admission:
    """Decides about the pods and claims of a world one by one, in the order of their creation."""

    def __init__(
        self,
        facts: Sequence[KubernetesObject],
        classes: Sequence[DeviceClass],
        objects: Sequence[Pod | ResourceClaim],
    ) -> None:
        self._ranges = _ranges(facts)
        self._context = ClaimContext(classes=extended_resources(map(to_builtins, classes)))
        named = [*_SYSTEM_CLASSES, *(each for each in facts if isinstance(each, PriorityClass))]
        self._priorities = {each.metadata.name: each for each in named}
        stored = [each for each in objects if is_stored(each)]
        self._quotas: dict[str, list[Raw]] = defaultdict(list)
        for each in facts:
            if isinstance(each, ResourceQuota):
                own = [it for it in stored if it.metadata.namespace == each.metadata.namespace]
                self._quotas[each.metadata.namespace].append(self._count_usage(each, own))

    def pod(self, pod: Pod) -> AdmissionRefusal | None:
        """Return why a pod is not created; a pod that is created counts from now on."""
        if is_stored(pod):
            return None
        name = pod.spec.priority_class_name
        if name and name not in self._priorities:
            known = hint(name, self._priorities)
            fact = f"no PriorityClass with name {name} was found"
            return AdmissionRefusal(fact, f"add PriorityClass {name!r}; {known}")
        wrong = self._wrong_priority(pod)
        if wrong is not None:
            return wrong
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

    def _wrong_priority(self, pod: Pod) -> AdmissionRefusal | None:
        """Return why a priority that the manifest sets is refused: the class of the pod sets it."""
        chosen = self._priorities.get(pod.spec.priority_class_name)
        value = 0 if chosen is None else chosen.value
        if pod.spec.priority in (None, value):
            return None
        fact = (
            f"the integer value of priority ({pod.spec.priority}) must not be provided in pod "
            f"spec; priority admission controller computed {value} from the given PriorityClass "
            "name"
        )
        return AdmissionRefusal(
            fact, "remove spec.priority, and name a PriorityClass with this value"
        )

    def claim(self, claim: ResourceClaim) -> AdmissionRefusal | None:
        """Return why a claim is not created; a claim that is created counts from now on."""
        namespace = claim.metadata.namespace
        if is_stored(claim) or not self._quotas[namespace]:
            return None
        return self._charge(CLAIMS, namespace, to_builtins(claim))

    def _charge(self, resource: str, namespace: str, raw: Raw) -> AdmissionRefusal | None:
        more = quotas.usage_of(resource, raw, context=self._context)
        after: list[tuple[Raw, dict[str, Quantity]]] = []
        for quota in self._quotas[namespace]:
            if not quotas.matches(quota, resource, raw, self._context):
                continue
            name = quota["metadata"]["name"]
            hard = list(quotas.hard_of(quota))
            names = quotas.names_of(resource, hard, self._context)
            complaint = quotas.complaint(resource, names, raw)
            if complaint:
                return AdmissionRefusal(f"failed quota: {name}: {complaint}", "set them")
            used = quotas.charge(quota, more)
            if isinstance(used, str):
                return AdmissionRefusal(used, f"raise ResourceQuota {name}, or request less")
            if used is not None:
                after.append((quota, used))
        for quota, used in after:
            quota["status"]["used"] = written(used)
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
            used = quotas.counted(raw, lambda kind: of_kind.get(kind, ()), self._context)
            status["used"] = written(used)
        return {**raw, "status": status}


def _raw_pod(pod: Pod) -> Raw:
    """Return the pod as quotas look at it: whether it is BestEffort is in its status."""
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
    facts: Sequence[KubernetesObject],
    classes: Sequence[DeviceClass],
    objects: Sequence[Pod | ResourceClaim],
    party_of: Callable[[Pod], Party],
) -> AdmissionRefusals:
    """Return what is not created of these objects; `party_of` returns a pod with its claims."""
    is_limited = any(isinstance(each, ResourceQuota | LimitRange) for each in facts)
    if not is_limited and not any(map(_has_priority, objects)):
        return AdmissionRefusals()
    admission = Admission(facts, classes, objects)
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
