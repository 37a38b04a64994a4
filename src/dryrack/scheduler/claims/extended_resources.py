"""
The claims that the scheduler makes itself, for extended resources of pods.

Nobody else makes them, so they come and go with the decision: one is made when the pod is about to
be bound, told to the pod with which container uses which of its requests, and deleted if the pod
is not bound after all. Whoever dies in between finds it again by its owner and its annotation; it
is then a claim of the pod like any other.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dryrack.allocation import claim_name
from dryrack.client.client import STRATEGIC_PATCH, Selection
from dryrack.client.endpoints import CLAIMS, PODS
from dryrack.client.errors import ApiError, TransportError
from dryrack.kinds.decode import to_builtins
from dryrack.kinds.expansion.extended_resources import ANNOTATION
from dryrack.kinds.expansion.pod_claims import DELETE_PROTECTION, consumer_of_pod
from dryrack.scheduler.claims import UnusableClaimError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from dryrack.client.client import Client
    from dryrack.kinds.core import ContainerExtendedResourceRequest, Node
    from dryrack.kinds.raw import Raw
    from dryrack.kinds.resource import AllocationResult, ResourceClaim
    from dryrack.placement import ExtendedResources
    from dryrack.scheduler.binding import Plan

_SERVER_ERROR = 500
# What is left of the beginning of a generated name, which is cut to end in five random characters.
_BASE_MAX = 58


def is_for_extended_resources(claim: Raw) -> bool:
    """Whether the scheduler made the claim."""
    annotations = claim["metadata"].get("annotations", {})
    return bool(annotations.get(ANNOTATION) == "true")


def owners(claim: Raw) -> Sequence[str]:
    """The pods, by uid, for whose extended resources a claim was made; for an index."""
    if not is_for_extended_resources(claim):
        return ()
    references = claim["metadata"].get("ownerReferences", ())
    return [each["uid"] for each in references if each.get("controller")]


def the_one_that_counts(claims: Iterable[Raw]) -> Raw | None:
    """If a pod has several, by a write whose answer was lost: one with devices before others."""
    ordered = sorted(claims, key=lambda each: "allocation" in each.get("status", {}))
    return ordered[-1] if ordered else None


@dataclass(frozen=True, slots=True)
class ExtendedClaim:
    """The claim for extended resources that a pod is about to be bound with."""

    # As "ns/name"; until it is made, no claim in the cluster can have that name.
    name: str
    mappings: tuple[ContainerExtendedResourceRequest, ...]
    # What is to be made; None if the claim is there.
    to_make: ResourceClaim | None = None

    @staticmethod
    def of(
        wanted: ExtendedResources | None, node: Node, given: Mapping[str, AllocationResult]
    ) -> ExtendedClaim | None:
        """None, if the pod asks for nothing of the kind, or the node has it all."""
        if wanted is None:
            return None
        mappings = wanted.mappings_on(node)
        if wanted.made is not None:
            return ExtendedClaim(claim_name(wanted.made), mappings)
        name = claim_name(wanted.claim)
        return ExtendedClaim(name, mappings, wanted.on(node)) if name in given else None


class ExtendedResourceClaims:
    """Writes for one client."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def made(self, plan: Plan) -> Plan:
        """The plan with all claims made that it has yet to make; all of them, or none."""
        lacking = [each for each in plan.assignments if each.extended and each.extended.to_make]
        made: dict[str, Raw] = {}
        try:
            for each in lacking:
                assert each.extended is not None, "it lacks one"
                made[each.extended.name] = await self._make(each.pod, each.extended)
        except BaseException:
            for claim in made.values():
                await self.discard(claim)
            raise
        return _with_made(plan, made) if made else plan

    async def _make(self, pod: Raw, wanted: ExtendedClaim) -> Raw:
        """The claim as it is in the cluster, with a name of its own."""
        assert wanted.to_make is not None, "there is something to make"
        owner = {key: pod["metadata"][key] for key in ("name", "uid")}
        metadata = {
            "generateName": f"{pod['metadata']['name']}-extended-resources-",
            "namespace": pod["metadata"]["namespace"],
            "annotations": {ANNOTATION: "true"},
            "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", **owner, "controller": True}],
            "finalizers": [DELETE_PROTECTION],
        }
        try:
            return await self._client.create(
                CLAIMS, {"metadata": metadata, "spec": to_builtins(wanted.to_make.spec)}
            )
        except TransportError:
            # It may be that only the answer was lost.
            found = await self._made_for(pod)
            if found is None:
                raise
            return found
        except ApiError as refusal:
            if refusal.code >= _SERVER_ERROR:
                raise
            # Of a quota, say, or an admission policy; each time it has another name in it.
            start = metadata["generateName"][:_BASE_MAX]
            reason = re.sub(rf"{re.escape(start)}[a-z0-9]{{5}}\b", start, str(refusal))
            problem = f"create claim for extended resources: {reason}"
            raise UnusableClaimError(wanted.name, problem) from refusal

    async def _made_for(self, pod: Raw) -> Raw | None:
        metadata = pod["metadata"]
        listing = await self._client.list(CLAIMS, Selection(namespace=metadata["namespace"]))
        return the_one_that_counts(
            each for each in listing.items if metadata["uid"] in owners(each)
        )

    async def tell(self, pod: Raw, claim: ExtendedClaim) -> None:
        """Writes into the pod's status which claim it has, and what of it is for whom."""
        metadata = pod["metadata"]
        told = {
            "requestMappings": [to_builtins(each) for each in claim.mappings],
            "resourceClaimName": claim.name.partition("/")[2],
        }
        if pod.get("status", {}).get("extendedResourceClaimStatus") == told:
            return
        status = {"extendedResourceClaimStatus": told}
        await self._client.patch(
            PODS,
            metadata["name"],
            {"metadata": {"uid": metadata["uid"]}, "status": status},
            namespace=metadata["namespace"],
            subresource="status",
            media_type=STRATEGIC_PATCH,
        )

    async def discard(self, claim: Raw) -> None:
        """The claim goes, with all that it holds; if that fails, it is found at the next try."""
        metadata = claim["metadata"]
        name = metadata["name"]
        namespace = metadata["namespace"]
        unprotected = {"$deleteFromPrimitiveList/finalizers": [DELETE_PROTECTION]}
        with suppress(ApiError, TransportError):
            await self._client.patch(
                CLAIMS,
                name,
                {"metadata": {"uid": metadata["uid"], **unprotected}},
                namespace=namespace,
                media_type=STRATEGIC_PATCH,
            )
            await self._client.delete(CLAIMS, name, namespace=namespace, uid=metadata["uid"])


def _with_made(plan: Plan, made: Mapping[str, Raw]) -> Plan:
    """The plan with claims by the names that they have got."""
    claims = dict(plan.claims)
    given = dict(plan.given)
    assignments = []
    for each in plan.assignments:
        claim = made.get(each.extended.name) if each.extended else None
        if each.extended is None or claim is None:
            assignments.append(each)
            continue
        metadata = claim["metadata"]
        name = f"{metadata['namespace']}/{metadata['name']}"
        claims[name] = claim
        given[name] = given.pop(each.extended.name)
        assignments.append(
            replace(
                each,
                consumers={**each.consumers, name: consumer_of_pod(each.pod)},
                extended=replace(each.extended, name=name, to_make=None),
            )
        )
    return replace(plan, assignments=tuple(assignments), claims=claims, given=given)
