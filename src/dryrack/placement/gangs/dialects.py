"""
Dialects of gangs: one `Gang` for every format that groups pods.

Pods name their gang by labels (kubenexus' and those of scheduler-plugins, with the minimum in a
label), by the label of a `scheduling.x-k8s.io` PodGroup, by `spec.workloadRef` (1.35: a pod group
within a Workload, perhaps one of many replicas), or by `spec.schedulingGroup` (from 1.36 on: a
PodGroup). `membership` reads a pod, `definitions` an object, and `gang_of` combines both.

A mistake is a returned `Flaw` with its remedy, for the condition and the event of the pod; nothing
here raises. As in kubenexus, a pod that lacks one of the two labels, or whose minimum is one, is in
no gang.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from dryrack.base.numbers import read_int64
from dryrack.kinds.scheduling import (
    CoschedulingPodGroup,
    PodGroup,
    PodGroupV1Beta1,
    PodGroupV1Beta1Spec,
    WorkloadV1Alpha1,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dryrack.kinds.core import Pod
    from dryrack.kinds.meta import KubernetesObject
    from dryrack.kinds.scheduling import PodGroupResourceClaim, PodGroupSchedulingPolicy

# The kinds that define gangs.
GROUPS = (CoschedulingPodGroup, PodGroup, PodGroupV1Beta1, WorkloadV1Alpha1)

# If a pod has both, the first counts, as in kubenexus.
LABEL_PREFIXES = ("pod-group.scheduling.kubenexus.io", "pod-group.scheduling.sigs.k8s.io")
_NAME = "name"
MINIMUM = "min-available"
# A gang that has waited for so long precedes all others, as in the seed's plugin.
STARVATION_SECONDS = 60.0
# The labels of a pod that state the minimum of its gang.
MINIMUM_LABELS = tuple(f"{prefix}/{MINIMUM}" for prefix in LABEL_PREFIXES)


class Dialect(Enum):
    """The format that defines a gang; the value is its name in messages."""

    LABELS = "pod group"
    COSCHEDULING = "PodGroup.scheduling.x-k8s.io"
    WORKLOAD = "Workload"
    POD_GROUP = "PodGroup"


class GangKey(NamedTuple):
    """The identity of a gang, equal for all its members."""

    dialect: Dialect
    namespace: str
    name: str
    # For a Workload of 1.35, the pod group and its replica.
    group: str = ""
    replica: str = ""

    @property
    def definition(self) -> GangKey:
        """Return the key of its definition, which replicas share."""
        return self._replace(replica="")

    def __str__(self) -> str:
        text = f"{self.dialect.value} {self.namespace}/{self.name}"
        text += f", group {self.group}" if self.group else ""
        return text + (f", replica {self.replica}" if self.replica else "")


@dataclass(frozen=True, slots=True)
class Flaw:
    """A mistake in the grouping of pods, and its remedy."""

    fact: str
    remedy: str

    @property
    def message(self) -> str:
        return f"{self.fact}; {self.remedy}"


@dataclass(frozen=True, slots=True)
class Membership:
    """The gang of a pod, and the minimum if the pod's labels state it."""

    key: GangKey
    min_count: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """The definition of a gang by an object."""

    key: GangKey
    min_count: int
    uid: str = ""
    created: str = ""
    priority: int | None = None
    timeout_seconds: int | None = None
    # The label of nodes that must have the same value for all members.
    topology_key: str = ""
    claims: tuple[PodGroupResourceClaim, ...] = ()
    # Whether preemption deletes all members or none.
    disrupted_whole: bool = False
    flaw: Flaw | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Gang:
    """
    Pods of which at least `min_count` are placed together, or none.

    Its priority is that of its group, or else the lowest of its members, so that no member preempts
    a pod that it may not preempt. It is as old as its group, or as its oldest member.
    """

    key: GangKey
    min_count: int
    members: tuple[Pod, ...]
    priority: int = 0
    # The priority that its group states.
    group_priority: int | None = None
    created: str = ""
    timeout_seconds: int | None = None
    topology_key: str = ""
    claims: tuple[PodGroupResourceClaim, ...] = ()
    disrupted_whole: bool = False

    @property
    def too_few(self) -> str:
        """Return the message of a gang with too few members to run; empty if it has enough."""
        return self.too_few_with(len(self.members))

    def too_few_with(self, number: int) -> str:
        """Return the message of the gang if it had so many members; empty if it had enough."""
        if number >= self.min_count:
            return ""
        pods = "1 pod" if number == 1 else f"{number} pods"
        return (
            f"{self.key} has {pods}, needs at least {self.min_count}; "
            f"create {self.min_count - number} more, or lower the minimum"
        )


def membership(pod: Pod) -> Membership | Flaw | None:
    """Return the gang that the pod names; a Flaw if it names it wrongly, or several."""
    namespace = pod.metadata.namespace
    spec = pod.spec
    gangs: dict[GangKey, Membership] = {}
    for prefix in LABEL_PREFIXES:
        by_labels = _membership_by_labels(pod, prefix)
        if isinstance(by_labels, Flaw):
            return by_labels
        if by_labels is not None:
            gangs.setdefault(by_labels.key, by_labels)
    keys: list[GangKey] = []
    name = pod.metadata.labels.get(CoschedulingPodGroup.POD_LABEL)
    if name:
        keys.append(GangKey(Dialect.COSCHEDULING, namespace, name))
    ref = spec.workload_ref
    if ref is not None:
        replica = ref.pod_group_replica_key
        keys.append(GangKey(Dialect.WORKLOAD, namespace, ref.name, ref.pod_group, replica))
    if spec.scheduling_group is not None and spec.scheduling_group.pod_group_name:
        name = spec.scheduling_group.pod_group_name
        keys.append(GangKey(Dialect.POD_GROUP, namespace, name))
    gangs |= {key: Membership(key) for key in keys}
    if len(gangs) > 1:
        named = " and ".join(str(key) for key in gangs)
        return Flaw(f"pod {pod.full_name} is in {len(gangs)} gangs: {named}", "keep only one")
    return next(iter(gangs.values()), None)


def key_of(pod: Pod) -> GangKey | None:
    """Return the gang of the pod; None if it is in none, or names it wrongly."""
    gang = membership(pod)
    return gang.key if isinstance(gang, Membership) else None


def _membership_by_labels(pod: Pod, prefix: str) -> Membership | Flaw | None:
    labels = pod.metadata.labels
    label = f"{prefix}/{MINIMUM}"
    name = labels.get(f"{prefix}/{_NAME}")
    minimum = labels.get(label)
    if not name or not minimum:
        return None
    where = f"pod {pod.full_name}, label {label}: {minimum!r}"
    remedy = 'set the number of pods that must run together, for example "3"'
    count = read_int64(minimum)
    if count is None:
        return Flaw(f"{where} is not a whole number", remedy)
    if count < 1:
        return Flaw(f"{where} is less than 1", remedy)
    if count == 1:
        return None
    return Membership(GangKey(Dialect.LABELS, pod.metadata.namespace, name), count)


def definitions(each: KubernetesObject) -> tuple[Definition, ...]:
    """Return the gangs that an object defines; a Workload of later releases defines none."""
    if isinstance(each, CoschedulingPodGroup):
        return (_definition_of_coscheduling(each),)
    if isinstance(each, PodGroup | PodGroupV1Beta1):
        return (_definition_of_pod_group(each),)
    if not isinstance(each, WorkloadV1Alpha1):
        return ()
    definitions = []
    for group in each.spec.pod_groups:
        namespace = each.metadata.namespace
        key = GangKey(Dialect.WORKLOAD, namespace, each.metadata.name, group.name)
        minimum, flaw = _minimum(key, group.policy, "policy")
        definition = Definition(
            key=key,
            min_count=minimum,
            uid=each.metadata.uid,
            created=each.metadata.creation_timestamp or "",
            flaw=flaw,
        )
        definitions.append(definition)
    return tuple(definitions)


def _definition_of_coscheduling(each: CoschedulingPodGroup) -> Definition:
    metadata = each.metadata
    minimum = each.spec.min_member
    key = GangKey(Dialect.COSCHEDULING, metadata.namespace, metadata.name)
    flaw = None
    if minimum < 1:
        flaw = Flaw(f"{key}, spec.minMember: {minimum} is less than 1", "set 1 or more")
    return Definition(
        key=key,
        min_count=minimum,
        uid=metadata.uid,
        created=metadata.creation_timestamp or "",
        timeout_seconds=each.spec.schedule_timeout_seconds,
        flaw=flaw,
    )


def _definition_of_pod_group(each: PodGroup | PodGroupV1Beta1) -> Definition:
    metadata = each.metadata
    spec = each.spec
    key = GangKey(Dialect.POD_GROUP, metadata.namespace, metadata.name)
    minimum, flaw = _minimum(key, spec.scheduling_policy, "spec.schedulingPolicy")
    if isinstance(spec, PodGroupV1Beta1Spec) and spec.parent_composite_pod_group_name:
        composite = f"CompositePodGroup {spec.parent_composite_pod_group_name}"
        fact = f"{key} is a part of {composite}, which dryrack does not schedule as a whole"
        flaw = flaw or Flaw(fact, "remove spec.parentCompositePodGroupName")
    topology = spec.scheduling_constraints.topology if spec.scheduling_constraints else ()
    mode = spec.disruption_mode
    return Definition(
        key=key,
        min_count=minimum,
        uid=metadata.uid,
        created=metadata.creation_timestamp or "",
        priority=spec.priority,
        topology_key=topology[0].key if topology else "",
        claims=spec.resource_claims,
        # A string in 1.36, a choice of two fields from 1.37 on.
        disrupted_whole=mode == "PodGroup" if isinstance(mode, str) else bool(mode and mode.all),
        flaw=flaw,
    )


def _minimum(key: GangKey, policy: PodGroupSchedulingPolicy, field: str) -> tuple[int, Flaw | None]:
    """Return how many pods have to be placed together: 1 with the basic policy."""
    if policy.gang is None:
        remedy = "set gang: {minCount: …} or basic: {}"
        return 1, None if policy.basic is not None else Flaw(f"{key}, {field}: is empty", remedy)
    minimum = policy.gang.min_count
    if minimum >= 1:
        return minimum, None
    return minimum, Flaw(f"{key}, {field}.gang.minCount: {minimum} is less than 1", "set 1 or more")


def gang_of(
    key: GangKey, members: Sequence[Pod], known: Mapping[GangKey, Definition]
) -> Gang | Flaw:
    """
    Return the gang of these members, which all name it.

    `known` are definitions by their keys. Members are placed in this order.
    """
    definition = known.get(key.definition)
    if key.dialect is Dialect.LABELS:
        minimum = _common_minimum(key, members)
        if isinstance(minimum, Flaw):
            return minimum
        definition = Definition(key=key, min_count=minimum)
    if definition is None:
        what = str(key.definition)
        return Flaw(f"{what} does not exist", "create it, or remove the pods from it")
    if definition.flaw is not None:
        return definition.flaw
    priority = definition.priority
    if priority is None:
        priority = min((pod.spec.priority or 0 for pod in members), default=0)
    ages = [pod.metadata.creation_timestamp for pod in members]
    return Gang(
        key=key,
        min_count=definition.min_count,
        members=tuple(members),
        priority=priority,
        group_priority=definition.priority,
        created=definition.created or min(filter(None, ages), default=""),
        timeout_seconds=definition.timeout_seconds,
        topology_key=definition.topology_key,
        claims=definition.claims,
        disrupted_whole=definition.disrupted_whole,
    )


def _common_minimum(key: GangKey, members: Sequence[Pod]) -> int | Flaw:
    """Return the minimum in the labels of all members; a Flaw if they differ."""
    first: dict[int, str] = {}
    for pod in members:
        gang = membership(pod)
        if isinstance(gang, Membership) and gang.min_count is not None:
            first.setdefault(gang.min_count, pod.full_name)
    if len(first) == 1:
        return next(iter(first))
    values = ", ".join(f"{minimum} ({pod})" for minimum, pod in sorted(first.items()))
    return Flaw(
        f"{key}: its pods have different values of {MINIMUM}: {values}", "use one value for all"
    )
