"""
Our plugin beside dra-example-driver's, in one run against one real API server.

    python -m tests.bench.prepares [--small]

Each is on a node of its own, is called over its own socket by the same client, as a kubelet calls
it, and writes to the same disk. With 10, 100 and 1,000 claims prepared, further ones are prepared
and given back: one after the other, which gives the times, and by several callers at once, which
gives the rate. The two take turns call by call, so that whatever else the machine does hits both.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import sys
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grpc
from rich.console import Console
from rich.table import Table
from tests.bench import load
from tests.golang import GoBuildError, build
from tests.realcluster import readiness
from tests.realcluster.controlplane import Options
from tests.realcluster.guard import throw_away

from dryrack.client.endpoints import CLAIMS, NODES
from dryrack.kubeletapi import DRA_V1, message

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from tests.realcluster.cluster import Cluster

    from dryrack.client.client import Client
    from dryrack.kinds.raw import Raw


MODULE = Path(__file__).parent / "dra-example-driver"
PACKAGE = "sigs.k8s.io/dra-example-driver/cmd/dra-example-kubeletplugin"
DRIVER = "gpu.example.com"
SOCKET = Path("plugins") / DRIVER / "dra.sock"
CALL_SECONDS_MAX = 45
# A kubelet starts pods at once, each with a call of its own.
CALLERS = 8
# How many claims one side prepares at once before it is the other's turn.
TURN = 40
GOALS = {10: 2.0, 1000: 10.0}


@dataclass(frozen=True, slots=True)
class Sizes:
    """The number of prepared claims, and the number that is created and deleted."""

    live: tuple[int, ...] = (10, 100, 1000)
    calls: int = 400

    @property
    def claims(self) -> int:
        return max(self.live) + self.calls


SMALL = Sizes(live=(10, 100), calls=80)


@dataclass(frozen=True, slots=True)
class Side:
    """A plugin, as a command with its node and its directories."""

    name: str
    node: str
    command: tuple[str, ...]

    def in_directory(self, directory: Path) -> tuple[str, ...]:
        return tuple(each.replace("DIRECTORY", str(directory)) for each in self.command)


@dataclass(frozen=True, slots=True)
class Measured:
    """The results with prepared claims: seconds of single calls, and concurrent calls."""

    seconds: Sequence[float]
    per_second: float
    cpu_seconds: float
    """What the plugin itself used of the processors for a claim, both ways."""

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def p99(self) -> float:
        return statistics.quantiles(self.seconds, n=100, method="inclusive")[98]


Claim = tuple[str, str]
"""Its name and its UID."""


class Caller:
    """Calls a plugin as a kubelet does."""

    def __init__(self, channel: grpc.aio.Channel, pid: int) -> None:
        self.pid = pid
        self._verbs: dict[str, Any] = {
            verb: channel.unary_unary(
                f"/{DRA_V1}.DRAPlugin/{verb}",
                request_serializer=lambda each: each.SerializeToString(),
                response_deserializer=message(DRA_V1, f"{verb}Response").FromString,
            )
            for verb in ("NodePrepareResources", "NodeUnprepareResources")
        }

    async def prepare(self, claim: Claim) -> None:
        await self._call("NodePrepareResources", claim)

    async def unprepare(self, claim: Claim) -> None:
        await self._call("NodeUnprepareResources", claim)

    async def _call(self, verb: str, claim: Claim) -> None:
        request = message(DRA_V1, f"{verb}Request")()
        request.claims.add(namespace="default", name=claim[0], uid=claim[1])
        ask: Any = self._verbs[verb]
        answer = (await ask(request, timeout=CALL_SECONDS_MAX)).claims[claim[1]]
        assert not answer.error, answer.error


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.prepares")
    parser.add_argument("--small", action="store_true", help="fewer claims and calls")
    sizes = SMALL if parser.parse_args().small else Sizes()
    options = replace(
        Options(), with_scheduler=False, without_controllers=("resourceclaim-controller",)
    )
    with throw_away(options) as bed:
        ours, theirs = asyncio.run(_measured(bed, sizes))
    console = Console(width=None if sys.stdout.isatty() else 140)
    console.print(_table(ours, theirs))
    console.print(
        f"Both wait for the disk, one API server has the claims; load of the machine at the end "
        f"{os.getloadavg()[0]:.1f} on {os.cpu_count()} cores."
    )
    return 0


def _sides(kubeconfig: Path) -> tuple[Side, Side]:
    count = str(Sizes().claims)
    here = ("--kubeconfig", str(kubeconfig), "--cdi-dir", "DIRECTORY/cdi", "--node", "ours")
    words = ("plugin", "--devices", f"gpu:{count}", "--kubelet-dir", "DIRECTORY", *here)
    program = build(MODULE, (PACKAGE,)).path(Path(PACKAGE).name)
    theirs = {
        "--kubeconfig": str(kubeconfig),
        # Its client would wait most of the time otherwise.
        "--kube-api-qps": "10000",
        "--kube-api-burst": "10000",
        "--node-name": "theirs",
        "--num-devices": count,
        "--cdi-root": "DIRECTORY/cdi",
        "--kubelet-plugins-directory-path": "DIRECTORY/plugins",
        "--kubelet-registrar-directory-path": "DIRECTORY/plugins_registry",
    }
    flags = [f"{name}={value}" for name, value in theirs.items()]
    return (
        Side("dryrack", "ours", (sys.executable, "-m", "dryrack", *words)),
        Side("dra-example-driver", "theirs", (str(program), *flags)),
    )


async def _measured(
    bed: Cluster, sizes: Sizes
) -> tuple[Mapping[int, Measured], Mapping[int, Measured]]:
    ours, theirs = _sides(bed.plane.kubeconfig)
    async with load.talking_to(bed.plane.kubeconfig) as client:
        for side in (ours, theirs):
            _say(f"{sizes.claims} claims on {side.node}")
            await client.create(NODES, {"metadata": {"name": side.node}})
        claims = [await _claims(client, sizes.claims, side.node) for side in (ours, theirs)]
        async with _calling(bed, ours) as us, _calling(bed, theirs) as them:
            return await _levels((Work(us, claims[0]), Work(them, claims[1])), sizes)


async def _claims(client: Client, count: int, node: str) -> list[Claim]:
    made: dict[int, Claim] = {}

    async def make(number: int) -> None:
        name = f"{node}-{number}"
        request = {"name": "gpu", "exactly": {"deviceClassName": DRIVER}}
        claim = await client.create(
            CLAIMS,
            {
                "metadata": {"name": name, "namespace": "default"},
                "spec": {"devices": {"requests": [request]}},
            },
        )
        result = {"request": "gpu", "driver": DRIVER, "pool": node, "device": f"gpu-{number}"}
        uid = claim["metadata"]["uid"]
        claim["status"] = {
            "allocation": {"devices": {"results": [result]}, "nodeSelector": _on_node(node)},
            "reservedFor": [{"resource": "pods", "name": f"pod-{number}", "uid": uid}],
        }
        await client.update(CLAIMS, claim, subresource="status")
        made[number] = (name, uid)

    await load.at_once(count, make)
    return [made[number] for number in range(count)]


def _on_node(node: str) -> Raw:
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    return {"nodeSelectorTerms": [{"matchFields": [field]}]}


@asynccontextmanager
async def _calling(bed: Cluster, side: Side) -> AsyncIterator[Caller]:
    """A plugin that runs, for the time of a block."""
    directory = bed.plane.directory / side.name[:4]
    (directory / "plugins_registry").mkdir(parents=True)
    process = bed.processes.start(side.name, side.in_directory(directory))
    try:
        path = directory / SOCKET
        readiness.wait(side.name, path.exists, bed.processes)
        async with grpc.aio.insecure_channel(f"unix:{path}") as channel:
            yield Caller(channel, process.pid)
    finally:
        bed.processes.stop(process)
        bed.processes.running.remove(process)


@dataclass(frozen=True, slots=True)
class Work:
    """A side that serves, and the claims on its node."""

    caller: Caller
    claims: Sequence[Claim]

    def cpu_seconds(self) -> float:
        """Return the resources that the process has used so far."""
        fields = Path(f"/proc/{self.caller.pid}/stat").read_text().rpartition(") ")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def _levels(
    sides: tuple[Work, Work], sizes: Sizes
) -> tuple[Mapping[int, Measured], Mapping[int, Measured]]:
    found: tuple[dict[int, Measured], dict[int, Measured]] = ({}, {})
    prepared = 0
    for live in sizes.live:
        for side in sides:
            for claim in side.claims[prepared:live]:
                await side.caller.prepare(claim)
        prepared = live
        _say(f"{live} claims are prepared, {sizes.calls} more come and go")
        for place, measured in enumerate(await _level(sides, sizes.calls)):
            found[place][live] = measured
    return found


async def _level(sides: tuple[Work, Work], calls: int) -> list[Measured]:
    seconds: tuple[list[float], list[float]] = ([], [])
    rates = [0.0, 0.0]
    before = [side.cpu_seconds() for side in sides]
    for number in range(-calls, 0):
        for place, side in enumerate(sides):
            seconds[place].append(await load.timed(side.caller.prepare(side.claims[number])))
            await side.caller.unprepare(side.claims[number])
    for start in range(0, calls, TURN):
        for place, side in enumerate(sides):
            some = side.claims[-calls:][start : start + TURN]
            rates[place] += await load.timed(_each(side.caller.prepare, some))
            await _each(side.caller.unprepare, some)
    used = [(s.cpu_seconds() - before[place]) / (2 * calls) for place, s in enumerate(sides)]
    return [Measured(seconds[place], calls / rates[place], used[place]) for place in range(2)]


async def _each(call: Any, claims: Sequence[Claim]) -> None:
    async def some(start: int) -> None:
        for claim in claims[start::CALLERS]:
            await call(claim)

    async with asyncio.TaskGroup() as group:
        for start in range(CALLERS):
            group.create_task(some(start), name="caller")


def _table(ours: Mapping[int, Measured], theirs: Mapping[int, Measured]) -> Table:
    table = Table(title="NodePrepareResources", title_justify="left", box=None)
    rate = f"per second, {CALLERS} at once"
    for heading in ("claims prepared", "", "median", "p99", "CPU, both ways", rate):
        table.add_column(heading, justify="right")
    table.add_column("goal")
    table.add_column("met")
    for live, mine in ours.items():
        other = theirs[live]
        for name, side in (("dryrack", mine), ("dra-example-driver", other)):
            times = [f"{each * 1e3:.1f} ms" for each in (side.median, side.p99, side.cpu_seconds)]
            table.add_row(str(live), name, *times, f"{side.per_second:.0f}", "", "")
        ratio = mine.per_second / other.per_second
        goal = GOALS.get(live)
        said = f"{goal:g} times as many" if goal else ""
        met = ("yes" if ratio >= goal else "no") if goal else ""
        pairs = (
            (other.median, mine.median),
            (other.p99, mine.p99),
            (other.cpu_seconds, mine.cpu_seconds),
        )
        faster = [f"{theirs_is / ours_is:.1f} ×" for theirs_is, ours_is in pairs]
        table.add_row("", "ratio", *faster, f"{ratio:.1f} ×", said, met)
    return table


def _say(text: str) -> None:
    sys.stderr.write(f"bench: {text}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except GoBuildError as error:
        sys.exit(str(error))
