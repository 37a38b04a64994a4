"""
The devices of nodes that do not exist yet, from the documents that the publisher reads.

The publisher reports mistakes in documents; here the last valid version of each is used.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from dryrack.client.client import Selection
from dryrack.client.endpoints import CONFIG_MAPS, DRA_CONFIGS, NODE_OVERLAYS
from dryrack.client.optional_kind import OptionalKind
from dryrack.controllers.slices.current_inventory import (
    SourceStatus,
    assess_source,
    contents_of,
    inventory_of,
    is_about_devices,
    reader_of,
    source_of,
)
from dryrack.hardware import Inventory, Matcher, Source, SourceKind

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dryrack.client.informer import Informer
    from dryrack.controllers.slices import PublisherSettings
    from dryrack.controllers.writes import EngineContext
    from dryrack.hardware import Assignment
    from dryrack.kinds.raw import Raw


class FutureDevices:
    """Says which devices a node will have."""

    def __init__(
        self,
        context: EngineContext,
        settings: PublisherSettings,
        catalogue: Mapping[str, Assignment] | None,
        on_change: Callable[[], None],
    ) -> None:
        self._settings = settings
        self._catalogue = catalogue
        self._on_change = on_change
        self._statuses: dict[Source, SourceStatus] = {}
        self._matcher: Matcher | None = None
        fields = f"metadata.name={settings.config_map}"
        selection = Selection(namespace=settings.namespace, fields=fields)
        self.informer: Informer = context.informers.of(CONFIG_MAPS, selection)
        self.informer.listen(partial(self._read, SourceKind.CONFIG_MAP))
        for kind, endpoint in (
            (SourceKind.OVERLAY, NODE_OVERLAYS),
            (SourceKind.CONFIG, DRA_CONFIGS),
        ):
            optional = OptionalKind(
                context.client,
                endpoint,
                clock=context.clock,
                informers=context.informers,
                on_object=partial(self._read, kind),
                on_known=lambda: None,
            )
            context.informers.add_cache(optional)

    def _read(self, kind: SourceKind, old: Raw | None, new: Raw | None) -> None:
        obj = new or old
        if obj is None:
            return
        source = source_of(kind, obj)
        before = self._statuses.pop(source, None)
        if new is not None and is_about_devices(kind, new):
            if before is not None and before.contents == contents_of(kind, new):
                self._statuses[source] = before
                return
            reading = reader_of(kind, self._settings)(new)
            self._statuses[source] = assess_source(before, reading, new, kind=kind, now=0.0)
        elif before is None:
            return
        self._matcher = None
        self._on_change()

    def matcher(self) -> Matcher:
        """Return what finds the pools of a node."""
        if self._matcher is None:
            inventory: Inventory = inventory_of(self._statuses, self._catalogue)
            self._matcher = Matcher(inventory)
        return self._matcher
