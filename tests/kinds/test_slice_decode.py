"""Slices read with what they have in common kept once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.kinds.decode import decode
from dryrack.kinds.quantity import Quantity
from dryrack.kinds.resource import Counter, DeviceCapacity, ResourceSlice
from dryrack.kinds.slice_decode import SliceDecoder

if TYPE_CHECKING:
    from dryrack.kinds.raw import Raw

# One part may be read in two ways: an amount is a capacity here and a counter there.
AMOUNT = {"value": "40Gi"}
AMOUNTS = {"memory": AMOUNT}
MODEL = {"model": {"string": "X1"}, "serial": {"string": "7"}}


def slice_of(node: str, attributes: Raw) -> Raw:
    counters = [{"counterSet": "card", "counters": AMOUNTS}]
    device = {"attributes": attributes, "capacity": AMOUNTS, "consumesCounters": counters}
    devices = [device | {"name": name} for name in ("a", "b")]
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "gpu.example.com", "nodeName": node, "pool": pool, "devices": devices}
    return {"metadata": {"name": node}, "spec": spec}


def test_slices_read_as_they_would_alone() -> None:
    """The result does not depend on what was decoded before."""
    decoder = SliceDecoder()
    for raw in (slice_of("n1", MODEL), slice_of("n2", MODEL | {"serial": {"string": "8"}})):
        assert decoder.decode(raw) == decode(raw, ResourceSlice)
        (device, _) = decoder.decode(raw).spec.devices
        assert device.capacity["memory"] == DeviceCapacity(value=Quantity.parse("40Gi"))
        (consumption,) = device.consumes_counters
        assert consumption.counters["memory"] == Counter(value=Quantity.parse("40Gi"))


def test_what_documents_share_their_slices_share() -> None:
    """Whole parts, and single attributes of parts that differ elsewhere."""
    decoder = SliceDecoder()
    one = decoder.decode(slice_of("n1", MODEL)).spec.devices
    other = decoder.decode(slice_of("n2", MODEL | {"serial": {"string": "8"}})).spec.devices
    assert one[0].attributes is one[1].attributes
    assert one[0].capacity is other[0].capacity
    assert one[0].attributes["model"] is other[0].attributes["model"]
    assert one[0].attributes["serial"] != other[0].attributes["serial"]


def test_a_slice_that_is_not_regular_reads_as_it_would_alone() -> None:
    """Nulls stand for what is not set."""
    raw = slice_of("n1", {"model": {"string": "X1", "int": None}})
    raw["spec"]["devices"].append({"name": "c", "attributes": None, "capacity": None})
    assert SliceDecoder().decode(raw) == decode(raw, ResourceSlice)
    bare = {"metadata": {"name": "x"}, "spec": {"devices": None}}
    assert SliceDecoder().decode(bare) == decode(bare, ResourceSlice)
    assert SliceDecoder().decode({"metadata": {}}) == decode({"metadata": {}}, ResourceSlice)
