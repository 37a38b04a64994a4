"""The stage of tests of storage, and builders of claims, volumes and their users."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.controllers import scenes
from tests.stage import Stage

from dryrack.client.endpoints import NODES, STORAGE_CLASSES, VOLUME_CLAIMS, VOLUMES
from dryrack.cluster.initial_objects import virtual_node

if TYPE_CHECKING:
    from dryrack.kinds.raw import Raw


def claim(name: str, storage: str = "3Gi", **spec: Any) -> Raw:
    asked = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": storage}}}
    return {"metadata": {"name": name, "namespace": "default"}, "spec": asked | spec}


def volume(name: str, storage: str, **spec: Any) -> Raw:
    """Return a volume of the class `manual`."""
    own = {"capacity": {"storage": storage}, "accessModes": ["ReadWriteOnce"]}
    source = {"storageClassName": "manual", "hostPath": {"path": "/data"}}
    return {"metadata": {"name": name, "labels": {"is": name}}, "spec": own | source | spec}


def user(name: str, claim: str) -> Raw:
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]
    spec = scenes.POD_SPEC | {"volumes": volumes}
    return {"metadata": {"name": name, "namespace": "default"}, "spec": spec}


def stateful_set(name: str, namespace: str = "default") -> Raw:
    """Two pods, each with a claim `data`."""
    labels = {"app": name}
    return {
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "serviceName": name,
            "replicas": 2,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": scenes.POD_SPEC},
            "volumeClaimTemplates": [claim("data") | {"metadata": {"name": "data"}}],
        },
    }


class VolumeStage(Stage):
    """A cluster with a node."""

    async def set_up(self) -> None:
        await self.create(NODES, virtual_node("node-1"))
        await self.advance(1)

    async def make(self, *objects: Raw) -> None:
        """Create volumes (which have a size), claims (which ask for one) and classes."""
        for each in objects:
            spec = each.get("spec", {})
            endpoint = VOLUMES if "capacity" in spec else VOLUME_CLAIMS if spec else STORAGE_CLASSES
            await self.create(endpoint, each)
        await self.advance(1)

    async def bindings(self) -> dict[str, str]:
        """Return the volume of each claim, or its phase if it has none."""
        claims = (await self.client.list(VOLUME_CLAIMS)).items
        return {
            each["metadata"]["name"]: each["spec"].get("volumeName") or each["status"]["phase"]
            for each in claims
        }

    async def phases(self) -> dict[str, str]:
        volumes = (await self.client.list(VOLUMES)).items
        return {each["metadata"]["name"]: each["status"]["phase"] for each in volumes}

    async def delete_claim(self, name: str) -> None:
        await self.delete("pvc", name)
        await self.advance(1)
