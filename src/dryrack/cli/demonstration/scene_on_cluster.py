"""
Scenes on a cluster that is somebody's and stays.

The publisher, a kubelet for the scene's nodes, and a scheduler for pods that ask for another than
the cluster's own are attached for as long as it is played; the cluster does the rest. What is there
is not touched: a scene that would change it is not begun, and what it has brought is taken away
when it ends.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from dryrack.base.errors import ContentError
from dryrack.cli.demonstration.scene_runner import SECONDS_MAX, Actors, Stage, files_of, objects_of
from dryrack.cli.output import say
from dryrack.client.client import Client
from dryrack.client.discovery import discover
from dryrack.client.endpoints import NODES, SLICES
from dryrack.client.errors import NotFoundError
from dryrack.client.https import connected
from dryrack.client.informer import name_of
from dryrack.cluster import (
    Family,
    Need,
    SystemChance,
    SystemClock,
    Wiring,
    check_needs,
    families,
    running_engines,
    scheduling_family,
    with_catalogue,
)
from dryrack.scheduler import DEFAULT_NAME

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.cli.demonstration.scenes import Scene
    from dryrack.client.endpoints import Endpoint
    from dryrack.client.kubeconfig import Connection
    from dryrack.kinds.raw import Raw

ENGINES = ("kubelet", "slices")
_AGENT = "dryrack-demo"
_LOOK_SECONDS = 0.1
# Others use them too: where they are, they stay.
_COMMON = ("Namespace", "CustomResourceDefinition")


def play_on(connection: Connection, scene: Scene, engines: Sequence[str]) -> list[str]:
    """Plays a scene there; what went wrong."""
    return asyncio.run(_visited(connection, scene, engines))


async def _visited(connection: Connection, scene: Scene, engines: Sequence[str]) -> list[str]:
    async with connected(connection) as transport:
        client = Client(transport, agent=_AGENT)
        await check_needs(client, (Need(NODES), Need(SLICES)))
        visit = Visit(client, scene)
        await visit.look_around()
        around = Wiring(client, SystemClock(), SystemChance())
        async with running_engines(_families(scene, engines), lambda _: around):
            try:
                return await visit.stage.play(scene)
            finally:
                await visit.clear()


def _families(scene: Scene, engines: Sequence[str]) -> tuple[Family, ...]:
    """Those engines, with the catalogue if the scene would have it on its own plane."""
    controllers = families(with_catalogue if "--catalogue" in scene.up else None)[0]
    chosen = [Family(controllers.name, tuple(engines), controllers.run)] if engines else []
    names = _scheduler_names(scene)
    return (*chosen, scheduling_family(names)) if names else tuple(chosen)


def _scheduler_names(scene: Scene) -> tuple[str, ...]:
    """The schedulers that pods of the scene ask for, without the one that every cluster has."""
    pods = [each for name in files_of(scene) for each in objects_of(name) if each["kind"] == "Pod"]
    names = {each["spec"].get("schedulerName", DEFAULT_NAME) for each in pods}
    return tuple(sorted(names - {DEFAULT_NAME}))


class Visit:
    """One scene on somebody's cluster."""

    def __init__(self, client: Client, scene: Scene) -> None:
        self.stage = Stage(client, Actors.of(scene))
        self._client = client
        self._brought = [obj for name in files_of(scene) for obj in objects_of(name)]

    async def look_around(self) -> None:
        """Raises if the scene would change something that is there."""
        served = {
            (each.endpoint.api_version, each.endpoint.kind) for each in await discover(self._client)
        }
        brought = []
        for obj in self._brought:
            is_served = (obj["apiVersion"], obj["kind"]) in served
            if not is_served or not await self._is_there(await self.stage.endpoint(obj), obj):
                brought.append(obj)
            elif obj["kind"] not in _COMMON:
                what = f"{obj['kind']} {'/'.join(part for part in name_of(obj) if part)}"
                raise ContentError(f"{what}: there already, and the scene would change it")
        self._brought = brought

    async def clear(self) -> None:
        """Takes away what was brought, the last first."""
        for obj in reversed(self._brought):
            endpoint, name = await self.stage.endpoint(obj), name_of(obj)
            try:
                await self._client.delete(
                    endpoint, name.name, namespace=name.namespace, grace_seconds=0
                )
                await self._gone(endpoint, obj)
            except NotFoundError:
                continue
        say("what the scene has brought is gone again")

    async def _gone(self, endpoint: Endpoint, obj: Raw) -> None:
        deadline = time.monotonic() + SECONDS_MAX
        while await self._is_there(endpoint, obj):
            if time.monotonic() > deadline:
                raise ContentError(f"{obj['kind']} {name_of(obj).name}: does not go away")
            await asyncio.sleep(_LOOK_SECONDS)

    async def _is_there(self, endpoint: Endpoint, obj: Raw) -> bool:
        name = name_of(obj)
        try:
            await self._client.get(endpoint, name.name, name.namespace)
        except NotFoundError:
            return False
        return True
