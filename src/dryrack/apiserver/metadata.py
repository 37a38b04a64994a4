"""
Metadata, which the server treats alike for all kinds.

A client may write most of an object's metadata; identity, age and deletion are the server's. A
create drops what a client says about those, an update restores the stored values.
"""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache

from dryrack.apiserver.answer.status import Status, StatusError, bad_request
from dryrack.apiserver.http.queries import RevisionError, parse_revision
from dryrack.apiserver.registry import Resource
from dryrack.base.ports import Chance
from dryrack.kinds.raw import Raw

_SYSTEM = (
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
)
# A grace period of 0 has a meaning, and an empty list of managers resets managedFields.
_KEPT_EMPTY = ("deletionGracePeriodSeconds", "managedFields")
# No vowels, so that no words appear; no 0, 1, 3, which look like letters.
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX_CHARS = 5
_NAME_CHARS_MAX = 63


def for_update(obj: Raw, resource: Resource, namespace: str) -> Raw:
    """Return an object in the namespace of the path, without the empty fields of its metadata."""
    meta = obj.get("metadata")
    if not isinstance(meta, dict):
        meta = {}
    meta = {
        key: value
        for key, value in meta.items()
        if value or (value is not None and key in _KEPT_EMPTY)
    }
    if not resource.namespaced:
        meta.pop("namespace", None)
    elif not meta.get("namespace"):
        meta["namespace"] = namespace
    elif meta["namespace"] != namespace:
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    return {**obj, "metadata": meta}


def for_create(obj: Raw, resource: Resource, namespace: str, warn: Callable[[str], None]) -> Raw:
    """Return a new object without the metadata that only the server sets."""
    new = for_update(obj, resource, namespace)
    meta = new["metadata"]
    for name in _SYSTEM:
        meta.pop(name, None)
    if "ownerReferences" in meta:
        drop_repeated_owners(meta, warn)
    return new


def check_unversioned(meta: Raw) -> None:
    """Raise if a new object has a version; the storage refuses it, after all other checks."""
    if "resourceVersion" in meta and revision_of(meta):
        message = "resourceVersion should not be set on objects to be created"
        raise StatusError(Status(500, "", message))


def check_name(meta: Raw, name: str) -> None:
    """Raise if the name in the metadata of an update is not the name in the path."""
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


def with_stored_generation(obj: Raw, old: Raw) -> Raw:
    """Return the object with the stored generation, which only strategies raise."""
    stored = old["metadata"].get("generation")
    meta = obj["metadata"]
    if meta.get("generation") == stored:
        return obj
    meta = {key: value for key, value in meta.items() if key != "generation"}
    if stored is not None:
        meta["generation"] = stored
    return {**obj, "metadata": meta}


def with_stored_identity(obj: Raw, old: Raw) -> Raw:
    """Return the object with the stored uid and times, which an update cannot change."""
    meta = dict(obj["metadata"])
    stored = old["metadata"]
    meta.setdefault("uid", stored.get("uid"))
    for name in ("creationTimestamp", "deletionTimestamp"):
        if name in stored:
            meta[name] = stored[name]
    if "deletionGracePeriodSeconds" in stored:
        meta.setdefault("deletionGracePeriodSeconds", stored["deletionGracePeriodSeconds"])
    return {**obj, "metadata": meta}


def revision_of(meta: Raw) -> int:
    """Return the resourceVersion that the client has seen, or 0 if the client sends none."""
    try:
        return parse_revision(meta.get("resourceVersion") or "")
    except RevisionError as error:
        raise StatusError(Status(500, "", str(error))) from None


def drop_repeated_owners(meta: Raw, warn: Callable[[str], None]) -> None:
    """Drop repeated owner references from metadata that belongs to the caller, with a warning."""
    owners = meta.get("ownerReferences")
    if not owners or len(owners) == 1 or not all(isinstance(each, dict) for each in owners):
        return
    unique: dict[str, Raw] = {}
    repeated = []
    for each in owners:
        # Compared as text, so that a list of thousands takes one pass.
        text = json.dumps(each, sort_keys=True)
        if text in unique:
            repeated.append(each.get("uid") or "")
        unique.setdefault(text, each)
    if not repeated:
        return
    warn(
        ".metadata.ownerReferences contains duplicate entries; API server dedups owner references "
        "in 1.20+, and may reject such requests as early as 1.24; please fix your requests; "
        f"duplicate UID(s) observed: {', '.join(repeated)}"
    )
    meta["ownerReferences"] = list(unique.values())


def registry_path(resource: Resource, namespace: str, name: str) -> str:
    """Return the etcd key of an object in the real server, which some refusals show."""
    plural = {"nodes": "minions"}.get(resource.storage, resource.plural)
    group = f"{resource.group}/" if resource.is_custom else ""
    place = f"{namespace}/{name}" if resource.namespaced else name
    return f"/registry/{group}{plural}/{place}"


def generate_name(prefix: str, chance: Chance) -> str:
    """Return a name for `generateName`; a long prefix is cut."""
    number = int(chance.uuid().replace("-", "")[:16], 16)
    suffix = ""
    for _ in range(_SUFFIX_CHARS):
        number, digit = divmod(number, len(_ALPHABET))
        suffix += _ALPHABET[digit]
    return prefix[: _NAME_CHARS_MAX - _SUFFIX_CHARS] + suffix


@lru_cache(maxsize=4)
def _format_second(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def timestamp(seconds: float) -> str:
    """Return a time in the form of metadata (RFC 3339, seconds)."""
    return _format_second(int(seconds))
