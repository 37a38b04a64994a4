"""
Resources of the registry that follow definitions.

The kind of a definition is served before the next request, because the registry follows the store
within the write itself. The server writes the status of a definition (accepted names, deletion of
its objects) right after that write.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from dryrack.apiserver.custom.acceptance import settle_names
from dryrack.apiserver.custom.definition import CLEANUP, condition_of
from dryrack.apiserver.custom.kinds import STORAGE
from dryrack.apiserver.custom.resources import resources_of, without_creation
from dryrack.apiserver.metadata import timestamp
from dryrack.apiserver.verbs.deletion import DeleteOptions
from dryrack.apiserver.verbs.writing import Order, Proposal
from dryrack.apiserver.webhooks.conversion_reviews import using_answers
from dryrack.client.transport import User
from dryrack.kinds.paths import get
from dryrack.store import EventType

if TYPE_CHECKING:
    from collections.abc import Callable

    from dryrack.apiserver.registry import Resource
    from dryrack.apiserver.server import ApiServer
    from dryrack.apiserver.tables.columns import Shape
    from dryrack.kinds.raw import Raw
    from dryrack.store import Event

_APISERVER = User("system:apiserver", ("system:masters",))


class Serving:
    """Follows the definitions in the store of a server, beginning with what is there."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server
        self._served: dict[str, tuple[Resource, ...]] = {}
        self._built: dict[str, tuple[Raw, list[tuple[Resource, Shape]]]] = {}
        self._shapes: dict[tuple[str, str], Shape] = {}
        self._watched: dict[str, Callable[[], None]] = {}
        self._is_due = False
        server.store.subscribe(STORAGE, self._on_definition)
        for stored in server.store.list(STORAGE, None)[0]:
            self._serve(stored.object)
        self._settle_later()

    def shape(self, resource: Resource) -> Shape | None:
        """Return the table of a custom kind, or None."""
        return self._shapes.get((resource.storage, resource.version))

    def _on_definition(self, event: Event) -> None:
        name = event.stored.key.name
        if event.type is EventType.DELETED:
            self._withdraw(name)
            self._built.pop(name, None)
            self._server.store.restart(name)
        else:
            self._serve(event.stored.object)
        self._settle_later()

    def _settle_later(self) -> None:
        """Settle pending definitions once the present write is done."""
        if self._is_due:
            return
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            # The server is not up yet; the first write settles pending definitions.
            return
        self._is_due = True
        loop.call_soon(self._settle)

    def _serve(self, definition: Raw) -> None:
        registry = self._server.registry
        name = definition["metadata"]["name"]
        self._withdraw(name)
        others = [each for each in self._definitions() if each["metadata"]["name"] != name]
        status = settle_names(definition, others, "")
        if condition_of({"status": status}, "Established").get("status") != "True":
            return
        resources = self._resources_of(definition)
        self._served[name] = tuple(resource for resource, _ in resources)
        for resource, shape in resources:
            self._shapes[resource.storage, resource.version] = shape
        if "deletionTimestamp" in definition["metadata"]:
            self._served[name] = tuple(without_creation(each) for each in self._served[name])
        registry.add(*self._served[name])
        for each in self._served[name]:
            self._server.store.begin(each.storage)

    def _resources_of(self, definition: Raw) -> list[tuple[Resource, Shape]]:
        """Return the resources, built again only if the spec has changed: rules compile slowly."""
        name = definition["metadata"]["name"]
        spec = definition["spec"]
        built_for, resources = self._built.get(name, (None, []))
        if built_for != spec:
            if built_for is not None:
                # Watchers list again, with the new schema.
                self._server.store.restart(name)
            resources = resources_of(definition, self._server.lookup)
            if definition["metadata"].get("generation", 1) > 1:
                resources = [
                    (self._note_outdated_objects(each), shape) for each, shape in resources
                ]
            self._built[name] = (spec, resources)
        return resources

    def _note_outdated_objects(self, resource: Resource) -> Resource:
        """Return a resource that notes whether stored objects differ from its present schema."""
        objects = (each.object for each in self._server.store.list(resource.storage, None)[0])
        # This runs within the write of the definition, which must not start again.
        with using_answers(None):
            is_outdated = any(resource.strategy.from_storage(obj) != obj for obj in objects)
        return replace(resource, has_outdated=is_outdated)

    def _withdraw(self, name: str) -> None:
        for resource in self._served.pop(name, ()):
            self._server.registry.remove(resource.group, resource.version, resource.plural)
            self._shapes.pop((resource.storage, resource.version), None)

    def _definitions(self) -> list[Raw]:
        return [stored.object for stored in self._server.store.list(STORAGE, None)[0]]

    def _settle(self) -> None:
        self._is_due = False
        # The loop calls this in the context of the request that came last.
        with using_answers(None):
            for definition in self._definitions():
                if "deletionTimestamp" in definition["metadata"]:
                    self._delete_objects(definition)
                else:
                    self._settle_status(definition)

    def _settle_status(self, definition: Raw) -> None:
        name = definition["metadata"]["name"]
        others = [each for each in self._definitions() if each["metadata"]["name"] != name]
        status = settle_names(definition, others, timestamp(self._server.clock.now()))
        if status != definition.get("status"):
            self._write(definition, {**definition, "status": status}, subresource="status")

    def _delete_objects(self, definition: Raw) -> None:
        """Delete the objects of a kind, and release its definition when all are gone."""
        finalizers = get(definition["metadata"], "finalizers", [])
        if CLEANUP not in finalizers:
            return
        name = definition["metadata"]["name"]
        storage = f"{definition['spec']['names']['plural']}.{definition['spec']['group']}"
        server = self._server
        resource = server.registry.stored_as(storage)
        objects = server.store.list(storage, None)[0]
        waiting = tuple(s for s in objects if "deletionTimestamp" not in s.object["metadata"])
        if resource is not None and waiting:
            order = Order(resource, "", "", _APISERVER, manager="kube-apiserver")
            server.verbs.deleter.delete_all(order, DeleteOptions(), waiting)
        store = self._server.store
        if store.list(storage, None)[0]:
            # Finalizers hold the other objects.
            if name not in self._watched:
                self._watched[name] = store.subscribe(storage, lambda _: self._settle_later())
            return
        self._watched.pop(name, lambda: None)()
        others = [each for each in finalizers if each != CLEANUP]
        meta = {**definition["metadata"], "finalizers": others}
        self._write(definition, {**definition, "metadata": meta})

    def _write(self, old: Raw, new: Raw, *, subresource: str = "") -> None:
        server = self._server
        resource = server.registry.stored_as(STORAGE)
        assert resource is not None, "definitions are built in"
        order = Order(
            resource,
            "",
            old["metadata"]["name"],
            _APISERVER,
            subresource=subresource,
            manager="kube-apiserver",
        )
        stored = server.store.get(order.key)
        assert stored is not None, "no other write happens in between"
        meta = {**new["metadata"], "resourceVersion": str(stored.revision)}
        server.verbs.writer.update(order, lambda _: Proposal({**new, "metadata": meta}, False))
