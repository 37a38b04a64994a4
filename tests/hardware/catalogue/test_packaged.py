"""The files that come with dryrack: complete, sourced, and valid for the API."""

from __future__ import annotations

import re

import pytest
from tests.hardware.catalogue.packaged import catalogue, slices_on

from dryrack.cluster.catalogue import packaged_files
from dryrack.hardware.catalogue import Cards, parse
from dryrack.kinds.validation.device_rules import validate

TYPES = sorted(catalogue().instance_types)

# Families of machines that people test with.
EXPECTED_TYPES = (
    *(r"p3\.\d+xlarge", r"p4d\.24xlarge", r"p5\.48xlarge", r"p5e\.48xlarge"),
    *(r"g4dn\..+", r"g5\..+", r"g6\..+", r"trn1\..+", r"inf2\..+", r"f1\..+"),
    *(r"a2-highgpu-.+", r"a3-highgpu-.+", r"g2-standard-.+", r"ct5lp-.+", r"ct5p-.+"),
    *(r"Standard_NC.+", r"Standard_ND.+", r"Standard_NV.+"),
)
EXPECTED_MODELS = (
    *("t4", "v100-sxm2-16gb", "a10g", "a100-sxm4-40gb", "a100-sxm4-80gb", "l4", "l40s"),
    *("h100-sxm5-80gb", "h200-141gb", "b200-180gb", "gb200-186gb", "mi300x", "trainium"),
    *("inferentia2", "tpu-v5e", "tpu-v5p", "alveo-u250", "efa", "cpu-numa-node"),
)


def test_the_packaged_files_pass_every_trial() -> None:
    """They are not tried when they are read, so they are tried here."""
    assert parse(packaged_files()) == catalogue()


@pytest.mark.parametrize("pattern", EXPECTED_TYPES)
def test_every_family_of_machines_is_there(pattern: str) -> None:
    """People find the machines that they rent."""
    assert [name for name in TYPES if re.fullmatch(pattern, name)]


def test_every_model_is_there() -> None:
    """People find the cards that they have."""
    assert set(EXPECTED_MODELS) <= set(catalogue().models)


def test_every_machine_tells_its_size() -> None:
    """Nodes that `up` starts with have the CPU and the memory of the machine."""
    sizes = {name: each.size.keys() for name, each in catalogue().instance_types.items()}

    assert {name for name, known in sizes.items() if known != {"cpu", "memory"}} == set()
    assert catalogue().instance_types["p5.48xlarge"].size == {"cpu": "192", "memory": "2Ti"}


def test_every_entry_names_its_sources() -> None:
    """Every number has a source."""
    sources = {name: each.sources for name, each in catalogue().models.items()}
    sources |= {name: each.sources for name, each in catalogue().instance_types.items()}

    assert [name for name, named in sources.items() if not named] == []


@pytest.mark.parametrize("name", TYPES)
def test_all_that_a_node_publishes_is_valid_for_the_api(name: str) -> None:
    """The API server takes every slice of every type, whole or partitioned."""
    machine = catalogue().instance_types[name]
    slices = [each for cards in machine.cards for each in slices_on(machine, cards)]

    assert {each.metadata.name: wrong for each in slices if (wrong := validate(each))} == {}
    assert slices


@pytest.mark.parametrize("name", TYPES)
def test_cards_are_whole_unless_partitions_are_asked_for(name: str) -> None:
    """Partitions are disabled by default, as in NVIDIA's driver."""
    machine = catalogue().instance_types[name]
    devices = [
        each.name for slice_ in slices_on(machine, Cards.WHOLE) for each in slice_.spec.devices
    ]

    assert [device for device in devices if "-mig-" in device] == []
