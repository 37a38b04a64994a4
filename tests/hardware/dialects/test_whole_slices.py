"""Everything that a slice of the API can say, and everything that is put right on the way."""

from __future__ import annotations

import pytest
from tests.hardware.dialects.examples import config, document, node

from dryrack.hardware.config_formats import (
    read_config,
    read_config_map,
    read_dra_config,
    read_overlay,
)
from dryrack.hardware.inventory import (
    EveryNode,
    Inventory,
    PerDevice,
    SelectedNodes,
    ThisNode,
)
from dryrack.hardware.matching import Matcher, pools_of
from dryrack.kinds.quantity import Quantity

WHOLE = """\
- name: gpu-0
  attributes:
    model: {string: h100}
    cores: {int: 132}
    ecc: {bool: true}
    driverVersion: {version: 550.54.15}
    gpu.example.com/numa: {int: 1}
  capacity:
    memory:
      value: 80Gi
      requestPolicy:
        default: 8Gi
        validRange: {min: 1Gi, max: 80Gi, step: 1Gi}
  allowMultipleAllocations: true
  consumesCounters:
  - counterSet: board
    counters: {memory: {value: 80Gi}}
  taints:
  - {key: example.com/unhealthy, value: xid, effect: NoExecute, timeAdded: "2026-01-02T03:04:05Z"}
  bindsToNode: true
  bindingConditions: [example.com/attached]
  bindingFailureConditions: [example.com/broken]
"""

COUNTERS = """\
sharedCounters:
- name: board
  counters: {memory: {value: 640Gi}}
"""


BY_NAME = "{nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [a]}]}]}"
EACH_ELSEWHERE = f"""\
- {{name: gpu-0, nodeName: n1}}
- {{name: gpu-1, allNodes: true}}
- {{name: gpu-2, nodeSelector: {BY_NAME}}}
"""

GATED = """\
- name: cpu-0
  capacity: {cpu: {value: 8}}
  nodeAllocatableResourceMappings: {cpu: {capacityKey: cpu}}
"""
TWO_TERMS = """\
- name: gpu-0
  nodeSelector:
    nodeSelectorTerms:
    - matchExpressions: [{key: a, operator: Exists}]
    - matchExpressions: [{key: b, operator: Exists}]
"""


def test_nothing_of_a_whole_slice_is_lost() -> None:
    """Taints, counters, shared capacity and binding conditions arrive as they are written."""
    reading = read_config(config(WHOLE, slice_fields=COUNTERS), file="config.yaml")
    (batch,) = reading.assignments[0].batches
    (device,) = batch.devices

    assert not reading.problems
    assert batch.shared_counters[0].counters["memory"].value == Quantity.parse("640Gi")
    assert device.attributes["driverVersion"].version_value == "550.54.15"
    assert device.attributes["gpu.example.com/numa"].int_value == 1
    assert device.attributes["ecc"].bool_value is True
    policy = device.capacity["memory"].request_policy
    assert policy is not None
    assert policy.valid_range is not None
    assert policy.valid_range.step == Quantity.parse("1Gi")
    assert device.consumes_counters[0].counter_set == "board"
    assert device.taints[0].time_added == "2026-01-02T03:04:05Z"
    assert device.binds_to_node
    assert device.binding_conditions == ("example.com/attached",)
    assert device.binding_failure_conditions == ("example.com/broken",)
    assert [warning.line for warning in reading.warnings] == [8]


def test_a_slice_as_the_api_has_it_needs_no_warning() -> None:
    """A document in the form of the API has no warnings."""
    text = config("- name: gpu-0\n  attributes:\n    model: {string: t4}\n")

    assert not read_config(text, file="config.yaml").warnings


@pytest.mark.parametrize(
    ("fields", "devices", "reach"),
    [
        ("", "- name: gpu-0\n", ThisNode),
        ("nodeName: n7\n", "- name: gpu-0\n", ThisNode),
        ("allNodes: true\n", "- name: gpu-0\n", EveryNode),
        (f"nodeSelector: {BY_NAME}\n", "- name: gpu-0\n", SelectedNodes),
        ("perDeviceNodeSelection: true\n", EACH_ELSEWHERE, PerDevice),
    ],
)
def test_every_way_to_reach_devices(fields: str, devices: str, reach: type) -> None:
    """A slice says who reaches its devices; without a word it is the node that matched."""
    reading = read_config(config(devices, slice_fields=fields), file="config.yaml")

    assert not reading.problems
    assert isinstance(reading.assignments[0].batches[0].reach, reach)


@pytest.mark.parametrize(
    ("fields", "device", "line", "fix"),
    [
        ("", GATED, 11, "remove it, or enable the feature gate"),
        ("perDeviceNodeSelection: true\n", TWO_TERMS, 12, "keep one term"),
        ("pool: {name: a, generation: 7}\n", "- name: gpu-0\n", 8, "leave it out"),
        ("nodeName: n1\n", "- name: gpu-0\n", 8, "leave it out"),
    ],
    ids=["gate", "terms", "generation", "node"],
)
def test_what_the_api_takes_and_nobody_can_use_is_told(
    fields: str, device: str, line: int, fix: str
) -> None:
    """Fields behind gates, selectors that no scheduler reads, what the publisher decides."""
    text = config(device, slice_fields=fields)
    reading = read_config(text, file="config.yaml")

    assert not reading.problems
    assert (line, fix) in [(each.line, each.fix) for each in reading.warnings]


@pytest.mark.parametrize(
    ("written", "field", "value"),
    [
        ("{string: t4}", "string_value", "t4"),
        ("{String: t4}", "string_value", "t4"),
        ("{STRING: t4}", "string_value", "t4"),
        ("{stringValue: t4}", "string_value", "t4"),
        ("t4", "string_value", "t4"),
        ('"7.5"', "string_value", "7.5"),
        ("80Gi", "string_value", "80Gi"),
        ("132", "int_value", 132),
        ("{Int: 132}", "int_value", 132),
        ("true", "bool_value", True),
        ("{Version: 1.2.3}", "version_value", "1.2.3"),
    ],
)
def test_every_way_to_write_an_attribute(written: str, field: str, value: object) -> None:
    """A bare value, another case, the name in Go: one attribute of the type that was meant."""
    text = config(f"- name: gpu-0\n  attributes:\n    a: {written}\n")
    reading = read_config(text, file="config.yaml")
    attribute = reading.assignments[0].batches[0].devices[0].attributes["a"]

    assert getattr(attribute, field) == value
    assert bool(reading.warnings) == (written != "{string: t4}")


@pytest.mark.parametrize("written", ["80Gi", "{value: 80Gi}", "{Value: 80Gi}", "85899345920"])
def test_every_way_to_write_a_capacity(written: str) -> None:
    """A bare quantity is the value of a capacity."""
    text = config(f"- name: gpu-0\n  capacity:\n    memory: {written}\n")
    (device,) = read_config(text, file="config.yaml").assignments[0].batches[0].devices

    assert device.capacity["memory"].value == Quantity.parse("80Gi")


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("gpu.example.com", "gpu.example.com"),
        ("karpenter.sh/dra-kwok-driver", "karpenter.sh.dra-kwok-driver"),
        ("GPU.Example.com", "gpu.example.com"),
        ("my_gpu driver", "my-gpu-driver"),
        ("-gpu..example-.com.", "gpu.example.com"),
        ("///", "dra-driver"),
    ],
)
def test_every_way_to_write_a_driver(written: str, name: str) -> None:
    """A driver's name is put right by the rule of Karpenter's driver."""
    reading = read_config(config("- name: gpu-0\n", driver=f'"{written}"'), file="config.yaml")

    assert reading.assignments[0].batches[0].driver == name
    assert bool(reading.warnings) == (written != name)


def test_a_driver_is_stated_where_it_is_nearest() -> None:
    """A slice's own driver comes before the document's, and an option before both."""
    text = config("- name: gpu-0\n", slice_fields="driver: own.example.com\n")

    def driver(**options: str) -> str:
        reading = read_config(text, file="config.yaml", **options)
        return reading.assignments[0].batches[0].driver

    assert driver() == "own.example.com"
    assert driver(driver="asked.example.com") == "asked.example.com"


def test_with_a_driver_by_option_none_has_to_be_stated() -> None:
    """A driver from an option need not be in the document."""
    text = config("- name: gpu-0\n").replace("driver: gpu.example.com\n", "")

    assert not read_config(text, file="config.yaml", driver="a.example.com").problems


def test_keys_are_read_in_any_case() -> None:
    """Go's decoder ignores case, so documents may, too; a warning contains the spelling."""
    text = config("- Name: gpu-0\n").replace("mappings:", "Mappings:")
    reading = read_config(text, file="config.yaml")

    assert not reading.problems
    assert [(each.line, each.fix) for each in reading.warnings] == [
        (2, "write 'mappings'"),
        (9, "write 'name'"),
    ]


def test_fields_for_anchors_are_passed_over() -> None:
    """People keep what they repeat in a field of their own, and YAML repeats it."""
    text = "x-card: &card\n  model: {string: t4}\n" + config(
        "- {name: gpu-0, attributes: *card}\n- {name: gpu-1, attributes: *card}\n"
    )
    reading = read_config(text, file="config.yaml")

    assert not reading.problems
    assert len(reading.assignments[0].batches[0].devices) == 2


def test_a_label_selector_may_have_expressions() -> None:
    """`nodeSelector` is a label selector: labels and expressions must all hold."""
    text = config("- name: gpu-0\n").replace(
        "  nodeSelectorTerms:\n  - matchExpressions:\n"
        "    - {key: gpu, operator: In, values: [a]}\n",
        "  nodeSelector:\n    matchLabels: {gpu: a}\n"
        "    matchExpressions: [{key: zone, operator: NotIn, values: [x]}]\n",
    )
    inventory = Inventory(assignments=read_config(text, file="config.yaml").assignments)

    assert pools_of(inventory, node(labels={"gpu": "a"})).pools
    assert not pools_of(inventory, node(labels={"gpu": "a", "zone": "x"})).pools
    assert not pools_of(inventory, node(labels={"zone": "y"})).pools


OVERLAY = """\
apiVersion: karpenter.sh/v1alpha1
kind: NodeOverlay
metadata: {name: gpus}
spec:
  price: "1.50"
  requirements:
  - {key: cpus, operator: Gte, values: ["4"]}
  - {key: cpus, operator: Lte, values: ["8"]}
  resourceSlices:
  - spec: {driver: gpu.example.com, devices: [{name: gpu-0}]}
  - spec: {driver: nic.example.com, allNodes: true, devices: [{name: nic-0}]}
"""


def test_an_overlay_has_operators_of_its_own() -> None:
    """Karpenter compares with Gte and Lte, too; several drivers are several pools."""
    overlay = read_overlay(document(OVERLAY)).overlay
    assert overlay is not None
    matcher = Matcher(Inventory(overlays=(overlay,)))

    found = [cpus for cpus in range(12) if matcher.pools_of(node(labels={"cpus": str(cpus)})).pools]
    eight = node(labels={"cpus": "8"})

    assert found == [4, 5, 6, 7, 8]
    assert [pool.driver for pool in matcher.pools_of(eight).pools] == ["gpu.example.com"]
    assert [pool.name for pool in matcher.shared_pools(matcher.shared_of(eight)).pools] == ["gpus"]


DRA_CONFIG = """\
apiVersion: test.karpenter.sh/v1alpha1
kind: DRAConfig
metadata: {name: gpus}
spec:
  driver: gpu.example.com
  pools:
  - name: small
    nodeSelectorTerms:
    - matchFields: [{key: metadata.name, operator: In, values: [n1]}]
    - matchExpressions: [{key: gpu, operator: Exists}]
    resourceSlices:
    - devices: [{name: gpu-0, attributes: {model: {string: t4}}}]
    - devices: [{name: gpu-1}]
  - name: large
    nodeSelectorTerms:
    - matchExpressions: [{key: gpu, operator: In, values: [many]}]
    resourceSlices:
    - devices: [{name: gpu-2}]
"""


def test_a_dra_config_makes_one_whole_pool_of_a_node() -> None:
    """All of its pools that match a node, and all slices of each, are in one pool."""
    reading = read_dra_config(document(DRA_CONFIG))
    matcher = Matcher(Inventory(assignments=reading.assignments))

    def made(name: str, labels: dict[str, str]) -> list[tuple[str, int]]:
        pools = matcher.pools_of(node(name, labels)).pools
        return [(pool.name, sum(len(each.devices) for each in pool.sections)) for pool in pools]

    assert not reading.problems
    assert not reading.warnings
    assert made("n1", {}) == [("gpu.example.com/n1", 2)]
    assert made("n2", {"gpu": "many"}) == [("gpu.example.com/n2", 3)]
    assert made("n3", {}) == []


def test_a_config_map_without_data_wants_no_devices() -> None:
    """Emptied or never filled: that is a wish, and no mistake."""
    raws: tuple[dict[str, object], ...] = (
        {},
        {"data": {}},
        {"data": None},
        {"data": {"config.yaml": "\n"}},
    )
    for raw in raws:
        reading = read_config_map({"kind": "ConfigMap", **raw})

        assert not reading.problems
        assert not reading.assignments
        assert reading.warnings


def test_a_config_map_may_have_the_text_in_binary() -> None:
    """Text with other than plain characters may end up there."""
    raw = {"binaryData": {"config.yaml": "ZHJpdmVyOiBhLmV4YW1wbGUuY29tCm1hcHBpbmdzOiBbXQo="}}

    (problem,) = read_config_map(raw).problems

    assert problem.message == "mappings: at least one mapping must be defined"
