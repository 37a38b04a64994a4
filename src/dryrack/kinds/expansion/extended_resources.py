"""
Extended resources that DeviceClasses provide.

A pod that asks for `nvidia.com/gpu: 2` in a container gets devices of the DeviceClass that says
`extendedResourceName: nvidia.com/gpu`; every class also stands for
`deviceclass.resource.kubernetes.io/NAME`. The scheduler makes one claim for all that a pod asks for
in this way. This is that claim: which requests it has, and what it is called, but for the random
ending; where the whole name would be too long, the cluster cuts it before that.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from dryrack.kinds.core import Container, ContainerExtendedResourceRequest, Pod
from dryrack.kinds.meta import ObjectMeta
from dryrack.kinds.quota_usage.claims import EXTENDED_RESOURCE_CLAIM
from dryrack.kinds.quota_usage.pods import CLASS_RESOURCE, is_extended
from dryrack.kinds.resource import (
    DeviceClaim,
    DeviceClass,
    DeviceRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
)

ANNOTATION = EXTENDED_RESOURCE_CLAIM
_ONE = 10**9


def classes_by_resource(classes: Iterable[DeviceClass]) -> Mapping[str, DeviceClass]:
    """Return the class of each resource: the newest one, then the first by name."""
    found: dict[str, DeviceClass] = {}
    for each in sorted(classes, key=lambda each: each.metadata.name, reverse=True):
        found[f"{CLASS_RESOURCE}{each.metadata.name}"] = each
        name = each.spec.extended_resource_name
        if name and (name not in found or _creation_key(each) >= _creation_key(found[name])):
            found[name] = each
    return found


def _creation_key(each: DeviceClass) -> str:
    return each.metadata.creation_timestamp or ""


def asked_for(pod: Pod) -> tuple[str, ...]:
    """Return the names of the extended resources that the containers request."""
    found = {
        name
        for each in (*pod.spec.init_containers, *pod.spec.containers)
        for said in (each.resources.requests, each.resources.limits)
        for name in said
        # A shortcut: most pods request none, and this function is called often.
        if is_extended(name) and _amounts(each)[name]
    }
    return tuple(sorted(found))


def claim_name_of(pod: Pod) -> str:
    """Return the name of the claim, which the pod has or would get."""
    status = pod.status.extended_resource_claim_status
    if status is not None and status.resource_claim_name:
        return status.resource_claim_name
    return f"{pod.metadata.name}-extended-resources"


def claim_of(pod: Pod, classes: Mapping[str, DeviceClass], name: str = "") -> ResourceClaim | None:
    """Return the claim for the extended resources of the pod; None if it needs none."""
    requests = [each for part in _shares(pod, classes) for each in part.requests]
    if not requests:
        return None
    metadata = ObjectMeta(
        name=name or claim_name_of(pod),
        namespace=pod.metadata.namespace,
        annotations={ANNOTATION: "true"},
    )
    ordered = tuple(sorted(requests, key=lambda each: each.name))
    spec = ResourceClaimSpec(devices=DeviceClaim(requests=ordered))
    return ResourceClaim(metadata=metadata, spec=spec)


def request_mappings(
    pod: Pod, classes: Mapping[str, DeviceClass]
) -> tuple[ContainerExtendedResourceRequest, ...]:
    """Return the requests of the claim for each container and resource."""
    return tuple(
        ContainerExtendedResourceRequest(
            container_name=container, resource_name=part.resource, request_name=request
        )
        for part in _shares(pod, classes)
        for container, request in part.uses
    )


@dataclass(frozen=True, slots=True)
class _Share:
    """The requests of a claim for one resource, and the containers that use them."""

    resource: str
    requests: tuple[DeviceRequest, ...]
    uses: tuple[tuple[str, str], ...]


def _shares(pod: Pod, classes: Mapping[str, DeviceClass]) -> list[_Share]:
    names = [name for name in asked_for(pod) if name in classes]
    return [_share(pod, name, classes[name].metadata.name) for name in names]


def _share(pod: Pod, resource: str, class_name: str) -> _Share:
    """
    One request for each container that stays, and one for all that end before the pod runs.

    An init container that ends may use what the containers after it will have; only what the
    neediest of them wants beyond that is asked for.
    """
    containers = (*pod.spec.init_containers, *pod.spec.containers)
    first = len(pod.spec.init_containers)
    amounts = [_amounts(container).get(resource, 0) for container in containers]
    ends = [i < first and each.restart_policy != "Always" for i, each in enumerate(containers)]
    staying = {
        index: _request(containers, index, resource, (class_name, amount))
        for index, amount in enumerate(amounts)
        if amount and not ends[index]
    }
    uses = [(containers[index].name, each.name) for index, each in staying.items()]
    reused = {
        index: _reuse([each for at, each in staying.items() if at >= index], amounts[index])
        for index, ends_early in enumerate(ends)
        if ends_early and amounts[index]
    }
    most, place = max(
        ((amounts[index] - sum(map(_count, found)), -index) for index, found in reused.items()),
        default=(0, 0),
    )
    extra = [_request(containers, -place, resource, (class_name, most))] if most > 0 else []
    for index, found in reused.items():
        lacks = amounts[index] > sum(map(_count, found))
        used = [*found, *(extra if lacks else ())]
        uses += [(containers[index].name, each.name) for each in used]
    return _Share(resource, (*extra, *staying.values()), tuple(uses))


def _reuse(requests: Sequence[DeviceRequest], amount: int) -> list[DeviceRequest]:
    """Return the requests of later containers that an init container can reuse."""
    found: list[DeviceRequest] = []
    for each in requests:
        if sum(map(_count, found)) >= amount:
            break
        found.append(each)
    return found


def _request(
    containers: Sequence[Container], index: int, resource: str, wanted: tuple[str, int]
) -> DeviceRequest:
    place = sorted(_amounts(containers[index])).index(resource)
    class_name, amount = wanted
    exactly = ExactDeviceRequest(
        device_class_name=class_name, allocation_mode="ExactCount", count=amount
    )
    return DeviceRequest(name=f"container-{index}-request-{place}", exactly=exactly)


def _count(request: DeviceRequest) -> int:
    return request.exactly.count if request.exactly is not None else 0


def _amounts(container: Container) -> dict[str, int]:
    """Return the requests of a container; a limit without a request is a request."""
    said = {**container.resources.limits, **container.resources.requests}
    return {name: amount.nanos // _ONE for name, amount in said.items()}
