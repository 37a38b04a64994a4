"""
Deployments: a replica set for the template, pods moved over to it, the status of the rollout.

Each look does one step: adopt, make the new replica set, or resize. The replica sets tell how far
it has come, so that a rollout goes on wherever it was left.
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
    grown,
    in_proportion,
    is_resized,
    limits_of,
    shrunk,
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
    """The next step of a deployment; `pods` are those of each replica set, by its uid."""
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
    shown = with_metadata(deployment, annotations=_revised(deployment, new))
    if shown["metadata"] != deployment["metadata"]:
        writes = (*writes, Update(DEPLOYMENTS, shown))
    return Plan((*writes, *status_update(DEPLOYMENTS, shown, status)), again_seconds)


def _revised(deployment: Raw, new: Raw | None) -> Raw | None:
    annotations = dict(annotations_of(deployment))
    revision = annotations_of(new).get(REVISION) if new else None
    return (annotations | {REVISION: revision} if revision else annotations) or None


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
    if new is not None and (renewed := _renewed(deployment, new, old, limits)):
        return renewed
    if is_resized(every, limits.wanted):
        return _resize(deployment, in_proportion(every, limits), every, limits)
    if _is_recreated(deployment):
        return _recreate(deployment, new, old, limits=limits, pods=pods)
    if new is None:
        return [_first(deployment, old, limits)]
    sizes = {uid_of(new): grown(new, every, limits)}
    if sizes[uid_of(new)] == replicas_of(new):
        sizes |= shrunk(new, old, limits)
    return _resize(deployment, sizes, every, limits) or _forget(deployment, new, old)


def _is_recreated(deployment: Raw) -> bool:
    return get(deployment, "spec.strategy.type", "") == "Recreate"


def _recreate(
    deployment: Raw,
    new: Raw | None,
    old: Sequence[Raw],
    *,
    limits: Limits,
    pods: Mapping[str, Sequence[Raw]],
) -> list[Write]:
    """Nothing of the new before everything of the old is gone."""
    shrink = _resize(deployment, {uid_of(each): 0 for each in old}, old, limits)
    if shrink:
        return shrink
    if any(not is_terminal(pod) for each in old for pod in pods.get(uid_of(each), ())):
        return []
    if new is None:
        return [_first(deployment, old, limits)]
    sizes = {uid_of(new): limits.wanted}
    return _resize(deployment, sizes, [new], limits) or _forget(deployment, new, old)


def newest(deployment: Raw, every: Sequence[Raw]) -> Raw | None:
    """The oldest replica set whose template is the deployment's."""
    wanted = _plain(get(deployment, "spec.template", {}))
    return next((r for r in every if _plain(get(r, "spec.template", {})) == wanted), None)


def _plain(template: Raw) -> Raw:
    """A template without the label that replica sets add."""
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


def _next_revision(old: Sequence[Raw]) -> str:
    return str(max((revision_of(each) for each in old), default=0) + 1)


def _annotations(deployment: Raw, revision: str, limits: Limits) -> Raw:
    copied = {k: v for k, v in annotations_of(deployment).items() if k not in _NOT_COPIED}
    return copied | {REVISION: revision} | _sizes(limits)


def _sizes(limits: Limits) -> Raw:
    return {DESIRED_REPLICAS: str(limits.wanted), MAX_REPLICAS: str(limits.total_max)}


def _renewed(deployment: Raw, new: Raw, old: Sequence[Raw], limits: Limits) -> list[Write]:
    """A replica set that is the newest again, after an undo, gets the newest number."""
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


def _first(deployment: Raw, old: Sequence[Raw], limits: Limits) -> Write:
    """The replica set of a template that has none yet."""
    spec = spec_of(deployment)
    template = get(spec, "template", {})
    digest = _free_hash(deployment, template, old)
    given = metadata_of(template)
    labels = get(given, "labels", {}) | {HASH_LABEL: digest}
    selector = get(spec, "selector", {})
    matched = get(selector, "matchLabels", {}) | {HASH_LABEL: digest}
    room = limits.total_max - sum(replicas_of(each) for each in old)
    size = max(0, min(room, limits.wanted))
    name = f"{deployment['metadata']['name']}-{digest}"
    replica_set = {
        "metadata": {
            "name": name,
            "namespace": deployment["metadata"]["namespace"],
            "labels": labels,
            "annotations": _annotations(deployment, _next_revision(old), limits),
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


def _free_hash(deployment: Raw, template: Raw, old: Sequence[Raw]) -> str:
    """A hash whose name no replica set of another template has."""
    taken = {each["metadata"]["name"] for each in old}
    hashes = (template_hash(template, number) for number in range(len(taken) + 1))
    name = deployment["metadata"]["name"]
    return next(each for each in hashes if f"{name}-{each}" not in taken)


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


def _forget(deployment: Raw, new: Raw, old: Sequence[Raw]) -> list[Write]:
    """Old replica sets beyond the history that shall be kept, once the rollout is complete."""
    limit = spec_of(deployment).get("revisionHistoryLimit")
    limit = HISTORY_DEFAULT if limit is None else int(limit)
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
    """Watches deployments, their replica sets and their pods."""

    def __init__(self, context: EngineContext) -> None:
        super().__init__(context, "deployment-controller", DEPLOYMENTS, owned=REPLICA_SETS)
        pods = self.watch(PODS)
        self._pods_of = Candidates(pods)
        pods.listen(self._on_pod)

    def _on_pod(self, old: Raw | None, new: Raw | None) -> None:
        """The last pod of an old template lets a Recreate go on."""
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
