"""
Finalizers that keep deleted objects while they are in use.

PersistentVolumeClaims stay while bound pods use them, PersistentVolumes while they are bound, and
PodGroups until the last of their pods has ended. The server adds the finalizers; they are removed
when a deleted object is no longer in use. A pod without a node does not count: it is not started
with a claim that is being deleted.
"""

from collections.abc import Iterable, Sequence

from dryrack.client.client import Selection
from dryrack.client.endpoints import (
    POD_GROUP_VERSIONS,
    POD_GROUPS,
    PODS,
    VOLUME_CLAIMS,
    VOLUMES,
    Endpoint,
)
from dryrack.client.informer import Informer, Name, name_of
from dryrack.client.timekeeping import timestamp
from dryrack.controllers.objects import (
    condition_of,
    finalizers_of,
    in_version_of,
    is_controlled_by,
    is_deleted,
    is_terminal,
    spec_of,
    status_of,
    uid_of,
    with_condition,
)
from dryrack.controllers.reconciler import Reconciler
from dryrack.controllers.volumes import claims_of
from dryrack.controllers.writes import (
    NOTHING,
    EngineContext,
    Patch,
    Plan,
    Update,
    without_finalizer,
)
from dryrack.kinds.paths import get
from dryrack.kinds.raw import Raw

CLAIM_FINALIZER = "kubernetes.io/pvc-protection"
VOLUME_FINALIZER = "kubernetes.io/pv-protection"
GROUP_FINALIZER = "scheduling.k8s.io/podgroup-protection"
UNUSED = "Unused"
"""The condition of a claim that no pod refers to."""


def plan(endpoint: Endpoint, obj: Raw, finalizer: str, *, is_used: bool) -> Plan:
    """Remove the finalizer of an unused deleted object; add a missing one to others."""
    is_protected = finalizer in finalizers_of(obj)
    if is_deleted(obj):
        is_free = is_protected and not is_used
        return Plan((without_finalizer(endpoint, obj, finalizer),)) if is_free else NOTHING
    if is_protected:
        return NOTHING
    identity = {"uid": uid_of(obj), "resourceVersion": obj["metadata"]["resourceVersion"]}
    finalizers = {"finalizers": [*finalizers_of(obj), finalizer]}
    return Plan((Patch(endpoint, name_of(obj), {"metadata": identity | finalizers}),))


def refers_to(pod: Raw, claim: Raw) -> bool:
    """Return True if a pod names a claim, or has it for an ephemeral volume."""
    name = claim["metadata"]["name"]
    sources = [get(each, "persistentVolumeClaim", {}) for each in get(pod, "spec.volumes", ())]
    return any(each.get("claimName") == name for each in sources) or is_controlled_by(claim, pod)


def uses(pod: Raw, claim: Raw) -> bool:
    """Return True if a bound pod, even one that has ended, keeps a claim that it refers to."""
    # An ephemeral claim can be deleted when the containers have ended, before the pod is deleted.
    is_shut_down = is_deleted(pod) and pod["metadata"].get("deletionGracePeriodSeconds") == 0
    return refers_to(pod, claim) and not (is_shut_down and is_controlled_by(claim, pod))


def is_over(pod: Raw) -> bool:
    """Return True if no container of a pod runs, and none will."""
    states = [get(each, "state", {}) for each in get(pod, "status.containerStatuses", ())]
    return is_terminal(pod) or (is_deleted(pod) and not any("running" in each for each in states))


def plan_condition(claim: Raw, *, is_used: bool, now: float) -> Plan:
    """Return the write of the condition `Unused` of a bound claim, if it has changed."""
    status = "False" if is_used else "True"
    before = condition_of(claim, UNUSED)
    if before is not None and before.get("status") == status:
        return NOTHING
    reason = "PodUsingPVC" if is_used else "NoPodsUsingPVC"
    message = "A pod is" if is_used else "No pods are"
    condition = {"type": UNUSED, "status": status, "lastTransitionTime": timestamp(now)}
    condition |= {"reason": reason, "message": f"{message} currently referencing this PVC"}
    conditions = with_condition(get(claim, "status.conditions", ()), condition)
    changed = claim | {"status": status_of(claim) | {"conditions": conditions}}
    return Plan((Update(VOLUME_CLAIMS, changed, "status"),))


class ClaimProtection(Reconciler[Name]):
    """Keeps PersistentVolumeClaims while bound pods use them, and marks those without pods."""

    def __init__(self, context: EngineContext) -> None:
        super().__init__(context, "persistentvolumeclaim-protection-controller")
        self._is_tracking = context.features.is_on("PersistentVolumeClaimUnusedSinceTime")
        self._claims = self.watch(VOLUME_CLAIMS, self._on_claim)
        self._pods = self.watch(PODS, self._on_pod)
        self._users = self._pods.index("refers to volume claim", _claim_keys)

    def _on_claim(self, old: Raw | None, new: Raw | None) -> None:
        if new is None:
            return
        is_unprotected = is_deleted(new) == (CLAIM_FINALIZER in finalizers_of(new))
        if is_unprotected or (self._is_tracking and _is_bound(new)):
            self.queue.add(name_of(new))

    def _on_pod(self, old: Raw | None, new: Raw | None) -> None:
        has_ended = old is not None and (new is None or is_deleted(new))
        if self._is_tracking:
            # Also a pod that starts or ends changes the condition of its claims.
            has_ended |= old is None or new is None or is_over(old) != is_over(new)
        if has_ended:
            for name in claims_of(new or old or {}):
                self.queue.add(name)

    async def decide(self, name: Name) -> Plan:
        claim = self._claims.objects.get(name)
        if claim is None:
            return NOTHING
        pods = self._users.get("/".join(name))
        is_used = any(uses(pod, claim) for pod in pods if spec_of(pod).get("nodeName"))
        answer = plan(VOLUME_CLAIMS, claim, CLAIM_FINALIZER, is_used=is_used)
        if answer is not NOTHING or not self._is_tracking or not _is_bound(claim):
            return answer
        answer = _plan_condition_for(claim, pods, self._clock.now())
        if any(refers_to(pod, claim) and not is_over(pod) for pod in pods) or answer is NOTHING:
            return answer
        # The cache may lack a pod that was created just now.
        listing = await self._client.list(PODS, Selection(namespace=name.namespace))
        return _plan_condition_for(claim, listing.items, self._clock.now())


def _plan_condition_for(claim: Raw, pods: Iterable[Raw], now: float) -> Plan:
    is_used = any(refers_to(pod, claim) and not is_over(pod) for pod in pods)
    return plan_condition(claim, is_used=is_used, now=now)


def _is_bound(claim: Raw) -> bool:
    return not is_deleted(claim) and status_of(claim).get("phase") == "Bound"


class VolumeProtection(Reconciler[Name]):
    """Keeps PersistentVolumes while they are bound."""

    def __init__(self, context: EngineContext) -> None:
        super().__init__(context, "persistentvolume-protection-controller")
        self._volumes = self.watch(VOLUMES, self._on_volume)

    def _on_volume(self, old: Raw | None, new: Raw | None) -> None:
        if new is not None and is_deleted(new) == (VOLUME_FINALIZER in finalizers_of(new)):
            self.queue.add(name_of(new))

    async def decide(self, name: Name) -> Plan:
        volume = self._volumes.objects.get(name)
        if volume is None:
            return NOTHING
        is_used = status_of(volume).get("phase") == "Bound"
        return plan(VOLUMES, volume, VOLUME_FINALIZER, is_used=is_used)


def _claim_keys(pod: Raw) -> Iterable[str]:
    return ["/".join(each) for each in claims_of(pod)]


def plan_group(group: Raw, active_pods: int) -> Plan:
    """Remove the finalizer of a deleted group without active pods."""
    if not is_deleted(group) or GROUP_FINALIZER not in finalizers_of(group) or active_pods:
        return NOTHING
    return Plan((without_finalizer(in_version_of(POD_GROUPS, group), group, GROUP_FINALIZER),))


class GroupProtection(Reconciler[Name]):
    """Keeps PodGroups until their pods have ended, if groups are served."""

    def __init__(self, context: EngineContext) -> None:
        super().__init__(context, "podgroup-protection-controller")
        self._groups: Informer | None = None
        self._pods = self.watch(PODS, self._on_pod)
        self._active = self._pods.index("active in group", _group_keys)

    async def run(self) -> None:
        self._groups = await self.watch_if_served(POD_GROUP_VERSIONS, self._on_group)
        await super().run()

    def _on_group(self, old: Raw | None, new: Raw | None) -> None:
        if new is not None and is_deleted(new):
            self.queue.add(name_of(new))

    def _on_pod(self, old: Raw | None, new: Raw | None) -> None:
        if old is not None and (new is None or is_terminal(new)):
            for key in _groups_of(old):
                self.queue.add(key)

    async def decide(self, name: Name) -> Plan:
        group = self._groups.objects.get(name) if self._groups else None
        if group is None:
            return NOTHING
        return plan_group(group, self._active.count(f"{name.namespace}/{name.name}"))


def _groups_of(pod: Raw) -> Sequence[Name]:
    name = get(pod, "spec.schedulingGroup.podGroupName")
    return (Name(pod["metadata"].get("namespace", ""), name),) if name else ()


def _group_keys(pod: Raw) -> Sequence[str]:
    if is_terminal(pod):
        return ()
    return [f"{each.namespace}/{each.name}" for each in _groups_of(pod)]
