"""An inventory that uses all that a slice can say."""

from __future__ import annotations

from dryrack.hardware.inventory import (
    Assignment,
    Batch,
    EveryNode,
    Inventory,
    Origin,
    PerDevice,
    SelectedNodes,
    SourceKind,
    ThisNode,
)
from dryrack.kinds.core import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from dryrack.kinds.quantity import Quantity
from dryrack.kinds.resource import (
    CapacityRequestPolicy,
    CapacityRequestPolicyRange,
    Counter,
    CounterSet,
    Device,
    DeviceAttribute,
    DeviceCapacity,
    DeviceCounterConsumption,
    DeviceTaint,
)

DRIVER = "gpu.example.com"
TERM = NodeSelectorTerm(
    match_expressions=(NodeSelectorRequirement(key="gpu", operator="In", values=("yes",)),)
)
SELECTOR = NodeSelector(node_selector_terms=(TERM,))
SLICES_OF_A_NODE = 7
SLICES_OF_THE_CLUSTER = 3


def capacity(text: str) -> DeviceCapacity:
    return DeviceCapacity(value=Quantity.parse(text))


# Quantities and times are not in the form in which a server writes them.
FULL = Device(
    name="full",
    attributes={
        "number": DeviceAttribute(int_value=3),
        "flag": DeviceAttribute(bool_value=False),
        "text": DeviceAttribute(string_value="x"),
        "other.example.com/version": DeviceAttribute(version_value="1.2.3"),
    },
    capacity={
        "memory": DeviceCapacity(
            value=Quantity.parse("0.5Gi"),
            request_policy=CapacityRequestPolicy(
                default=Quantity.parse("0.125Gi"),
                valid_range=CapacityRequestPolicyRange(
                    min=Quantity.parse("64Mi"),
                    max=Quantity.parse("512Mi"),
                    step=Quantity.parse("65536Ki"),
                ),
            ),
        ),
        "share": capacity("1.5"),
        "big": capacity("1E3"),
    },
    allow_multiple_allocations=True,
    taints=(
        DeviceTaint(key="now", value="v", effect="NoSchedule"),
        DeviceTaint(key="then", effect="NoExecute", time_added="2026-01-01T02:00:00.75+01:00"),
    ),
    binds_to_node=True,
    binding_conditions=("example.com/ready",),
    binding_failure_conditions=("example.com/failed",),
)
CARDS = tuple(
    CounterSet(name=f"card-{n}", counters={"memory": Counter(value=Quantity.parse("80Gi"))})
    for n in range(9)
)
PARTITIONS = tuple(
    Device(
        name=f"part-{n}",
        consumes_counters=(
            DeviceCounterConsumption(
                counter_set=f"card-{n}",
                counters={"memory": Counter(value=Quantity.parse("40960Mi"))},
            ),
        ),
    )
    for n in range(9)
)
SCATTERED = (
    Device(name="here", node_name="node-0"),
    Device(name="everywhere", all_nodes=True),
    Device(name="there", node_selector=SELECTOR),
)
BATCHES = (
    Batch(DRIVER, "", ThisNode(), (FULL,)),
    Batch(DRIVER, "parts", ThisNode(), PARTITIONS, CARDS),
    Batch(DRIVER, "many", ThisNode(), tuple(Device(name=f"m-{n}") for n in range(300))),
    Batch(DRIVER, "san", EveryNode(), (Device(name="nvme"),)),
    Batch(DRIVER, "rack", SelectedNodes(SELECTOR), (Device(name="switch"),)),
    Batch(DRIVER, "scattered", PerDevice(), SCATTERED),
)
EVERYTHING = Inventory(
    assignments=tuple(
        Assignment(Origin(SourceKind.CONFIG_MAP, "config", f"mapping-{number}"), (TERM,), (batch,))
        for number, batch in enumerate(BATCHES)
    )
)
