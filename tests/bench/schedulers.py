"""
Schedulers beside each other: the same pods, from the first create to the last binding.

    python -m tests.bench.schedulers [LOAD ...] [--scale F]

Three ways, in one run on one machine, all over HTTPS: kube-scheduler on a real control plane
(limits of its client raised, etcd without fsync), `dryrack schedule` on the same control plane, and
an embedded plane with its own scheduler. No side has kubelets. Pods come from a template with a CEL
selector, over 64 connections; claims are made by the controller of each side.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from tests.bench import load
from tests.clients.served import ServedPlane
from tests.golang import GoBuildError
from tests.realcluster.controlplane import Options
from tests.realcluster.guard import throw_away
from tests.scheduler.real_scheduler import start_scheduler

from dryrack.client.client import STRATEGIC_PATCH
from dryrack.client.endpoints import CLASSES, NODES, PODS, SLICES, TEMPLATES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dryrack.client.client import Client
    from dryrack.kinds.raw import Raw


GOAL_EMBEDDED = 10.0
GOAL_ATTACHED = 1.0
OURS = "dryrack"
DRIVER = "gpu.example.com"
DEVICES = 8
_MIG = "device.attributes['gpu.nvidia.com'].type == 'mig'"
CLASSES_BY_NAME = {
    "gpu": f"device.driver == '{DRIVER}'",
    # A whole device has no profile, and must not be asked for one.
    "mig.nvidia.com": f"device.driver == 'gpu.nvidia.com' && {_MIG}",
}
# A load that takes longer than this on one side is given up, and said so.
SECONDS_MAX = 600.0
_SELECTOR = f"device.attributes['{DRIVER}'].memory > 1"
_GANG = "pod-group.scheduling.sigs.k8s.io"


@dataclass(frozen=True, slots=True)
class Load:
    """So many pods on so many nodes."""

    name: str
    nodes: int
    pods: int
    # What claims ask for; pods have them in turn.
    claims: tuple[Raw, ...]
    # The slices of so many nodes.
    slices: Callable[[int], Sequence[Raw]] = lambda nodes: _plain(nodes)
    gang: int = 0

    def scaled(self, by: float) -> Load:
        """A part of it, with whole gangs."""
        size = self.gang or 1
        pods = round(self.pods * by / size) * size
        return replace(self, nodes=round(self.nodes * by), pods=pods)


def _exactly(selector: str = "", *, class_name: str = "gpu", **more: Any) -> Raw:
    selectors = [{"cel": {"expression": selector}}] if selector else []
    return {
        "name": "gpu",
        "exactly": {"deviceClassName": class_name, "selectors": selectors} | more,
    }


def _profile(name: str) -> Raw:
    """A MIG partition of one profile."""
    selector = f"device.attributes['gpu.nvidia.com'].profile == '{name}'"
    return {"requests": [_exactly(selector, class_name="mig.nvidia.com")]}


_ONE = {"requests": [_exactly(_SELECTOR)]}
_FOUR_ALIKE = {
    "requests": [_exactly(allocationMode="ExactCount", count=4)],
    "constraints": [{"requests": ["gpu"], "matchAttribute": f"{DRIVER}/numa"}],
}
_PROFILES = ("1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb")


def _slice(node: str) -> Raw:
    devices = [
        {
            "name": f"gpu-{index}",
            "attributes": {
                "uuid": {"string": f"{node}-{index}"},
                "memory": {"int": 80},
                "numa": {"int": index // 4},
            },
        }
        for index in range(DEVICES)
    ]
    return _sliced(node, {"driver": DRIVER, "devices": devices})


def _sliced(node: str, spec: Raw) -> Raw:
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    return {"metadata": {"name": node}, "spec": {"nodeName": node, "pool": pool} | spec}


def _plain(nodes: int) -> list[Raw]:
    return [_slice(_name(number)) for number in range(nodes)]


def _partitionable(nodes: int) -> list[Raw]:
    """Eight H100 a node, of which every profile is offered at every place, as the catalogue has."""
    command = (sys.executable, "-m", "dryrack", "hardware", "show", "p5.48xlarge")
    options = ("--mig", "-o", "json", "--node", "NODE")
    done = subprocess.run((*command, *options), capture_output=True, text=True, check=True)
    items = json.loads(done.stdout)["items"]
    # Without labels and owners, so that no publisher deletes them.
    gpus = json.dumps(
        [
            {"metadata": {"name": each["metadata"]["name"]}, "spec": each["spec"]}
            for each in items
            if each["spec"]["driver"] == "gpu.nvidia.com"
        ]
    )
    return [each for n in range(nodes) for each in json.loads(gpus.replace("NODE", _name(n)))]


LOADS = (
    Load("500 nodes, 1,000 pods", 500, 1_000, (_ONE,)),
    Load("500 nodes, 4,000 pods", 500, 4_000, (_ONE,)),
    Load("matchAttribute over 4", 500, 1_000, (_FOUR_ALIKE,)),
    Load("333 gangs of 3", 500, 999, (_ONE,), gang=3),
    Load("5,000 nodes, 5,000 pods", 5_000, 5_000, (_ONE,)),
    Load("dynamic MIG, 2,000 pods", 500, 2_000, tuple(map(_profile, _PROFILES)), _partitionable),
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.schedulers")
    parser.add_argument("loads", nargs="*", type=int, help="which, counted from 1; all if none")
    parser.add_argument("--scale", type=float, default=1.0, help="a part of the nodes and pods")
    parser.add_argument("--only", choices=("kube", "attached", "embedded"), help="one side")
    given = parser.parse_args()
    table = Table(title="Schedulers, pods per second", title_justify="left", box=None)
    for heading in ("load", "kube-scheduler", "dryrack there", "ratio", "embedded", "ratio", "met"):
        table.add_column(heading, justify="left" if heading == "load" else "right")
    console = Console(width=None if sys.stdout.isatty() else 140)
    for number, each in enumerate(LOADS, 1):
        if given.loads and number not in given.loads:
            continue
        table.add_row(each.name, *_row(each.scaled(given.scale), given.only))
        console.print(table)
    return 0


def _row(each: Load, only: str | None) -> tuple[str, ...]:
    """No scheduler has native gangs: kube-scheduler sees pods, as without its alpha gates."""
    kube = _on_real(each, attached=False) if only in (None, "kube") else None
    attached = _on_real(each, attached=True) if only in (None, "attached") else None
    embedded = _on_embedded(each) if only in (None, "embedded") else None
    met = [
        kube is None or rate is None or rate >= goal * kube
        for rate, goal in ((attached, GOAL_ATTACHED), (embedded, GOAL_EMBEDDED))
    ]
    return (
        _shown(kube),
        _shown(attached),
        _ratio(attached, kube),
        _shown(embedded),
        _ratio(embedded, kube),
        "yes" if all(met) else "no",
    )


def _shown(rate: float | None) -> str:
    return "" if rate is None else f"{rate:.0f}"


def _ratio(rate: float | None, kube: float | None) -> str:
    return "" if rate is None or not kube else f"{rate / kube:.1f}x"


def _on_real(each: Load, *, attached: bool) -> float:
    with throw_away(Options()) as bed:
        if attached:
            start_scheduler(bed, "--name", OURS, "--no-leader-elect")
        scheduler = OURS if attached else "default-scheduler"
        return asyncio.run(_measured(bed.plane.kubeconfig, each, scheduler))


def _on_embedded(each: Load) -> float:
    with tempfile.TemporaryDirectory() as scratch:
        options = ("--without", "kubelet")
        with ServedPlane(Path(scratch), options, name="schedulers") as plane:
            return asyncio.run(_measured(plane.kubeconfig, each, "default-scheduler"))


async def _measured(kubeconfig: Path, each: Load, scheduler: str) -> float:
    """Pods per second, from the first create to the last binding."""
    async with load.talking_to(kubeconfig) as client:
        await _furnish(client, each)
        listing = await client.list(PODS)
        watching = asyncio.create_task(_all_bound(client, each.pods, listing.revision))
        pods = [_pod(each, number, scheduler) for number in range(each.pods)]
        began = time.perf_counter()
        await load.at_once(each.pods, lambda n: client.create(PODS, pods[n]))
        bound = await watching
        return bound / (time.perf_counter() - began)


async def _all_bound(client: Client, count: int, revision: str) -> int:
    """Waits until all pods have a node; as many as have one when the time is up."""
    bound: set[str] = set()
    try:
        async with asyncio.timeout(SECONDS_MAX):
            while len(bound) < count:
                revision = await _watched(client, bound, count, revision)
    except TimeoutError:
        Console(stderr=True).print(f"gave up: {len(bound)} of {count} pods bound")
    return len(bound)


async def _watched(client: Client, bound: set[str], count: int, revision: str) -> str:
    """Notes pods that have a node until all have one, or the watch ends; how far it came."""
    async with client.watch(PODS, revision=revision) as stream:
        async for event in stream:
            revision = event.object["metadata"]["resourceVersion"]
            if event.object.get("spec", {}).get("nodeName"):
                bound.add(event.object["metadata"]["name"])
            if len(bound) == count:
                break
    return revision


async def _furnish(client: Client, each: Load) -> None:
    for name, expression in CLASSES_BY_NAME.items():
        selectors = [{"cel": {"expression": expression}}]
        if not any(it["metadata"]["name"] == name for it in (await client.list(CLASSES)).items):
            made: Raw = {"metadata": {"name": name}, "spec": {"selectors": selectors}}
            await client.create(CLASSES, made)
    for number, devices in enumerate(each.claims):
        metadata = {"name": f"claim-{number}", "namespace": "default"}
        spec: Raw = {"spec": {"devices": devices}}
        await client.create(TEMPLATES, {"metadata": metadata, "spec": spec})
    await load.at_once(each.nodes, lambda n: _make_node(client, _name(n)))
    slices = each.slices(each.nodes)
    await load.at_once(len(slices), lambda n: client.create(SLICES, slices[n]))


async def _make_node(client: Client, name: str) -> None:
    there = {"cpu": "256", "memory": "1Ti", "pods": "250"}
    await client.create(NODES, {"metadata": {"name": name}})
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    status = {"capacity": there, "allocatable": there, "conditions": [ready]}
    await client.patch(
        NODES, name, {"status": status}, subresource="status", media_type=STRATEGIC_PATCH
    )


def _name(number: int) -> str:
    return f"node-{number:05}"


def _pod(each: Load, number: int, scheduler: str) -> Raw:
    template = f"claim-{number % len(each.claims)}"
    resources = {"requests": {"cpu": "100m", "memory": "64Mi"}, "claims": [{"name": "gpu"}]}
    spec = {
        "schedulerName": scheduler,
        # No kubelet renews the leases of these nodes.
        "tolerations": [{"operator": "Exists"}],
        "containers": [{"name": "c", "image": "i", "resources": resources}],
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": template}],
    }
    metadata: Raw = {"name": f"pod-{number}", "namespace": "default"}
    if each.gang:
        name = f"gang-{number // each.gang}"
        metadata["labels"] = {f"{_GANG}/name": name, f"{_GANG}/min-available": str(each.gang)}
    return {"metadata": metadata, "spec": spec}


if __name__ == "__main__":
    try:
        sys.exit(main())
    except GoBuildError as error:
        sys.exit(str(error))
