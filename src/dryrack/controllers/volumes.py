"""
PersistentVolumes and their claims in a cluster that stores nothing.

An existing volume is bound as kube-controller-manager does it. If no volume fits, one is created:
every provisioner is simulated. A claim of a class that does not exist stays pending, with an event,
until the class is created; a claim without a class needs none. A class that waits for the first
consumer waits for the node that a scheduler writes to the claim, or for a bound pod. No volume is
created for a claim of the class "", of the provisioner `kubernetes.io/no-provisioner`, with a
selector, or with the name of a volume.

Ephemeral volumes of pods get their claims here too. A volume whose claim is deleted is deleted or
kept, by its reclaim policy.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

from dryrack.client.endpoints import PODS, STORAGE_CLASSES, VOLUME_CLAIMS, VOLUMES
from dryrack.client.informer import Name, name_of
from dryrack.controllers.objects import (
    annotations_of,
    controller_reference,
    is_controlled_by,
    is_deleted,
    is_terminal,
    labels_of,
    spec_of,
    status_of,
    uid_of,
    with_metadata,
)
from dryrack.controllers.reconciler import Reconciler
from dryrack.controllers.writes import (
    NOTHING,
    Create,
    Delete,
    EngineContext,
    Plan,
    Report,
    Update,
    Write,
)
from dryrack.kinds.decode import decode
from dryrack.kinds.meta import LabelSelector
from dryrack.kinds.paths import get, metadata_of
from dryrack.kinds.quantity import Quantity
from dryrack.kinds.raw import Raw
from dryrack.kinds.rules.checks import driver_name
from dryrack.kinds.selectors import matches_labels

_COMPLETED = "pv.kubernetes.io/bind-completed"
_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
_PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
_NO_PROVISIONER = "kubernetes.io/no-provisioner"
_PROVISIONER = "volumes.dryrack.dev"
_SELECTED_NODE = "volume.kubernetes.io/selected-node"
_ON_FIRST_USE = "WaitForFirstConsumer"
_WAITS = "waiting for first consumer to be created before binding"
_OLD_CLASS = "volume.beta.kubernetes.io/storage-class"
_NONE = Quantity.parse("0")


def bind(claim: Raw, volume: Raw) -> Plan:
    """Bind a claim and a volume to each other, unless the volume belongs to another claim."""
    is_free = not spec_of(volume).get("claimRef")
    if not is_free and not is_kept_for(volume, claim):
        return NOTHING
    problem = mismatch(volume, claim) if is_free else ""
    if problem:
        message = f'Cannot bind to requested volume "{volume["metadata"]["name"]}": {problem}'
        return Plan((Report(claim, "Warning", "VolumeMismatch", message, message),))
    return Plan((*_bind_volume(volume, claim, is_free=is_free), *_bind_claim(claim, volume)))


def _bind_volume(volume: Raw, claim: Raw, *, is_free: bool) -> Iterable[Write]:
    reference = get(volume, "spec.claimRef", {})
    if reference.get("uid") != uid_of(claim):
        marks = dict(annotations_of(volume)) | ({_BY_CONTROLLER: "yes"} if is_free else {})
        spec = spec_of(volume) | {"claimRef": _reference(claim)}
        yield Update(VOLUMES, with_metadata(volume, annotations=marks or None) | {"spec": spec})
    if status_of(volume).get("phase") != "Bound":
        yield Update(VOLUMES, volume | {"status": status_of(volume) | {"phase": "Bound"}}, "status")


def _bind_claim(claim: Raw, volume: Raw) -> Iterable[Write]:
    name = volume["metadata"]["name"]
    marks = dict(annotations_of(claim))
    if spec_of(claim).get("volumeName") != name:
        marks[_BY_CONTROLLER] = "yes"
    marks[_COMPLETED] = "yes"
    spec = spec_of(claim) | {"volumeName": name}
    named = with_metadata(claim, annotations=marks) | {"spec": spec}
    if named != claim:
        yield Update(VOLUME_CLAIMS, named)
    given = spec_of(volume)
    copied: Raw = {key: given[key] for key in ("accessModes", "capacity") if key in given}
    status = status_of(claim) | copied | {"phase": "Bound"}
    if status != status_of(claim):
        yield Update(VOLUME_CLAIMS, named | {"status": status}, "status")


def expand(claim: Raw, volume: Raw, storage_class: Raw | None) -> Sequence[Write]:
    """Expand the volume of a bound claim that asks for more, if its class allows that."""
    is_bound = status_of(claim).get("phase") == "Bound" and is_kept_for(volume, claim)
    if not is_bound or requested_size(claim) <= size_of(volume):
        return ()
    if not (storage_class or {}).get("allowVolumeExpansion"):
        return ()
    if not spec_of(volume).get("csi"):
        # Only volumes of CSI drivers have a simulated resizer.
        message = "waiting for an external controller to expand this PVC"
        return (Report(claim, "Normal", "ExternalExpanding", message, message),)
    capacity = {"storage": spec_of(claim)["resources"]["requests"]["storage"]}
    larger = volume | {"spec": spec_of(volume) | {"capacity": capacity}}
    report = Report(claim, "Normal", "VolumeResizeSuccessful", "Resize volume succeeded")
    return Update(VOLUMES, larger), report


def mark_lost(claim: Raw) -> Plan:
    """Report that the volume of a bound claim no longer exists."""
    if _COMPLETED not in annotations_of(claim) or status_of(claim).get("phase") == "Lost":
        return NOTHING
    message = "Bound claim has lost its PersistentVolume. Data on the volume is lost!"
    return Plan(
        (
            Report(claim, "Warning", "ClaimLost", message),
            Update(VOLUME_CLAIMS, claim | {"status": {"phase": "Lost"}}, "status"),
        )
    )


def volume_name(claim: Raw) -> str:
    """Return the name of a volume that is created for a claim."""
    return f"pvc-{uid_of(claim)}"


def provision(claim: Raw, storage_class: Raw, *, is_used: bool) -> Plan:
    """Create a volume of the size that the claim asks for, if its class allows that now."""
    provisioner = storage_class.get("provisioner") or _PROVISIONER
    spec = spec_of(claim)
    if storage_class.get("volumeBindingMode") == _ON_FIRST_USE and not is_used:
        return Plan((Report(claim, "Normal", _ON_FIRST_USE, _WAITS, _WAITS),))
    if class_of(claim) == "" or spec.get("selector") or provisioner == _NO_PROVISIONER:
        return NOTHING
    name = volume_name(claim)
    volume: Raw = {
        "metadata": {"name": name, "annotations": {_PROVISIONED_BY: provisioner}},
        "spec": {
            "accessModes": get(spec, "accessModes", []),
            "capacity": {"storage": spec["resources"]["requests"]["storage"]},
            "claimRef": _reference(claim),
            "csi": {"driver": _driver(provisioner), "volumeHandle": name},
            "persistentVolumeReclaimPolicy": storage_class.get("reclaimPolicy") or "Delete",
            "volumeMode": spec.get("volumeMode") or "Filesystem",
        },
    }
    if class_of(claim):
        volume["spec"]["storageClassName"] = class_of(claim)
    if spec.get("volumeAttributesClassName"):
        volume["spec"]["volumeAttributesClassName"] = spec["volumeAttributesClassName"]
    message = "Successfully provisioned volume {}"
    accepted = Report(claim, "Normal", "ProvisioningSucceeded", message)
    return Plan((Create(VOLUMES, volume, accepted=accepted),))


def _driver(provisioner: str) -> str:
    """Return a valid driver name; some provisioners have names that no driver can have."""
    name = provisioner.replace("/", ".")
    return _PROVISIONER if any(driver_name("driver", name)) else name


def _reference(claim: Raw) -> Raw:
    metadata = claim["metadata"]
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        **{key: metadata[key] for key in ("namespace", "name", "uid", "resourceVersion")},
    }


class ClaimBinding(Reconciler[Name]):
    """Binds claims to volumes, and creates volumes."""

    def __init__(self, context: EngineContext) -> None:
        # One worker: two claims would choose the same volume.
        super().__init__(context, "persistentvolume-controller", workers=1)
        self._claims = self.watch(VOLUME_CLAIMS, self._on_claim)
        self._unbound = self._claims.index("unbound by class", _class_if_unbound)
        self._naming = self._claims.index("names volume", _named_volume)
        self._volumes = self.watch(VOLUMES, self._on_volume)
        self._free = self._volumes.index("free by class", _class_if_free)
        self._kept = self._volumes.index("kept for claim", _claim_if_kept)
        self._classes = self.watch(STORAGE_CLASSES, self._on_class)
        self._pods = self.watch(PODS, self._on_pod)
        self._users = self._pods.index("volume claim on node", _claims_on_node)

    def _on_claim(self, old: Raw | None, new: Raw | None) -> None:
        if new is not None:
            self.queue.add(name_of(new))

    def _on_volume(self, old: Raw | None, new: Raw | None) -> None:
        """Decide the claim of a volume, claims that name it, and all candidates if it is free."""
        for each in filter(None, (old, new)):
            reference = spec_of(each).get("claimRef")
            if reference:
                self.queue.add(Name(reference.get("namespace", ""), reference["name"]))
        if new is None:
            return
        wanting = [each for kind in _class_if_free(new) for each in self._unbound.get(kind)]
        for claim in (*self._naming.get(new["metadata"]["name"]), *wanting):
            self.queue.add(name_of(claim))

    def _on_class(self, old: Raw | None, new: Raw | None) -> None:
        """Decide the claims that waited for a new class."""
        if old is None and new is not None:
            for claim in self._unbound.get(new["metadata"]["name"]):
                self.queue.add(name_of(claim))

    def _on_pod(self, old: Raw | None, new: Raw | None) -> None:
        if new is not None and (old is None or not spec_of(old).get("nodeName")):
            for name in claims_of(new) if spec_of(new).get("nodeName") else ():
                self.queue.add(name)

    async def decide(self, name: Name) -> Plan:
        claim = self._claims.objects.get(name)
        if claim is None or is_deleted(claim):
            return NOTHING
        chosen = spec_of(claim).get("volumeName")
        kind = class_of(claim) or ""
        if chosen:
            volume = self._volumes.get("", chosen)
            if volume is None:
                return mark_lost(claim)
            writes = expand(claim, volume, self._classes.get("", kind))
            return Plan((*writes, *bind(claim, volume).writes))
        storage_class = self._classes.get("", kind) or {}
        kept = self._kept.get("/".join(name))
        # A scheduler chooses the volume together with the node, and keeps it for the claim.
        is_late = storage_class.get("volumeBindingMode") == _ON_FIRST_USE
        volume = find_best(claim, kept if is_late else (*kept, *self._free.get(kind)))
        if volume is None:
            # A volume that was just created for the claim.
            volume = self._volumes.get("", volume_name(claim))
        if volume is not None:
            return bind(claim, volume)
        if kind and not storage_class:
            message = f'storageclass.storage.k8s.io "{kind}" not found'
            return Plan((Report(claim, "Warning", "ProvisioningFailed", message, message),))
        is_used = _SELECTED_NODE in annotations_of(claim) or self._users.count("/".join(name)) > 0
        return provision(claim, storage_class, is_used=is_used)


def _class_if_unbound(claim: Raw) -> Iterable[str]:
    return () if spec_of(claim).get("volumeName") else (class_of(claim) or "",)


def _named_volume(claim: Raw) -> Iterable[str]:
    name = spec_of(claim).get("volumeName")
    return (name,) if name else ()


def _class_if_free(volume: Raw) -> Iterable[str]:
    return () if spec_of(volume).get("claimRef") else (class_of(volume) or "",)


def _claim_if_kept(volume: Raw) -> Iterable[str]:
    reference = spec_of(volume).get("claimRef")
    return (f"{reference.get('namespace', '')}/{reference['name']}",) if reference else ()


def _claims_on_node(pod: Raw) -> Iterable[str]:
    """Return the claims, by namespace and name, that a bound pod uses."""
    if is_terminal(pod) or not spec_of(pod).get("nodeName"):
        return ()
    return ["/".join(each) for each in claims_of(pod)]


def class_of(obj: Raw) -> str | None:
    """Return the storage class of a claim or a volume; None if it is unset, which "" is not."""
    old = annotations_of(obj).get(_OLD_CLASS)
    return old if old is not None else spec_of(obj).get("storageClassName")


def find_best(claim: Raw, volumes: Iterable[Raw]) -> Raw | None:
    """Return the volume that is kept for the claim, or the smallest one that fits."""
    fitting = [each for each in volumes if _fits(each, claim)]
    kept = [each for each in fitting if spec_of(each).get("claimRef")]
    return min(kept or fitting, key=lambda each: (size_of(each), name_of(each)), default=None)


def is_kept_for(volume: Raw, claim: Raw) -> bool:
    """Return True if a volume names the claim, by its UID or before the claim exists."""
    reference = get(volume, "spec.claimRef", {})
    name = (reference.get("namespace", ""), reference.get("name"))
    return name == name_of(claim) and reference.get("uid") in (None, "", uid_of(claim))


def requested_size(claim: Raw) -> Quantity:
    requests = get(claim, "spec.resources.requests", {})
    return Quantity.parse(requests["storage"]) if "storage" in requests else _NONE


def mismatch(volume: Raw, claim: Raw) -> str:
    """Return why a claim cannot have a volume that it names, with the controller's text, or ""."""
    if is_deleted(volume):
        return f'the volume is marked for deletion "{volume["metadata"]["name"]}"'
    if size_of(volume) < requested_size(claim):
        return "requested PV is too small"
    if (class_of(volume) or "") != (class_of(claim) or ""):
        return "storageClassName does not match"
    return _spec_mismatch(volume, claim)


def _spec_mismatch(volume: Raw, claim: Raw) -> str:
    spec = spec_of(volume)
    wanted = spec_of(claim)
    attributes = "volumeAttributesClassName"
    if (spec.get(attributes) or "") != (wanted.get(attributes) or ""):
        return f"{attributes} does not match"
    if spec.get("volumeMode", "Filesystem") != wanted.get("volumeMode", "Filesystem"):
        return "incompatible volumeMode"
    is_fit = set(get(wanted, "accessModes", ())) <= set(get(spec, "accessModes", ()))
    return "" if is_fit else "incompatible accessMode"


def _fits(volume: Raw, claim: Raw) -> bool:
    """Return True if a claim can have a volume; for a kept one, class and labels do not matter."""
    if not spec_of(volume).get("claimRef"):
        selector = spec_of(claim).get("selector")
        if selector is not None:
            matches = matches_labels(decode(selector, LabelSelector), labels_of(volume))
            return matches and not mismatch(volume, claim)
        return not mismatch(volume, claim)
    is_usable = not is_deleted(volume) and size_of(volume) >= requested_size(claim)
    return is_usable and is_kept_for(volume, claim) and not _spec_mismatch(volume, claim)


def size_of(volume: Raw) -> Quantity:
    capacity = get(volume, "spec.capacity", {})
    return Quantity.parse(capacity["storage"]) if "storage" in capacity else _NONE


def claims_of(pod: Raw) -> list[Name]:
    """Return the names of a pod's PersistentVolumeClaims, whether or not they exist."""
    names: list[Name] = []
    namespace = pod["metadata"]["namespace"]
    pod_name = pod["metadata"]["name"]
    for volume in get(pod, "spec.volumes", ()):
        source = volume.get("persistentVolumeClaim")
        if source:
            names.append(Name(namespace, source["claimName"]))
        elif volume.get("ephemeral"):
            names.append(Name(namespace, f"{pod_name}-{volume['name']}"))
    return names


def plan_ephemeral_claims(pod: Raw, known: Callable[[str], Raw | None]) -> Plan:
    """Create the missing claims; a claim that does not belong to the pod is reported."""
    writes: list[Create | Report] = []
    for name, template in _ephemeral_templates(pod):
        claim = known(name)
        if claim is None:
            writes.append(Create(VOLUME_CLAIMS, _ephemeral_claim(pod, name, template)))
        elif not is_controlled_by(claim, pod):
            about = f"PVC {'/'.join(name_of(claim))} was not created for pod"
            message = f"{about} {'/'.join(name_of(pod))} (pod is not owner)"
            writes.append(Report(pod, "Warning", "EphemeralVolume", message, message))
    return Plan(tuple(writes))


def _ephemeral_templates(pod: Raw) -> Iterator[tuple[str, Raw]]:
    """Yield the names and templates of a pod's ephemeral claims."""
    for volume in get(pod, "spec.volumes", ()):
        template = get(volume, "ephemeral.volumeClaimTemplate")
        if template:
            yield f"{pod['metadata']['name']}-{volume['name']}", template


def _ephemeral_claim(pod: Raw, name: str, template: Raw) -> Raw:
    metadata = metadata_of(template)
    kept = {key: metadata[key] for key in ("labels", "annotations") if key in metadata}
    own = {"name": name, "namespace": pod["metadata"]["namespace"]}
    owners = {"ownerReferences": [controller_reference(pod, PODS)]}
    return {"metadata": own | kept | owners, "spec": template["spec"]}


class EphemeralClaims(Reconciler[Name]):
    """Creates the claims of ephemeral volumes; the garbage collector deletes them."""

    def __init__(self, context: EngineContext) -> None:
        super().__init__(context, "ephemeral-volume-controller")
        self._pods = self.watch(PODS, self._on_pod)
        self._claims = self.watch(VOLUME_CLAIMS, self._on_claim)

    def _on_pod(self, old: Raw | None, new: Raw | None) -> None:
        if old is None and new is not None and any(_ephemeral_templates(new)):
            self.queue.add(name_of(new))

    def _on_claim(self, old: Raw | None, new: Raw | None) -> None:
        """Create a deleted claim again as long as its pod exists."""
        if old is not None and new is None:
            for owner in get(old["metadata"], "ownerReferences", ()):
                if owner["kind"] == "Pod":
                    self.queue.add(Name(name_of(old).namespace, owner["name"]))

    async def decide(self, name: Name) -> Plan:
        pod = self._pods.objects.get(name)
        if pod is None or is_deleted(pod) or is_terminal(pod):
            return NOTHING
        return plan_ephemeral_claims(pod, lambda claim: self._claims.get(name.namespace, claim))


def plan_release(volume: Raw, claim: Raw | None) -> Plan:
    """Return the writes for a volume; `claim` is the existing claim with the name that it has."""
    uid = get(volume, "spec.claimRef.uid")
    if uid and claim is not None and uid_of(claim) == uid:
        return NOTHING
    writes: list[Update | Delete] = []
    phase = "Released" if uid else "Available"
    if status_of(volume).get("phase") != phase:
        status = status_of(volume) | {"phase": phase}
        writes.append(Update(VOLUMES, volume | {"status": status}, "status"))
    is_reclaimed = spec_of(volume).get("persistentVolumeReclaimPolicy") == "Delete"
    if uid and is_reclaimed and not is_deleted(volume):
        writes.append(Delete(VOLUMES, name_of(volume), uid_of(volume)))
    return Plan(tuple(writes))


class VolumeRelease(Reconciler[Name]):
    """Releases or deletes volumes whose claims are deleted."""

    def __init__(self, context: EngineContext) -> None:
        super().__init__(context, "persistentvolume-release-controller")
        self._volumes = self.watch(VOLUMES, self._on_volume)
        # By the claim, which may be deleted before it names its volume.
        self._of_claim = self._volumes.index("claim", _claim_uids)
        self._claims = self.watch(VOLUME_CLAIMS, self._on_claim)

    def _on_volume(self, old: Raw | None, new: Raw | None) -> None:
        if new is not None:
            self.queue.add(name_of(new))

    def _on_claim(self, old: Raw | None, new: Raw | None) -> None:
        if old is not None and (new is None or uid_of(new) != uid_of(old)):
            for volume in self._of_claim.get(uid_of(old)):
                self.queue.add(name_of(volume))

    async def decide(self, name: Name) -> Plan:
        volume = self._volumes.objects.get(name)
        if volume is None:
            return NOTHING
        reference = get(volume, "spec.claimRef", {})
        claim = self._claims.get(reference.get("namespace", ""), reference.get("name", ""))
        return plan_release(volume, claim)


def _claim_uids(volume: Raw) -> Iterable[str]:
    uid = get(volume, "spec.claimRef.uid")
    return (uid,) if uid else ()
