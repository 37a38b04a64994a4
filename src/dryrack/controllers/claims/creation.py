"""
Claims for pods that name a template.

The claim is made first and told to the pod afterwards. Whoever dies in between finds the claim
again by its owner and its annotation, so a pod never gets two. A pod that was bound by hand has
no scheduler that reserves its claims for it; that is done here as well.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from dryrack.client.endpoints import CLAIMS, PODS, TEMPLATES
from dryrack.client.informer import Name, name_of
from dryrack.controllers.claims.references import (
    Reference,
    claims_of_pod,
    is_done,
    is_made_for,
    is_reserved_for,
    made_for_entry,
    pod_owner,
)
from dryrack.controllers.loop import Loop
from dryrack.controllers.objects import controller_uids, is_deleted, spec_of, status_of, uid_of
from dryrack.controllers.writes import (
    NOTHING,
    Apply,
    Create,
    EngineContext,
    Plan,
    Report,
    Update,
    Write,
)
from dryrack.kinds.expansion.pod_claims import claim_from_template
from dryrack.kinds.raw import Raw

MANAGER = "ResourceClaimController"
CONSUMERS_MAX = 256


def plan(pod: Raw, claims: Mapping[Name, Raw], templates: Mapping[Name, Raw]) -> Plan:
    """What the claims of a pod need now."""
    if is_deleted(pod) or is_done(pod):
        return NOTHING
    entries = [each for each in claims_of_pod(pod) if each.template and each.claim != ""]
    # A claim of this pod under any name counts: its status may not tell of it yet.
    mine = {made_for_entry(each): each for each in claims.values() if is_made_for(each, pod)}
    missing = [each for each in entries if each.name not in mine]
    if missing:
        return Plan(tuple(_make(pod, each, templates) for each in missing))
    return Plan(tuple(_tell(pod, entries, mine) or _reserve(pod, claims)))


def _make(pod: Raw, entry: Reference, templates: Mapping[Name, Raw]) -> Write:
    metadata = pod["metadata"]
    failure = Report(
        pod, "Warning", "FailedResourceClaimCreation", f"PodResourceClaim {entry.name}: "
    )
    template = templates.get(Name(metadata["namespace"], entry.template))
    if template is None:
        reason = (
            f'resource claim template "{entry.template}": '
            f'resourceclaimtemplate.resource.k8s.io "{entry.template}" not found'
        )
        return replace(failure, message=failure.message + reason)
    refused = replace(failure, message=f"{failure.message}create ResourceClaim : {{}}")
    return Create(CLAIMS, claim_from_template(pod, entry.name, template), refused)


def _tell(pod: Raw, entries: Iterable[Reference], mine: Mapping[str, Raw]) -> list[Write]:
    told = [(each.name, mine[each.name]["metadata"]["name"]) for each in entries]
    if all(each.claim == mine[each.name]["metadata"]["name"] for each in entries):
        return []
    statuses = [{"name": name, "resourceClaimName": claim} for name, claim in told]
    name = name_of(pod)
    applied = {
        "metadata": {"name": name.name, "namespace": name.namespace},
        "status": {"resourceClaimStatuses": statuses},
    }
    return [Apply(PODS, applied, MANAGER, "status")]


def _reserve(pod: Raw, claims: Mapping[Name, Raw]) -> list[Write]:
    if not spec_of(pod).get("nodeName"):
        return []
    namespace = pod["metadata"]["namespace"]
    named = [claims.get(Name(namespace, each.claim or "")) for each in claims_of_pod(pod)]
    return [_reserved(claim, pod) for claim in named if claim and _lacks(claim, pod)]


def _lacks(claim: Raw, pod: Raw) -> bool:
    status = status_of(claim)
    has_room = len(status.get("reservedFor") or ()) < CONSUMERS_MAX
    return bool(status.get("allocation")) and has_room and not is_reserved_for(claim, pod)


def _reserved(claim: Raw, pod: Raw) -> Write:
    status = status_of(claim)
    consumer = {"resource": "pods", "name": pod["metadata"]["name"], "uid": uid_of(pod)}
    consumers = [*(status.get("reservedFor") or ()), consumer]
    return Update(CLAIMS, claim | {"status": status | {"reservedFor": consumers}}, "status")


class ClaimCreation:
    """Watches pods, templates and claims."""

    def __init__(self, around: EngineContext) -> None:
        informers = around.informers
        self._pods = informers.of(PODS)
        self._claims = informers.of(CLAIMS)
        self._templates = informers.of(TEMPLATES)
        self._by_owner = self._claims.index("controller", controller_uids)
        self._by_template = self._pods.index("claim template", _template_keys)
        self._by_claim = self._pods.index("claim", claim_keys)
        self._loop: Loop[Name] = Loop(
            around,
            "resource-claim-controller",
            self._decide,
            reads=(self._pods, self._claims, self._templates),
        )
        self._pods.listen(self._on_pod)
        self._claims.listen(self._on_claim)
        self._templates.listen(self._on_template)

    async def run(self) -> None:
        await self._loop.run()

    def _on_pod(self, old: Raw | None, new: Raw | None) -> None:
        if new is not None and spec_of(new).get("resourceClaims"):
            self._loop.queue.add(name_of(new))

    def _on_claim(self, old: Raw | None, new: Raw | None) -> None:
        claim = new if new is not None else old
        assert claim is not None, "an informer tells of something"
        for pod in self._by_claim.get("/".join(name_of(claim))):
            self._loop.queue.add(name_of(pod))
        # Its pod may not have been told of it yet.
        owner = pod_owner(claim)
        if owner is not None:
            self._loop.queue.add(Name(name_of(claim).namespace, owner["name"]))

    def _on_template(self, old: Raw | None, new: Raw | None) -> None:
        for pod in self._by_template.get("/".join(name_of(new))) if new is not None else ():
            self._loop.queue.add(name_of(pod))

    async def _decide(self, name: Name) -> Plan:
        pod = self._pods.objects.get(name)
        if pod is None:
            return NOTHING
        return plan(pod, self._claims_of(pod), self._templates.objects)

    def _claims_of(self, pod: Raw) -> Mapping[Name, Raw]:
        """Those that it owns and those that it names."""
        found = {name_of(each): each for each in self._by_owner.get(uid_of(pod))}
        for entry in claims_of_pod(pod):
            name = Name(pod["metadata"]["namespace"], entry.claim or "")
            if name in self._claims.objects:
                found[name] = self._claims.objects[name]
        return found


def claim_keys(pod: Raw) -> Sequence[str]:
    """The claims that a pod names, for an index."""
    namespace = pod["metadata"]["namespace"]
    return [f"{namespace}/{each.claim}" for each in claims_of_pod(pod) if each.claim]


def _template_keys(pod: Raw) -> Sequence[str]:
    namespace = pod["metadata"]["namespace"]
    return [f"{namespace}/{each.template}" for each in claims_of_pod(pod) if each.template]
