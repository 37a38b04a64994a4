"""
Device metadata (KEP-5304): a file in each container that lists the devices of a request.

The layout is that of Kubernetes' own helper for drivers: one file and one CDI device for each
request of a claim. The contents are in the record, so they can be written again without the API
server.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from dryrack.kinds.decode import to_builtins
from dryrack.kinds.expansion.pod_claims import POD_CLAIM_NAME
from dryrack.kinds.validation.names import label
from dryrack.kubeletplugin.cdi import UID_PATTERN, least_version, uid_of
from dryrack.kubeletplugin.device_kind import PrepareError
from dryrack.kubeletplugin.record import RequestMetadata

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dryrack.kinds.resource import DeviceRequestAllocationResult, ResourceClaim
    from dryrack.kubeletplugin.prepare import NodeDevices
    from dryrack.kubeletplugin.record import ClaimRecord, PreparedDevice

# A reader takes the first version that it knows, so the newest comes first.
API_VERSIONS = ("metadata.resource.k8s.io/v1beta1", "metadata.resource.k8s.io/v1alpha1")
KIND = "DeviceMetadata"
DIRECTORY = "dra-device-metadata"
FILE = "metadata.json"
CONTAINER_DIRECTORY = "/var/run/kubernetes.io/dra-device-attributes"
# Names become parts of paths. No name that the API server accepts has a meaning there.
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?")


def with_metadata(record: ClaimRecord, claim: ResourceClaim, devices: NodeDevices) -> ClaimRecord:
    """Return the record with a file for each request; its first device has the CDI device."""
    allocation = claim.status.allocation
    driver = devices.kind.driver
    assert allocation is not None, "only an allocated claim is prepared"
    by_request: dict[str, list[DeviceRequestAllocationResult]] = {}
    for result in allocation.devices.results:
        if result.driver == driver:
            by_request.setdefault(result.request.partition("/")[0], []).append(result)
    for name in (record.namespace, record.name, *by_request):
        if not _NAME.fullmatch(name):
            raise PrepareError(f"claim {record.namespace}/{record.name}: {name!r} is no name")
    files = tuple(
        RequestMetadata(
            request=request,
            cdi_id=f"{driver}/metadata={record.uid}_{request}",
            container_path=_container_path(driver, claim, request),
            content=_content(claim, results, devices),
        )
        for request, results in by_request.items()
    )
    return replace(record, metadata=files, devices=tuple(_add_cdi_ids(record.devices, files)))


def directory_name(record: ClaimRecord) -> str:
    """Return the directory of a claim's files, below the plugin's own directory."""
    return f"{record.namespace}_{record.name}"


def spec_name(driver: str, uid: str, request: str) -> str:
    return f"{driver}_metadata_{uid}_{request}.json"


def claim_uid(driver: str, name: str) -> str | None:
    """Return the claim of a CDI spec of the driver, or None for other files."""
    if (uid := uid_of(driver, name)) is not None:
        return uid
    match = re.fullmatch(rf"{re.escape(driver)}_metadata_({UID_PATTERN})_[^/]*\.json", name)
    return match[1] if match else None


def spec_of(file: RequestMetadata, host_path: str) -> dict[str, Any]:
    """Return the CDI spec that mounts a file."""
    kind, _, name = file.cdi_id.partition("=")
    mount = {
        "hostPath": host_path,
        "containerPath": file.container_path,
        "options": ["ro", "bind"],
    }
    devices = [{"name": name, "containerEdits": {"mounts": [mount]}}]
    return {"cdiVersion": least_version([name]), "kind": kind, "devices": devices}


def _add_cdi_ids(
    devices: Iterable[PreparedDevice], files: Iterable[RequestMetadata]
) -> Iterable[PreparedDevice]:
    left = {each.request: each.cdi_id for each in files}
    for device in devices:
        added = [left.pop(request) for request in device.requests if request in left]
        yield replace(device, cdi_ids=(*device.cdi_ids, *added)) if added else device


def _container_path(driver: str, claim: ResourceClaim, request: str) -> str:
    # A claim that was written by hand may have any annotation.
    entry = claim.metadata.annotations.get(POD_CLAIM_NAME, "")
    if entry and not any(label(entry)):
        where = f"resourceclaimtemplates/{entry}"
    else:
        where = f"resourceclaims/{claim.metadata.name}"
    return f"{CONTAINER_DIRECTORY}/{where}/{request}/{driver}-metadata.json"


def _content(
    claim: ResourceClaim, results: list[DeviceRequestAllocationResult], devices: NodeDevices
) -> str:
    """Return the content of a file, with one JSON object for each version of the format."""
    meta = claim.metadata
    listed = {(each.pool, each.device): _device(each, devices) for each in results}
    of_pod = meta.annotations.get(POD_CLAIM_NAME)
    document = {
        "metadata": {
            "name": meta.name,
            "namespace": meta.namespace,
            "uid": meta.uid,
            "generation": 1,
        },
        **({"podClaimName": of_pod} if of_pod else {}),
        "requests": [{"name": results[0].request, "devices": list(listed.values())}],
    }
    versions = ({"kind": KIND, "apiVersion": each, **document} for each in API_VERSIONS)
    return "".join(json.dumps(each, indent=2) + "\n" for each in versions)


def _device(result: DeviceRequestAllocationResult, devices: NodeDevices) -> dict[str, Any]:
    attributes = devices.devices[result.device].attributes
    values = {name: to_builtins(value) for name, value in attributes.items()}
    names = {"driver": result.driver, "pool": result.pool, "name": result.device}
    return {**names, "attributes": values} if values else names
