"""The later of two allocations of one device is undone, and all schedulers agree which it is."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from tests.apiserver.replay import CountingChance

from dryrack.client.endpoints import CLAIMS, CLASSES, NAMESPACES
from dryrack.client.informer import Informer
from dryrack.client.timekeeping import VirtualClock
from dryrack.cluster.control_plane import ControlPlaneOptions
from dryrack.cluster.embedded import embedded
from dryrack.scheduler.binding import OvertakenError
from dryrack.scheduler.claims.device_owners import CATCH_UP_SECONDS_MAX, DeviceOwners

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from dryrack.client.client import Client
    from dryrack.kinds.raw import Raw


@asynccontextmanager
async def watched() -> AsyncIterator[tuple[Client, DeviceOwners]]:
    """A plane, and owners that follow its claims."""
    clock = VirtualClock()
    chance = CountingChance()
    async with embedded(ControlPlaneOptions(chance=CountingChance()), engines=()) as cluster:
        informer = Informer(cluster.client, CLAIMS, clock=clock, chance=chance)
        owners = DeviceOwners(informer, clock)
        task = asyncio.create_task(informer.run(), name="informer")
        await informer.synced.wait()
        await cluster.client.create(CLASSES, {"metadata": {"name": "c"}})
        yield cluster.client, owners
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def claim(client: Client, name: str) -> Raw:
    requests = [{"name": "r", "exactly": {"deviceClassName": "c"}}]
    metadata = {"name": name, "namespace": "default"}
    return await client.create(
        CLAIMS, {"metadata": metadata, "spec": {"devices": {"requests": requests}}}
    )


async def give(client: Client, claim: Raw, device: str, **more: Any) -> Raw:
    result = {"request": "r", "driver": "x.example.com", "pool": "n", "device": device, **more}
    status = {"allocation": {"devices": {"results": [result]}}} if device else {}
    return await client.update(CLAIMS, {**claim, "status": status}, subresource="status")


async def test_the_later_of_two_is_overtaken_and_the_earlier_is_not() -> None:
    """The order of the writes decides, not the order of the checks."""
    async with watched() as (client, owners):
        red = await claim(client, "red")
        blue = await claim(client, "blue")
        red = await give(client, red, "gpu-0")
        blue = await give(client, blue, "gpu-0")
        with pytest.raises(OvertakenError, match="got allocated to default/red"):
            await owners.confirm([blue])
        await owners.confirm([red])


async def test_where_nobody_saw_who_was_first_both_are_overtaken() -> None:
    """A cache that had to list again has not seen the order of the writes."""
    clock = VirtualClock()
    async with embedded(ControlPlaneOptions(chance=CountingChance()), engines=()) as cluster:
        client = cluster.client
        await client.create(CLASSES, {"metadata": {"name": "c"}})
        red = await claim(client, "red")
        blue = await claim(client, "blue")
        given = [await give(client, red, "gpu-0"), await give(client, blue, "gpu-0")]
        informer = Informer(client, CLAIMS, clock=clock, chance=CountingChance())
        owners = DeviceOwners(informer, clock)
        task = asyncio.create_task(informer.run(), name="informer")
        for each in given:
            with pytest.raises(OvertakenError, match="got allocated to"):
                await owners.confirm([each])
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_device_that_was_given_back_is_anybodys() -> None:
    """The one that was later may have it now."""
    async with watched() as (client, owners):
        red = await claim(client, "red")
        blue = await claim(client, "blue")
        red = await give(client, red, "gpu-0")
        blue = await give(client, blue, "gpu-0")
        await give(client, red, "")
        blue = await give(client, await give(client, blue, ""), "gpu-0")
        await owners.confirm([blue])


async def test_access_by_an_administrator_takes_nothing_from_anybody() -> None:
    """Such a claim may have what another has."""
    async with watched() as (client, owners):
        label = {"resource.kubernetes.io/admin-access": "true"}
        await client.patch(NAMESPACES, "default", {"metadata": {"labels": label}})
        red = await claim(client, "red")
        blue = await claim(client, "blue")
        await give(client, red, "gpu-0", adminAccess=True)
        await owners.confirm([await give(client, blue, "gpu-0")])


async def test_an_allocation_that_is_never_seen_is_not_relied_on() -> None:
    """A watch that does not come on ends the wait, and the plan with it."""
    clock = VirtualClock()
    async with embedded(ControlPlaneOptions(chance=CountingChance()), engines=()) as cluster:
        await cluster.client.create(CLASSES, {"metadata": {"name": "c"}})
        silent = Informer(cluster.client, CLAIMS, clock=clock, chance=CountingChance())
        owners = DeviceOwners(silent, clock)
        red = await give(cluster.client, await claim(cluster.client, "red"), "gpu-0")
        extended_resource_pod = asyncio.create_task(owners.confirm([red]))
        await clock.advance(CATCH_UP_SECONDS_MAX + 1)
        with pytest.raises(OvertakenError, match="not seen"):
            await extended_resource_pod
