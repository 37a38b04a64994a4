"""Claims of storage that pods bring along: made when the pod comes, and gone with it."""

from collections.abc import Callable, Iterator

from dryrack.client.endpoints import PODS, VOLUME_CLAIMS
from dryrack.client.informer import Name, name_of
from dryrack.controllers.objects import (
    controller_reference,
    is_controlled_by,
    is_deleted,
    is_terminal,
)
from dryrack.controllers.reconciler import Reconciler
from dryrack.controllers.writes import NOTHING, Create, EngineContext, Plan, Report
from dryrack.kinds.paths import get, metadata_of
from dryrack.kinds.raw import Raw


def plan(pod: Raw, known: Callable[[str], Raw | None]) -> Plan:
    """The claims that are missing; one that is somebody else's is told of, and left alone."""
    writes: list[Create | Report] = []
    for name, template in _templates(pod):
        claim = known(name)
        if claim is None:
            writes.append(Create(VOLUME_CLAIMS, _claim(pod, name, template)))
        elif not is_controlled_by(claim, pod):
            about = f"PVC {'/'.join(name_of(claim))} was not created for pod"
            message = f"{about} {'/'.join(name_of(pod))} (pod is not owner)"
            writes.append(Report(pod, "Warning", "EphemeralVolume", message, message))
    return Plan(tuple(writes))


def _templates(pod: Raw) -> Iterator[tuple[str, Raw]]:
    """The names of claims, and what they ask for."""
    for volume in get(pod, "spec.volumes", ()):
        template = get(volume, "ephemeral.volumeClaimTemplate")
        if template:
            yield f"{pod['metadata']['name']}-{volume['name']}", template


def _claim(pod: Raw, name: str, template: Raw) -> Raw:
    metadata = metadata_of(template)
    kept = {key: metadata[key] for key in ("labels", "annotations") if key in metadata}
    own = {"name": name, "namespace": pod["metadata"]["namespace"]}
    owners = {"ownerReferences": [controller_reference(pod, PODS)]}
    return {"metadata": own | kept | owners, "spec": template["spec"]}


class EphemeralClaims(Reconciler[Name]):
    """Watches pods; the garbage collector sees to the end of claims."""

    def __init__(self, context: EngineContext) -> None:
        super().__init__(context, "ephemeral-volume-controller")
        self._pods = self.watch(PODS, self._on_pod)
        self._claims = self.watch(VOLUME_CLAIMS, self._on_claim)

    def _on_pod(self, old: Raw | None, new: Raw | None) -> None:
        if old is None and new is not None and any(_templates(new)):
            self.queue.add(name_of(new))

    def _on_claim(self, old: Raw | None, new: Raw | None) -> None:
        """One that is deleted is made again as long as its pod is there."""
        if old is not None and new is None:
            for owner in get(old["metadata"], "ownerReferences", ()):
                if owner["kind"] == "Pod":
                    self.queue.add(Name(name_of(old).namespace, owner["name"]))

    async def decide(self, name: Name) -> Plan:
        pod = self._pods.objects.get(name)
        if pod is None or is_deleted(pod) or is_terminal(pod):
            return NOTHING
        return plan(pod, lambda claim: self._claims.get(name.namespace, claim))
