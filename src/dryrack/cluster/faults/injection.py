"""
Faults of nodes, devices, pools and claims, as writes; a board has those of API and engines.

The faults of nodes and devices are annotations of the Node, which its kubelet or plugin reads. A
half-published pool and a leaked claim are written as a faulty driver or a user would write them.
"""

from __future__ import annotations

import math
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, assert_never

from dryrack.base.errors import DryrackError
from dryrack.base.text import hint
from dryrack.client.client import MERGE_PATCH, Selection
from dryrack.client.endpoints import CLAIMS, NODES, SLICES
from dryrack.client.errors import NotFoundError
from dryrack.cluster.faults.model import (
    ApiFault,
    ClaimLeak,
    DeviceFailure,
    EngineCrash,
    HalfGeneration,
    KubeletRestart,
    NodeFailure,
    NodeReboot,
    Subject,
    WatchLoss,
)
from dryrack.hardware import (
    DEVICE_FAULT,
    KUBELET_RESTART,
    NODE_FAULT,
    add_expiry,
    device_annotation,
    node_annotation,
)
from dryrack.kinds.expansion.pod_claims import DELETE_PROTECTION
from dryrack.kinds.paths import get

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from dryrack.base.ports import Chance
    from dryrack.client.client import Client
    from dryrack.client.timekeeping import Timekeeper
    from dryrack.cluster.faults.board import FaultBoard
    from dryrack.cluster.faults.model import Healing, Injection
    from dryrack.kinds.raw import Raw


class FaultTargetError(DryrackError):
    """A fault of an object that does not exist or cannot fail in this cluster."""


@dataclass(frozen=True, slots=True)
class FaultInjector:
    """Injects faults into one cluster; engines can fail only with a board."""

    client: Client
    clock: Timekeeper
    chance: Chance
    board: FaultBoard | None = None

    @classmethod
    def of_board(cls, client: Client, board: FaultBoard) -> FaultInjector:
        return cls(client, board.clock, board.chance, board)

    async def begin(self, injection: Injection) -> None:
        """Begin a fault, for as long as the injection says."""
        fault = injection.fault
        seconds = injection.seconds
        match fault:
            case ApiFault() | WatchLoss() | EngineCrash():
                if self.board is None:
                    raise FaultTargetError(
                        "faults of the API and of components need a cluster of dryrack up"
                    )
                await self.board.begin(fault, seconds)
            case NodeFailure():
                value = self._with_expiry(fault.value, seconds)
                for name in await self._nodes(fault.node):
                    await self._annotate(name, {node_annotation(fault.part): value})
            case NodeReboot():
                for name in await self._nodes(fault.node):
                    info = {"nodeInfo": {"bootID": self.chance.uuid()}}
                    await self._patch_node(name, {"status": info}, "status")
            case KubeletRestart():
                for name in await self._nodes(fault.node):
                    await self._annotate(name, {KUBELET_RESTART: self.chance.uuid()})
            case DeviceFailure():
                parts = (
                    self._with_expiry(part.strip(), seconds) for part in fault.value.split(";")
                )
                await self._fail_devices(fault, "; ".join(parts))
            case HalfGeneration():
                await self._half_publish(fault)
            case ClaimLeak():
                await self._leak(fault)
            case _:
                assert_never(fault)

    async def end(self, healing: Healing) -> None:
        """End the faults that `healing` selects."""
        if self.board is not None:
            self.board.end(healing)
        if healing.subject not in (Subject.ALL, Subject.NODE, Subject.DEVICE):
            return
        for node in (await self.client.list(NODES)).items:
            annotations = get(node["metadata"], "annotations", {})
            gone = [key for key in annotations if _is_meant(healing, node["metadata"]["name"], key)]
            if gone:
                with suppress(FaultTargetError):
                    await self._annotate(node["metadata"]["name"], dict.fromkeys(gone))

    def _with_expiry(self, value: str, seconds: float | None) -> str:
        return value if seconds is None else add_expiry(value, self.clock.now() + seconds)

    async def _nodes(self, pattern: str) -> list[str]:
        names = [each["metadata"]["name"] for each in (await self.client.list(NODES)).items]
        found = [name for name in names if fnmatchcase(name, pattern)]
        if not found:
            raise FaultTargetError(f"no node {pattern!r}; {hint(pattern, names)}")
        return found

    async def _annotate(self, node: str, annotations: Mapping[str, str | None]) -> None:
        await self._patch_node(node, {"metadata": {"annotations": dict(annotations)}})

    async def _patch_node(self, node: str, patch: Raw, subresource: str = "") -> None:
        try:
            await self.client.patch(
                NODES, node, patch, subresource=subresource, media_type=MERGE_PATCH
            )
        except NotFoundError:
            raise FaultTargetError(f"node {node!r} no longer exists") from None

    async def _fail_devices(self, fault: DeviceFailure, value: str) -> None:
        nodes = {*await self._nodes(fault.node)}
        is_one = nodes == {fault.node}
        of_node = Selection(fields=f"spec.nodeName={fault.node}") if is_one else Selection()
        devices = {
            (each["spec"]["nodeName"], device["name"])
            for each in (await self.client.list(SLICES, of_node)).items
            for device in get(each["spec"], "devices", ())
            if each["spec"].get("nodeName") in nodes
        }
        # One that is lost is known by its fault alone.
        devices |= {
            (node["metadata"]["name"], key.removeprefix(DEVICE_FAULT))
            for node in (await self.client.list(NODES)).items
            for key in get(node["metadata"], "annotations", {})
            if key.startswith(DEVICE_FAULT) and node["metadata"]["name"] in nodes
        }
        meant = [each for each in sorted(devices) if fnmatchcase(each[1], fault.device)]
        if not meant:
            what = f"{fault.node}/{fault.device}"
            raise FaultTargetError(f"no device {what!r}; {hint(what, map('/'.join, devices))}")
        chosen = self._share(meant, fault.share)
        by_node: dict[str, dict[str, str | None]] = defaultdict(dict)
        for node, device in chosen:
            by_node[node][device_annotation(device)] = value
        for node, faults in sorted(by_node.items()):
            await self._annotate(node, faults)

    def _share(self, devices: list[tuple[str, str]], share: float) -> list[tuple[str, str]]:
        """Return this share of the devices, chosen at random; at least one."""
        if share >= 1:
            return devices
        ordered = sorted((self.chance.uuid(), each) for each in devices)
        return [each for _, each in ordered[: math.ceil(share * len(devices))]]

    async def _half_publish(self, fault: HalfGeneration) -> None:
        pools: dict[tuple[str, str], Raw] = {}
        for each in (await self.client.list(SLICES)).items:
            spec = each["spec"]
            is_meant = fnmatchcase(spec.get("nodeName") or "", fault.node)
            if is_meant and fnmatchcase(spec["driver"], fault.driver):
                pools.setdefault((spec["driver"], spec["pool"]["name"]), each)
        if not pools:
            what = f"{fault.node}/{fault.driver}"
            raise FaultTargetError(f"no pool of {what!r}; see: kubectl get resourceslices")
        for each in pools.values():
            pool = each["spec"]["pool"]
            newer = {
                **pool,
                "generation": pool.get("generation", 0) + 1,
                "resourceSliceCount": pool["resourceSliceCount"] + 1,
            }
            await self.client.update(SLICES, {**each, "spec": {**each["spec"], "pool": newer}})

    async def _leak(self, fault: ClaimLeak) -> None:
        each, device = await self._free_device()
        request = {"name": "leaked", "exactly": {"deviceClassName": each["spec"]["driver"]}}
        metadata = {
            "name": fault.name,
            "namespace": fault.namespace,
            "finalizers": [DELETE_PROTECTION],
        }
        spec = {"devices": {"requests": [request]}}
        made = await self.client.create(CLAIMS, {"metadata": metadata, "spec": spec})
        result = {
            "request": "leaked",
            "driver": each["spec"]["driver"],
            "pool": each["spec"]["pool"]["name"],
            "device": device,
        }
        user = {"resource": "pods", "name": f"{fault.name}-user", "uid": self.chance.uuid()}
        status = {"allocation": {"devices": {"results": [result]}}, "reservedFor": [user]}
        await self.client.update(CLAIMS, made | {"status": status}, subresource="status")

    async def _free_device(self) -> tuple[Raw, str]:
        """
        Return a slice and the name of its first device that no claim has.

        Devices that share counters or capacity are left out.
        """
        taken = set(_taken((await self.client.list(CLAIMS)).items))
        for each in (await self.client.list(SLICES)).items:
            spec = each["spec"]
            for device in get(spec, "devices", ()):
                is_plain = not device.get("consumesCounters") and not device.get(
                    "allowMultipleAllocations"
                )
                if is_plain and (spec["driver"], spec["pool"]["name"], device["name"]) not in taken:
                    return each, device["name"]
        raise FaultTargetError("no device is free that a claim could keep")


def _taken(claims: Iterable[Raw]) -> Iterable[tuple[str, str, str]]:
    for claim in claims:
        allocation = get(claim, "status.allocation", {})
        for result in get(allocation, "devices.results", ()):
            yield result["driver"], result["pool"], result["device"]


def _is_meant(healing: Healing, node: str, key: str) -> bool:
    """Return whether an annotation of a node is a fault that `healing` ends."""
    if healing.subject is Subject.ALL:
        return key.startswith((NODE_FAULT, DEVICE_FAULT))
    if healing.subject is Subject.NODE:
        return key.startswith(NODE_FAULT) and fnmatchcase(node, healing.name)
    pattern, _, device = healing.name.partition("/")
    is_device = key.startswith(DEVICE_FAULT) and fnmatchcase(node, pattern)
    return is_device and fnmatchcase(key.removeprefix(DEVICE_FAULT), device or "*")
