"""The tests of Karpenter's driver for its configuration and matching, under the same names."""

from __future__ import annotations

from tests.hardware.dialects.examples import node

from dryrack.hardware.config_formats import read_config, read_config_map
from dryrack.hardware.inventory import Inventory
from dryrack.hardware.matching import pools_of

TEXT = """\
driver: gpu.example.com
mappings:
- name: gpu-mapping
  nodeSelector:
    matchLabels:
      node.kubernetes.io/instance-type: g4dn.xlarge
  resourceSlice:
    devices:
    - name: nvidia-gpu
      count: 1
      attributes:
        type: nvidia-tesla-t4
        memory: 16Gi
"""

MAPPINGS = """\
driver: gpu.example.com
mappings:
- name: by-type
  nodeSelector: {matchLabels: {type: gpu}}
  resourceSlice: {pool: {name: one}, devices: [{name: gpu-0}]}
- name: by-type-and-zone
  nodeSelector: {matchLabels: {type: gpu, zone: a}}
  resourceSlice: {pool: {name: two}, devices: [{name: gpu-0}]}
"""


def config_map(**data: str) -> dict[str, object]:
    return {"kind": "ConfigMap", "metadata": {"name": "dra-kwok-configmap"}, "data": data}


def messages(text: str) -> list[str]:
    return [problem.message for problem in read_config(text, file="config.yaml").problems]


def parts(labels: dict[str, str]) -> list[str]:
    """The mappings whose devices a node has, in the order in which they were found."""
    reading = read_config(MAPPINGS, file="config.yaml")
    assert not reading.problems
    pools = pools_of(Inventory(assignments=reading.assignments), node(labels=labels)).pools
    return [section.origin.part for pool in pools for section in pool.sections]


def test_should_return_error_for_empty_driver() -> None:
    """The driver's name is required, and the message is upstream's."""
    assert messages(TEXT.replace("gpu.example.com", '""')) == [
        "driver: driver name cannot be empty"
    ]
    assert messages(TEXT.replace("driver: gpu.example.com\n", "")) == [
        "driver: driver name cannot be empty"
    ]


def test_should_return_error_for_no_mappings() -> None:
    """A configuration without mappings is a mistake; the message is upstream's."""
    assert messages("driver: gpu.example.com\nmappings: []\n") == [
        "mappings: at least one mapping must be defined"
    ]


def test_should_parse_valid_yaml_configuration() -> None:
    """The text under the key becomes assignments."""
    reading = read_config_map(config_map(**{"config.yaml": TEXT}))
    (assignment,) = reading.assignments
    (batch,) = assignment.batches

    assert not reading.problems
    assert (assignment.origin.name, assignment.origin.part) == ("dra-kwok-configmap", "gpu-mapping")
    assert batch.driver == "gpu.example.com"
    assert [device.name for device in batch.devices] == ["nvidia-gpu-0"]


def test_should_handle_different_config_key_names() -> None:
    """The key may be another by option, or the only one there is."""
    named = read_config_map(config_map(**{"devices.yaml": TEXT, "x": ""}), key="devices.yaml")
    only = read_config_map(config_map(**{"devices.yaml": TEXT}))

    assert named.assignments == only.assignments
    assert len(named.assignments) == 1
    assert only.warnings[0].message == "the configuration is under the key 'devices.yaml'"
    assert only.warnings[0].fix == "rename it to 'config.yaml'"


def test_should_return_error_for_missing_configuration_keys() -> None:
    """For data that is no configuration, or two candidates, the message is upstream's."""
    for data in ({"other-key": "some-data"}, {"a.yaml": TEXT, "b.yaml": TEXT}):
        (problem,) = read_config_map(config_map(**data)).problems

        assert problem.message == (
            "data: no configuration found in configmap, expected key: config.yaml"
        )


def test_should_return_error_for_invalid_yaml() -> None:
    """A text that is no YAML has a problem with its line, and nothing is used."""
    reading = read_config_map(config_map(**{"config.yaml": "invalid: yaml: content: ["}))

    assert [problem.line for problem in reading.problems] == [1]
    assert not reading.assignments


def test_should_find_matching_mapping_by_single_label() -> None:
    """One label is enough for a mapping that asks for one."""
    assert parts({"type": "gpu"}) == ["by-type"]


def test_should_find_matching_mapping_by_multiple_labels() -> None:
    """A mapping that asks for two labels wants both."""
    assert "by-type-and-zone" in parts({"type": "gpu", "zone": "a"})
    assert "by-type-and-zone" not in parts({"type": "gpu", "zone": "b"})


def test_should_return_nil_for_non_matching_node() -> None:
    """A node that no mapping selects has no pools."""
    assert parts({"type": "cpu"}) == []


def test_should_return_first_matching_mapping_when_multiple_match() -> None:
    """All mappings that match count, and the first comes first."""
    assert parts({"type": "gpu", "zone": "a"}) == ["by-type", "by-type-and-zone"]
