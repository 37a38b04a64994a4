"""Search for objects by UID, and for devices by their attributes, such as the UUID or the model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dryrack.kinds.paths import get, spec_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from dryrack.kinds.raw import Raw

Document = dict[str, Any]
HITS_MAX = 20
# Shorter parts of a UID would match too many objects.
_UID_LENGTH_MIN = 6


def search(objects: Mapping[str, Sequence[Raw]], text: str) -> list[Document]:
    """
    Return the objects that match all words, by kind.

    A device matches by its names, its attributes ("name=value"), and its driver; another object by
    its UID, and a class or a slice also by its name.
    """
    words = text.lower().split()
    hits: list[Document] = []
    for hit in _hits(objects, words) if words else ():
        hits.append(hit)
        if len(hits) >= HITS_MAX:
            break
    return hits


def _hits(objects: Mapping[str, Sequence[Raw]], words: Sequence[str]) -> Iterator[Document]:
    for kind, raws in objects.items():
        for raw in raws:
            metadata = raw["metadata"]
            uid = str(metadata.get("uid", ""))
            is_uid = any(len(each) >= _UID_LENGTH_MIN and each in uid for each in words)
            named = kind in ("class", "slice") and all(each in metadata["name"] for each in words)
            if is_uid or named:
                yield {
                    "kind": kind,
                    "namespace": metadata.get("namespace", ""),
                    "name": metadata["name"],
                    "match": f"uid={uid}" if is_uid else "",
                }
    for raw in objects.get("slice", ()):
        yield from _device_hits(raw, words)


def _device_hits(raw: Raw, words: Sequence[str]) -> Iterator[Document]:
    spec = spec_of(raw)
    pool = get(spec, "pool", {}).get("name", "")
    for device in get(spec, "devices", ()):
        name = f"{spec.get('driver', '')}/{pool}/{device['name']}"
        attributes = [
            f"{key}={next(iter(value.values()), '')}"
            for key, value in get(device, "attributes", {}).items()
        ]
        text = "\n".join((name, *attributes)).lower()
        if all(each in text for each in words):
            matches = (each for each in attributes if any(it in each.lower() for it in words))
            yield {
                "kind": "device",
                "namespace": "",
                "name": name,
                "match": next(matches, ""),
            }
