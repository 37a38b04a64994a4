"""Every cause that keeps a device from a request has a reason with its code and remedy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.allocation.builders import (
    DRIVER,
    NODE,
    all_devices,
    allocator,
    claim,
    counters,
    device,
    devices,
    drawing,
    node,
    pool,
    refused,
    request,
    slice_,
    used,
    way,
)

from dryrack.allocation import Code, Features

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.allocation import Reason
    from dryrack.kinds.resource import ResourceClaim, ResourceSlice

SELECT_B = f'device.attributes["{DRIVER}"].a == "b"'


def why(
    slices: Sequence[ResourceSlice], *claims: ResourceClaim, **settings: Any
) -> tuple[Reason, ...]:
    return refused(allocator(slices, **settings).allocate(node(), claims)).reasons


def of_device(reasons: Sequence[Reason], name: str = "gpu-0") -> Reason:
    [reason] = [each for each in reasons if each.device == f"{DRIVER}/pool/{name}"]
    return reason


def tainted() -> Any:
    return device("gpu-0", more={"taints": [{"key": "sick", "effect": "NoSchedule"}]})


def shareable(memory: str, **policy: Any) -> Any:
    capacity = {"value": memory, **({"requestPolicy": policy} if policy else {})}
    return device(
        "gpu-0", more={"allowMultipleAllocations": True, "capacity": {"memory": capacity}}
    )


def asking(memory: str, name: str = "memory") -> Any:
    return request("r", capacity={"requests": {name: memory}})


ROOT = {"matchAttribute": f"{DRIVER}/root"}
STEPS = {"default": "1", "validRange": {"min": "1", "max": "4"}}
CASES: dict[str, tuple[Any, Any, dict[str, Any], Code, str]] = {
    "in use by a known claim": (
        [device("gpu-0")],
        [request("r")],
        {"held": {"team/train": used("gpu-0")}},
        Code.IN_USE,
        "in use by claim team/train; free it",
    ),
    "in use by somebody": (
        [device("gpu-0")],
        [request("r")],
        {"held": {"": used("gpu-0")}},
        Code.IN_USE,
        "in use; free it",
    ),
    "not selected": (
        [device("gpu-0", a="a")],
        [request("r", select=SELECT_B)],
        {},
        Code.REQUEST_SELECTOR,
        "a is 'a', the selector requires 'b'; relax the selector",
    ),
    "tainted": (
        [tainted()],
        [request("r")],
        {},
        Code.TAINTED,
        "tainted sick:NoSchedule; tolerate the taint, or remove it",
    ),
    "capacity short": (
        [shareable("10Gi")],
        [asking("12Gi")],
        {},
        Code.CAPACITY_SHORT,
        "memory is short by 2Gi; request less, or free some",
    ),
    "capacity that it does not have": (
        [shareable("10Gi")],
        [asking("1", "cores")],
        {},
        Code.CAPACITY_ABSENT,
        "has no capacity cores; it has memory; request a capacity that it has",
    ),
    "capacity that its policy forbids": (
        [shareable("10", **STEPS)],
        [asking("5")],
        {},
        Code.CAPACITY_POLICY,
        "its request policy does not allow 5 of memory; request 1 to 4",
    ),
    "binding conditions switched off": (
        [device("gpu-0", more={"bindingConditions": ["Ready"]})],
        [request("r")],
        {"features": Features()},
        Code.GATE_OFF,
        (
            "has binding conditions, but their feature gates are off; "
            "enable DRADeviceBindingConditions and DRAResourceClaimDeviceStatus"
        ),
    ),
    "counters switched off": (
        [drawing("gpu-0", memory=1)],
        [request("r")],
        {"features": Features()},
        Code.GATE_OFF,
        (
            "consumes counters, but the feature gate of partitionable devices is off; "
            "enable DRAPartitionableDevices"
        ),
    ),
    "no attribute for a constraint": (
        [device("gpu-0")],
        [request("r")],
        {"constraints": [ROOT]},
        Code.CONSTRAINT,
        f"has no attribute {DRIVER}/root; give it the attribute",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_device_is_refused_for_a_reason(name: str) -> None:
    """A reason has a code, a fact and a remedy."""
    offered, requests, fields, code, message = CASES[name]
    settings = {key: value for key, value in fields.items() if key != "constraints"}
    asked = claim(*requests, constraints=fields.get("constraints", []))
    reason = of_device(why(pool(offered), asked, **settings))

    assert (reason.code, reason.message, reason.request) == (code, message, "r")


def test_the_request_comes_first_with_what_it_lacks() -> None:
    """Before the devices it is said how many are wanted and how many can be had."""
    first, *rest = why(pool([*devices(2), tainted() | {"name": "gpu-2"}]), claim(request("r", 4)))

    assert (first.code, first.lacking) == (Code.NOT_ENOUGH, 2)
    assert first.message == "needs 4 devices; 2 of 3 are available; 2 more needed"
    assert [reason.code for reason in rest] == [Code.TAINTED]


def test_only_devices_that_are_meant_are_counted() -> None:
    """A device in use that no selector matches is reported as not selected."""
    held = {"team/train": used("gpu-0")}
    offered = [device("gpu-0", a="a"), device("gpu-1", a="b")]
    first, *rest = why(pool(offered), claim(request("r", 2, select=SELECT_B)), held=held)

    assert first.fact == "needs 2 devices; 1 of 2 is available"
    assert [reason.code for reason in rest] == [Code.REQUEST_SELECTOR]


def test_counters_are_short_by_an_amount() -> None:
    """A draw of the pod itself differs from earlier draws."""
    parts = [drawing("gpu-0", memory=6), drawing("gpu-1", memory=6)]
    reasons = why(pool(parts, sets=[counters(memory=10)]), claim(request("a"), request("b")))

    reason = of_device(reasons, "gpu-1")
    assert reason.code is Code.COUNTER_SHORT
    assert reason.fact == "counter gpu/memory is short by 2"


def test_devices_chosen_for_another_request_are_told_as_such() -> None:
    """A device of the same pod is not reported as a device of others."""
    reasons = why(pool(devices(1)), claim(request("a")), claim(request("b"), name="two"))
    reason = of_device(reasons)

    had = "0 of 1 are available (1 chosen for other requests)"
    assert reasons[0].fact == f"needs 1 device; {had}"
    assert reason.code is Code.IN_USE
    assert reason.fact == "chosen for request a of claim claim"


def test_a_constraint_is_told_with_its_attribute() -> None:
    """A device with another value is refused because of the one chosen before it."""
    offered = [device("gpu-0", root="a"), device("gpu-1", root="b")]
    reason = of_device(why(pool(offered), claim(request("r", 2), constraints=[ROOT])), "gpu-1")

    assert reason.code is Code.CONSTRAINT
    assert reason.fact == f"{DRIVER}/root differs from that of a device chosen before"


def test_an_incomplete_pool_is_told_in_numbers() -> None:
    """Two of three slices, and a node without devices because of it."""
    of_pool = {"name": "pool", "generation": 1, "resourceSliceCount": 3}
    spec = {"driver": DRIVER, "pool": of_pool, "nodeName": NODE, "devices": devices(1)}
    reasons = why([slice_("a", spec), slice_("b", {**spec, "devices": []})], claim(request("r")))

    assert [reason.code for reason in reasons] == [Code.NO_DEVICES, Code.POOL_INCOMPLETE]
    assert reasons[1].device == f"{DRIVER}/pool"
    assert reasons[1].fact == "2 of 3 ResourceSlices exist"


def test_an_invalid_pool_is_told_and_is_an_error_of_the_node() -> None:
    """Kubernetes only says that there were such pools; we say which and why."""
    outcome = refused(
        allocator(pool([*devices(1), *devices(1)])).allocate(node(), [claim(request("r"))])
    )

    assert outcome.error == "invalid resource pools were encountered"
    [invalid] = [each for each in outcome.reasons if each.code is Code.POOL_INVALID]
    assert invalid.fact == "duplicate device name gpu-0"


def test_subrequests_are_told_one_by_one() -> None:
    """Every way to satisfy a request has its own reasons."""
    ways = [{"name": "big", **way(3)}, {"name": "small", **way(2)}]
    reasons = why(pool(devices(1)), claim({"name": "r", "firstAvailable": ways}))

    assert [each.request for each in reasons if not each.device] == ["r/big", "r/small"]


def test_the_limit_of_results_is_told() -> None:
    """A claim that fits on the node but not into its status says so."""
    ways = [{"name": "many", **way(20)}, {"name": "none", **way(1, select="false")}]
    asked = ({"name": name, "firstAvailable": ways} for name in ("a", "b"))
    reasons = why(pool(devices(64)), claim(*asked))

    [limit] = [each for each in reasons if each.code is Code.TOO_MANY_RESULTS]
    assert "limit of 32" in limit.fact


def test_all_of_nothing_is_told() -> None:
    """ "All" wants at least one."""
    reasons = why(pool(devices(1)), claim(request("r"), all_devices("all")))

    assert {each.request for each in reasons} == {"all"}


def test_devices_that_are_not_meant_by_all_are_told_as_such() -> None:
    """Nothing "fits, but not together" of what a selector does not let through."""
    everything = all_devices("all")
    everything["exactly"]["selectors"] = [{"cel": {"expression": SELECT_B}}]
    reasons = why(pool([device("gpu-0", a="a")]), claim(everything))

    assert of_device(reasons).code is Code.REQUEST_SELECTOR


def test_claims_that_only_wait_for_another_say_so() -> None:
    """One of two claims of a pod fits; it is not allocated alone, and has a reason."""
    good = claim(request("r"), name="good")
    bad = claim(request("r", 2), name="bad")
    reasons = why(pool(devices(2)), good, bad)

    [waiting] = [each for each in reasons if each.claim == "good"]
    assert waiting.code is Code.OTHER_CLAIM


def test_codes_are_words_with_hyphens() -> None:
    """Programs read the codes; they are lower case and never empty."""
    texts = [code.text for code in Code]

    assert len(set(texts)) == len(texts)
    assert all(text.replace("-", "").isalpha() and text.islower() for text in texts)
