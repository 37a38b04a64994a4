"""The smallest change that would help, where amounts and not devices are what is lacking."""

from __future__ import annotations

from typing import Any

import pytest
from tests.allocation.builders import Counting

from dryrack.kinds.catalog import Typed, typed
from dryrack.kinds.documents import read
from dryrack.placement import Settings, World, explain_claim, what_if

WORLD = """
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: one}
spec:
  driver: gpu.example.com
  nodeName: one
  pool: {name: one, generation: 1, resourceSliceCount: 1}
  devices:
  - name: gpu-0
    allowMultipleAllocations: true
    attributes: {model: {string: small}}
    capacity: {memory: {value: 10Gi, requestPolicy: POLICY}}
  - name: gpu-1
    attributes: {model: {string: large}}
    taints: [{key: sick, effect: NoSchedule}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: x}
spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu, ASK}}]}}
"""
NONE = "null"
VALUES = "{default: 2Gi, validValues: [2Gi, 4Gi, 8Gi]}"
RANGE = "{default: 2Gi, validRange: {min: 2Gi, max: 8Gi, step: 2Gi}}"
SMALL = (
    "selectors: [{cel: {expression: \"device.attributes['gpu.example.com'].model == 'small'\"}}]"
)


def world(ask: str, policy: str = NONE, more: str = "") -> World:
    return of_text(WORLD.replace("ASK", ask).replace("POLICY", policy) + more)


def of_text(text: str) -> World:
    objects = []
    for document in read(text, "f.yaml").documents:
        found = typed(document)
        assert isinstance(found, Typed), found
        objects.append(found.object)
    return World.of(objects)


def explained(ask: str, policy: str = NONE) -> Any:
    return explain_claim(world(ask, policy), "x", Settings(chance=Counting()))


@pytest.mark.parametrize(
    ("ask", "policy", "helps"),
    [
        (
            "capacity: {requests: {memory: 20Gi}}",
            NONE,
            "lower memory from 20Gi to 10Gi in request r",
        ),
        (
            "capacity: {requests: {memory: 9Gi}}",
            VALUES,
            "lower memory from 9Gi to 8Gi in request r",
        ),
        ("capacity: {requests: {memory: 9Gi}}", RANGE, "lower memory from 9Gi to 8Gi in request r"),
        ("capacity: {requests: {cores: 1}}", NONE, "remove capacity cores from request r"),
    ],
)
def test_less_of_a_capacity_is_proposed(ask: str, policy: str, helps: str) -> None:
    """As much as the device has or allows is asked for, and no less."""
    assert helps in explained(f"{ask}, {SMALL}", policy).helps


@pytest.mark.parametrize(
    ("policy", "allowed"),
    [(VALUES, "2Gi or 4Gi or 8Gi"), (RANGE, "2Gi to 8Gi, in steps of 2Gi")],
)
def test_the_amounts_that_a_policy_allows_are_named(policy: str, allowed: str) -> None:
    """The fact lists the capacities of the device."""
    (story,) = explained("capacity: {requests: {memory: 9Gi}}", policy).nodes

    assert f"request {allowed}" in [each.remedy for each in story.obstacles]


def test_a_device_like_one_that_is_selected_is_proposed() -> None:
    """Another device like the tainted one would do; one like the first of the slice would not."""
    large = SMALL.replace("small", "large")

    assert "add a device like gpu.example.com/one/gpu-1" in explained(large).helps


def test_a_device_for_the_closest_node_is_proposed_first() -> None:
    """The last node lacks one device; slices of other drivers on the nodes before are no help."""
    slices = [
        f"""---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {{name: {driver}-{node}}}
spec:
  driver: {driver}
  nodeName: {node}
  pool: {{name: {node}, generation: 1, resourceSliceCount: 1}}
  devices: [{", ".join(f"{{name: d-{number}}}" for number in range(count))}]
"""
        for node, count in (("a", 2), ("b", 2), ("c", 3))
        for driver in ("gpu.example.com", "nic.example.com", "cpu.example.com")
    ]
    nodes = "".join(
        f"---\napiVersion: v1\nkind: Node\nmetadata: {{name: {name}}}\n" for name in ("a", "b", "c")
    )
    asked = """---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
spec: {selectors: [{cel: {expression: 'device.driver == "gpu.example.com"'}}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: x}
spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu, count: 4}}]}}
"""
    story = explain_claim(
        of_text("".join(slices) + nodes + asked), "x", Settings(chance=Counting())
    )

    assert "add a device like gpu.example.com/c/d-0" in story.helps


def test_who_has_devices_already_is_mentioned() -> None:
    """An answer without allocations is not silence."""
    results = "[{request: r, driver: gpu.example.com, pool: one, device: gpu-0}]"
    status = f"status: {{allocation: {{devices: {{results: {results}}}}}}}\n"
    outcome = what_if(world(SMALL, more=status), Settings(chance=Counting()))

    assert (outcome.given, outcome.refused) == ((), ())
    assert outcome.notes[-1] == "claim default/x is allocated already"


SHARED = """
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: one}
spec:
  driver: net.example.com
  nodeName: one
  pool: {name: one, generation: 1, resourceSliceCount: 1}
  devices:
  - name: nic-0
    allowMultipleAllocations: true
    capacity: {bandwidth: {value: 100G, requestPolicy: POLICY}}
"""
NIC = """---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: NAME}
spec:
  devices:
    requests:
    - name: r
      exactly: {deviceClassName: gpu, capacity: {requests: {bandwidth: 60G}}}
"""


@pytest.mark.parametrize(
    ("policy", "amount"),
    [
        ("null", "40G"),
        ("{default: 1G, validRange: {min: 1G}}", "40G"),
        ("{default: 1G, validRange: {min: 10G, step: 15G}}", "25G"),
        ("{default: 1G, validRange: {min: 10G, step: 25G}}", "35G"),
        ("{default: 1G, validValues: [1G, 25G, 60G]}", "25G"),
    ],
)
def test_as_much_as_is_left_of_a_shared_device_is_proposed(policy: str, amount: str) -> None:
    """If another claim has 60G of 100G, the smallest change asks for the rest."""
    text = (
        SHARED.replace("POLICY", policy) + NIC.replace("NAME", "other") + NIC.replace("NAME", "x")
    )
    story = explain_claim(of_text(text), "x", Settings(chance=Counting()))

    assert story.helps[0] == f"lower bandwidth from 60G to {amount} in request r"


def test_the_capacities_that_exist_are_named_and_the_right_name_is_proposed() -> None:
    """A device names its own capacities without its domain."""
    story = explained("capacity: {requests: {gpu.example.com/memory: 2Gi}}, " + SMALL)
    (node,) = story.nodes
    facts = [each.fact for each in node.obstacles]

    assert "has no capacity gpu.example.com/memory; it has memory" in facts
    assert story.helps[0] == "use capacity memory instead of gpu.example.com/memory in request r"


def test_one_condition_is_dropped_and_not_the_whole_selector() -> None:
    """The conditions that the device meets stay."""
    domain = "device.attributes['gpu.example.com']"
    both = f"{domain}.model == 'small' && has({domain}.fast)"
    story = explained(f'selectors: [{{cel: {{expression: "{both}"}}}}]')

    assert story.helps[0] == f"remove has({domain}.fast) from the selector of request r"
