"""Options of commands on files that add nodes: `--instance-type` and `--nodes`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import count, islice
from typing import TYPE_CHECKING

from dryrack.cli.files import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dryrack.hardware.catalogue import Catalogue
    from dryrack.kinds.documents import Document

# More nodes in one process are possible, but more likely a mistake.
NODES_MAX = 10_000


@dataclass(frozen=True)
class FleetOptions:
    """The values of the options."""

    instance_type: str = ""
    nodes: int | None = None
    catalogue_files: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.nodes is not None and not self.instance_type:
            see = "for the types, run: dryrack hardware list"
            raise UsageError(f"--nodes {self.nodes} needs --instance-type TYPE; {see}")
        if self.nodes is not None and not 1 <= self.nodes <= NODES_MAX:
            raise UsageError(f"--nodes {self.nodes}: must be from 1 to {NODES_MAX}")

    @property
    def is_given(self) -> bool:
        return bool(self.instance_type or self.catalogue_files)

    @property
    def _source(self) -> str:
        return f"--instance-type {self.instance_type}"

    def adds(self, document: Document) -> bool:
        """Return whether a document is one of the nodes that these options add."""
        return document.file == self._source

    @cached_property
    def catalogue(self) -> Catalogue:
        """The packaged hardware catalog with the given files."""
        from dryrack.cli.hardware import load

        return load(self.catalogue_files)

    def node_documents(self, documents: Iterable[Document]) -> tuple[Document, ...]:
        """Return the nodes to add, with names that no Node among the documents has."""
        if not self.instance_type:
            return ()
        from dryrack.cli.hardware import unknown_type
        from dryrack.cluster import virtual_node
        from dryrack.kinds.documents import unwritten

        machine = self.catalogue.instance_types.get(self.instance_type)
        if machine is None:
            raise UsageError(unknown_type(self._source, self.instance_type, self.catalogue))
        taken = {each.name for each in documents if each.kind == "Node"}
        names = (name for number in count(1) if (name := f"node-{number}") not in taken)
        wanted = 1 if self.nodes is None else self.nodes
        return tuple(
            unwritten(virtual_node(name, machine), self._source) for name in islice(names, wanted)
        )
