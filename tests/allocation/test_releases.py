"""Differences between releases and between gates."""

from __future__ import annotations

from typing import Any

import pytest
from tests.allocation.builders import (
    DRIVER,
    all_devices,
    allocator,
    claim,
    counters,
    device,
    devices,
    drawing,
    given,
    node,
    pool,
    refused,
    request,
    used,
)

from dryrack.allocation import (
    Allocated,
    AllocationError,
    DeviceId,
    Features,
    Outcome,
    Release,
)
from dryrack.base.errors import DryrackError
from dryrack.kinds.decode import decode
from dryrack.kinds.resource import DeviceClass

GPU_0 = DeviceId(DRIVER, "pool", "gpu-0")
BOTH = pytest.mark.parametrize("release", Release)


def shareable(name: str, memory: str, **policy: Any) -> Any:
    capacity = {"value": memory, **({"requestPolicy": policy} if policy else {})}
    return device(name, more={"allowMultipleAllocations": True, "capacity": {"memory": capacity}})


def asking(memory: str) -> Any:
    return request("r", capacity={"requests": {"memory": memory}})


def test_defaults_are_those_of_the_release() -> None:
    """Alpha gates are off, and so are fractional ranges, which need compatibility version 1.37."""
    assert not Features.defaults().list_type_attributes
    assert Features.defaults().consumable_capacity
    assert Features.defaults(Release.V1_36) == Features.defaults(Release.V1_37)
    assert not Features.defaults(Release.V1_37).fractional_capacity_range


def test_gates_go_by_the_names_that_kubernetes_uses() -> None:
    """One gate of two switches binding conditions off; a wrong name is an error."""
    off = Features.from_gates({"DRADeviceBindingConditions": False})

    assert not off.device_binding_and_status
    assert off.device_taints
    assert Features.from_gates({"DRAListTypeAttributes": True}).list_type_attributes
    with pytest.raises(DryrackError, match="unrecognized feature gate: DRATaints"):
        Features.from_gates({"DRATaints": True})


def test_distinct_devices_of_one_request_are_compared_since_1_37() -> None:
    """Up to 1.36 a device is only compared with the one before it."""
    offered = [device("a", numa=0), device("b", numa=1), device("c", numa=0)]
    rule = {"distinctAttribute": f"{DRIVER}/numa"}
    wanted = [claim(request("r", 3), constraints=[rule])]

    before = allocator(pool(offered), release=Release.V1_36)
    after = allocator(pool(offered), release=Release.V1_37)
    assert given(before.allocate(node(), wanted)) == [["a", "b", "c"]]
    assert refused(after.allocate(node(), wanted))


def test_all_devices_include_full_ones_since_1_37() -> None:
    """Up to 1.36 a device without enough capacity is not one of "all"."""
    offered = [shareable("gpu-0", "10"), shareable("gpu-1", "10")]
    held = {"other": used("gpu-0", shareID="share", consumedCapacity={"memory": "8"})}
    wanted = [
        claim(
            {
                **all_devices("r"),
                "exactly": {
                    **all_devices("r")["exactly"],
                    "capacity": {"requests": {"memory": "5"}},
                },
            }
        )
    ]

    before = allocator(pool(offered), held=held, release=Release.V1_36)
    after = allocator(pool(offered), held=held, release=Release.V1_37)
    assert given(before.allocate(node(), wanted)) == [["gpu-1"]]
    assert refused(after.allocate(node(), wanted))


def test_a_share_without_capacity_draws_once_since_1_37() -> None:
    """Up to 1.36 a share that consumes nothing is charged to the counters again."""
    more = {"allowMultipleAllocations": True}
    offered = [{**drawing("gpu-0", memory=6), **more}]
    held = {"other": used("gpu-0", shareID="share")}
    slices = pool(offered, sets=[counters(memory=10)])
    wanted = [claim(request("r"))]

    before = allocator(slices, held=held, release=Release.V1_36)
    assert refused(before.allocate(node(), wanted))
    after = allocator(slices, held=held, release=Release.V1_37)
    assert given(after.allocate(node(), wanted)) == [["gpu-0"]]


@pytest.mark.parametrize(("release", "written"), [(Release.V1_36, "2Ki"), (Release.V1_37, "2048")])
def test_amounts_are_rounded_up_to_a_step(release: Release, written: str) -> None:
    """A request between two steps consumes the higher one, since 1.37 written like the step."""
    limits = {"default": "512", "validRange": {"min": "512", "step": "512"}}
    outcome = allocator(pool([shareable("gpu-0", "4096", **limits)]), release=release).allocate(
        node(), [claim(asking("1537"))]
    )

    assert isinstance(outcome, Allocated)
    [[result]] = [each.devices.results for each in outcome.results]
    assert str(result.consumed_capacity["memory"]) == written


def test_fractional_steps_came_with_1_37() -> None:
    """Tenths are rounded to whole numbers without the gate, and to tenths with it."""
    limits = {"default": "200m", "validRange": {"min": "200m", "max": "4", "step": "100m"}}
    slices = pool([shareable("gpu-0", "4", **limits)])
    wanted = [claim(asking("250m"))]
    on = Features.from_gates({"DRAFractionalCapacityRange": True}, Release.V1_37)
    outcomes = [
        allocator(slices, release=Release.V1_37, features=features).allocate(node(), wanted)
        for features in (None, on)
    ]

    assert [consumed_memory(each) for each in outcomes] == ["1", "300m"]


def consumed_memory(outcome: Outcome) -> str:
    assert isinstance(outcome, Allocated)
    [result] = outcome.results[0].devices.results
    return result.consumed_capacity["memory"].text


def test_amounts_that_cannot_be_held_are_an_error_since_1_37() -> None:
    """A request beyond an int64 stops the attempt; up to 1.36 the device is passed over."""
    limits = {"default": "1", "validRange": {"min": "1", "step": "2"}}
    slices = pool([shareable("gpu-0", "10", **limits)])
    wanted = [claim(asking("10e18"))]

    with pytest.raises(AllocationError, match="cannot be represented in the device's range"):
        allocator(slices, release=Release.V1_37).allocate(node(), wanted)


def test_errors_name_the_device_since_1_37() -> None:
    """And they say how to guard a selector."""
    wanted = [claim(request("r", select=f'device.attributes["{DRIVER}"].x == 1'))]
    with pytest.raises(AllocationError) as before:
        allocator(pool(devices(1)), release=Release.V1_36).allocate(node(), wanted)
    with pytest.raises(AllocationError) as after:
        allocator(pool(devices(1)), release=Release.V1_37).allocate(node(), wanted)

    assert str(before.value) == "claim claim: selector #0: CEL runtime error: no such key: x"
    assert f"selector #0 on device {GPU_0}: CEL runtime error" in str(after.value)
    assert "consider using CEL optional chaining" in str(after.value)


def configs(release: Release, requests: list[str]) -> list[tuple[str, ...]]:
    opaque = {"opaque": {"driver": DRIVER, "parameters": {"mode": "fast"}}}
    asked = claim(
        request("a"), request("b"), config=[{"requests": requests, **opaque}], name="claim"
    )
    outcome = allocator(pool(devices(2)), release=release).allocate(node(), [asked])
    assert isinstance(outcome, Allocated)
    return [config.requests for config in outcome.results[0].devices.config]


def test_a_configuration_for_several_requests_is_given_once_since_1_37() -> None:
    """Up to 1.36 it is repeated for each; since then one for all requests names none."""
    assert configs(Release.V1_36, ["a", "b"]) == [("a", "b"), ("a", "b")]
    assert configs(Release.V1_37, ["a", "b"]) == [()]
    assert configs(Release.V1_37, ["b"]) == [("b",)]


@BOTH
def test_configurations_of_a_class_come_first_and_once(release: Release) -> None:
    """Two requests of one class share its configuration."""
    opaque = {"opaque": {"driver": DRIVER, "parameters": {"of": "class"}}}
    gpu = decode({"metadata": {"name": "gpu"}, "spec": {"config": [opaque]}}, DeviceClass)

    class Never:
        def uuid(self) -> str:
            raise AssertionError("nothing is shared")

    own = {"opaque": {"driver": DRIVER, "parameters": {"of": "claim"}}}
    asked = claim(request("a"), request("b"), config=[own])
    serving = allocator(pool(devices(2)), classes=[gpu], release=release, chance=Never())
    outcome = serving.allocate(node(), [asked])

    assert isinstance(outcome, Allocated)
    config = outcome.results[0].devices.config
    assert [each.source for each in config] == ["FromClass", "FromClaim"]
    assert config[0].requests == (("a", "b") if release is Release.V1_36 else ())


def test_shares_get_identifiers_by_chance_and_in_order() -> None:
    """Every share has its own, and only what is given has any."""
    outcome = allocator(pool([shareable("gpu-0", "10")])).allocate(
        node(), [claim(asking("1"), {**asking("2"), "name": "s"})]
    )

    assert isinstance(outcome, Allocated)
    shares = [each.share_id for each in outcome.results[0].devices.results]
    assert shares == [f"00000000-0000-4000-8000-{number:012}" for number in (1, 2)]
