"""Device configuration in every format publishes the same devices."""

from __future__ import annotations

import json
from functools import partial
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.conversion.converting import convert, notes, objects

from dryrack.cluster import load_catalogue
from dryrack.conversion import convert_publishers
from dryrack.hardware import INSTANCE_TYPE, Assignment, Inventory, Overlay, pools_of
from dryrack.hardware.config_formats import read_config_map, read_dra_config, read_overlay
from dryrack.kinds.core import Node
from dryrack.kinds.decode import to_builtins
from dryrack.kinds.documents import read
from dryrack.kinds.meta import ObjectMeta
from dryrack.kubeletplugin import format_of, rewrite
from dryrack.linter import Severity, lint

SEEDS = Path(__file__).parents[1] / "seeds"
FORMATS = ("configmap", "configmap-short", "nodeoverlay", "draconfig")
TYPES = ("a.large", "b.large", "c4.xlarge", "c-4x-amd64-linux", "f1.2xlarge", "g5.48xlarge")
REWRITE = partial(rewrite, catalogue=load_catalogue)
CLUSTER_WIDE = "config-cluster-wide.yaml"

_attributes = st.dictionaries(
    st.sampled_from(("model", "index", "shared", "example.com/driver")),
    st.one_of(
        st.builds(dict, string=st.sampled_from(("T4", "9.0", "yes", "80Gi", "a b"))),
        st.builds(dict, int=st.integers(0, 9)),
        st.builds(dict, bool=st.booleans()),
        st.just({"version": "1.2.3"}),
    ),
    max_size=3,
)
_device = st.fixed_dictionaries(
    {"attributes": _attributes},
    optional={"capacity": st.just({"memory": {"value": "80Gi"}})},
)


@st.composite
def configurations(draw: st.DrawFn) -> str:
    """Draw a ConfigMap whose mappings are for different instance types."""
    mappings: list[dict[str, Any]] = []
    for number, instance_type in enumerate(
        draw(st.lists(st.sampled_from(TYPES), min_size=1, max_size=3, unique=True))
    ):
        device = draw(_device)
        count = draw(st.integers(1, 3))
        term = {"key": INSTANCE_TYPE, "operator": "In", "values": [instance_type]}
        other = {"key": "zone", "operator": "Exists"}
        spec: dict[str, Any] = {
            "driver": draw(st.sampled_from(("gpu.example.com", "nic.example.com"))),
            "devices": [{"name": f"dev-{index}", **device} for index in range(count)],
        }
        if draw(st.booleans()):
            spec["pool"] = {"name": draw(st.sampled_from(("pool", "other")))}
        expressions = [term, other] if draw(st.booleans()) else [term]
        mappings.append(
            {
                "name": f"m-{number}",
                "nodeSelectorTerms": [{"matchExpressions": expressions}],
                "resourceSlice": spec,
            }
        )
    config = {"driver": "gpu.example.com", "mappings": mappings}
    metadata = {"name": "dra-kwok-configmap", "namespace": "karpenter"}
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": metadata,
            "data": {"config.yaml": json.dumps(config, indent=1)},
        }
    )


def to_publisher(target: str) -> partial[None]:
    return partial(convert_publishers, target=target, format_of=format_of, rewrite=REWRITE)


def published(text: str) -> dict[str, list[str]]:
    """Return the devices of a node of each instance type."""
    overlays: list[Overlay] = []
    assignments: list[Assignment] = []
    for document in read(text, "a.yaml").documents:
        readers = {
            "ConfigMap": read_config_map,
            "DRAConfig": read_dra_config,
            "NodeOverlay": read_overlay,
        }
        reading = readers[document.kind](document)
        assert reading.problems == ()
        overlays += [reading.overlay] if reading.overlay else []
        assignments += reading.assignments
    inventory = Inventory(tuple(overlays), tuple(assignments))
    return {name: _devices(inventory, name) for name in TYPES}


def _devices(inventory: Inventory, instance_type: str) -> list[str]:
    labels = {INSTANCE_TYPE: instance_type, "accelerator-type": "gpu", "zone": "z"}
    annotations = {"kwok.x-k8s.io/node": "fake"}
    node = Node(metadata=ObjectMeta(name="node", labels=labels, annotations=annotations))
    return sorted(
        f"{pool.driver} {json.dumps(to_builtins(device), sort_keys=True)}"
        for pool in pools_of(inventory, node).pools
        for section in pool.sections
        for device in section.devices
    )


@given(configurations(), st.permutations(FORMATS))
def test_all_formats_publish_the_same_devices(text: str, order: list[str]) -> None:
    """On the way through all formats, and back."""
    expected = published(text)
    for target in (*order, "configmap"):
        text = convert(text, to_publisher(target))
        assert published(text) == expected
        assert convert(text, to_publisher(target)) == text
        found = lint([("a.yaml", text.encode())], lambda *_: ())
        assert [each for each in found if each.severity is Severity.ERROR] == []


@pytest.mark.parametrize("name", sorted(each.name for each in SEEDS.glob("*.yaml")))
@pytest.mark.parametrize("target", FORMATS)
def test_written_by_hand_in_one_format_it_is_the_same_in_all(name: str, target: str) -> None:
    """Karpenter's examples; a DRAConfig has no devices of the whole cluster."""
    text = (SEEDS / name).read_text()
    if (name, target) == (CLUSTER_WIDE, "draconfig"):
        [*_, problem] = notes(text, to_publisher(target))
        assert "the devices of a DRAConfig belong to one node" in problem
        return
    assert published(convert(text, to_publisher(target))) == published(text)


def test_counts_are_written_where_a_format_has_them() -> None:
    """Devices that differ only in their numbers are one entry."""
    text = (SEEDS / "config-count.yaml").read_text()
    there = convert(text, to_publisher("draconfig"))
    back = convert(there, to_publisher("configmap-short"))

    assert there.count("name: nvidia-h100-") == 8
    assert "count: 8" in back
    assert "matchLabels" in back


def test_what_another_format_has_no_place_for_is_told() -> None:
    """With the line of each field, also inside of a text."""
    found = notes((SEEDS / "overlay-h100.yaml").read_text(), to_publisher("configmap"))

    assert [each for each in found if "dropped" in each] == [
        "a.yaml:6: spec.weight is dropped: all matching configurations apply to a node",
        "a.yaml:11: spec.capacity is dropped",
    ]
    [note] = [each for each in found if "devices[1]" in each]
    assert note.startswith("a.yaml:31: ")
    assert note.endswith("write 'compute_capability'")


NODE_DEVICES = """\
apiVersion: dryrack.dev/v1alpha1
kind: NodeDevices
devices:
- kind: fake
  count: 2
- kind: gpu
  count: 1
- kind: catalogue
  name: g4dn.xlarge
"""


@pytest.mark.parametrize("target", FORMATS)
def test_device_kinds_list_their_devices(target: str) -> None:
    """Without what differs between nodes; on the way back, the kinds are found again."""
    # A DRAConfig has one driver, and the instance type has several.
    text = NODE_DEVICES.partition("- kind: catalogue")[0] if target == "draconfig" else NODE_DEVICES
    listed = convert(text, to_publisher(target))
    back = objects(convert(listed, to_publisher("nodedevices")))

    assert "uuid" not in listed
    assert any("uuid: left out" in each for each in notes(text, to_publisher(target)))
    kinds = [entry for document in back for entry in document["devices"]]
    assert sorted(kinds, key=str) == sorted(objects(text)[0]["devices"], key=str)
    assert "NodeDevices" in {each["kind"] for each in back}


def test_devices_of_no_kind_are_refused() -> None:
    """NodeDevices name device kinds."""
    [*_, problem] = notes((SEEDS / "config-gpu.yaml").read_text(), to_publisher("nodedevices"))

    assert "gpu-t4-mapping: no device kind defines these devices" in problem


@pytest.mark.parametrize(("first", "second"), list(permutations(("pool", "other"))))
def test_devices_of_two_pools_with_one_name_are_refused(first: str, second: str) -> None:
    """A DRAConfig would publish one of them."""
    mapping = """\
    - name: {0}
      nodeSelectorTerms: [{{matchExpressions: [{{key: a, operator: Exists}}]}}]
      resourceSlice: {{pool: {{name: {0}}}, devices: [{{name: gpu-0}}]}}
"""
    text = (
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata:\n  config.yaml: |\n"
        "    driver: d.example.com\n    mappings:\n"
        + mapping.format(first)
        + mapping.format(second)
    )
    [*_, problem] = notes(text, to_publisher("draconfig"))

    assert f"{first} and {second} both have a device gpu-0" in problem
    assert len(objects(convert(text, to_publisher("nodeoverlay")))) == 1
