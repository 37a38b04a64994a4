"""
The claims that are prepared on one node: the DRA manager of a kubelet.

A claim is prepared once for all its pods, and unprepared when the last of them has ended. Each
state change is written to a checkpoint with the format of the kubelet, so that the claims of pods
that vanish while dryrack does not run are unprepared after the next start.
"""

from __future__ import annotations

import json
import zlib
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dryrack.base.errors import DryrackError
from dryrack.kinds.paths import get
from dryrack.kubelet.instance import CallError, ClaimReference, PreparedDevice

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from pathlib import Path

    from dryrack.kinds.raw import Raw
    from dryrack.kubelet.registration import Registrations

CHECKPOINT = "dra_manager_state"
_PREPARE = "NodePrepareResources"
_UNPREPARE = "NodeUnprepareResources"


class CheckpointError(DryrackError):
    """The checkpoint is damaged or cannot be written."""


@dataclass(slots=True, eq=False)
class ClaimInfo:
    """A claim as the kubelet of a node knows it."""

    reference: ClaimReference
    # The drivers of the claim, each with the operations that its devices do not need.
    drivers: Mapping[str, frozenset[str]]
    pods: set[str] = field(default_factory=set)
    devices: dict[str, tuple[PreparedDevice, ...]] = field(default_factory=dict)
    is_prepared: bool = False
    is_unpreparing: bool = False

    def needs(self, operation: str) -> tuple[str, ...]:
        """Return the drivers that the kubelet calls for an operation."""
        return tuple(name for name, skips in self.drivers.items() if not skips & {operation, "*"})


class NodeClaims:
    """The prepared claims of one node; only one task changes the state of a pod at a time."""

    def __init__(self, directory: Path, registrations: Registrations) -> None:
        self._checkpoint = directory / CHECKPOINT
        self._registrations = registrations
        self._claims: dict[tuple[str, str], ClaimInfo] = {}

    def load(self) -> None:
        """Read the checkpoint; raise `CheckpointError` if it is damaged."""
        if not self._checkpoint.exists():
            return
        try:
            outer = json.loads(self._checkpoint.read_text())
            text = outer["Data"]
            if zlib.crc32(text.encode()) != outer["Checksum"]:
                raise ValueError("the checksum differs")
            entries = json.loads(text)["ClaimInfoStateList"] or ()
            infos = [_read_info(each) for each in entries]
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise CheckpointError(
                f"{self._checkpoint}: damaged checkpoint: {error}; to forget the prepared claims "
                "of the node, delete the file"
            ) from None
        self._claims = {(e.reference.namespace, e.reference.name): e for e in infos}

    @property
    def infos(self) -> Collection[ClaimInfo]:
        return self._claims.values()

    def by_uid(self, uid: str) -> ClaimInfo | None:
        return next((each for each in self._claims.values() if each.reference.uid == uid), None)

    async def prepare(self, pod: str, claims: Sequence[Raw]) -> None:
        """
        Prepare the claims of a pod; raise `CallError` with the text of the kubelet.

        Nothing is noted before all drivers are known to be registered, so that a pod that cannot
        start can be deleted.
        """
        wanted = [_new_info(claim) for claim in claims]
        instances = {
            driver: self._instance(driver) for each in wanted for driver in each.needs(_PREPARE)
        }
        new: list[ClaimInfo] = []
        for each in wanted:
            reference = each.reference
            known = self._claims.setdefault((reference.namespace, reference.name), each)
            if known.reference.uid != reference.uid:
                raise CallError(
                    f"old ResourceClaim with same name {reference.name} and different UID "
                    f"{known.reference.uid} still exists (previous pod force-deleted?!)"
                )
            if known.is_unpreparing:
                raise CallError(f"ResourceClaim {reference.name} is being unprepared")
            known.pods.add(pod)
            if not known.is_prepared:
                new.append(known)
        self._save()
        batches: dict[str, list[ClaimInfo]] = defaultdict(list)
        for each in new:
            for driver in each.needs(_PREPARE):
                batches[driver].append(each)
        for driver, infos in batches.items():
            prepared = await instances[driver].prepare([each.reference for each in infos])
            for each in infos:
                # The answer replaces that of an earlier call.
                each.devices[driver] = prepared[each.reference.uid]
        for each in new:
            each.is_prepared = True
        self._save()

    async def unprepare(self, pod: str) -> None:
        """Unprepare the claims that only this pod uses; raise `CallError` if a driver fails."""
        last = []
        for each in self._claims.values():
            if pod not in each.pods:
                continue
            if len(each.pods) > 1:
                each.pods.discard(pod)
                continue
            each.is_unpreparing = True
            last.append(each)
        batches: dict[str, list[ClaimInfo]] = defaultdict(list)
        for each in last:
            for driver in each.needs(_UNPREPARE):
                batches[driver].append(each)
        for driver, infos in batches.items():
            await self._instance(driver).unprepare([each.reference for each in infos])
        for each in last:
            self._claims.pop((each.reference.namespace, each.reference.name), None)
        self._save()

    def _instance(self, driver: str) -> Any:
        instance = self._registrations.instance(driver)
        if instance is None:
            raise CallError(f"DRA driver {driver} is not registered")
        return instance

    def _save(self) -> None:
        data = json.dumps(
            {
                "kind": "DRACheckpoint",
                "apiVersion": "checkpoint.dra.kubelet.k8s.io/v1",
                "ClaimInfoStateList": [_write_info(each) for each in self._claims.values()],
            }
        )
        text = json.dumps({"Data": data, "Checksum": zlib.crc32(data.encode())})
        temporary = self._checkpoint.with_suffix(".tmp")
        try:
            temporary.write_text(text)
            temporary.replace(self._checkpoint)
        except OSError as error:
            raise CheckpointError(f"{self._checkpoint}: {error.strerror}") from None


def _new_info(claim: Raw) -> ClaimInfo:
    metadata = claim["metadata"]
    skips: dict[str, set[str]] = {}
    for result in get(claim, "status.allocation.devices.results", ()):
        own = set(get(result, "skipNodeOperations", ()))
        # All devices of a driver must skip an operation.
        skips[result["driver"]] = skips.get(result["driver"], own) & own
    reference = ClaimReference(metadata["namespace"], metadata["name"], metadata["uid"])
    return ClaimInfo(reference, {name: frozenset(each) for name, each in skips.items()})


def _write_info(info: ClaimInfo) -> Raw:
    return {
        "ClaimUID": info.reference.uid,
        "ClaimName": info.reference.name,
        "Namespace": info.reference.namespace,
        "PodUIDs": {uid: {} for uid in sorted(info.pods)},
        "DriverState": {
            driver: {
                "Devices": [_write_device(each) for each in info.devices.get(driver, ())],
                **({"SkipNodeOperations": sorted(skips)} if skips else {}),
            }
            for driver, skips in info.drivers.items()
        },
    }


def _write_device(device: PreparedDevice) -> Raw:
    return {
        "PoolName": device.pool,
        "DeviceName": device.device,
        "RequestNames": list(device.requests),
        "CDIDeviceIDs": list(device.cdi_ids),
        **({"ShareID": device.share_id} if device.share_id else {}),
    }


def _read_info(entry: Raw) -> ClaimInfo:
    states: Mapping[str, Raw] = entry["DriverState"]
    return ClaimInfo(
        ClaimReference(entry["Namespace"], entry["ClaimName"], entry["ClaimUID"]),
        {
            driver: frozenset(state.get("SkipNodeOperations", ()))
            for driver, state in states.items()
        },
        set(entry["PodUIDs"]),
        {driver: tuple(_read_devices(state.get("Devices"))) for driver, state in states.items()},
    )


def _read_devices(entries: Iterable[Raw] | None) -> Iterable[PreparedDevice]:
    for each in entries or ():
        yield PreparedDevice(
            each["PoolName"],
            each["DeviceName"],
            tuple(get(each, "RequestNames", ())),
            tuple(get(each, "CDIDeviceIDs", ())),
            each.get("ShareID", ""),
        )
