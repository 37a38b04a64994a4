"""The law of rest: when nobody changes anything, no engine writes, decides or grows."""

from __future__ import annotations

import gc
import re
from collections import Counter
from typing import TYPE_CHECKING

from hypothesis import HealthCheck, Phase, example, given, settings
from tests.cluster.ordinary_worlds import RESTLESS, World, play, worlds
from tests.cluster.store_writes import writes_after

from dryrack.client.endpoints import CLAIMS, PODS
from dryrack.client.timekeeping import VirtualClock, run_virtual
from dryrack.cluster.control_plane import ControlPlaneOptions
from dryrack.cluster.embedded import EmbeddedCluster, embedded

if TYPE_CHECKING:
    from dryrack.client.client import Client

# By then the longest wait of any controller is over, and events have been forgotten.
SETTLING_SECONDS = 4000
HOUR = 3600

# What the log of watches keeps of each write; it has a limit.
LOGGED = frozenset(("dryrack.store.objects.Event", "dryrack.store.objects.Stored"))
# A request that is being answered has some objects of its own.
FEW = 20
LIVELY = frozenset(("kubelet", "node-controller", "dryrack-publisher", "resourceslice"))


def decisions(cluster: EmbeddedCluster) -> Counter[str]:
    """How often each controller has looked at something."""
    lines = re.findall(
        r'controller_runtime_reconcile_total\{controller="([^"]+)",result="[^"]+"\} (\d+)',
        cluster.plane.metrics.render(),
    )
    found: Counter[str] = Counter()
    for controller, number in lines:
        found[controller] += int(number) if controller not in LIVELY else 0
    return found


def kept() -> Counter[str]:
    """How many objects of ours there are, by their type, but for the log of watches."""
    gc.collect()
    types = (type(each) for each in gc.get_objects())
    names = Counter(f"{it.__module__}.{it.__qualname__}" for it in types)
    return Counter(
        {
            name: number
            for name, number in names.items()
            if name.startswith(("dryrack.", "_asyncio.Task")) and name not in LOGGED
        }
    )


async def devices_without_owner(client: Client) -> list[str]:
    """Claims that hold devices for pods that will not run."""
    living = {
        each["metadata"]["uid"]
        for each in (await client.list(PODS)).items
        if each.get("status", {}).get("phase") not in ("Succeeded", "Failed")
    }
    return [
        claim["metadata"]["name"]
        for claim in (await client.list(CLAIMS)).items
        if claim.get("status", {}).get("allocation")
        and not living & {each["uid"] for each in claim["status"].get("reservedFor") or ()}
    ]


async def devices_of_waiting(client: Client) -> list[str]:
    """Claims that are reserved for pods which are on no node."""
    waiting = {
        each["metadata"]["uid"]
        for each in (await client.list(PODS)).items
        if not each["spec"].get("nodeName")
    }
    return [
        claim["metadata"]["name"]
        for claim in (await client.list(CLAIMS)).items
        if waiting & {each["uid"] for each in claim.get("status", {}).get("reservedFor") or ()}
    ]


@settings(
    max_examples=8,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    # A run takes some seconds; the first failure is told as it is.
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    print_blob=True,
)
@example(RESTLESS[0])
@example(RESTLESS[1])
@example(RESTLESS[2])
@given(worlds())
def test_a_world_that_nobody_touches_comes_to_rest(world: World) -> None:
    """An hour without a write, without a decision, with no device held by nobody, and flat."""

    async def run() -> None:
        clock = VirtualClock()
        async with embedded(ControlPlaneOptions(clock=clock)) as cluster:
            await play(world, cluster.client, clock)
            await clock.advance(SETTLING_SECONDS)
            revision = cluster.plane.store.revision
            before = decisions(cluster)
            size = kept()
            await clock.advance(HOUR)

            assert writes_after(cluster.plane.store, revision) == []
            assert decisions(cluster) == before
            assert await devices_without_owner(cluster.client) == []
            assert await devices_of_waiting(cluster.client) == []
            grown = kept() - size
            assert [name for name, number in grown.items() if number > FEW] == []

    run_virtual(run())
