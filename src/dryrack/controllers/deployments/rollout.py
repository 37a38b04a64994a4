"""
Deployments: create a replica set for the template, move pods to it, and report the status.

Each decision does one step: adopt, create the new replica set, or resize. The replica sets show the
progress, so a rollout continues where it stopped.
"""

from collections.abc import Mapping, Sequence

from dryrack.base.numbers import read_int64
from dryrack.client.endpoints import DEPLOYMENTS, PODS, REPLICA_SETS
from dryrack.client.informer import name_of
from dryrack.controllers.deployments.progress import progress
from dryrack.controllers.deployments.scaling import (
    DESIRED_REPLICAS,
    MAX_REPLICAS,
    Limits,
    grow,
    in_proportion,
    is_resized,
    limits_of,
    shrink,
)
from dryrack.controllers.objects import (
    annotations_of,
    controller_reference,
    is_deleted,
    is_terminal,
    labels_of,
    spec_of,
    status_of,
    uid_of,
    with_metadata,
)
from dryrack.controllers.workloads import (
    Candidates,
    OwnerReconciler,
    family_of,
    owner_key,
    replicas_of,
    status_update,
    template_hash,
)
from dryrack.controllers.writes import (
    Create,
    Delete,
    EngineContext,
    Plan,
    Report,
    Update,
    Write,
)
from dryrack.kinds.paths import get, metadata_of
from dryrack.kinds.raw import Raw

REVISION = "deployment.kubernetes.io/revision"
HASH_LABEL = "pod-template-hash"
HISTORY_DEFAULT = 10
_NOT_COPIED = frozenset(
    {
        "kubectl.kubernetes.io/last-applied-configuration",
        REVISION,
        "deployment.kubernetes.io/revision-history",
        DESIRED_REPLICAS,
        MAX_REPLICAS,
        "deprecated.deployment.rollback.to",
    }
)


def plan(
    deployment: Raw, candidates: Sequence[Raw], pods: Mapping[str, Sequence[Raw]], now: float
) -> Plan:
    """Return the next step of a deployment; `pods` has the pods of each replica set, by its UID."""
    family = family_of(deployment, DEPLOYMENTS, candidates, of=REPLICA_SETS)
    if family.writes:
        return Plan(family.writes)
    every = sorted(family.members, key=_age)
    new = newest(deployment, every)
    if is_deleted(deployment):
        return _with_status((), deployment, every, new=new, now=now)
    old = [each for each in every if each is not new]
    writes = tuple(_step(deployment, new, old, pods))
    return _with_status(writes, deployment, every, new=new, now=now)


def _with_status(
    writes: tuple[Write, ...], deployment: Raw, every: Sequence[Raw], *, new: Raw | None, now: float
) -> Plan:
    status, again_seconds = progress(deployment, every, new, now)
    annotations = dict(annotations_of(deployment))
    revision = annotations_of(new).get(REVISION) if new else None
    if revision:
        annotations[REVISION] = revision
    numbered = with_metadata(deployment, annotations=annotations or None)
    if numbered["metadata"] != deployment["metadata"]:
        writes = (*writes, Update(DEPLOYMENTS, numbered))
    return Plan((*writes, *status_update(DEPLOYMENTS, numbered, status)), again_seconds)


def _step(
    deployment: Raw,
    new: Raw | None,
    old: Sequence[Raw],
    pods: Mapping[str, Sequence[Raw]],
) -> list[Write]:
    limits = limits_of(deployment)
    every = [*old, new] if new else list(old)
    if spec_of(deployment).get("paused"):
        return _resize(deployment, in_proportion(every, limits), every, limits)
    if new is not None and (renewed := _renew(deployment, new, old, limits)):
        return renewed
    if is_resized(every, limits.wanted):
        return _resize(deployment, in_proportion(every, limits), every, limits)
    if get(deployment, "spec.strategy.type", "") == "Recreate":
        return _recreate(deployment, new, old, limits=limits, pods=pods)
    if new is None:
        return [_create_replica_set(deployment, old, limits)]
    sizes = {uid_of(new): grow(new, every, limits)}
    if sizes[uid_of(new)] == replicas_of(new):
        sizes |= shrink(new, old, limits)
    return _resize(deployment, sizes, every, limits) or _delete_surplus(deployment, new, old)


def _recreate(
    deployment: Raw,
    new: Raw | None,
    old: Sequence[Raw],
    *,
    limits: Limits,
    pods: Mapping[str, Sequence[Raw]],
) -> list[Write]:
    """Create new pods only after all old pods are deleted."""
    shrink = _resize(deployment, {uid_of(each): 0 for each in old}, old, limits)
    if shrink:
        return shrink
    if any(not is_terminal(pod) for each in old for pod in pods.get(uid_of(each), ())):
        return []
    if new is None:
        return [_create_replica_set(deployment, old, limits)]
    sizes = {uid_of(new): limits.wanted}
    return _resize(deployment, sizes, [new], limits) or _delete_surplus(deployment, new, old)


def newest(deployment: Raw, every: Sequence[Raw]) -> Raw | None:
    """Return the oldest replica set that has the template of the deployment."""
    wanted = _without_hash(get(deployment, "spec.template", {}))
    return next((r for r in every if _without_hash(get(r, "spec.template", {})) == wanted), None)


def _without_hash(template: Raw) -> Raw:
    """Return a template without the label that replica sets add."""
    metadata = metadata_of(template)
    labels = {key: val for key, val in get(metadata, "labels", {}).items() if key != HASH_LABEL}
    kept = {k: v for k, v in metadata.items() if v and k != "creationTimestamp"}
    return template | {"metadata": kept | {"labels": labels}}


def _age(replica_set: Raw) -> tuple[str, str]:
    metadata = replica_set["metadata"]
    return metadata.get("creationTimestamp", ""), metadata["name"]


def revision_of(replica_set: Raw) -> int:
    text = annotations_of(replica_set).get(REVISION, "0")
    return max(0, read_int64(text) or 0)


def _annotations(deployment: Raw, revision: str, limits: Limits) -> Raw:
    copied = {k: v for k, v in annotations_of(deployment).items() if k not in _NOT_COPIED}
    return copied | {REVISION: revision} | _sizes(limits)


def _sizes(limits: Limits) -> Raw:
    return {DESIRED_REPLICAS: str(limits.wanted), MAX_REPLICAS: str(limits.total_max)}


def _renew(deployment: Raw, new: Raw, old: Sequence[Raw], limits: Limits) -> list[Write]:
    """Give the newest number to a replica set that is the newest again after an undo."""
    highest = max((revision_of(each) for each in old), default=0)
    revision = str(max(highest + 1, revision_of(new)))
    wanted = dict(annotations_of(new)) | {
        key: value
        for key, value in _annotations(deployment, revision, limits).items()
        if key not in (DESIRED_REPLICAS, MAX_REPLICAS)
    }
    min_ready = spec_of(deployment).get("minReadySeconds") or 0
    changed = with_metadata(new, annotations=wanted)
    if (spec_of(new).get("minReadySeconds") or 0) != min_ready:
        changed = changed | {"spec": spec_of(new) | {"minReadySeconds": min_ready}}
    return [Update(REPLICA_SETS, changed)] if changed != new else []


def _create_replica_set(deployment: Raw, old: Sequence[Raw], limits: Limits) -> Write:
    """Create the replica set of a template that has none yet."""
    spec = spec_of(deployment)
    template = get(spec, "template", {})
    # A hash whose name no replica set of another template has.
    deployment_name = deployment["metadata"]["name"]
    taken = {each["metadata"]["name"] for each in old}
    hashes = (template_hash(template, number) for number in range(len(taken) + 1))
    digest = next(each for each in hashes if f"{deployment_name}-{each}" not in taken)
    given = metadata_of(template)
    labels = get(given, "labels", {}) | {HASH_LABEL: digest}
    selector = get(spec, "selector", {})
    matched = get(selector, "matchLabels", {}) | {HASH_LABEL: digest}
    available = limits.total_max - sum(replicas_of(each) for each in old)
    size = max(0, min(available, limits.wanted))
    name = f"{deployment_name}-{digest}"
    replica_set = {
        "metadata": {
            "name": name,
            "namespace": deployment["metadata"]["namespace"],
            "labels": labels,
            "annotations": _annotations(
                deployment, str(max(map(revision_of, old), default=0) + 1), limits
            ),
            "ownerReferences": [controller_reference(deployment, DEPLOYMENTS)],
        },
        "spec": {
            "replicas": size,
            "minReadySeconds": spec.get("minReadySeconds") or 0,
            "selector": selector | {"matchLabels": matched},
            "template": template | {"metadata": given | {"labels": labels}},
        },
    }
    return Create(
        REPLICA_SETS,
        replica_set,
        refused=Report(
            deployment,
            "Warning",
            "ReplicaSetCreateError",
            f'Failed to create new replica set "{name}": {{}}',
        ),
        accepted=Report(
            deployment,
            "Normal",
            "ScalingReplicaSet",
            f"Scaled up replica set {name} from 0 to {size}",
        ),
    )


def _resize(
    deployment: Raw, sizes: Mapping[str, int], every: Sequence[Raw], limits: Limits
) -> list[Write]:
    writes: list[Write] = []
    for each in every:
        before = replicas_of(each)
        size = sizes.get(uid_of(each), before)
        annotations = dict(annotations_of(each)) | _sizes(limits)
        if size == before and (annotations == annotations_of(each) or size == 0):
            continue
        changed = with_metadata(each, annotations=annotations)
        writes.append(Update(REPLICA_SETS, changed | {"spec": spec_of(each) | {"replicas": size}}))
        if size != before:
            word = "up" if size > before else "down"
            name = each["metadata"]["name"]
            message = f"Scaled {word} replica set {name} from {before} to {size}"
            writes.append(Report(deployment, "Normal", "ScalingReplicaSet", message))
    return writes


def _delete_surplus(deployment: Raw, new: Raw, old: Sequence[Raw]) -> list[Write]:
    """Delete old replica sets beyond the history limit, once the rollout is complete."""
    limit = int(get(deployment, "spec.revisionHistoryLimit", HISTORY_DEFAULT))
    idle = [each for each in old if _is_idle(each)]
    if (status_of(new).get("availableReplicas") or 0) < replicas_of(deployment):
        return []
    surplus = sorted(idle, key=revision_of)[: max(0, len(idle) - limit)]
    return [Delete(REPLICA_SETS, name_of(each), uid_of(each)) for each in surplus]


def _is_idle(replica_set: Raw) -> bool:
    status = status_of(replica_set)
    seen = status.get("observedGeneration", 0) >= replica_set["metadata"].get("generation", 0)
    empty = replicas_of(replica_set) == 0 and not status.get("replicas")
    return seen and empty and not is_deleted(replica_set)


class DeploymentController(OwnerReconciler):
    """Rolls out the templates of deployments."""

    def __init__(self, context: EngineContext) -> None:
        super().__init__(context, "deployment-controller", DEPLOYMENTS, owned=REPLICA_SETS)
        pods = self.watch(PODS)
        self._pods_of = Candidates(pods)
        pods.listen(self._on_pod)

    def _on_pod(self, old: Raw | None, new: Raw | None) -> None:
        """A Recreate continues when the last pod of an old template is deleted."""
        if new is not None or old is None or HASH_LABEL not in labels_of(old):
            return
        key = owner_key(old, REPLICA_SETS)
        replica_set = self.members.objects.get(key) if key else None
        if replica_set is not None and (owner := owner_key(replica_set, DEPLOYMENTS)):
            self.queue.add(owner)

    def plan_owner(self, deployment: Raw) -> Plan:
        candidates = self.candidates.of(deployment)
        pods = {uid_of(each): self._pods_of.controlled(each) for each in candidates}
        return plan(deployment, candidates, pods, self._clock.now())
