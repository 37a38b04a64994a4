"""
Create the ResourceClaims of pods and PodGroups that name a template.

The claim is created first, and its name is written to the pod or group afterwards. After a restart
in between, the claim is found by its owner and its annotation, so no pod gets two. No scheduler
reserves the claims of a pod that was bound by hand, so they are reserved here. The claims of a
PodGroup belong to the group, and their names are written to each of its pods; the scheduler
reserves them for the group, once for all pods.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace

from dryrack.client.endpoints import (
    CLAIMS,
    POD_GROUP_VERSIONS,
    POD_GROUPS,
    PODS,
    TEMPLATES,
    Endpoint,
)
from dryrack.client.errors import NotFoundError
from dryrack.client.informer import Informer, Name, name_of
from dryrack.controllers.claims.references import (
    Reference,
    claims_of,
    claims_of_pod,
    group_owner,
    is_done,
    is_made_for,
    is_reserved_for,
    made_for_entry,
    pod_owner,
)
from dryrack.controllers.objects import (
    controller_uids,
    in_version_of,
    is_deleted,
    spec_of,
    status_of,
    uid_of,
)
from dryrack.controllers.reconciler import Reconciler
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
from dryrack.kinds.expansion.pod_claims import (
    claim_from_template,
    consumer_of_group,
    consumer_of_pod,
    entries_of_group,
    group_of,
)
from dryrack.kinds.paths import get
from dryrack.kinds.raw import Raw
from dryrack.kinds.releases import CONTROLLERS, DEFAULT_RELEASE, ControllerBehaviour

_logger = logging.getLogger(__name__)

MANAGER = "ResourceClaimController"
CONSUMERS_MAX = 256


def plan(
    pod: Raw,
    claims: Mapping[Name, Raw],
    templates: Mapping[Name, Raw],
    group: Raw | None = None,
    *,
    behaviour: ControllerBehaviour = CONTROLLERS[DEFAULT_RELEASE],
) -> Plan:
    """Return what the claims of a pod need; claims of its group are created for the group."""
    if is_deleted(pod) or is_done(pod):
        return NOTHING
    entries = [each for each in claims_of_pod(pod) if each.template and each.claim != ""]
    shared = entries_of_group(pod, group) if group is not None else frozenset()
    # A claim of this pod counts under any name: the status of the pod may not have it yet.
    existing = {made_for_entry(each): each for each in claims.values() if is_made_for(each, pod)}
    if group is not None:
        of_group = [each for each in claims.values() if is_made_for(each, group)]
        existing |= {made_for_entry(it): it for it in of_group if made_for_entry(it) in shared}
    missing = [each for each in entries if each.name not in existing and each.name not in shared]
    if missing:
        return Plan(tuple(create_claim(pod, each, templates, PODS) for each in missing))
    names = {
        each.name: name_of(existing[each.name]).name for each in entries if each.name in existing
    }
    kept = behaviour.claim_statuses_are_merged
    writes = update_claim_names(pod, names, PODS, keeps_others=kept)
    return Plan(tuple(writes or _reserve(pod, claims, group)))


def create_claim(
    owner: Raw, entry: Reference, templates: Mapping[Name, Raw], endpoint: Endpoint
) -> Write:
    """Create the claim for an entry of a pod or a group, or report that the template is missing."""
    metadata = owner["metadata"]
    owner = {**owner, "kind": endpoint.kind, "apiVersion": endpoint.api_version}
    failure = Report(
        owner,
        "Warning",
        "FailedResourceClaimCreation",
        f"{endpoint.kind}ResourceClaim {entry.name}: ",
    )
    template = templates.get(Name(metadata["namespace"], entry.template))
    if template is None:
        reason = (
            f'resource claim template "{entry.template}": '
            f'resourceclaimtemplate.resource.k8s.io "{entry.template}" not found'
        )
        return replace(failure, message=failure.message + reason)
    refused = replace(failure, message=f"{failure.message}create ResourceClaim : {{}}")
    kind = (endpoint.api_version, endpoint.kind)
    return Create(CLAIMS, claim_from_template(owner, entry.name, template, kind), refused)


def update_claim_names(
    owner: Raw, names: Mapping[str, str], endpoint: Endpoint, *, keeps_others: bool
) -> list[Write]:
    """
    Write the names of its claims, by entry, to the status of a pod or a group.

    With `keeps_others`, other entries of the status stay, and all are sorted.
    """
    status: Sequence[Raw] = get(owner, "status.resourceClaimStatuses", ())
    known = {each["name"]: each.get("resourceClaimName") or "" for each in status}
    if all(known.get(entry) == claim for entry, claim in names.items()):
        return []
    if keeps_others:
        others = {entry: claim for entry, claim in known.items() if claim}
        names = dict(sorted({**others, **names}.items()))
    statuses = [{"name": entry, "resourceClaimName": claim} for entry, claim in names.items()]
    name = name_of(owner)
    applied = {
        "metadata": {"name": name.name, "namespace": name.namespace},
        "status": {"resourceClaimStatuses": statuses},
    }
    return [Apply(endpoint, applied, MANAGER, "status")]


def _reserve(pod: Raw, claims: Mapping[Name, Raw], group: Raw | None) -> list[Write]:
    if not spec_of(pod).get("nodeName"):
        return []
    namespace = pod["metadata"]["namespace"]
    shared = entries_of_group(pod, group) if group is not None else frozenset()
    itself = consumer_of_pod(pod)
    of_group = consumer_of_group(group) if group is not None else itself
    writes: list[Write] = []
    for entry in claims_of_pod(pod):
        claim = claims.get(Name(namespace, entry.claim or ""))
        if claim is None or is_reserved_for(claim, pod):
            continue
        status = status_of(claim)
        consumers = get(status, "reservedFor", ())
        if status.get("allocation") and len(consumers) < CONSUMERS_MAX:
            consumers = [*consumers, of_group if entry.name in shared else itself]
            status = status | {"reservedFor": consumers}
            writes.append(Update(CLAIMS, claim | {"status": status}, "status"))
    return writes


class ClaimCreation(Reconciler[Name]):
    """Creates the claims of pods from templates."""

    def __init__(self, context: EngineContext) -> None:
        super().__init__(context, "resource-claim-controller")
        self._groups: Informer | None = None
        self._pods = self.watch(PODS, self._on_pod)
        self._by_template = self._pods.index("claim template", _template_keys)
        self._by_claim = self._pods.index("claim", claim_keys)
        self._by_group = self._pods.index("claims of group", _group_keys)
        self._claims = self.watch(CLAIMS, self._on_claim)
        self._by_owner = self._claims.index("controller", controller_uids)
        self._templates = self.watch(TEMPLATES, self._on_template)

    async def run(self) -> None:
        self._groups = await self.watch_if_served(POD_GROUP_VERSIONS, self._on_group)
        await super().run()

    def _on_group(self, old: Raw | None, new: Raw | None) -> None:
        for pod in self._by_group.get("/".join(name_of(new))) if new is not None else ():
            self.queue.add(name_of(pod))

    def _on_pod(self, old: Raw | None, new: Raw | None) -> None:
        if new is not None and spec_of(new).get("resourceClaims"):
            self.queue.add(name_of(new))

    def _on_claim(self, old: Raw | None, new: Raw | None) -> None:
        claim = new if new is not None else old
        assert claim is not None, "an informer reports an object"
        for pod in self._by_claim.get("/".join(name_of(claim))):
            self.queue.add(name_of(pod))
        # The status of its pod may not have its name yet.
        owner = pod_owner(claim)
        if owner is not None:
            self.queue.add(Name(name_of(claim).namespace, owner["name"]))
        group = group_owner(claim)
        for pod in self._by_group.get(f"{name_of(claim).namespace}/{group}") if group else ():
            self.queue.add(name_of(pod))

    def _on_template(self, old: Raw | None, new: Raw | None) -> None:
        for pod in self._by_template.get("/".join(name_of(new))) if new is not None else ():
            self.queue.add(name_of(pod))

    async def decide(self, name: Name) -> Plan:
        pod = self._pods.objects.get(name)
        if pod is None:
            return NOTHING
        group = None
        if group_of(pod) and self._groups is None and self._context.behaviour.groups_are_required:
            message = "%s: the pod is a member of a PodGroup, and the cluster serves no PodGroups"
            _logger.warning(message, "/".join(name))
            return NOTHING
        if self._groups is not None and group_of(pod):
            group = self._groups.get(name.namespace, group_of(pod))
            if group is None:
                # Only the group shows which claims are the pod's own.
                return NOTHING
        # The claims that the pod or its group owns, and those that it names.
        owners = (pod,) if group is None else (pod, group)
        claims = {
            name_of(each): each for owner in owners for each in self._by_owner.get(uid_of(owner))
        }
        for entry in claims_of_pod(pod):
            claim_name = Name(name.namespace, entry.claim or "")
            claim = await self._find_claim(claim_name, entry)
            if claim is not None:
                claims[claim_name] = claim
        behaviour = self._context.behaviour
        return plan(pod, claims, self._templates.objects, group, behaviour=behaviour)

    async def _find_claim(self, name: Name, entry: Reference) -> Raw | None:
        """
        Return a claim that a pod names, from the cache, or else from the server.

        The server is asked only about a claim that would be created again.
        """
        claim = self._claims.objects.get(name)
        if claim is not None or not entry.claim or not entry.template:
            return claim
        try:
            return await self._client.get(CLAIMS, name.name, name.namespace)
        except NotFoundError:
            return None


def claim_keys(pod: Raw) -> Sequence[str]:
    """Return the index keys of the claims that a pod names."""
    namespace = pod["metadata"]["namespace"]
    return [f"{namespace}/{each.claim}" for each in claims_of_pod(pod) if each.claim]


def _group_keys(pod: Raw) -> Sequence[str]:
    """Return the index key of the group of a pod with claims."""
    has_claims = group_of(pod) and spec_of(pod).get("resourceClaims")
    return (f"{pod['metadata']['namespace']}/{group_of(pod)}",) if has_claims else ()


def _template_keys(pod: Raw) -> Sequence[str]:
    namespace = pod["metadata"]["namespace"]
    return [f"{namespace}/{each.template}" for each in claims_of_pod(pod) if each.template]


def plan_group(group: Raw, owned: Sequence[Raw], templates: Mapping[Name, Raw]) -> Plan:
    """Return what the claims of a group need; `owned` are those that it controls."""
    if is_deleted(group):
        return NOTHING
    entries = [each for each in claims_of(group) if each.template and each.claim != ""]
    existing = {made_for_entry(each): each for each in owned if is_made_for(each, group)}
    missing = [each for each in entries if each.name not in existing]
    endpoint = in_version_of(POD_GROUPS, group)
    if missing:
        return Plan(tuple(create_claim(group, each, templates, endpoint) for each in missing))
    names = {each.name: name_of(existing[each.name]).name for each in entries}
    return Plan(tuple(update_claim_names(group, names, endpoint, keeps_others=False)))


class GroupClaimCreation(Reconciler[Name]):
    """Creates the claims of PodGroups from templates, if groups are served."""

    def __init__(self, context: EngineContext) -> None:
        super().__init__(context, "resource-claim-controller")
        self._groups: Informer | None = None
        self._claims = self.watch(CLAIMS, self._on_claim)
        self._by_owner = self._claims.index("controller", controller_uids)
        self._templates = self.watch(TEMPLATES, self._on_template)

    async def run(self) -> None:
        self._groups = await self.watch_if_served(POD_GROUP_VERSIONS, self._on_group)
        await super().run()

    def _on_group(self, old: Raw | None, new: Raw | None) -> None:
        if new is not None and any(claims_of(new)):
            self.queue.add(name_of(new))

    def _on_claim(self, old: Raw | None, new: Raw | None) -> None:
        claim = new or old or {}
        group = group_owner(claim)
        if group:
            self.queue.add(Name(name_of(claim).namespace, group))

    def _on_template(self, old: Raw | None, new: Raw | None) -> None:
        if new is None or self._groups is None:
            return
        name = name_of(new)
        for group in self._groups.all(name.namespace):
            if any(each.template == name.name for each in claims_of(group)):
                self.queue.add(name_of(group))

    async def decide(self, name: Name) -> Plan:
        group = self._groups.objects.get(name) if self._groups else None
        if group is None:
            return NOTHING
        return plan_group(group, self._by_owner.get(uid_of(group)), self._templates.objects)
