"""Devices of the hardware catalogue, as a node of such a machine has them."""

from __future__ import annotations

import asyncio
from functools import cache
from typing import TYPE_CHECKING

import pytest
from tests.kubeletplugin.nodes import NODE, bench, environment

from dryrack.cluster import load_catalogue
from dryrack.kinds.validation import validate
from dryrack.kubeletplugin import DevicesError, device_classes, node_slices, read_devices

if TYPE_CHECKING:
    from pathlib import Path

    from dryrack.hardware.catalogue import Catalogue
    from dryrack.kubeletplugin import DeviceKind


@cache
def catalogue() -> Catalogue:
    return load_catalogue()


def kinds(text: str) -> dict[str, DeviceKind]:
    return {kind.driver: kind for kind in read_devices([text], [], catalogue)}


def test_a_machine_has_a_kind_for_each_of_its_drivers() -> None:
    """The devices are those that `dryrack hardware show` lists, with UUIDs of the node's own."""
    found = kinds("catalogue:p5.48xlarge")
    gpus = found["gpu.nvidia.com"].devices(NODE)

    assert {driver: len(kind.devices(NODE)) for driver, kind in found.items()} == {
        "dra.cpu": 2,
        "dra.net": 32,
        "gpu.nvidia.com": 8,
    }
    assert [each.name for each in gpus] == [f"gpu-{n}" for n in range(8)]
    assert len({each.attributes["uuid"].string_value for each in gpus}) == 8
    assert gpus != found["gpu.nvidia.com"].devices("node-2")


def test_a_container_learns_the_uuids_of_its_cards(tmp_path: Path) -> None:
    """By number, beside what the vendor's driver sets."""
    kind = kinds("catalogue:p5.48xlarge")["gpu.nvidia.com"]

    async def scenario() -> dict[str, str]:
        world = bench(tmp_path, kind)
        claim = await world.claim("mine", ["gpu-3", "gpu-5"])
        plugin = world.plugin()
        plugin.recover()
        await plugin.prepare([claim])
        return environment(world, claim.uid)

    uuids = {each.name: each.attributes["uuid"].string_value for each in kind.devices(NODE)}

    assert asyncio.run(scenario()) == {
        "GPU_NVIDIA_COM_DEVICE_0": uuids["gpu-3"],
        "GPU_NVIDIA_COM_DEVICE_1": uuids["gpu-5"],
        "NVIDIA_VISIBLE_DEVICES": "void",
    }


def test_a_model_is_one_device_and_with_mig_all_its_partitions() -> None:
    """Partitions draw on counters of the card, and the driver's classes tell them apart."""
    [whole] = kinds("catalogue:h100-sxm5-80gb").values()
    [cut] = kinds("catalogue:h100-sxm5-80gb,mig=true").values()
    slices = node_slices(cut, NODE)
    names = [each.name for each in cut.devices(NODE)]

    assert [each.name for each in whole.devices(NODE)] == ["gpu-0"]
    assert "gpu-0" in names
    assert any(name.startswith("gpu-0-mig-1g10gb-") for name in names)
    assert [set_.name for each in slices for set_ in each.spec.shared_counters] == [
        "gpu-0-counter-set"
    ]
    assert {"gpu.nvidia.com", "mig.nvidia.com"} <= {
        each.metadata.name for each in device_classes([cut])
    }


@pytest.mark.parametrize("name", ["p5.48xlarge,mig=true", "trn1.32xlarge", "dl1.24xlarge"])
def test_the_slices_of_a_machine_are_ones_that_an_api_server_takes(name: str) -> None:
    """Nothing is published that would be refused."""
    found = kinds(f"catalogue:{name}").values()

    assert [
        problem for kind in found for each in node_slices(kind, NODE) for problem in validate(each)
    ] == []


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("catalogue", "as in catalogue:p5.48xlarge"),
        ("catalogue:p5.49xlarge", "not in the catalogue; did you mean .*p5.48xlarge"),
        ("catalogue:g4dn.xlarge,mig=true", "no cards whose partitions are known"),
        ("catalogue:p5.48xlarge,mig=yes", "mig='yes'; true or false"),
        ("catalogue:p5.48xlarge,count=2", "no option 'count'; it has: mig"),
    ],
)
def test_machines_that_make_no_sense_are_told(text: str, complaint: str) -> None:
    """What is wrong with a value of --devices is said with what would be right."""
    with pytest.raises(DevicesError, match=complaint):
        kinds(text)


def test_two_machines_with_one_driver_are_refused() -> None:
    """A driver has one pool on a node."""
    with pytest.raises(DevicesError, match=r"driver gpu.nvidia.com is there already, by catalogue"):
        read_devices(["catalogue:h100-sxm5-80gb", "catalogue:g4dn.xlarge"], [], catalogue)
