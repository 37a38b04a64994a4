"""
The cost of the publisher, the scheduler, and the dashboard by the number of nodes.

    python -m tests.bench.scale [--nodes N ...] [--devices D] [--pods P] [--seconds S]

Each fleet has a control plane of its own: the real etcd (without fsync), kube-apiserver, and
kube-controller-manager. The programs run one after the other, each over a relay that counts the
bytes of its connections, encrypted and compressed as they are. Nodes have the size that a kubelet
gives them. While nothing else changes, their status is written as often as kubelets write it, once
in five minutes; that is measured apart from complete rest.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import os
import re
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import aiohttp
import yaml
from rich.console import Console
from rich.table import Table
from tests.bench import load
from tests.golang import GoBuildError
from tests.realcluster import kubeconfig, readiness
from tests.realcluster.controlplane import Options
from tests.realcluster.guard import throw_away

from dryrack.client.client import STRATEGIC_PATCH
from dryrack.client.endpoints import CLASSES, CONFIG_MAPS, NAMESPACES, NODES, PODS, TEMPLATES

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence

    from tests.realcluster.cluster import Cluster
    from tests.realcluster.processes import Identity

    from dryrack.client.client import Client
    from dryrack.kinds.raw import Raw

FLEETS = (1_000, 2_000, 5_000)
DRIVER = "gpu.example.com"
SHARDS = 4
# A kubelet writes the status of its node this often if nothing changes.
STATUS_SECONDS = 300.0
# A fleet without progress for so long has failed.
STUCK_SECONDS = 300.0
KIB, MIB = 1024.0, 1024.0**2
_TICKS = os.sysconf("SC_CLK_TCK")
_REQUESTS = re.compile(r"^rest_client_requests_total\{.*\} (\S+)$", re.MULTILINE)
_STORED = re.compile(r"^etcd_mvcc_db_total_size_in_use_in_bytes (\S+)$", re.MULTILINE)


@dataclass(slots=True)
class Relay:
    """Connections to the API server, and the bytes that went over them."""

    port: int
    sent: int = 0
    received: int = 0
    served: asyncio.Server = field(init=False)

    async def serve(self) -> int:
        """Return the port to connect to."""
        self.served = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return int(self.served.sockets[0].getsockname()[1])

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        onward, back = await asyncio.open_connection("127.0.0.1", self.port)
        await asyncio.gather(self._sent(reader, back), self._received(onward, writer))

    async def _sent(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        async for chunk in _chunks(source, target):
            self.sent += len(chunk)

    async def _received(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        async for chunk in _chunks(source, target):
            self.received += len(chunk)


async def _chunks(
    source: asyncio.StreamReader, target: asyncio.StreamWriter
) -> AsyncIterator[bytes]:
    """Copy until one side ends, and yield what was copied."""
    try:
        while chunk := await source.read(2**16):
            target.write(chunk)
            await target.drain()
            yield chunk
    except OSError:
        pass
    finally:
        target.close()


@dataclass(frozen=True, slots=True)
class Counters:
    """What a program has used so far."""

    at: float
    requests: float
    sent: int
    received: int
    cpu: float


@dataclass(slots=True)
class Program:
    """A process of dryrack over a relay; a port 0 means that it has no page of metrics."""

    identity: Identity
    relay: Relay
    bed: Bed
    metrics: int

    async def read(self) -> Counters:
        requests = 0.0
        if self.metrics:
            text = await self.bed.page(f"http://127.0.0.1:{self.metrics}/metrics")
            requests = sum(map(float, _REQUESTS.findall(text)))
        return Counters(
            time.monotonic(),
            requests,
            self.relay.sent,
            self.relay.received,
            _cpu(self.identity.pid),
        )

    def memory(self, line: str = "VmRSS") -> float:
        status = Path(f"/proc/{self.identity.pid}/status").read_text()
        found = re.search(rf"^{line}:\s+(\d+) kB$", status, re.MULTILINE)
        assert found is not None, f"/proc has lost {line}"
        return int(found[1]) * KIB


def _cpu(pid: int) -> float:
    """Return the seconds that a process has used of the processors."""
    after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(after_name[11]) + int(after_name[12])) / _TICKS


@dataclass(slots=True)
class Bed:
    """A control plane under measurement, and the results."""

    cluster: Cluster
    client: Client
    http: aiohttp.ClientSession
    nodes: int
    devices: int
    pods: int
    seconds: float
    results: dict[str, float] = field(default_factory=dict)

    async def page(self, address: str) -> str:
        async with self.http.get(address) as response:
            return await response.text()

    async def stored(self, resource: str, *, only_count: bool = True) -> tuple[int, int]:
        """Return the number of objects of a kind in etcd, and the bytes of their values."""
        first = f"/registry/{resource}/"
        last = first[:-1] + chr(ord("/") + 1)
        key, end = (base64.b64encode(each.encode()).decode() for each in (first, last))
        body = {"key": key, "range_end": end, "count_only": only_count}
        address = f"http://127.0.0.1:{self.cluster.plane.etcd_port}/v3/kv/range"
        async with self.http.post(address, json=body) as response:
            answer = await response.json()
        values = (each.get("value", "") for each in answer.get("kvs", ()))
        return int(answer.get("count", 0)), sum(len(base64.b64decode(value)) for value in values)

    async def until_stored(self, resource: str, count: int) -> None:
        before, since = -1, time.monotonic()
        while (there := (await self.stored(resource))[0]) != count:
            if there != before:
                before, since = there, time.monotonic()
            stuck = time.monotonic() - since > STUCK_SECONDS
            assert not stuck, f"{there} of {count} {resource}, and no progress"
            await asyncio.sleep(0.1)

    async def until_still(self, resource: str) -> None:
        """Wait until the number of objects has not changed for some seconds."""
        before = -1
        while (there := (await self.stored(resource))[0]) != before:
            before = there
            await asyncio.sleep(3.0)

    async def start(self, name: str, *command: str, has_metrics: bool = True) -> Program:
        """Start a program of dryrack, and wait until it is ready."""
        plane = self.cluster.plane
        relay = Relay(plane.port)
        config = kubeconfig.write(
            plane.directory / f"{name}.kubeconfig",
            server=f"https://127.0.0.1:{await relay.serve()}",
            authority=plane.authority.certificate,
            user=kubeconfig.by_certificate(plane.admin),
        )
        port = readiness.free_port()
        pages = ("--metrics-address", f"127.0.0.1:{port}", "--health-address", f"127.0.0.1:{port}")
        arguments = (*command, "--kubeconfig", str(config), *(pages if has_metrics else ()))
        words = (sys.executable, "-m", "dryrack", *arguments)
        began = time.monotonic()
        identity = self.cluster.processes.start(name, words)
        program = Program(identity, relay, self, port if has_metrics else 0)
        if has_metrics:
            await self.until_answers(f"http://127.0.0.1:{port}/readyz")
            self.note(name, "start", "s", time.monotonic() - began)
            self.note(name, "start, received", "MiB", relay.received / MIB)
        return program

    async def until_answers(self, address: str) -> None:
        while True:
            self.cluster.processes.check()
            try:
                async with self.http.get(address) as response:
                    if response.status == 200:
                        return
            except aiohttp.ClientError:
                pass
            await asyncio.sleep(0.05)

    async def stop(self, program: Program) -> None:
        await asyncio.to_thread(self.cluster.processes.stop, program.identity)
        self.cluster.processes.running.remove(program.identity)
        program.relay.served.close()

    def note(self, part: str, what: str, unit: str, value: float) -> None:
        self.results[f"{part}: {what} [{unit}]"] = value

    async def during(
        self, program: Program, what: str, work: Callable[[], Awaitable[object]]
    ) -> None:
        """Note what a program uses meanwhile."""
        name = program.identity.name
        before = await program.read()
        await work()
        after = await program.read()
        seconds = after.at - before.at
        if program.metrics:
            requests = (after.requests - before.requests) / seconds
            self.note(name, f"{what}, requests", "1/s", requests)
        self.note(name, f"{what}, sent", "KiB/s", (after.sent - before.sent) / seconds / KIB)
        received = (after.received - before.received) / seconds / KIB
        self.note(name, f"{what}, received", "KiB/s", received)
        self.note(name, f"{what}, processor", "%", (after.cpu - before.cpu) / seconds * 100)

    async def at_rest(self, program: Program) -> None:
        await asyncio.sleep(5.0)
        await self.during(program, "at rest", lambda: asyncio.sleep(self.seconds))
        await self.during(program, "node status writes", self.write_statuses)
        self.note(program.identity.name, "memory", "MiB", program.memory() / MIB)
        self.note(program.identity.name, "peak memory", "MiB", program.memory("VmHWM") / MIB)

    async def write_statuses(self) -> None:
        """Write the status of nodes as often as that many kubelets do."""
        began = time.monotonic()
        writes = self.nodes / STATUS_SECONDS
        number = 0
        async with asyncio.TaskGroup() as group:
            while time.monotonic() - began < self.seconds / 2:
                while number < (time.monotonic() - began) * writes:
                    group.create_task(self._write_status(number % self.nodes))
                    number += 1
                await asyncio.sleep(0.05)

    async def _write_status(self, number: int) -> None:
        # A time that the node did not have before, or else nothing would change.
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        conditions = [each | {"lastHeartbeatTime": at} for each in _conditions()]
        await self.client.patch(
            NODES,
            _name(number),
            {"status": {"conditions": conditions}},
            subresource="status",
            media_type=STRATEGIC_PATCH,
        )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.scale")
    parser.add_argument("--nodes", type=int, nargs="+", default=FLEETS, help="sizes of fleets")
    parser.add_argument("--devices", type=int, default=8, help="devices of each node")
    parser.add_argument("--pods", type=int, default=300, help="pods for the scheduler")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long each rest takes")
    parser.add_argument("--only", nargs="+", choices=tuple(PARTS), default=tuple(PARTS))
    given = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 140)
    columns: dict[int, dict[str, float]] = {}
    for count in given.nodes:
        with throw_away(Options(with_scheduler=False)) as cluster:
            columns[count] = asyncio.run(_measured(cluster, count, given))
        console.print(_table(columns))
    return 0


async def _measured(cluster: Cluster, nodes: int, given: argparse.Namespace) -> dict[str, float]:
    async with (
        load.talking_to(cluster.plane.kubeconfig) as client,
        aiohttp.ClientSession() as http,
    ):
        sizes = (nodes, given.devices, given.pods, given.seconds)
        bed = Bed(cluster, client, http, *sizes)
        for part in given.only:
            _say(nodes, part)
            await PARTS[part](bed)
        for identity in cluster.processes.running:
            bed.note(identity.name, "memory", "MiB", load.memory(identity.pid) / MIB)
        return bed.results


async def _publisher(bed: Bed) -> None:
    """Nodes appear while the publisher runs; then it rests, and starts again."""
    await bed.client.create(NAMESPACES, {"metadata": {"name": "karpenter"}})
    await bed.client.create(CONFIG_MAPS, _config_map(bed.devices))
    publisher = await bed.start("publisher", "publish")
    nodes = [_node(number) for number in range(bed.nodes)]
    etcd = f"http://127.0.0.1:{bed.cluster.plane.etcd_port}/metrics"
    before = await _in_use(bed, etcd)
    began = time.monotonic()

    async def appear() -> None:
        await load.at_once(bed.nodes, lambda n: bed.client.create(NODES, nodes[n]))
        bed.note("publisher", "until all nodes are created", "s", time.monotonic() - began)
        await bed.until_stored("resourceslices", bed.nodes)
        bed.note("publisher", "until all slices are created", "s", time.monotonic() - began)

    used, busy = _used_by(bed), _busy()
    await bed.during(publisher, "nodes appear", appear)
    for name, processor in _used_by(bed).items():
        bed.note(name, "nodes appear, processor time", "s", processor - used[name])
    everything = sum(_used_by(bed).values()) - sum(used.values())
    bed.note("other programs", "nodes appear, processor time", "s", _busy() - busy - everything)
    # Events wait until all slices are written.
    await bed.until_still("events")
    bed.note("etcd", "growth", "MiB", (await _in_use(bed, etcd) - before) / MIB)
    for kind, resource in (("node", "minions"), ("slice", "resourceslices"), ("event", "events")):
        count, size = await bed.stored(resource, only_count=False)
        bed.note("etcd", f"{kind}s", "number", count)
        bed.note("etcd", f"a {kind}", "bytes", size / max(count, 1))
    await bed.at_rest(publisher)
    await bed.stop(publisher)
    restarted = await bed.start("publisher-restarted", "publish")
    await bed.stop(restarted)


def _used_by(bed: Bed) -> dict[str, float]:
    """Return the seconds that each program, with the measurement itself, has used so far."""
    used = {each.name: _cpu(each.pid) for each in bed.cluster.processes.running}
    return used | {"measurement": _cpu(os.getpid())}


def _busy() -> float:
    """Return the seconds that all processors of the machine have worked."""
    user, nice, system = Path("/proc/stat").read_text().split()[1:4]
    return (int(user) + int(nice) + int(system)) / _TICKS


async def _in_use(bed: Bed, etcd: str) -> float:
    found = _STORED.search(await bed.page(etcd))
    assert found is not None, "etcd has lost the metric of its size"
    return float(found[1])


async def _shard(bed: Bed) -> None:
    """One of several shards, with all slices there."""
    shard = await bed.start("shard", "publish", "--shard", f"1/{SHARDS}")
    await bed.at_rest(shard)
    await bed.stop(shard)


async def _scheduler(bed: Bed) -> None:
    selectors = [{"cel": {"expression": f"device.driver == '{DRIVER}'"}}]
    await bed.client.create(
        CLASSES, {"metadata": {"name": "gpu"}, "spec": {"selectors": selectors}}
    )
    requests = [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]
    template: Raw = {"spec": {"devices": {"requests": requests}}}
    metadata = {"name": "gpu", "namespace": "default"}
    await bed.client.create(TEMPLATES, {"metadata": metadata, "spec": template})
    scheduler = await bed.start("scheduler", "schedule")
    await bed.at_rest(scheduler)

    revision = (await bed.client.list(PODS)).revision

    async def schedule() -> None:
        began = time.monotonic()
        bound = asyncio.create_task(_until_bound(bed, revision))
        await load.at_once(bed.pods, lambda n: bed.client.create(PODS, _pod(n)))
        await bound
        bed.note("scheduler", "pods", "1/s", bed.pods / (time.monotonic() - began))

    await bed.during(scheduler, "pods appear", schedule)
    await bed.stop(scheduler)


async def _until_bound(bed: Bed, revision: str) -> None:
    bound: set[str] = set()
    async with asyncio.timeout(STUCK_SECONDS), bed.client.watch(PODS, revision=revision) as events:
        async for event in events:
            if event.object.get("spec", {}).get("nodeName"):
                bound.add(event.object["metadata"]["name"])
            if len(bound) == bed.pods:
                return


async def _dashboard(bed: Bed) -> None:
    """A first visit, and then a page that stays open."""
    command = ("dashboard", "--port", "0")
    dashboard = await bed.start("dashboard", *command, has_metrics=False)
    printed = bed.cluster.processes.log("dashboard")
    while (address := re.search(r"http://\S+:(\d+)/\S*token=(\w+)", printed.read_text())) is None:
        bed.cluster.processes.check()
        await asyncio.sleep(0.05)
    pages = f"http://127.0.0.1:{address[1]}/api/v1"
    bearer = {"Authorization": f"Bearer {address[2]}"}
    visited = time.monotonic()
    async with bed.http.get(f"{pages}/fleet", headers=bearer, auto_decompress=False) as response:
        assert response.status == 200, await response.text()
        size = len(await response.read())
    bed.note("dashboard", "first map", "s", time.monotonic() - visited)
    bed.note("dashboard", "first map, sent to the browser", "KiB", size / KIB)
    received = dashboard.relay.received / MIB
    bed.note("dashboard", "first map, received from the server", "MiB", received)
    async with bed.http.get(
        f"{pages}/stream", headers=bearer, timeout=aiohttp.ClientTimeout(total=None)
    ) as stream:
        reading = asyncio.create_task(_drain(stream))
        await bed.at_rest(dashboard)
        reading.cancel()
    await bed.stop(dashboard)


async def _drain(stream: aiohttp.ClientResponse) -> None:
    async for _ in stream.content.iter_any():
        pass


# The first one creates the nodes and slices that the others read.
PARTS = {
    "publisher": _publisher,
    "shard": _shard,
    "scheduler": _scheduler,
    "dashboard": _dashboard,
}


def _name(number: int) -> str:
    return f"node-{number:06}"


def _node(number: int) -> Raw:
    """A node with the labels and the status that a kubelet writes, without images."""
    node = load.kwok_node(_name(number))
    node["metadata"]["labels"] |= {
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": _name(number),
        "kubernetes.io/os": "linux",
        "topology.kubernetes.io/region": "region-1",
        "topology.kubernetes.io/zone": f"zone-{number % 3}",
    }
    there = {"cpu": "192", "memory": "2Ti", "pods": "250", "ephemeral-storage": "1Ti"}
    there |= {"hugepages-1Gi": "0", "hugepages-2Mi": "0"}
    info = (
        *("architecture", "bootID", "containerRuntimeVersion", "kernelVersion"),
        *("kubeProxyVersion", "kubeletVersion", "machineID", "operatingSystem", "osImage"),
        "systemUUID",
    )
    node["status"] = {
        "addresses": [
            {"type": "InternalIP", "address": "10.0.0.1"},
            {"type": "Hostname", "address": _name(number)},
        ],
        "allocatable": there,
        "capacity": there,
        "conditions": _conditions(),
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
        "nodeInfo": dict.fromkeys(info, "fake"),
    }
    return node


def _conditions() -> list[Raw]:
    at = "2027-01-01T00:00:00Z"
    times = {"lastHeartbeatTime": at, "lastTransitionTime": at}
    return [
        {"type": kind, "status": status, "reason": f"Kubelet{kind}", "message": "as expected"}
        | times
        for kind, status in (
            ("MemoryPressure", "False"),
            ("DiskPressure", "False"),
            ("PIDPressure", "False"),
            ("Ready", "True"),
        )
    ]


def _config_map(devices: int) -> Raw:
    """The devices of each node, described as drivers do."""
    attributes = {
        "type": "gpu",
        "productName": "NVIDIA H100 80GB HBM3",
        "architecture": "Hopper",
        "cudaComputeCapability": {"version": "9.0.0"},
    }
    device = {
        "name": "gpu",
        "count": devices,
        "attributes": attributes,
        "capacity": {"memory": "81559Mi"},
    }
    mapping = {
        "name": "gpus",
        "nodeSelector": {"matchLabels": {"node.kubernetes.io/instance-type": "bench"}},
        "resourceSlice": {"devices": [device]},
    }
    config = yaml.safe_dump({"driver": DRIVER, "mappings": [mapping]})
    metadata = {"name": "dra-kwok-configmap", "namespace": "karpenter"}
    return {"metadata": metadata, "data": {"config.yaml": config}}


def _pod(number: int) -> Raw:
    container = {"name": "c", "image": "i", "resources": {"claims": [{"name": "gpu"}]}}
    spec = {
        "schedulerName": "dryrack",
        "tolerations": [{"operator": "Exists"}],
        "containers": [container],
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpu"}],
    }
    return {"metadata": {"name": f"pod-{number}", "namespace": "default"}, "spec": spec}


def _table(columns: dict[int, dict[str, float]]) -> Table:
    table = Table(title="Cost by nodes", title_justify="left", box=None)
    table.add_column("measured")
    for count in columns:
        table.add_column(f"{count} nodes", justify="right")
    for what in _rows(list(columns.values())):
        figures = (column.get(what) for column in columns.values())
        table.add_row(what.replace("[", "\\["), *map(_shown, figures))
    return table


def _rows(columns: Sequence[dict[str, float]]) -> Iterator[str]:
    yield from dict.fromkeys(what for column in columns for what in column)


def _shown(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 1 else f"{value:.2f}"


def _say(nodes: int, what: str) -> None:
    sys.stderr.write(f"bench: {nodes} nodes: {what}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except GoBuildError as error:
        sys.exit(str(error))
