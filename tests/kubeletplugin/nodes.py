"""A node with a plugin, on an embedded API server, and claims that are allocated to it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.client.planes import Site, site

from dryrack.client.endpoints import CLAIMS
from dryrack.hardware import NO_FAULTS
from dryrack.kubeletplugin import ClaimReference, Directories, NodePlugin
from dryrack.kubeletplugin.kinds.fake import FakeKind

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from dryrack.hardware import NodeFaults
    from dryrack.kinds.raw import Raw
    from dryrack.kubeletplugin import DeviceKind
    from dryrack.kubeletplugin.files import FileSystem

NODE = "node-1"
_FIELD = {"key": "metadata.name", "operator": "In", "values": [NODE]}
ON_NODE = {"nodeSelectorTerms": [{"matchFields": [_FIELD]}]}


@dataclass(slots=True)
class Bench:
    """An API server, and directories for a plugin that may come and go."""

    site: Site
    directory: Path
    kind: DeviceKind
    writes_metadata: bool = False
    is_shared: bool = False

    @property
    def cdi(self) -> Path:
        return self.directory / "cdi"

    @property
    def plugin_directory(self) -> Path:
        return self.directory / "plugins" / self.kind.driver

    def plugin(
        self,
        files: FileSystem | None = None,
        *,
        faults: Callable[[], NodeFaults] = lambda: NO_FAULTS,
    ) -> NodePlugin:
        """A process that starts; what an earlier one left is there."""
        directories = Directories(self.plugin_directory, self.cdi)
        return NodePlugin(
            self.kind,
            self.site.client,
            NODE,
            directories,
            files=files,
            writes_metadata=self.writes_metadata,
            is_shared=self.is_shared,
            faults=faults,
        )

    async def claim(
        self,
        name: str,
        devices: Sequence[str],
        *,
        namespace: str = "default",
        pods: Sequence[str] = ("pod0",),
        parameters: Raw | None = None,
        of_pod: str = "",
        share_id: str = "",
        annotations: Raw | None = None,
        consumed: Raw | None = None,
    ) -> ClaimReference:
        """Creates a claim, and allocates it as a scheduler would."""
        metadata: Raw = {"name": name, "namespace": namespace, "annotations": annotations or {}}
        if of_pod:
            owner = {"apiVersion": "v1", "kind": "Pod", "name": of_pod, "uid": f"uid-{of_pod}"}
            metadata["ownerReferences"] = [owner | {"controller": True}]
        request = {"name": "req", "exactly": {"deviceClassName": "class"}}
        made = await self.site.client.create(
            CLAIMS, {"metadata": metadata, "spec": {"devices": {"requests": [request]}}}
        )
        result = {"request": "req", "driver": self.kind.driver, "pool": NODE}
        share: Raw = {"shareID": share_id} if share_id else {}
        if consumed is not None:
            share["consumedCapacity"] = consumed
        allocation: Raw = {"results": [result | {"device": each} | share for each in devices]}
        if parameters is not None:
            opaque = {"driver": self.kind.driver, "parameters": parameters}
            allocation["config"] = [{"source": "FromClaim", "opaque": opaque}]
        made["status"] = {
            "allocation": {"devices": allocation, "nodeSelector": ON_NODE},
            "reservedFor": [{"resource": "pods", "name": p, "uid": f"uid-{p}"} for p in pods],
        }
        await self.site.client.update(CLAIMS, made, subresource="status")
        return ClaimReference(namespace, name, made["metadata"]["uid"])


def bench(directory: Path, kind: DeviceKind | None = None) -> Bench:
    return Bench(site(), directory, kind or FakeKind())


def environment(bench: Bench, uid: str) -> dict[str, str]:
    """The variables of all devices of a claim, as a container runtime reads them."""
    spec = json.loads((bench.cdi / f"{bench.kind.driver}-{uid}.json").read_text())
    pairs = (
        entry.split("=", 1)
        for device in spec["devices"]
        for entry in device["containerEdits"].get("env", ())
    )
    return {entry[0]: entry[1] for entry in pairs}


def metadata_objects(path: Path) -> list[Raw]:
    """Return the objects of a metadata file, which has one for each version."""
    text = path.read_text()
    decoder = json.JSONDecoder()
    found: list[Raw] = []
    while text.strip():
        value, end = decoder.raw_decode(text.lstrip())
        found.append(value)
        text = text.lstrip()[end:]
    return found
