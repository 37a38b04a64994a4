"""
DR6xx: pods, and the templates of pods in workloads, that do not get what they claim.

A pod names its claims in one place and hands them to containers in another, by names that
only it knows. The API server checks that the names agree; it cannot know that a container
was meant to have the devices of a claim.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dryrack.hardware.names import quoted, suggestion
from dryrack.kinds.core import Pod
from dryrack.kinds.expansion.pod_claims import DUMP, named_claim
from dryrack.linter.asks import asks_of
from dryrack.linter.finding import Problem, Severity
from dryrack.linter.known_classes import CONTAINER_CLASSES
from dryrack.linter.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dryrack.kinds.core import PodResourceClaim
    from dryrack.linter.finding import Path
    from dryrack.linter.world import ClaimEntry, PodEntry, World

RULES = Registry()


@dataclass(frozen=True, slots=True)
class _Use:
    """A container's use of one of its pod's claims."""

    pod: PodEntry
    path: Path
    container: str
    name: str
    request: str


def _uses(pod: PodEntry) -> Iterator[_Use]:
    for kind, containers in (
        ("initContainers", pod.spec.init_containers),
        ("containers", pod.spec.containers),
    ):
        for index, container in enumerate(containers):
            for nth, claim in enumerate(container.resources.claims):
                path = (*pod.path, kind, index, "resources", "claims", nth)
                yield _Use(pod, path, container.name, claim.name, claim.request)


@RULES.rule(
    "DR601",
    "claim-not-used",
    Severity.WARNING,
    summary="A pod has a claim for container devices, but no container uses the claim.",
)
def claim_not_used(world: World) -> Iterator[Problem]:
    """
    The kubelet prepares every claim of a pod. Network drivers serve the whole pod. Drivers of GPUs
    and similar devices add the devices only to containers that list the claim in
    `resources.claims`. The rule checks only claims for classes of such drivers.
    """
    for pod in world.pods:
        used = {use.name for use in _uses(pod)}
        for index, claim in enumerate(pod.spec.resource_claims):
            if claim.name not in used and _is_for_containers(world, pod, claim):
                containers = [container.name for container in pod.spec.containers]
                yield Problem(
                    pod.entry,
                    (*pod.path, "resourceClaims", index),
                    f"no container uses claim {claim.name!r}, so no container gets its devices",
                    f"add resources.claims: [{{name: {claim.name}}}] to container"
                    f" {quoted(containers)}",
                )


def _is_for_containers(world: World, pod: PodEntry, claim: PodResourceClaim) -> bool:
    """Return whether all devices of a claim in the files are useless outside a container."""
    _, name, is_template = _kind_and_name(claim)
    entry = world.claim_of(pod.namespace, name, is_template=is_template)
    asks = tuple(asks_of(entry)) if entry else ()
    return bool(asks) and all(each.details.device_class_name in CONTAINER_CLASSES for each in asks)


def _kind_and_name(claim: PodResourceClaim) -> tuple[str, str, bool]:
    """The field that names the claim, the name, and whether it is a template's."""
    if claim.resource_claim_template_name is not None:
        return "resourceClaimTemplateName", claim.resource_claim_template_name, True
    return "resourceClaimName", claim.resource_claim_name or "", False


def _why_missing(world: World, pod: PodEntry, claim: PodResourceClaim) -> str:
    """Return why the named claim is not found, or an empty text."""
    _, name, is_template = _kind_and_name(claim)
    known = world.claim_names(is_template=is_template)
    if not name or world.claim_of(pod.namespace, name, is_template=is_template):
        return ""
    if (pod.namespace, name) in world.templates_to_come:
        return ""
    if world.claim_of(pod.namespace, name, is_template=not is_template):
        other = "claim" if is_template else "template"
        field = "resourceClaimName" if is_template else "resourceClaimTemplateName"
        return f"{name!r} is a {other}; use {field}: {name}"
    elsewhere = [namespace for namespace, names in known.items() if name in names]
    if elsewhere:
        return f"it is in namespace {elsewhere[0]!r}; a pod needs it in its own namespace"
    if pod.entry.document.uid:
        return f"add it to the dump with: {DUMP}"
    kind = "ResourceClaimTemplate" if is_template else "ResourceClaim"
    return suggestion(name, known.get(pod.namespace, ())) or f"add the {kind}"


@RULES.rule(
    "DR602",
    "claim-not-in-files",
    Severity.WARNING,
    summary="A pod uses a claim or template that is not in the files.",
)
def claim_not_in_files(world: World) -> Iterator[Problem]:
    """
    The pod stays pending until the claim or template exists in its namespace. The rule does not
    report a pod of a dump whose claim the cluster has created already.
    """
    whole = {id(each.document): each.value for each in world.of_kind(Pod)}
    for pod in world.pods:
        known = whole.get(id(pod.entry.document))
        for index, claim in enumerate(pod.spec.resource_claims):
            is_made = claim.resource_claim_name is None and known and named_claim(known, claim)
            fix = "" if is_made else _why_missing(world, pod, claim)
            if fix:
                field, name, is_template = _kind_and_name(claim)
                kind = "template" if is_template else "claim"
                yield Problem(
                    pod.entry,
                    (*pod.path, "resourceClaims", index, field),
                    f"{kind} {name!r} of namespace {pod.namespace!r} is not in the files",
                    fix,
                )


def _claims_used(world: World, pod: PodEntry) -> dict[str, ClaimEntry | None]:
    """Return the claim of each name in a pod; of a name that is there twice, the first."""
    found: dict[str, ClaimEntry | None] = {}
    for claim in pod.spec.resource_claims:
        if claim.name not in found:
            _, name, is_template = _kind_and_name(claim)
            found[claim.name] = world.claim_of(pod.namespace, name, is_template=is_template)
    return found


@RULES.rule(
    "DR603",
    "request-name-unknown",
    Severity.WARNING,
    summary="A container uses a request that the claim does not have.",
)
def request_name_unknown(world: World) -> Iterator[Problem]:
    """The container starts without devices, because the claim has no request of that name."""
    for pod in world.pods:
        claims = _claims_used(world, pod)
        for use in _uses(pod):
            claim = claims.get(use.name)
            names = [each.name for each in claim.spec.devices.requests] if claim else []
            if use.request and claim and use.request not in names:
                yield Problem(
                    pod.entry,
                    (*use.path, "request"),
                    f"claim {use.name!r} has no request {use.request!r}",
                    suggestion(use.request, names) or f"use one of: {quoted(names)}",
                )


@RULES.rule(
    "DR604",
    "claim-shared-by-replicas",
    Severity.INFO,
    summary="The pods of a workload share one claim by name.",
)
def claim_shared_by_replicas(world: World) -> Iterator[Problem]:
    """
    All replicas get the same devices and must run where these devices are. This can be
    intentional. A template creates a separate claim for each pod.
    """
    for pod in world.pods:
        for index, claim in enumerate(pod.spec.resource_claims):
            if pod.is_template and claim.resource_claim_name is not None:
                yield Problem(
                    pod.entry,
                    (*pod.path, "resourceClaims", index, "resourceClaimName"),
                    f"all pods of the workload share claim {claim.resource_claim_name!r} and its"
                    " devices",
                    "to give each pod its own claim, use resourceClaimTemplateName",
                )
