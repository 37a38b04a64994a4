"""
Stateful sets: pods with fixed names, created in order and replaced in reverse.

Each pod has PersistentVolumeClaims, one of each template. They are created before their pod and
outlive it, unless the retention policy makes the pod or the set their owner.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dryrack.base.numbers import read_int64
from dryrack.client.endpoints import CONTROLLER_REVISIONS, PODS, STATEFUL_SETS, VOLUME_CLAIMS
from dryrack.client.informer import name_of
from dryrack.controllers.objects import (
    controller_of,
    controller_reference,
    is_deleted,
    is_ready,
    is_terminal,
    labels_of,
    namespaces,
    owners_of,
    spec_of,
    status_of,
    uid_of,
)
from dryrack.controllers.revisions import HASH_LABEL, update_history
from dryrack.controllers.workloads import (
    Candidates,
    OwnerReconciler,
    family_of,
    is_available,
    min_ready_seconds_of,
    pod_from,
    replicas_of,
    status_update,
    waits_for_availability,
)
from dryrack.controllers.writes import (
    NOTHING,
    Create,
    Delete,
    EngineContext,
    Patch,
    Plan,
    Report,
    Write,
)
from dryrack.kinds.paths import get
from dryrack.kinds.raw import Raw
from dryrack.kinds.releases import ControllerBehaviour
from dryrack.kinds.rules.int_or_percent import scaled_value

REVISION_HASH = "controller.kubernetes.io/hash"


Known = Callable[[str], Raw | None]
"""Returns a PersistentVolumeClaim of the set's namespace by name."""


@dataclass(frozen=True, slots=True)
class StatefulSetInputs:
    """Everything that the decision about a stateful set depends on."""

    stateful_set: Raw
    candidates: Sequence[Raw]
    revisions: Sequence[Raw]
    now: float
    behaviour: ControllerBehaviour
    known_claim: Known = lambda name: None
    has_budget: bool = False
    """Whether `maxUnavailable` counts: the feature gate MaxUnavailableStatefulSet."""

    @property
    def wanted(self) -> range:
        return range(self.first, self.first + self.replicas)

    @property
    def first(self) -> int:
        return int(get(self.stateful_set, "spec.ordinals.start") or 0)

    @property
    def replicas(self) -> int:
        return replicas_of(self.stateful_set)

    @property
    def is_ordered(self) -> bool:
        return spec_of(self.stateful_set).get("podManagementPolicy") != "Parallel"

    @property
    def min_ready_seconds(self) -> float:
        return min_ready_seconds_of(self.stateful_set)

    @property
    def partition(self) -> int:
        """The first ordinal whose pod gets the new revision."""
        strategy = get(self.stateful_set, "spec.updateStrategy", {})
        return self.first + int(get(strategy, "rollingUpdate.partition") or 0)

    @property
    def max_unavailable(self) -> int:
        """The number of pods that may be unavailable during an update."""
        wanted = get(self.stateful_set, "spec.updateStrategy.rollingUpdate.maxUnavailable")
        return max(1, scaled_value(wanted, self.replicas, default=1, rounds_up=False))


@dataclass(frozen=True, slots=True)
class Templates:
    """The revision that is rolled out, and the one that it replaces."""

    new: str
    old: str
    old_template: Raw


_DELETE = "Delete"


def plan(inputs: StatefulSetInputs) -> Plan:
    """Return the next step of a stateful set, and its status."""
    stateful_set = inputs.stateful_set
    family = family_of(stateful_set, STATEFUL_SETS, inputs.candidates)
    if family.writes:
        return Plan(family.writes)
    if is_deleted(stateful_set):
        return NOTHING
    status = status_of(stateful_set)
    used = [status.get("currentRevision", ""), status.get("updateRevision", "")]
    history = update_history(
        stateful_set, STATEFUL_SETS, inputs.revisions, in_use=used, label=REVISION_HASH
    )
    templates = _templates(inputs, history.name)
    pods = {ordinal_of(pod): pod for pod in family.members}
    writes = [
        *history.writes,
        *(
            write
            for ordinal, pod in sorted(pods.items())
            for write in retention(
                stateful_set, pod, inputs.known_claim, is_surplus=ordinal not in inputs.wanted
            )
        ),
        *_step(inputs, pods, templates),
        *_status(inputs, pods, templates),
    ]
    wait = waits_for_availability(family.members, inputs.min_ready_seconds, inputs.now)
    return Plan(tuple(writes), wait)


def ordinal_of(pod: Raw) -> int:
    """Return the number at the end of a name, or -1 if there is none."""
    number = read_int64(pod["metadata"]["name"].rpartition("-")[2])
    return -1 if number is None or number < 0 else number


def _templates(inputs: StatefulSetInputs, new: str) -> Templates:
    """Return the revisions; the old one is the current revision of the status, if it exists."""
    current = status_of(inputs.stateful_set).get("currentRevision", "")
    known = {each["metadata"]["name"]: each for each in inputs.revisions}
    template = get(inputs.stateful_set, "spec.template", {})
    if current not in known or current == new:
        return Templates(new, new, template)
    data = known[current]["data"]["spec"]["template"]
    kept = {key: value for key, value in data.items() if key != "$patch"}
    return Templates(new, current, kept)


def _step(inputs: StatefulSetInputs, pods: dict[int, Raw], templates: Templates) -> list[Write]:
    wanted = inputs.wanted
    writes: list[Write] = []
    for ordinal in wanted:
        pod = pods.get(ordinal)
        if pod is None:
            writes += _creation(inputs, ordinal, templates)
        elif is_terminal(pod) and not is_deleted(pod):
            writes += _deletion(inputs, pod)
        elif _is_available(inputs, pod):
            continue
        elif status_of(pod).get("phase") == "Pending" and not is_deleted(pod):
            name = pod["metadata"]["name"]
            writes += missing_claims(inputs.stateful_set, name, inputs.known_claim)
        if inputs.is_ordered:
            return writes
    surplus = sorted((each for each in pods if each not in wanted), reverse=True)
    for ordinal in surplus:
        if not is_deleted(pods[ordinal]):
            writes += _deletion(inputs, pods[ordinal])
        if inputs.is_ordered:
            return writes
    return writes or _update(inputs, pods, templates)


def _deletion(inputs: StatefulSetInputs, pod: Raw) -> list[Write]:
    owner = inputs.stateful_set
    action = f"delete Pod {pod['metadata']['name']} in StatefulSet {owner['metadata']['name']}"
    report = Report(owner, "Normal", "SuccessfulDelete", f"{action} successful")
    return [Delete(PODS, name_of(pod), uid_of(pod)), report]


def _is_available(inputs: StatefulSetInputs, pod: Raw) -> bool:
    return not is_deleted(pod) and is_available(pod, inputs.min_ready_seconds, inputs.now)


def _update(inputs: StatefulSetInputs, pods: dict[int, Raw], templates: Templates) -> list[Write]:
    """Return the deletions of pods with an old revision, from the last pod to the first."""
    if get(inputs.stateful_set, "spec.updateStrategy.type") == "OnDelete":
        return []
    if inputs.has_budget:
        return _update_within_budget(inputs, pods, templates)
    for ordinal in reversed(range(inputs.partition, inputs.wanted.stop)):
        pod = pods.get(ordinal)
        if pod is None or is_deleted(pod):
            return []
        if labels_of(pod).get(HASH_LABEL) != templates.new:
            return _deletion(inputs, pod)
        if not _is_available(inputs, pod):
            return []
    return []


def _update_within_budget(
    inputs: StatefulSetInputs, pods: dict[int, Raw], templates: Templates
) -> list[Write]:
    """
    Delete pods with an old revision while at most `maxUnavailable` pods are unavailable.

    With the policy Parallel, deleting an old pod that is unavailable anyway takes nothing from the
    budget. With OrderedReady all pods that are not deleted are available here.
    """
    existing = [pods[ordinal] for ordinal in inputs.wanted if ordinal in pods]
    available = sum(_is_available(inputs, pod) for pod in existing)
    budget = inputs.max_unavailable - (inputs.replicas - available)
    old = [
        pods[ordinal]
        for ordinal in reversed(range(inputs.partition, inputs.wanted.stop))
        if ordinal in pods
        and not is_deleted(pods[ordinal])
        and labels_of(pods[ordinal]).get(HASH_LABEL) != templates.new
    ]
    stuck = [] if inputs.is_ordered else [pod for pod in old if not _is_available(inputs, pod)]
    others = [pod for pod in old if pod not in stuck]
    return [
        write for pod in (*stuck, *others[: max(0, budget)]) for write in _deletion(inputs, pod)
    ]


def _creation(inputs: StatefulSetInputs, ordinal: int, templates: Templates) -> list[Write]:
    owner = inputs.stateful_set
    is_old = ordinal < inputs.partition and templates.old != templates.new
    template = templates.old_template if is_old else get(owner, "spec.template", {})
    pod = pod_from(template, owner, STATEFUL_SETS)
    name = f"{owner['metadata']['name']}-{ordinal}"
    labels = get(pod["metadata"], "labels", {}) | {
        "apps.kubernetes.io/pod-index": str(ordinal),
        "statefulset.kubernetes.io/pod-name": name,
        HASH_LABEL: templates.old if is_old else templates.new,
    }
    spec = {"subdomain": spec_of(owner).get("serviceName", "")} | pod["spec"] | {"hostname": name}
    volumes = volumes_of(owner, name)
    if volumes:
        own = {volume["name"] for volume in volumes}
        others = [each for each in get(spec, "volumes", ()) if each["name"] not in own]
        spec["volumes"] = [*volumes, *others]
    action = f"create Pod {name} in StatefulSet {owner['metadata']['name']}"
    deleted = deleted_claim(owner, name, inputs.known_claim)
    if deleted:
        message = f"{action} failed error: pvc {deleted} is being deleted"
        return [Report(owner, "Warning", "FailedCreate", message, message)]
    creation = Create(
        PODS,
        {"metadata": pod["metadata"] | {"name": name, "labels": labels}, "spec": spec},
        refused=Report(owner, "Warning", "FailedCreate", f"{action} failed error: {{}}"),
        accepted=Report(owner, "Normal", "SuccessfulCreate", f"{action} successful"),
    )
    return [*missing_claims(owner, name, inputs.known_claim), creation]


def _status(inputs: StatefulSetInputs, pods: dict[int, Raw], templates: Templates) -> list[Write]:
    owner = inputs.stateful_set
    old = status_of(owner)
    existing = [pod for pod in pods.values() if not is_terminal(pod)]
    living = [pod for pod in existing if not is_deleted(pod)]
    updated = sum(labels_of(pod).get(HASH_LABEL) == templates.new for pod in living)
    ready = [pod for pod in existing if is_ready(pod)]
    available = sum(is_available(pod, inputs.min_ready_seconds, inputs.now) for pod in ready)
    current = sum(labels_of(pod).get(HASH_LABEL) == templates.old for pod in living)
    strategy = get(owner, "spec.updateStrategy.type")
    can_complete = strategy != "OnDelete" or inputs.behaviour.on_delete_completes
    is_complete = can_complete and updated == inputs.replicas == len(ready) == len(existing)
    counts = {
        "readyReplicas": len(ready),
        "currentReplicas": updated if is_complete else current,
        "updatedReplicas": updated,
        "observedGeneration": owner["metadata"].get("generation"),
    }
    status = {key: value for key, value in counts.items() if value} | {
        "replicas": len(existing),
        "availableReplicas": available,
        "collisionCount": old.get("collisionCount", 0),
        "currentRevision": templates.new if is_complete else templates.old,
        "updateRevision": templates.new,
    }
    if old.get("conditions") and inputs.behaviour.stateful_sets_keep_conditions:
        status["conditions"] = old["conditions"]
    return status_update(STATEFUL_SETS, owner, status)


class StatefulSetController(OwnerReconciler):
    """Keeps the pods, claims and status of stateful sets."""

    def __init__(self, context: EngineContext) -> None:
        super().__init__(context, "statefulset-controller", STATEFUL_SETS)
        self._has_budget = context.features.is_on("MaxUnavailableStatefulSet")
        self._sets = self.owners.index("by namespace", namespaces)
        self._history = Candidates(self.watch(CONTROLLER_REVISIONS))
        self._claims = self.watch(VOLUME_CLAIMS, self._on_claim)

    def _on_claim(self, old: Raw | None, new: Raw | None) -> None:
        """Decide the set again: a pod may wait until a deleted claim is created anew."""
        if old is None or new is not None:
            return
        namespace, claim = name_of(old)
        for each in self._sets.get(namespace):
            if is_claim_of(each, claim):
                self.queue.add(name_of(each))

    def plan_owner(self, stateful_set: Raw) -> Plan:
        namespace = stateful_set["metadata"]["namespace"]
        return plan(
            StatefulSetInputs(
                stateful_set,
                self.candidates.of(stateful_set),
                self._history.controlled(stateful_set),
                self._clock.now(),
                self._context.behaviour,
                lambda claim: self._claims.get(namespace, claim),
                self._has_budget,
            )
        )


def volumes_of(stateful_set: Raw, pod: str) -> list[Raw]:
    """Return the volumes of a pod's own claims."""
    return [
        {"name": name, "persistentVolumeClaim": {"claimName": f"{name}-{pod}"}}
        for name in (each["metadata"]["name"] for each in _claim_templates(stateful_set))
    ]


def missing_claims(stateful_set: Raw, pod: str, known: Known) -> list[Write]:
    """Create the claims that a pod with this name needs and that do not exist."""
    claims = [_claim(stateful_set, template, pod) for template in _claim_templates(stateful_set)]
    return [
        _claim_creation(stateful_set, claim, pod)
        for claim in claims
        if known(claim["metadata"]["name"]) is None
    ]


def deleted_claim(stateful_set: Raw, pod: str, known: Known) -> str:
    """Return the name of a claim of a pod that is being deleted, or ""."""
    names = [each["persistentVolumeClaim"]["claimName"] for each in volumes_of(stateful_set, pod)]
    return next((name for name in names if (found := known(name)) and is_deleted(found)), "")


def is_claim_of(stateful_set: Raw, claim: str) -> bool:
    """Return True if a claim with this name belongs to the set."""
    stem = claim.rpartition("-")[0]
    name = stateful_set["metadata"]["name"]
    return stem in [f"{each['metadata']['name']}-{name}" for each in _claim_templates(stateful_set)]


def _claim_templates(stateful_set: Raw) -> Sequence[Raw]:
    return get(stateful_set, "spec.volumeClaimTemplates", ())


def _claim(stateful_set: Raw, template: Raw, pod: str) -> Raw:
    given = template["metadata"]
    selector = get(stateful_set, "spec.selector", {})
    metadata = {
        "name": f"{given['name']}-{pod}",
        "namespace": stateful_set["metadata"]["namespace"],
        "labels": get(given, "labels", {}) | get(selector, "matchLabels", {}),
    }
    if given.get("annotations"):
        metadata["annotations"] = given["annotations"]
    return {"metadata": metadata, "spec": spec_of(template)}


def _claim_creation(stateful_set: Raw, claim: Raw, pod: str) -> Write:
    name = claim["metadata"]["name"]
    whose = f"in StatefulSet {stateful_set['metadata']['name']}"
    return Create(
        VOLUME_CLAIMS,
        claim,
        refused=Report(
            stateful_set,
            "Warning",
            "FailedCreate",
            f"Create Claim {name} for Pod {pod} {whose} failed error: {{}}",
        ),
        accepted=Report(
            stateful_set,
            "Normal",
            "SuccessfulCreate",
            f"Create Claim {name} Pod {pod} {whose} success",
        ),
    )


def retention(stateful_set: Raw, pod: Raw, known: Known, *, is_surplus: bool) -> list[Write]:
    """Make the set, the pod or nothing the owner of a pod's claims, which deletes them with it."""
    mounted = volumes_of(stateful_set, pod["metadata"]["name"])
    claims = [known(volume["persistentVolumeClaim"]["claimName"]) for volume in mounted]
    policy = get(stateful_set, "spec.persistentVolumeClaimRetentionPolicy", {})
    owner = None
    if is_surplus and policy.get("whenScaled") == _DELETE:
        owner = controller_reference(pod, PODS)
    elif policy.get("whenDeleted") == _DELETE:
        owner = controller_reference(stateful_set, STATEFUL_SETS)
    ours = (uid_of(stateful_set), uid_of(pod))
    return [
        write
        for claim in claims
        if claim is not None and _is_ours(claim, ours)
        for write in _own_claim(claim, owner, ours)
    ]


def _is_ours(claim: Raw, ours: tuple[str, str]) -> bool:
    controller = controller_of(claim)
    return controller is None or controller["uid"] in ours


def _own_claim(claim: Raw, owner: Raw | None, ours: tuple[str, str]) -> list[Write]:
    others = [each for each in owners_of(claim) if each["uid"] not in ours]
    owners = [*others, owner] if owner else others
    if owners == list(owners_of(claim)):
        return []
    metadata = claim["metadata"]
    identity = {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}
    patch = {"metadata": identity | {"ownerReferences": owners or None}}
    return [Patch(VOLUME_CLAIMS, name_of(claim), patch)]
