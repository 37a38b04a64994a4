"""
One `Gang` behind every way to say that pods belong together.

Pods say it by labels (kubenexus' and those of scheduler-plugins, with the minimum in a label), by
the label of a `scheduling.x-k8s.io` PodGroup, by `spec.workloadRef` (1.35: a pod group within a
Workload, perhaps one of many replicas), or by `spec.schedulingGroup` (from 1.36 on: a PodGroup).
`membership` reads a pod, `definitions` an object, and `gang_of` puts the two together.

What is wrong is a value that says what and how to put it right, for the condition and the event of
the pod; nothing here raises. As in kubenexus, a pod that lacks one of the two labels, or whose
minimum is one, is in no gang.
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
    WorkloadV1Alpha1,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from dryrack.kinds.core import Pod
    from dryrack.kinds.meta import KubernetesObject
    from dryrack.kinds.scheduling import PodGroupResourceClaim, PodGroupSchedulingPolicy

# The kinds that say something about gangs.
GROUPS = (CoschedulingPodGroup, PodGroup, PodGroupV1Beta1, WorkloadV1Alpha1)

# The first goes before the second where a pod has both, as in kubenexus.
LABEL_PREFIXES = ("pod-group.scheduling.kubenexus.io", "pod-group.scheduling.sigs.k8s.io")
_NAME = "name"
MINIMUM = "min-available"
# The labels of a pod that state the minimum of its gang.
MINIMUM_LABELS = tuple(f"{prefix}/{MINIMUM}" for prefix in LABEL_PREFIXES)


class Dialect(Enum):
    """Who says what a gang is; the value is what a person calls it."""

    LABELS = "pod group"
    COSCHEDULING = "PodGroup.scheduling.x-k8s.io"
    WORKLOAD = "Workload"
    POD_GROUP = "PodGroup"


class GangKey(NamedTuple):
    """Which gang; the same for all its members."""

    dialect: Dialect
    namespace: str
    name: str
    # In a Workload of 1.35, which of its pod groups, and which replica of that.
    group: str = ""
    replica: str = ""

    @property
    def definition(self) -> GangKey:
        """By which its definition is known; replicas share one."""
        return self._replace(replica="")

    def __str__(self) -> str:
        text = f"{self.dialect.value} {self.namespace}/{self.name}"
        text += f", group {self.group}" if self.group else ""
        return text + (f", replica {self.replica}" if self.replica else "")


@dataclass(frozen=True, slots=True)
class Flaw:
    """What is wrong with how pods are grouped, and what would put it right."""

    fact: str
    remedy: str

    @property
    def message(self) -> str:
        return f"{self.fact}; {self.remedy}"


@dataclass(frozen=True, slots=True)
class Membership:
    """That a pod is in a gang; the minimum where it is the pod that says it, else none."""

    key: GangKey
    min_count: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """What an object says about a gang."""

    key: GangKey
    min_count: int
    uid: str = ""
    created: str = ""
    priority: int | None = None
    timeout_seconds: int | None = None
    # All members are on nodes with one and the same value of this label.
    topology_key: str = ""
    claims: tuple[PodGroupResourceClaim, ...] = ()
    # Whether preemption takes all members or none.
    disrupted_whole: bool = False
    flaw: Flaw | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Gang:
    """
    Pods of which at least so many are placed together, or none.

    Its priority is that of its group, else the lowest of its members, so that none of them pushes
    aside what it may not. It is as old as its group, else as its oldest member.
    """

    key: GangKey
    min_count: int
    members: tuple[Pod, ...]
    priority: int = 0
    created: str = ""
    timeout_seconds: int | None = None
    topology_key: str = ""
    claims: tuple[PodGroupResourceClaim, ...] = ()
    disrupted_whole: bool = False

    @property
    def too_few(self) -> str:
        """What to say of a gang that has not enough members to run; empty if it has."""
        return self.too_few_with(len(self.members))

    def too_few_with(self, number: int) -> str:
        """The same if it had so many."""
        if number >= self.min_count:
            return ""
        return (
            f"{self.key} has {_pods(number)}, needs at least {self.min_count}; "
            f"create {self.min_count - number} more, or lower the minimum"
        )


def membership(pod: Pod) -> Membership | Flaw | None:
    """The gang that a pod says it is in."""
    found: dict[GangKey, Membership] = {}
    for each in _said(pod):
        if isinstance(each, Flaw):
            return each
        found.setdefault(each.key, each)
    if len(found) > 1:
        named = " and ".join(str(key) for key in found)
        return Flaw(f"pod {pod.full_name} is in {len(found)} gangs: {named}", "keep only one")
    return next(iter(found.values()), None)


def _said(pod: Pod) -> Iterator[Membership | Flaw]:
    namespace = pod.metadata.namespace
    labels = pod.metadata.labels
    spec = pod.spec
    for prefix in LABEL_PREFIXES:
        said = _by_labels(pod, prefix)
        if said is not None:
            yield said
    if labels.get(CoschedulingPodGroup.POD_LABEL):
        name = labels[CoschedulingPodGroup.POD_LABEL]
        yield Membership(GangKey(Dialect.COSCHEDULING, namespace, name))
    if spec.workload_ref is not None:
        ref = spec.workload_ref
        key = (Dialect.WORKLOAD, namespace, ref.name, ref.pod_group, ref.pod_group_replica_key)
        yield Membership(GangKey(*key))
    if spec.scheduling_group is not None and spec.scheduling_group.pod_group_name:
        name = spec.scheduling_group.pod_group_name
        yield Membership(GangKey(Dialect.POD_GROUP, namespace, name))


def _by_labels(pod: Pod, prefix: str) -> Membership | Flaw | None:
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
    """What an object says about gangs; a Workload of later releases has templates, and no gang."""
    if isinstance(each, CoschedulingPodGroup):
        return (_coscheduling(each),)
    if isinstance(each, WorkloadV1Alpha1):
        return tuple(_groups(each))
    if isinstance(each, PodGroup | PodGroupV1Beta1):
        return (_pod_group(each),)
    return ()


def _coscheduling(each: CoschedulingPodGroup) -> Definition:
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


def _groups(each: WorkloadV1Alpha1) -> Iterator[Definition]:
    metadata = each.metadata
    for group in each.spec.pod_groups:
        key = GangKey(Dialect.WORKLOAD, metadata.namespace, metadata.name, group.name)
        minimum, flaw = _minimum(key, group.policy, "policy")
        yield Definition(
            key=key,
            min_count=minimum,
            uid=metadata.uid,
            created=metadata.creation_timestamp or "",
            flaw=flaw,
        )


def _pod_group(each: PodGroup | PodGroupV1Beta1) -> Definition:
    metadata = each.metadata
    spec = each.spec
    key = GangKey(Dialect.POD_GROUP, metadata.namespace, metadata.name)
    minimum, flaw = _minimum(key, spec.scheduling_policy, "spec.schedulingPolicy")
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
        # A word in 1.36, a choice of two fields from 1.37 on.
        disrupted_whole=mode == "PodGroup" if isinstance(mode, str) else bool(mode and mode.all),
        flaw=flaw,
    )


def _minimum(key: GangKey, policy: PodGroupSchedulingPolicy, field: str) -> tuple[int, Flaw | None]:
    """How many pods have to be placed together; each by itself where the policy is basic."""
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
    The gang of these members, which all name it.

    `known` are definitions by their keys; the order of the members is the one to place them in.
    """
    if key.dialect is Dialect.LABELS:
        minimum = _agreed(key, members)
        if isinstance(minimum, Flaw):
            return minimum
        return _gang(key, members, Definition(key=key, min_count=minimum))
    definition = known.get(key.definition)
    if definition is None:
        what = str(key.definition)
        return Flaw(f"{what} does not exist", "create it, or remove the pods from it")
    return definition.flaw or _gang(key, members, definition)


def _gang(key: GangKey, members: Sequence[Pod], definition: Definition) -> Gang:
    priority = definition.priority
    if priority is None:
        priority = min((pod.spec.priority or 0 for pod in members), default=0)
    ages = [pod.metadata.creation_timestamp for pod in members]
    return Gang(
        key=key,
        min_count=definition.min_count,
        members=tuple(members),
        priority=priority,
        created=definition.created or min(filter(None, ages), default=""),
        timeout_seconds=definition.timeout_seconds,
        topology_key=definition.topology_key,
        claims=definition.claims,
        disrupted_whole=definition.disrupted_whole,
    )


def _agreed(key: GangKey, members: Sequence[Pod]) -> int | Flaw:
    """The minimum that all members name."""
    first: dict[int, str] = {}
    for pod in members:
        said = membership(pod)
        if isinstance(said, Membership) and said.min_count is not None:
            first.setdefault(said.min_count, pod.full_name)
    if len(first) == 1:
        return next(iter(first))
    told = ", ".join(f"{minimum} ({pod})" for minimum, pod in sorted(first.items()))
    return Flaw(
        f"{key}: its pods have different values of {MINIMUM}: {told}", "use one value for all"
    )


def _pods(number: int) -> str:
    return "1 pod" if number == 1 else f"{number} pods"
