"""
A world of objects in which plans are carried out, without any server.

It knows what every API server does with metadata: names, uids, revisions, generations,
finalizers. A plan can be cut off after any number of its writes, as by a crash.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from dryrack.client.informer import Name, name_of
from dryrack.client.timekeeping import timestamp
from dryrack.controllers.objects import finalizers_of, is_deleted, uid_of
from dryrack.controllers.writes import Apply, Create, Delete, Patch, Report, Update, Write

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.client.endpoints import Endpoint
    from dryrack.kinds.raw import Raw


class ConflictInWorldError(Exception):
    """A write that met another object than it was made from."""


class World:
    """Objects by kind and name."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0
        self._objects: dict[tuple[str, Name], Raw] = {}
        self._counter = itertools.count(1)

    def get(self, endpoint: Endpoint, name: Name) -> Raw | None:
        return self._objects.get((endpoint.resource, name))

    def all(self, endpoint: Endpoint) -> list[Raw]:
        keys = sorted(key for key in self._objects if key[0] == endpoint.resource)
        return [self._objects[key] for key in keys]

    def carry_out(self, writes: Sequence[Write], *, up_to: int | None = None) -> None:
        """All writes, or the first few."""
        for write in writes[:up_to]:
            self._carry_out(write)

    def put(self, endpoint: Endpoint, obj: Raw) -> Raw:
        """Stores an object with a new revision; one that may go is gone."""
        metadata = obj["metadata"] | {"resourceVersion": str(next(self._counter))}
        obj = obj | {
            "metadata": metadata,
            "kind": endpoint.kind,
            "apiVersion": endpoint.api_version,
        }
        key = (endpoint.resource, name_of(obj))
        if is_deleted(obj) and not finalizers_of(obj) and not metadata.get("held"):
            self._objects.pop(key, None)
        else:
            self._objects[key] = obj
        return obj

    def create(self, endpoint: Endpoint, obj: Raw) -> Raw:
        number = next(self._counter)
        metadata = {"name": f"{obj['metadata'].get('generateName', 'x')}{number:05}"} | obj[
            "metadata"
        ]
        given = {"uid": f"uid-{number}", "creationTimestamp": timestamp(self.now), "generation": 1}
        obj = obj | {"metadata": metadata | given}
        if (endpoint.resource, name_of(obj)) in self._objects:
            raise ConflictInWorldError(metadata["name"])
        return self.put(endpoint, obj)

    def _carry_out(self, write: Write) -> None:
        match write:
            case Report():
                return
            case Create(endpoint, obj):
                self.create(endpoint, obj)
            case Update():
                self._update(write)
            case Patch():
                self._patch(write)
            case Delete():
                self._delete(write)
            case Apply(endpoint, obj):
                current = self._current(endpoint, name_of(obj), "", "")
                status = (current.get("status") or {}) | obj["status"]
                self.put(endpoint, current | {"status": status})
            case _:
                raise AssertionError(f"the world does not know {write}")

    def _current(self, endpoint: Endpoint, name: Name, uid: str, revision: str) -> Raw:
        current = self.get(endpoint, name)
        if current is None or (uid and uid_of(current) != uid):
            raise ConflictInWorldError(name)
        if revision and current["metadata"]["resourceVersion"] != revision:
            raise ConflictInWorldError(name)
        return current

    def _update(self, write: Update) -> None:
        # The hands that carry out a plan know what it wrote before; so the revision is not looked
        # at here.
        current = self._current(write.endpoint, name_of(write.object), uid_of(write.object), "")
        if write.subresource == "status":
            self.put(write.endpoint, current | {"status": write.object.get("status")})
            return
        new = write.object | {"status": current.get("status") or {}}
        generation = current["metadata"]["generation"]
        generation += write.object.get("spec") != current.get("spec")
        self.put(write.endpoint, new | {"metadata": new["metadata"] | {"generation": generation}})

    def _patch(self, write: Patch) -> None:
        metadata = dict(write.patch.get("metadata") or {})
        uid = metadata.pop("uid", "")
        revision = metadata.pop("resourceVersion", "")
        current = self._current(write.endpoint, write.name, uid, revision)
        merged = {
            key: value
            for key, value in (current["metadata"] | metadata).items()
            if value is not None
        }
        rest = {key: value for key, value in write.patch.items() if key != "metadata"}
        self.put(write.endpoint, current | {"metadata": merged} | rest)

    def _delete(self, write: Delete) -> None:
        current = self.get(write.endpoint, write.name)
        if current is None:
            return
        if uid_of(current) != write.uid:
            raise ConflictInWorldError(write.name)
        metadata = current["metadata"] | {"deletionTimestamp": timestamp(self.now)}
        if write.grace_seconds == 0:
            metadata = {key: value for key, value in metadata.items() if key != "held"}
        self.put(write.endpoint, current | {"metadata": metadata})
