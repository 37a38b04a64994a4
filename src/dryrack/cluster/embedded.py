"""
A cluster inside this process, with no sockets and no files.

    async with embedded() as cluster:
        await cluster.client.create(CONFIG_MAPS, {"metadata": {"namespace": "default", ...}})

Clusters share nothing. With a `VirtualClock`, time stands still until a test advances it.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dryrack.cluster.assembly import EngineOptions, assemble_engines, select_engines
from dryrack.cluster.control_plane import ControlPlane, ControlPlaneOptions, build_control_plane
from dryrack.cluster.engines import running_engines

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Sequence

    from dryrack.client.client import Client
    from dryrack.client.transport import Transport
    from dryrack.cluster.engines import Family
    from dryrack.cluster.faults.board import FaultBoard


@dataclass(frozen=True, slots=True)
class EmbeddedCluster:
    """A cluster of this process, and its client."""

    plane: ControlPlane
    client: Client

    @property
    def transport(self) -> Transport:
        """The transport, for requests that a client does not make."""
        return self.plane.transport


@asynccontextmanager
async def embedded(
    options: ControlPlaneOptions | None = None,
    *,
    without: Collection[str] = (),
    engines: EngineOptions | Sequence[Family] | None = None,
    board: FaultBoard | None = None,
) -> AsyncIterator[EmbeddedCluster]:
    """
    Run a new cluster for the length of a block.

    `without` leaves engines out by name; `engines` replaces the usual engines, or configures them.
    With a `board`, faults can make engines fail.
    """
    if engines is None or isinstance(engines, EngineOptions):
        engines = assemble_engines(engines)
    families = select_engines(engines, without=without)
    plane = build_control_plane(options or ControlPlaneOptions())
    try:
        async with running_engines(families, plane.wiring, board):
            yield EmbeddedCluster(plane, plane.client())
    finally:
        plane.expiry.stop()
