"""
A bag of objects, sorted for a what-if: who asks for what, in which order.

A pod asks for its claims together, on one node. A claim that no pod uses asks for itself. They
come in the order of the bag. A claim that a pod makes from a template is named after the two,
without the random ending that it gets in a cluster. Objects without a namespace are in
"default", as they are when somebody applies them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

import msgspec

from dryrack.allocation.identity import claim_name
from dryrack.kinds.core import Node, Pod
from dryrack.kinds.meta import KubernetesObject, ObjectMeta
from dryrack.kinds.resource import (
    DeviceClass,
    DeviceTaintRule,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from dryrack.kinds.core import PodResourceClaim

_Kind = TypeVar("_Kind", bound=KubernetesObject)

# A name has 63 characters; a generated one ends in a hyphen and five random ones.
_GENERATED_NAME_MAX = 57


@dataclass(frozen=True, slots=True)
class Party:
    """Those who are served together: a pod with its claims, or a claim by itself."""

    pod: Pod | None
    claims: tuple[ResourceClaim, ...]
    # What the pod refers to and nobody has, by the name it would have.
    missing: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """The objects that a what-if reckons with; others are left out."""

    nodes: tuple[Node, ...] = ()
    slices: tuple[ResourceSlice, ...] = ()
    classes: tuple[DeviceClass, ...] = ()
    taint_rules: tuple[DeviceTaintRule, ...] = ()
    templates: tuple[ResourceClaimTemplate, ...] = ()
    # Pods and claims, in the order in which they are served.
    parties: tuple[Pod | ResourceClaim, ...] = ()

    @staticmethod
    def of(objects: Iterable[KubernetesObject]) -> World:
        """The world of a bag of typed objects, which have their defaults."""
        bag = [_in_namespace(each) for each in objects]
        return World(
            nodes=_only(bag, Node),
            slices=_only(bag, ResourceSlice),
            classes=_only(bag, DeviceClass),
            taint_rules=_only(bag, DeviceTaintRule),
            templates=_only(bag, ResourceClaimTemplate),
            parties=tuple(each for each in bag if isinstance(each, Pod | ResourceClaim)),
        )

    @property
    def claims(self) -> tuple[ResourceClaim, ...]:
        return _only(self.parties, ResourceClaim)

    def with_claim(self, claim: ResourceClaim) -> World:
        """The same with another version of a claim, or of the template it comes from."""
        named = claim_name(claim)
        parties = tuple(
            claim if isinstance(each, ResourceClaim) and claim_name(each) == named else each
            for each in self.parties
        )
        if claim not in parties:
            parties = (claim, *parties)
        return replace(self, parties=parties)

    def in_order(self) -> Iterator[Party]:
        """All who ask, one after the other."""
        known = {claim_name(claim): claim for claim in self.claims}
        templates = {_full_name(each): each for each in self.templates}
        pods = _only(self.parties, Pod)
        used = {
            f"{pod.metadata.namespace}/{_claim_of(pod, each)}"
            for pod in pods
            for each in pod.spec.resource_claims
        }
        for each in self.parties:
            if isinstance(each, Pod):
                if each.spec.resource_claims:
                    yield _party(each, known, templates)
            elif claim_name(each) not in used:
                yield Party(None, (each,))


def _party(
    pod: Pod,
    known: Mapping[str, ResourceClaim],
    templates: Mapping[str, ResourceClaimTemplate],
) -> Party:
    claims: list[ResourceClaim] = []
    missing: list[tuple[str, str]] = []
    for each in pod.spec.resource_claims:
        name = f"{pod.metadata.namespace}/{_claim_of(pod, each)}"
        template = templates.get(f"{pod.metadata.namespace}/{each.resource_claim_template_name}")
        if name in known:
            claims.append(known[name])
        elif template is not None:
            claims.append(_generated(pod, each, template))
        elif each.resource_claim_template_name is not None:
            missing.append((name, f"ResourceClaimTemplate {each.resource_claim_template_name!r}"))
        else:
            missing.append((name, f"ResourceClaim {each.resource_claim_name!r}"))
    return Party(pod, tuple(claims), tuple(missing))


def _claim_of(pod: Pod, wanted: PodResourceClaim) -> str:
    """The name of the claim that the pod means, as the cluster says or would say."""
    if wanted.resource_claim_name is not None:
        return wanted.resource_claim_name
    for status in pod.status.resource_claim_statuses:
        if status.name == wanted.name and status.resource_claim_name:
            return status.resource_claim_name
    name = f"{pod.metadata.name}-{wanted.name}-"
    if len(name) <= _GENERATED_NAME_MAX:
        return name[:-1]
    own = pod.metadata.name[: len(pod.metadata.name) * _GENERATED_NAME_MAX // len(name)]
    return f"{own}-{wanted.name[: len(wanted.name) * _GENERATED_NAME_MAX // len(name)]}"


def _generated(
    pod: Pod, wanted: PodResourceClaim, template: ResourceClaimTemplate
) -> ResourceClaim:
    metadata = ObjectMeta(
        name=_claim_of(pod, wanted),
        namespace=pod.metadata.namespace,
        labels=template.spec.metadata.labels,
        annotations={
            **template.spec.metadata.annotations,
            "resource.kubernetes.io/pod-claim-name": wanted.name,
        },
    )
    return ResourceClaim(metadata=metadata, spec=template.spec.spec)


def _only(bag: Iterable[KubernetesObject], kind: type[_Kind]) -> tuple[_Kind, ...]:
    return tuple(each for each in bag if isinstance(each, kind))


def _full_name(each: KubernetesObject) -> str:
    return f"{each.metadata.namespace}/{each.metadata.name}"


def _in_namespace(each: KubernetesObject) -> KubernetesObject:
    namespaced = isinstance(each, Pod | ResourceClaim | ResourceClaimTemplate)
    if not namespaced or each.metadata.namespace:
        return each
    metadata = msgspec.structs.replace(each.metadata, namespace="default")
    return msgspec.structs.replace(each, metadata=metadata)
