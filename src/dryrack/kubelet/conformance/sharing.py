"""Requirements for devices that several claims share (consumable capacity), and for partitions."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

from dryrack.kinds.paths import get
from dryrack.kinds.quantity import Quantity
from dryrack.kubelet.conformance.contract import (
    PREPARE,
    UNPREPARE,
    check_cdi,
    check_same,
    check_unprepared,
    requirement,
    show,
)
from dryrack.kubelet.conformance.report import NotMetError, SkippedError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dryrack.kinds.raw import Raw
    from dryrack.kubelet.conformance.bench import Bench, Key


@requirement("A share ID in a result is that of the allocation; it can be empty.")
async def share_ids_are_those_of_the_allocation(bench: Bench) -> None:
    device, published = await _shareable(bench)
    fields = _share(published)
    claim = await bench.claim(device, fields=(fields,))
    for each in (await bench.prepare(claim))[claim.uid]:
        if each.share_id not in ("", fields["shareID"]):
            raise NotMetError(
                f"{PREPARE} for {'/'.join(device)} with shareID {fields['shareID']}",
                f"share ID {each.share_id!r}",
            )


@requirement("Several claims have shares of a device, and each can end alone.")
async def shares_are_independent(bench: Bench) -> None:
    device, published = await _shareable(bench)
    kept = await bench.claim(device, fields=(_share(published),))
    ended = await bench.claim(device, fields=(_share(published),))
    sent = f"{PREPARE} for two claims with shares of {'/'.join(device)}"
    before = await bench.prepare(kept, ended)
    for claim in (kept, ended):
        check_cdi(bench, before[claim.uid], sent)
    await bench.unprepare(ended)
    sent = f"{sent}, {UNPREPARE} for one of them"
    check_unprepared(bench, before[ended.uid], ended, sent)
    check_cdi(bench, before[kept.uid], sent)
    check_same(before[kept.uid], (await bench.prepare(kept))[kept.uid], sent)


@requirement("A claim can have two shares of one device.")
async def a_claim_has_two_shares_of_a_device(bench: Bench) -> None:
    device, published = await _shareable(bench)
    shares = (_share(published), _share(published))
    claim = await bench.claim(device, device, fields=shares)
    devices = (await bench.prepare(claim))[claim.uid]
    sent = f"{PREPARE} for a claim with two shares of {'/'.join(device)}"
    check_cdi(bench, devices, sent)
    if not {e.share_id for e in devices} <= {"", *(e["shareID"] for e in shares)}:
        raise NotMetError(sent, f"{show(devices)} with share IDs {[e.share_id for e in devices]}")


@requirement("A partition of a device can be prepared.")
async def partitions_can_be_prepared(bench: Bench) -> None:
    published = await bench.read_published()
    partitions = [key for key, each in published.items() if each.get("consumesCounters")]
    if not partitions:
        raise SkippedError("the driver publishes no partitions")
    # The last one is mostly the smallest.
    for device in (partitions[0], partitions[-1]):
        claim = await bench.claim(device)
        devices = (await bench.prepare(claim))[claim.uid]
        check_cdi(bench, devices, f"{PREPARE} for partition {'/'.join(device)}")
        await bench.unprepare(claim)


async def _shareable(bench: Bench) -> tuple[Key, Raw]:
    """Return a device that two claims can share."""
    problem = "the driver publishes no devices with allowMultipleAllocations"
    for key, each in (await bench.read_published()).items():
        if not each.get("allowMultipleAllocations"):
            continue
        capacity = get(each, "capacity", {})
        if all(_is_enough_for_two(policy) for policy in capacity.values()):
            return key, each
        problem = "the capacity of each device is enough for only one share"
    raise SkippedError(problem)


def _smallest(capacity: Raw) -> str:
    """Return the smallest amount of a capacity that a share can have."""
    policy = get(capacity, "requestPolicy", {})
    amounts = [
        get(policy, "validRange.min", ""),
        *get(policy, "validValues", ()),
        get(policy, "default", ""),
    ]
    return str(next((each for each in amounts if each), "1"))


def _is_enough_for_two(capacity: Raw) -> bool:
    amount = Quantity.parse(_smallest(capacity))
    return amount + amount <= Quantity.parse(str(capacity["value"]))


def _share(device: Raw) -> Mapping[str, Any]:
    """Return the fields of a result that consumes the least of a device."""
    consumed = {name: _smallest(each) for name, each in get(device, "capacity", {}).items()}
    return {"shareID": str(uuid.uuid4()), **({"consumedCapacity": consumed} if consumed else {})}
