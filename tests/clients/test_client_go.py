"""
client-go's informers on the embedded plane.

Every controller and scheduler in Go uses them: if their cache ever differs from the objects of
the server, a controller acts on objects that do not exist.
"""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.clients.served import ServedPlane
from tests.golang import build

from dryrack.client.client import Client
from dryrack.client.endpoints import CONFIG_MAPS
from dryrack.client.https import connected
from dryrack.client.kubeconfig import load
from dryrack.cluster.ports import SystemClock

if TYPE_CHECKING:
    from typing import IO

pytestmark = pytest.mark.real

MODULE = Path(__file__).parent / "go"
CHANGES = 10_000
NAMES = 400
AT_ONCE = 16


async def churn(kubeconfig: Path) -> tuple[dict[str, str], str]:
    """Creates, changes and deletes in an order that a seed decides; what is there in the end."""
    async with connected(load([kubeconfig], SystemClock())) as transport:
        client = Client(transport, agent="churn")
        chance = random.Random(7)
        names = [f"c{number}" for number in range(NAMES)]
        shares = [names[start::AT_ONCE] for start in range(AT_ONCE)]
        async with asyncio.TaskGroup() as group:
            for share in shares:
                seed = chance.getrandbits(32)
                group.create_task(_churn_some(client, share, random.Random(seed)))
        listing = await client.list(CONFIG_MAPS)
    found = {
        f"{obj['metadata']['namespace']}/{obj['metadata']['name']}": obj["metadata"][
            "resourceVersion"
        ]
        for obj in listing.items
    }
    return found, max(found.values(), key=int)


async def _churn_some(client: Client, names: list[str], chance: random.Random) -> None:
    there: set[str] = set()
    for count in range(CHANGES // AT_ONCE):
        name = chance.choice(names)
        if name not in there:
            await client.create(CONFIG_MAPS, {"metadata": {"name": name, "namespace": "default"}})
            there.add(name)
        elif chance.random() < 0.3:
            await client.delete(CONFIG_MAPS, name, namespace="default")
            there.discard(name)
        else:
            change = {"data": {"count": str(count)}}
            await client.patch(CONFIG_MAPS, name, change, namespace="default")


def _line(stream: IO[str] | None) -> str:
    assert stream is not None, "started with a pipe"
    return stream.readline().strip()


def test_an_informer_holds_what_the_server_holds_after_ten_thousand_changes(
    tmp_path: Path,
) -> None:
    """The cache of client-go equals a list, object by object and revision by revision."""
    program = build(MODULE).path("informer")
    with (
        ServedPlane(tmp_path, name="informers") as plane,
        subprocess.Popen(
            [program, str(plane.kubeconfig)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as informer,
    ):
        synced = _line(informer.stdout)
        expected, last = asyncio.run(churn(plane.kubeconfig))
        answer, _ = informer.communicate(f"{last}\n", timeout=120)

    assert synced == "synced"
    assert json.loads(answer) == expected
