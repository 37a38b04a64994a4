"""
The claims that the scheduler creates itself, for extended resources of pods.

Such a claim is created when the pod is about to be bound. The status of the pod gets its name and
the request that each container uses. The claim is deleted if the pod is not bound after all. After
a crash the next scheduler finds the claim by its owner and its annotation, and treats it like any
other claim of the pod.
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
# A generated name is its cut generateName, followed by five random characters.
_BASE_MAX = 58


def is_for_extended_resources(claim: Raw) -> bool:
    """Return whether the scheduler created the claim."""
    annotations = claim["metadata"].get("annotations", {})
    return bool(annotations.get(ANNOTATION) == "true")


def find_owners(claim: Raw) -> Sequence[str]:
    """Return the uids of the pods for whose extended resources a claim was created."""
    if not is_for_extended_resources(claim):
        return ()
    references = claim["metadata"].get("ownerReferences", ())
    return [each["uid"] for each in references if each.get("controller")]


def prefer_allocated(claims: Iterable[Raw]) -> Raw | None:
    """
    Return the allocated claim of a pod, or else any.

    A pod can have several claims for extended resources if the answer to a write was lost.
    """
    ordered = sorted(claims, key=lambda each: "allocation" in each.get("status", {}))
    return ordered[-1] if ordered else None


@dataclass(frozen=True, slots=True)
class ExtendedClaim:
    """The claim for extended resources that a pod is about to be bound with."""

    # As "ns/name"; until it is created, no claim in the cluster can have that name.
    name: str
    mappings: tuple[ContainerExtendedResourceRequest, ...]
    # The claim to create; None if it exists.
    to_create: ResourceClaim | None = None

    @staticmethod
    def of(
        wanted: ExtendedResources | None, node: Node, given: Mapping[str, AllocationResult]
    ) -> ExtendedClaim | None:
        """Return None if the pod needs no devices for extended resources on the node."""
        if wanted is None:
            return None
        mappings = wanted.mappings_on(node)
        if wanted.made is not None:
            return ExtendedClaim(claim_name(wanted.made), mappings)
        name = claim_name(wanted.claim)
        return ExtendedClaim(name, mappings, wanted.on(node)) if name in given else None


class ExtendedResourceClaims:
    """Creates and deletes claims for one client."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def create_claims(self, plan: Plan) -> Plan:
        """Create all missing claims, or none; return the plan with their generated names."""
        missing = [each for each in plan.assignments if each.extended and each.extended.to_create]
        if not missing:
            return plan
        created: dict[str, Raw] = {}
        try:
            for each in missing:
                assert each.extended is not None, "the claim is missing"
                created[each.extended.name] = await self._create(each.pod, each.extended)
        except BaseException:
            for claim in created.values():
                await self.discard(claim)
            raise
        claims = dict(plan.claims)
        given = dict(plan.given)
        assignments = []
        for each in plan.assignments:
            new = created.get(each.extended.name) if each.extended else None
            if each.extended is None or new is None:
                assignments.append(each)
                continue
            metadata = new["metadata"]
            name = f"{metadata['namespace']}/{metadata['name']}"
            claims[name] = new
            given[name] = given.pop(each.extended.name)
            assignments.append(
                replace(
                    each,
                    consumers={**each.consumers, name: consumer_of_pod(each.pod)},
                    extended=replace(each.extended, name=name, to_create=None),
                )
            )
        return replace(plan, assignments=tuple(assignments), claims=claims, given=given)

    async def _create(self, pod: Raw, wanted: ExtendedClaim) -> Raw:
        """Create one claim; return it with its generated name."""
        assert wanted.to_create is not None, "the claim is missing"
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
                CLAIMS, {"metadata": metadata, "spec": to_builtins(wanted.to_create.spec)}
            )
        except TransportError:
            # Perhaps only the answer was lost.
            namespace = pod["metadata"]["namespace"]
            listing = await self._client.list(CLAIMS, Selection(namespace=namespace))
            uid = pod["metadata"]["uid"]
            existing = prefer_allocated(each for each in listing.items if uid in find_owners(each))
            if existing is None:
                raise
            return existing
        except ApiError as refusal:
            if refusal.code >= _SERVER_ERROR:
                raise
            # The message, of a quota for example, contains a new generated name each time, and
            # would count as news.
            start = metadata["generateName"][:_BASE_MAX]
            reason = re.sub(rf"{re.escape(start)}[a-z0-9]{{5}}\b", start, str(refusal))
            problem = f"create claim for extended resources: {reason}"
            raise UnusableClaimError(wanted.name, problem) from refusal

    async def write_status(self, pod: Raw, claim: ExtendedClaim) -> None:
        """Write the claim of a pod, and the request of each container, into the pod's status."""
        metadata = pod["metadata"]
        claim_status = {
            "requestMappings": [to_builtins(each) for each in claim.mappings],
            "resourceClaimName": claim.name.partition("/")[2],
        }
        if pod.get("status", {}).get("extendedResourceClaimStatus") == claim_status:
            return
        status = {"extendedResourceClaimStatus": claim_status}
        await self._client.patch(
            PODS,
            metadata["name"],
            {"metadata": {"uid": metadata["uid"]}, "status": status},
            namespace=metadata["namespace"],
            subresource="status",
            media_type=STRATEGIC_PATCH,
        )

    async def discard(self, claim: Raw) -> None:
        """Delete a claim with its allocation; if that fails, the next attempt finds the claim."""
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
