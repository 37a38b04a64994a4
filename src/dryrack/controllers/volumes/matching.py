"""Which volume does for a claim, as kube-controller-manager chooses it."""

from collections.abc import Iterable

from dryrack.client.informer import name_of
from dryrack.controllers.objects import annotations_of, is_deleted, labels_of, spec_of, uid_of
from dryrack.kinds.decode import decode
from dryrack.kinds.meta import LabelSelector
from dryrack.kinds.paths import get
from dryrack.kinds.quantity import Quantity
from dryrack.kinds.raw import Raw
from dryrack.kinds.selectors import matches_labels

_OLD_CLASS = "volume.beta.kubernetes.io/storage-class"
_NONE = Quantity.parse("0")


def class_of(obj: Raw) -> str | None:
    """The storage class of a claim or a volume; None if it says nothing, which "" is not."""
    old = annotations_of(obj).get(_OLD_CLASS)
    return old if old is not None else spec_of(obj).get("storageClassName")


def best(claim: Raw, volumes: Iterable[Raw]) -> Raw | None:
    """The volume that is kept for the claim, else the smallest that does; None if none does."""
    found = [each for each in volumes if _does(each, claim)]
    kept = [each for each in found if spec_of(each).get("claimRef")]
    return min(kept or found, key=lambda each: (size_of(each), name_of(each)), default=None)


def is_kept_for(volume: Raw, claim: Raw) -> bool:
    """Whether a volume names the claim, by its uid or as one that is to come."""
    reference = get(volume, "spec.claimRef", {})
    name = (reference.get("namespace", ""), reference.get("name"))
    return name == name_of(claim) and reference.get("uid") in (None, "", uid_of(claim))


def asked_for(claim: Raw) -> Quantity:
    requests = get(claim, "spec.resources.requests", {})
    return Quantity.parse(requests["storage"]) if "storage" in requests else _NONE


def mismatch(volume: Raw, claim: Raw) -> str:
    """Why a claim cannot have a volume that it names, in the controller's words; "" if it can."""
    if is_deleted(volume):
        return f'the volume is marked for deletion "{volume["metadata"]["name"]}"'
    if size_of(volume) < asked_for(claim):
        return "requested PV is too small"
    if (class_of(volume) or "") != (class_of(claim) or ""):
        return "storageClassName does not match"
    return _unlike(volume, claim)


def _unlike(volume: Raw, claim: Raw) -> str:
    spec = spec_of(volume)
    wanted = spec_of(claim)
    attributes = "volumeAttributesClassName"
    if (spec.get(attributes) or "") != (wanted.get(attributes) or ""):
        return f"{attributes} does not match"
    if spec.get("volumeMode", "Filesystem") != wanted.get("volumeMode", "Filesystem"):
        return "incompatible volumeMode"
    is_fit = set(get(wanted, "accessModes", ())) <= set(get(spec, "accessModes", ()))
    return "" if is_fit else "incompatible accessMode"


def _does(volume: Raw, claim: Raw) -> bool:
    """Who keeps a volume for a claim has chosen it, whatever its class and its labels."""
    if not spec_of(volume).get("claimRef"):
        return not mismatch(volume, claim) and _is_selected(volume, spec_of(claim).get("selector"))
    is_usable = not is_deleted(volume) and size_of(volume) >= asked_for(claim)
    return is_usable and is_kept_for(volume, claim) and not _unlike(volume, claim)


def _is_selected(volume: Raw, selector: Raw | None) -> bool:
    return selector is None or matches_labels(decode(selector, LabelSelector), labels_of(volume))


def size_of(volume: Raw) -> Quantity:
    capacity = get(volume, "spec.capacity", {})
    return Quantity.parse(capacity["storage"]) if "storage" in capacity else _NONE
