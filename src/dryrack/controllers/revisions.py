"""
The history of a template: one ControllerRevision per version.

Daemon sets and stateful sets have no replica sets that keep old templates. `kubectl rollout
history` and `undo` read the revisions.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from dryrack.client.endpoints import CONTROLLER_REVISIONS, Endpoint
from dryrack.client.informer import name_of
from dryrack.controllers.objects import (
    annotations_of,
    controller_reference,
    labels_of,
    uid_of,
    with_metadata,
)
from dryrack.controllers.workloads import template_hash
from dryrack.controllers.writes import Create, Delete, Update, Write
from dryrack.kinds.paths import get
from dryrack.kinds.raw import Raw

HASH_LABEL = "controller-revision-hash"
"""The label of a pod that identifies the template from which it was made."""
HISTORY_DEFAULT = 10


@dataclass(frozen=True, slots=True)
class History:
    """The revision of the present template, and the writes that update the history."""

    hash: str
    name: str
    writes: tuple[Write, ...]


def update_history(
    owner: Raw,
    endpoint: Endpoint,
    revisions: Sequence[Raw],
    *,
    in_use: Sequence[str],
    label: str = HASH_LABEL,
) -> History:
    """
    Return the history of an owner's template.

    Revisions `in_use` (by name) are never deleted; `label` is where a revision has its hash.
    """
    template = get(owner, "spec.template", {})
    # Clients compare the bytes of the data, whose keys Kubernetes sorts.
    sorted_keys = msgspec.json.encode(template | {"$patch": "replace"}, order="deterministic")
    data = {"spec": {"template": msgspec.json.decode(sorted_keys)}}
    ordered = sorted(revisions, key=lambda each: (each.get("revision", 0), name_of(each)))
    highest = max((int(each.get("revision", 0)) for each in ordered), default=0)
    same = next((each for each in reversed(ordered) if each.get("data") == data), None)
    if same is None:
        taken = {each["metadata"]["name"] for each in ordered}
        owner_name = owner["metadata"]["name"]
        hashes = (template_hash(template, number) for number in range(len(taken) + 1))
        digest = next(each for each in hashes if f"{owner_name}-{each}" not in taken)
        revision = {
            "metadata": {
                "name": f"{owner_name}-{digest}",
                "namespace": owner["metadata"]["namespace"],
                "labels": get(template, "metadata.labels", {}) | {label: digest},
                "annotations": dict(annotations_of(owner)),
                "ownerReferences": [controller_reference(owner, endpoint)],
            },
            "data": data,
            "revision": highest + 1,
        }
        create = Create(CONTROLLER_REVISIONS, revision)
        return History(digest, f"{owner_name}-{digest}", (create,))
    name = same["metadata"]["name"]
    writes: list[Write] = []
    if same.get("revision", 0) != highest:
        # After an undo, the revision of the template is the newest again.
        renumbered = with_metadata(same) | {"revision": highest + 1}
        writes.append(Update(CONTROLLER_REVISIONS, renumbered))
    limit = int(get(owner, "spec.revisionHistoryLimit", HISTORY_DEFAULT))
    idle = [each for each in ordered if each["metadata"]["name"] not in [*in_use, name]]
    writes += [
        Delete(CONTROLLER_REVISIONS, name_of(each), uid_of(each))
        for each in idle[: max(0, len(idle) - limit)]
    ]
    return History(labels_of(same).get(label, ""), name, tuple(writes))
