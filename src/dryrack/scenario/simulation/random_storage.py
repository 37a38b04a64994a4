"""
Storage of random worlds: classes, existing volumes, and claims.

Volumes are created at once or for the first consumer, and are deleted with their claims or kept;
some exist from the start, but fewer than claims need.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random

    from dryrack.kinds.raw import Raw

FIRST_CONSUMER = "first-consumer"
_CLASSES = {
    "immediate": {"volumeBindingMode": "Immediate"},
    FIRST_CONSUMER: {"volumeBindingMode": "WaitForFirstConsumer"},
    "retained": {"volumeBindingMode": "WaitForFirstConsumer", "reclaimPolicy": "Retain"},
    "present": {"volumeBindingMode": "Immediate", "provisioner": "kubernetes.io/no-provisioner"},
}
# For as many as there are pods.
PROVISIONED = ("immediate", "immediate", FIRST_CONSUMER, FIRST_CONSUMER, "retained")
ANY_CLASS = (*PROVISIONED, "present")
_PRESENT = 3


def storage() -> tuple[Raw, ...]:
    """Return the classes and the existing volumes."""
    classes = [
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": name},
            "provisioner": "disk.example.com",
            **fields,
        }
        for name, fields in _CLASSES.items()
    ]
    return *classes, *(_volume(f"present-{number}") for number in range(_PRESENT))


def volume_claim_spec(storage_class: str) -> Raw:
    requests = {"storage": "1Gi"}
    spec: Raw = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": requests}}
    return spec | {"storageClassName": storage_class}


def random_volume_claim_spec(chance: random.Random, classes: tuple[str, ...] = ANY_CLASS) -> Raw:
    return volume_claim_spec(chance.choice(classes))


def volume_claim(name: str, spec: Raw) -> Raw:
    metadata = {"name": name}
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
    return claim | {"metadata": metadata, "spec": spec}


def mount(pod: Raw, *sources: Raw) -> None:
    """Add a volume to the pod for each source, and mount it in the first container."""
    volumes = pod["spec"].setdefault("volumes", [])
    mounts = pod["spec"]["containers"][0].setdefault("volumeMounts", [])
    for source in sources:
        name = f"data-{len(volumes)}"
        volumes.append({"name": name, **source})
        mounts.append({"name": name, "mountPath": f"/{name}"})


def _volume(name: str) -> Raw:
    spec: Raw = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "2Gi"}}
    spec |= {"storageClassName": "present", "persistentVolumeReclaimPolicy": "Retain"}
    spec["csi"] = {"driver": "disk.example.com", "volumeHandle": name}
    volume = {"apiVersion": "v1", "kind": "PersistentVolume"}
    return volume | {"metadata": {"name": name}, "spec": spec}
