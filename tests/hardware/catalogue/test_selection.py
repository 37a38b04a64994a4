"""Which devices of the catalogue a node has, by its labels."""

from __future__ import annotations

from functools import cache

import pytest
from tests.allocation.builders import node
from tests.hardware.catalogue.packaged import catalogue

from dryrack.hardware.inventory import Inventory
from dryrack.hardware.matching import Matcher

TYPE = "node.kubernetes.io/instance-type"
MIG = "dryrack.dev/mig"


@cache
def matcher() -> Matcher:
    return Matcher(Inventory(instance_types=catalogue().assignments()))


def names(**labels: str) -> list[str]:
    """The GPUs of a node with these labels; `type` and `mig` stand for the long names."""
    long = {{"type": TYPE, "mig": MIG}.get(name, name): value for name, value in labels.items()}
    pools = matcher().pools_of(node("a", **long)).pools
    return [
        device.name
        for pool in pools
        if pool.driver == "gpu.nvidia.com"
        for section in pool.sections
        for device in section.devices
    ]


def test_the_instance_type_decides() -> None:
    """A label is all that a node needs to say."""
    assert names(type="g4dn.12xlarge") == ["gpu-0", "gpu-1", "gpu-2", "gpu-3"]


@pytest.mark.parametrize("unknown", ["m5.large", "p5.48xlarge/mig", ""])
def test_a_type_that_is_not_known_has_nothing(unknown: str) -> None:
    """Nor do keys of the catalogue that are no types."""
    assert names(type=unknown) == []


def test_a_label_has_cards_partitioned() -> None:
    """From Hopper on beside the whole card, before that instead of it."""
    hopper = names(type="p5.4xlarge", mig="dynamic")
    ampere = names(type="a2-highgpu-1g", mig="dynamic")

    assert (len(hopper), "gpu-0" in hopper) == (26, True)
    assert (len(ampere), "gpu-0" in ampere) == (25, False)


@pytest.mark.parametrize("mig", ["static", "true", ""])
def test_another_value_of_the_label_leaves_cards_whole(mig: str) -> None:
    """Only one word switches it on."""
    assert names(type="p5.4xlarge", mig=mig) == ["gpu-0"]


def test_cards_that_cannot_be_partitioned_stay_whole() -> None:
    """As NVIDIA's driver does with them where its gate is on."""
    assert names(type="g6.xlarge", mig="dynamic") == ["gpu-0"]
