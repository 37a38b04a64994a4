"""The configuration of Karpenter's driver, from text to pools."""

from __future__ import annotations

from pathlib import Path

import yaml

from dryrack.hardware.dialects import read_config
from dryrack.hardware.inventory import Inventory
from dryrack.hardware.matching import pools_of
from dryrack.kinds.core import Node
from dryrack.kinds.meta import ObjectMeta

SEEDS = Path(__file__).parents[2] / "seeds"


def config_of(name: str) -> str:
    """The text in the ConfigMap of a seed's example."""
    text: str = yaml.safe_load((SEEDS / name).read_text())["data"]["config.yaml"]
    return text


def test_an_example_becomes_the_pool_of_a_node() -> None:
    """A mapping's devices are in one pool of each node that it selects, named after the node."""
    reading = read_config(config_of("config-gpu.yaml"), file="config.yaml")
    labels = {"node.kubernetes.io/instance-type": "c-4x-amd64-linux"}
    node = Node(metadata=ObjectMeta(name="n1", labels=labels))

    (pool,) = pools_of(Inventory(assignments=reading.assignments), node).pools

    assert not reading.problems
    assert (pool.driver, pool.name) == ("karpenter.sh.dra-kwok-driver", "n1/t4-gpu-pool")
    assert [device.name for device in pool.sections[0].devices] == ["nvidia-t4-0"]
