"""Every example of the documents, as it is written there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.hardware.dialects.examples import SEEDS, document, node, seed

from dryrack.hardware.config_formats import read_config_map
from dryrack.hardware.inventory import EveryNode, Inventory, ThisNode
from dryrack.hardware.matching import Matcher, pools_of

if TYPE_CHECKING:
    from pathlib import Path

DRIVER = "karpenter.sh.dra-kwok-driver"
INSTANCE_TYPE = "node.kubernetes.io/instance-type"


@pytest.mark.parametrize("path", sorted(SEEDS.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_example_is_understood(path: Path) -> None:
    """No example has a problem, and each of them has warnings: none is what the API takes."""
    reading = seed(path.name)

    assert not reading.problems
    assert reading.warnings
    assert all(warning.line > 0 and warning.fix for warning in reading.warnings)
    assert reading.assignments or reading.overlay


def told(name: str) -> list[tuple[int, str]]:
    """Lines and words of the warnings, but for the form of attributes, of which there are many."""
    return [
        (warning.line, warning.fix)
        for warning in seed(name).warnings
        if "is not in the form of the API" not in warning.message
    ]


def test_the_gpu_example_is_put_right() -> None:
    """Slashes leave the driver's name, `String` is `string`, memory stays text, with warnings."""
    (assignment,) = seed("config-gpu.yaml").assignments
    (batch,) = assignment.batches
    (device,) = batch.devices

    assert (batch.driver, batch.pool, batch.reach) == (DRIVER, "t4-gpu-pool", ThisNode())
    assert {name: each.string_value for name, each in device.attributes.items()} == {
        "type": "nvidia-tesla-t4",
        "memory": "16Gi",
        "compute_capability": "7.5",
        "cuda_cores": "2560",
    }
    assert told("config-gpu.yaml") == [
        (8, "write 'karpenter.sh.dra-kwok-driver'"),
        (17, "write 'karpenter.sh.dra-kwok-driver'"),
        (19, "remove the name; the pool then has the name of the node"),
        (26, "move it to capacity: memory: {value: 16Gi}"),
    ]


def test_the_example_of_several_types_gives_a_node_both() -> None:
    """All mappings that match count; each pool of the node is its own."""
    inventory = Inventory(assignments=seed("config-multiple.yaml").assignments)

    pools = pools_of(inventory, node(labels={"accelerator-type": "gpu"})).pools

    assert [(pool.name, len(pool.sections[0].devices)) for pool in pools] == [
        ("n1/fpga-pool", 1),
        ("n1/gpu-pool", 2),
    ]


def test_the_cluster_wide_example_is_one_pool() -> None:
    """`allNodes` makes one pool, whole, however many slices it is said to have."""
    reading = seed("config-cluster-wide.yaml")
    matcher = Matcher(Inventory(assignments=reading.assignments))
    storage = [node(f"n{number}", {"has-shared-storage": "true"}) for number in range(3)]

    called = [matcher.shared_of(each) for each in storage]
    (pool,) = matcher.shared_pools(called[0]).pools

    assert called[0] == called[1] == called[2]
    assert (pool.name, pool.node, pool.reach) == ("shared-storage-pool", "", EveryNode())
    assert [device.name for device in pool.sections[0].devices] == ["shared-nvme-0"]
    assert not matcher.pools_of(storage[0]).pools
    assert [line for line, _ in told("config-cluster-wide.yaml")] == [8, 17, 18, 21, 27]


@pytest.mark.parametrize("where", ["labels", "annotations"])
def test_the_counting_example_works_on_nodes_of_kwok(where: str) -> None:
    """The example asks for a label where KWOK's nodes have an annotation; both are meant."""
    inventory = Inventory(assignments=seed("config-count.yaml").assignments)
    marked = {"kwok.x-k8s.io/node": "fake"}
    labels = {INSTANCE_TYPE: "g5.48xlarge", **(marked if where == "labels" else {})}

    (pool,) = pools_of(
        inventory, node("n1", labels, marked if where == "annotations" else None)
    ).pools

    assert (pool.driver, pool.name) == (DRIVER, "n1")
    assert [device.name for device in pool.sections[0].devices] == [
        f"nvidia-h100-{number}" for number in range(8)
    ]
    assert {each.attributes["compute_capability"].string_value for each in pool.sections[0].devices}


def test_the_counting_example_leaves_other_nodes_alone() -> None:
    """A node of that type without KWOK's mark, or with another value of it, has nothing."""
    inventory = Inventory(assignments=seed("config-count.yaml").assignments)
    labels = {INSTANCE_TYPE: "g5.48xlarge"}

    assert not pools_of(inventory, node("n1", labels)).pools
    assert not pools_of(inventory, node("n1", labels, {"kwok.x-k8s.io/node": "real"})).pools
    assert not pools_of(inventory, node("n1", {}, {"kwok.x-k8s.io/node": "fake"})).pools


def test_the_overlay_example_is_put_right() -> None:
    """The overlay has a capacity of eight and two devices: a warning says so, and it works."""
    reading = seed("overlay-h100.yaml")
    assert reading.overlay is not None
    matched = pools_of(
        Inventory(overlays=(reading.overlay,)), node(labels={INSTANCE_TYPE: "g5.48xlarge"})
    )
    (pool,) = matched.pools

    assert (pool.driver, pool.name, reading.overlay.weight) == (DRIVER, "n1", 10)
    assert len(pool.sections[0].devices) == 2
    assert [line for line, _ in told("overlay-h100.yaml")] == [12, 22, 24, 25, 28, 30, 31]
    assert [note.message for note in matched.notes] == [
        f"capacity of {DRIVER}/device is 8, but {DRIVER} publishes 2 devices"
    ]


def test_without_a_file_the_lines_are_those_of_the_text() -> None:
    """An object from an API server has no file; the text inside it still has lines."""
    raw = document((SEEDS / "config-gpu.yaml").read_text()).raw

    (first, *_) = read_config_map(raw).warnings

    assert (first.file, first.line) == ("config.yaml", 1)
