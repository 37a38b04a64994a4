"""
The history of a template: one ControllerRevision per version of it.

Daemon sets and stateful sets have no replica sets that would remember what they were; revisions
do, and `kubectl rollout history` and `undo` read them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from dryrack.client.endpoints import CONTROLLER_REVISIONS, Endpoint
from dryrack.client.informer import name_of
from dryrack.controllers.objects import (
    annotations_of,
    controller_reference,
    labels_of,
    spec_of,
    uid_of,
    with_metadata,
)
from dryrack.controllers.workloads import template_hash
from dryrack.controllers.writes import Create, Delete, Update, Write
from dryrack.kinds.paths import get
from dryrack.kinds.raw import Raw

HASH_LABEL = "controller-revision-hash"
"""Of a pod: by it one sees which template it was made from."""
HISTORY_DEFAULT = 10


@dataclass(frozen=True, slots=True)
class Chronicle:
    """The revision of the present template, and what the history needs."""

    hash: str
    name: str
    writes: tuple[Write, ...]


def chronicle(
    owner: Raw,
    endpoint: Endpoint,
    known: Sequence[Raw],
    *,
    in_use: Sequence[str],
    label: str = HASH_LABEL,
) -> Chronicle:
    """
    Brings the history up to date.

    Revisions `in_use` (by name) are never forgotten; `label` is where a revision keeps its hash.
    """
    template = get(owner, "spec.template", {})
    data = {"spec": {"template": template | {"$patch": "replace"}}}
    ordered = sorted(known, key=lambda each: (each.get("revision", 0), name_of(each)))
    same = next((each for each in reversed(ordered) if each.get("data") == data), None)
    if same is None:
        return _added(owner, endpoint, ordered, data=data, label=label)
    name = same["metadata"]["name"]
    digest = labels_of(same).get(label, "")
    writes = [*_renumbered(same, ordered), *_forgotten(owner, ordered, [*in_use, name])]
    return Chronicle(digest, name, tuple(writes))


def _added(
    owner: Raw, endpoint: Endpoint, ordered: Sequence[Raw], *, data: Raw, label: str
) -> Chronicle:
    taken = {each["metadata"]["name"] for each in ordered}
    owner_name = owner["metadata"]["name"]
    template = get(owner, "spec.template", {})
    hashes = (template_hash(template, number) for number in range(len(taken) + 1))
    digest = next(each for each in hashes if f"{owner_name}-{each}" not in taken)
    labels = get(template, "metadata.labels", {})
    revision = {
        "metadata": {
            "name": f"{owner_name}-{digest}",
            "namespace": owner["metadata"]["namespace"],
            "labels": labels | {label: digest},
            "annotations": dict(annotations_of(owner)),
            "ownerReferences": [controller_reference(owner, endpoint)],
        },
        "data": data,
        "revision": _highest(ordered) + 1,
    }
    create = Create(CONTROLLER_REVISIONS, revision)
    return Chronicle(digest, f"{owner_name}-{digest}", (create,))


def _highest(ordered: Sequence[Raw]) -> int:
    return max((int(each.get("revision", 0)) for each in ordered), default=0)


def _renumbered(same: Raw, ordered: Sequence[Raw]) -> list[Write]:
    """A template that was gone back to is the newest again."""
    if same.get("revision", 0) == _highest(ordered):
        return []
    changed = with_metadata(same) | {"revision": _highest(ordered) + 1}
    return [Update(CONTROLLER_REVISIONS, changed)]


def _forgotten(owner: Raw, ordered: Sequence[Raw], in_use: Sequence[str]) -> list[Write]:
    limit = spec_of(owner).get("revisionHistoryLimit")
    limit = HISTORY_DEFAULT if limit is None else int(limit)
    idle = [each for each in ordered if each["metadata"]["name"] not in in_use]
    return [
        Delete(CONTROLLER_REVISIONS, name_of(each), uid_of(each))
        for each in idle[: max(0, len(idle) - limit)]
    ]
