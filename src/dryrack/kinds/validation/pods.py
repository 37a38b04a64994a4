"""
The resource claims of a pod; `kinds.rules.pods` validates the rest.
"""

from collections.abc import Iterator, Mapping
from itertools import islice

from dryrack.kinds.core import ContainerResourceClaim, Pod, PodResourceClaim, PodSpec
from dryrack.kinds.validation.names import checked, device_label, label, subdomain
from dryrack.kinds.validation.problems import (
    FieldProblem,
    Reason,
    duplicate,
    forbidden,
    invalid,
    required,
)

_NAMES_MAX = 100
_MIRROR = "kubernetes.io/config.mirror"


def pod_claims(obj: Pod) -> Iterator[FieldProblem]:
    """Problems of the claims of a pod and of the containers' use of them."""
    if _MIRROR in obj.metadata.annotations:
        detail = "static pods do not support resource claims"
        yield from (forbidden("", detail) for _ in obj.spec.resource_claims)
    else:
        seen: set[str] = set()
        for position, claim in enumerate(obj.spec.resource_claims):
            field = f"spec.resourceClaims[{position}]"
            if not claim.name:
                yield required(f"{field}.name")
            elif claim.name in seen:
                yield duplicate(f"{field}.name", claim.name)
            else:
                yield from device_label(f"{field}.name", claim.name)
            seen.add(claim.name)
            yield from _source(field, claim)
    yield from _uses(obj.spec)


def _source(field: str, claim: PodResourceClaim) -> Iterator[FieldProblem]:
    name = claim.resource_claim_name
    template = claim.resource_claim_template_name
    if name is not None and template is not None:
        yield invalid(
            field,
            claim,
            "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified",
        )
    if name is None and template is None:
        yield invalid(
            field, claim, "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
        )
    if name is not None:
        yield from checked(f"{field}.resourceClaimName", name, subdomain)
    if template is not None:
        yield from checked(f"{field}.resourceClaimTemplateName", template, subdomain)


def _uses(spec: PodSpec) -> Iterator[FieldProblem]:
    names = sorted({claim.name for claim in spec.resource_claims if claim.name})
    known = dict.fromkeys(names)
    for where, containers in (
        ("initContainers", spec.init_containers),
        ("containers", spec.containers),
    ):
        for position, container in enumerate(containers):
            field = f"spec.{where}[{position}].resources.claims"
            yield from _container(field, container.resources.claims, known)
    if spec.resources is not None:
        # They may not be there at all, and are looked at all the same.
        yield from _container("spec.resources.claims", spec.resources.claims, known)


def _container(
    field: str, claims: tuple[ContainerResourceClaim, ...], known: Mapping[str, None]
) -> Iterator[FieldProblem]:
    # Whole claims by name, single requests of a claim as (name, request).
    seen: dict[str, set[str]] = {}
    for position, claim in enumerate(claims):
        at = f"{field}[{position}]"
        if not claim.name:
            yield required(at)
            continue
        yield from _repeats(at, claim, seen)
        if "" not in seen.get(claim.name, ()):
            seen.setdefault(claim.name, set()).add(claim.request)
        if claim.name not in known:
            yield _unknown(at, claim.name, known)


def _repeats(
    field: str, claim: ContainerResourceClaim, seen: Mapping[str, set[str]]
) -> Iterator[FieldProblem]:
    before = seen.get(claim.name, set())
    if "" in before:
        yield duplicate(field, claim.name)
        return
    if claim.request:
        yield from checked(f"{field}.request", claim.request, label)
        if claim.request in before:
            yield duplicate(field, f"{claim.name}/{claim.request}")
    else:
        # Once for each request of it that was listed before.
        yield from (duplicate(field, claim.name) for _ in before)


def _unknown(field: str, name: str, known: Mapping[str, None]) -> FieldProblem:
    # Each problem has this list: of thousands of claims, it would be gigabytes.
    names = [*islice(known, _NAMES_MAX), *(["..."] if len(known) > _NAMES_MAX else [])]
    choice = f": {', '.join(names)}" if names else " which is empty"
    detail = f"must be one of the names in pod.spec.resourceClaims{choice}"
    return FieldProblem(
        Reason.NOT_FOUND, field, name, detail, f"add {name!r} to spec.resourceClaims"
    )
