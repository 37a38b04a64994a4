"""
What the server does to metadata, whatever the kind.

A client may write most of an object's metadata; identity, age and deletion are the server's. A
create wipes what a client says about those, an update puts back what is stored.
"""

import json
from collections.abc import Callable

from dryrack.apiserver.answer.status import Status, StatusError, bad_request
from dryrack.apiserver.http.queries import RevisionError, parse_revision
from dryrack.apiserver.registry import Resource
from dryrack.kinds.raw import Raw

_SYSTEM = (
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
)
# No grace is a grace; and who sends no managers wants the old ones forgotten.
_KEPT_EMPTY = ("deletionGracePeriodSeconds", "managedFields")
_WRONG_NAMESPACE = (
    "the namespace of the provided object does not match the namespace sent on the request"
)


def tidied(obj: Raw) -> Raw:
    """Metadata that says something; the server's encoder leaves out what is empty."""
    meta = obj.get("metadata")
    if not isinstance(meta, dict):
        meta = {}
    kept = {
        key: value
        for key, value in meta.items()
        if value or (value is not None and key in _KEPT_EMPTY)
    }
    return {**obj, "metadata": kept}


def for_create(obj: Raw, resource: Resource, namespace: str) -> Raw:
    """A new object before anybody has looked at it."""
    tidy = tidied(obj)
    meta = tidy["metadata"]
    for name in _SYSTEM:
        meta.pop(name, None)
    _place(meta, resource, namespace)
    return tidy


def for_update(obj: Raw, resource: Resource, namespace: str) -> Raw:
    """The new state of an object, in the namespace of the path."""
    tidy = tidied(obj)
    _place(tidy["metadata"], resource, namespace)
    return tidy


def _place(meta: Raw, resource: Resource, namespace: str) -> None:
    if not resource.namespaced:
        meta.pop("namespace", None)
    elif not meta.get("namespace"):
        meta["namespace"] = namespace
    elif meta["namespace"] != namespace:
        raise bad_request(_WRONG_NAMESPACE)


def check_name(meta: Raw, name: str) -> None:
    """The name of an update must be that of the path."""
    given = meta.get("name")
    if given != name:
        if not given:
            raise bad_request(
                f"the name of the object ({name} based on URL) was undeterminable: "
                "name must be provided"
            )
        raise bad_request(
            f"the name of the object ({given}) does not match the name on the URL ({name})"
        )


def with_generation(obj: Raw, old: Raw) -> Raw:
    """Nobody but the strategy raises a generation."""
    stored = old["metadata"].get("generation")
    meta = obj["metadata"]
    if meta.get("generation") == stored:
        return obj
    kept = {key: value for key, value in meta.items() if key != "generation"}
    if stored is not None:
        kept["generation"] = stored
    return {**obj, "metadata": kept}


def restored(obj: Raw, old: Raw) -> Raw:
    """What an update cannot change, as it is stored."""
    meta = dict(obj["metadata"])
    before = old["metadata"]
    meta.setdefault("uid", before.get("uid"))
    for name in ("creationTimestamp", "deletionTimestamp"):
        if name in before:
            meta[name] = before[name]
    if "deletionGracePeriodSeconds" in before:
        meta.setdefault("deletionGracePeriodSeconds", before["deletionGracePeriodSeconds"])
    return {**obj, "metadata": meta}


def revision_of(meta: Raw) -> int:
    """The resourceVersion that a client has seen; 0 if it says none."""
    try:
        return parse_revision(meta.get("resourceVersion") or "")
    except RevisionError as error:
        raise StatusError(Status(500, "", str(error))) from None


def without_repeated_owners(obj: Raw, warn: Callable[[str], None]) -> Raw:
    """What is said twice of an owner counts once."""
    owners = obj["metadata"].get("ownerReferences")
    if not owners or len(owners) == 1 or not all(isinstance(each, dict) for each in owners):
        return obj
    kept, repeated = _unique(owners)
    if not repeated:
        return obj
    shown = ", ".join(repeated)
    warn(
        ".metadata.ownerReferences contains duplicate entries; API server dedups owner references "
        "in 1.20+, and may reject such requests as early as 1.24; please fix your requests; "
        f"duplicate UID(s) observed: {shown}"
    )
    return {**obj, "metadata": {**obj["metadata"], "ownerReferences": kept}}


def _unique(owners: list[Raw]) -> tuple[list[Raw], list[str]]:
    kept: dict[str, Raw] = {}
    repeated = []
    for each in owners:
        # By its text, so that a list of thousands is gone through once.
        text = json.dumps(each, sort_keys=True)
        if text in kept:
            repeated.append(each.get("uid") or "")
        kept.setdefault(text, each)
    return list(kept.values()), repeated


def registry_path(resource: Resource, namespace: str, name: str) -> str:
    """Where the real server would keep the object; it says so in some refusals."""
    plural = {"nodes": "minions"}.get(resource.storage, resource.plural)
    group = f"{resource.group}/" if resource.is_custom else ""
    place = f"{namespace}/{name}" if resource.namespaced else name
    return f"/registry/{group}{plural}/{place}"
