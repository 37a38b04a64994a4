"""What a claim is given: what it asked for, of what is on offer, and prepared where it is used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from dryrack.kubeletplugin import VirtualDrivers, read_devices
from dryrack.scenario.invariants.at_rest import find_unprepared_claims, prepared_by
from dryrack.scenario.invariants.offers import LATE_SECONDS_MAX, Offers
from dryrack.scenario.invariants.violations import Invariant

if TYPE_CHECKING:
    from dryrack.kinds.raw import Raw

CLAIMS = "resourceclaims.resource.k8s.io"
SLICES = "resourceslices.resource.k8s.io"
DRIVER = "gpu.example.com"
FIRST = f"device.attributes['{DRIVER}'].index == 0"


def piece(*indexes: int, generation: int = 1, count: int = 1) -> Raw:
    pool = {"name": "n1", "generation": generation, "resourceSliceCount": count}
    devices = [{"name": f"gpu-{n}", "attributes": {"index": {"int": n}}} for n in indexes]
    spec = {"driver": DRIVER, "pool": pool, "nodeName": "n1", "devices": devices}
    return {"metadata": {"name": "slice", "uid": "slice"}, "spec": spec}


def claim(*devices: str, uid: str = "claim", users: tuple[str, ...] = (), **exactly: Any) -> Raw:
    results = [
        {"request": "gpu", "driver": DRIVER, "pool": "n1", "device": name} for name in devices
    ]
    status: Raw = {"allocation": {"devices": {"results": results}}} if results else {}
    status["reservedFor"] = [{"resource": "pods", "name": name, "uid": name} for name in users]
    request = {"name": "gpu", "exactly": {"deviceClassName": DRIVER, **exactly}}
    return {
        "metadata": {"name": "claim", "namespace": "default", "uid": uid},
        "spec": {"devices": {"requests": [request]}},
        "status": status,
    }


SELECTED: Raw = {"selectors": [{"cel": {"expression": FIRST}}]}


@pytest.mark.parametrize(
    ("given", "wrong"),
    [
        (claim("gpu-0"), []),
        (claim("gpu-0", **SELECTED), []),
        (claim("gpu-0", "gpu-1", count=2), []),
        (claim("gpu-0", "gpu-1", allocationMode="All"), []),
        (claim("gpu-1", **SELECTED), [Invariant.AS_REQUESTED]),
        (claim("gpu-0", "gpu-1", allocationMode="All", **SELECTED), [Invariant.AS_REQUESTED]),
        (claim("gpu-0", "gpu-1"), [Invariant.AS_REQUESTED]),
        (claim("gpu-0", count=2), [Invariant.AS_REQUESTED]),
        (claim("gpu-7"), [Invariant.ON_OFFER]),
    ],
)
def test_a_claim_gets_what_it_asks_for(given: Raw, wrong: list[Invariant]) -> None:
    """As many devices, and such ones, of those that are published."""
    offers = Offers()
    assert offers.see(SLICES, None, piece(0, 1), 0.0) == ()
    found = offers.see(CLAIMS, claim(), given, 1.0)
    assert [each.invariant for each in found] == wrong


@pytest.mark.parametrize(
    "after",
    [None, piece(1, generation=2), piece(0, 1, generation=2, count=2)],
    ids=["the slice is gone", "the device is lost", "the pool is published by half"],
)
def test_what_is_no_longer_on_offer_is_given_only_by_who_is_late(after: Raw | None) -> None:
    """A watch may be behind for a while, and no longer."""
    offers = Offers()
    offers.see(SLICES, None, piece(0, 1), 0.0)
    offers.see(SLICES, piece(0, 1), after, 100.0)
    soon = 100.0 + LATE_SECONDS_MAX
    late = 101.0 + LATE_SECONDS_MAX
    assert offers.see(CLAIMS, None, claim("gpu-0"), soon) == ()
    [found] = offers.see(CLAIMS, None, claim("gpu-0"), late)
    assert found.invariant is Invariant.ON_OFFER


def test_what_runs_is_prepared_and_nothing_else_is() -> None:
    """A pod that is Running has its claim prepared; a claim without devices is not."""
    drivers = VirtualDrivers(read_devices(["gpu:2"]))
    running = {"pod": {"metadata": {"name": "pod"}, "status": {"phase": "Running"}}}
    used = claim("gpu-0", users=("pod",))
    [missing] = find_unprepared_claims(prepared_by(drivers), running, [used])
    assert missing.invariant is Invariant.PREPARED
    drivers.prepare({"metadata": {"name": "n1"}}, [used], 0.0)
    prepared = prepared_by(drivers)
    assert list(find_unprepared_claims(prepared, running, [used])) == []
    [left] = find_unprepared_claims(prepared, {}, [claim()])
    assert left.invariant is Invariant.NO_LEAK
