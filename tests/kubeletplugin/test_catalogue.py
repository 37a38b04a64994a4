"""Devices of the hardware catalogue, as a node of such a machine has them."""

from __future__ import annotations

import asyncio
from functools import cache
from typing import TYPE_CHECKING

import pytest
from tests.kubeletplugin.nodes import NODE, bench, environment

from dryrack.cluster import load_catalogue
from dryrack.kinds.validation.device_rules import validate
from dryrack.kubeletplugin import DevicesError, device_classes, node_slices, read_devices

if TYPE_CHECKING:
    from pathlib import Path

    from tests.kubeletplugin.nodes import Bench

    from dryrack.hardware.catalogue import Catalogue
    from dryrack.kubeletplugin import ClaimReference, DeviceKind


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


async def prepared(world: Bench, *claims: ClaimReference) -> list[dict[str, str]]:
    plugin = world.plugin()
    plugin.recover()
    answers = await plugin.prepare(claims)
    assert all(isinstance(each, tuple) for each in answers.values()), answers
    return [environment(world, claim.uid) for claim in claims]


def test_variables_that_list_devices_list_those_of_the_claim(tmp_path: Path) -> None:
    """By their place on the node, in each of the names that programs read."""
    kind = kinds("catalogue:dl1.24xlarge")["gaudi.intel.com"]

    async def scenario() -> dict[str, str]:
        world = bench(tmp_path, kind)
        names = [each.name for each in kind.devices(NODE)]
        [found] = await prepared(world, await world.claim("mine", [names[5], names[2]]))
        return found

    found = asyncio.run(scenario())

    assert found["HABANA_VISIBLE_DEVICES"] == "2,5"
    assert found["HABANA_VISIBLE_MODULES"] == "2,5"
    assert found["HL_VISIBLE_DEVICES"] == "2,5"


def test_a_tpu_tells_of_its_host(tmp_path: Path) -> None:
    """Type, topology and bounds, as of a slice that is one host."""
    name = next(name for name in catalogue().instance_types if name.startswith("ct5lp-hightpu-4"))
    kind = kinds(f"catalogue:{name}")["tpu.google.com"]

    async def scenario() -> dict[str, str]:
        world = bench(tmp_path, kind)
        device = kind.devices(NODE)[0].name
        [found] = await prepared(world, await world.claim("mine", [device]))
        return found

    found = asyncio.run(scenario())

    assert found["TPU_ACCELERATOR_TYPE"] == "v5litepod-4"
    assert found["TPU_TOPOLOGY"] == "2x2"
    assert found["TPU_CHIPS_PER_HOST_BOUNDS"] == "2,2,1"
    assert found["TPU_WORKER_ID"] == "0"


def test_claims_that_share_a_numa_node_have_cpus_of_their_own(tmp_path: Path) -> None:
    """Claims have the first free CPUs; released CPUs are used again, and none twice."""
    kind = kinds("catalogue:p5.48xlarge")["dra.cpu"]
    shares = [f"{n}1111111-1111-1111-1111-111111111111" for n in range(1, 5)]

    async def scenario() -> tuple[list[str], str]:
        world = bench(tmp_path, kind)

        async def claim(name: str, cpus: str, share: str, device: int = 1) -> ClaimReference:
            device_name = kind.devices(NODE)[device].name
            return await world.claim(
                name, [device_name], share_id=share, consumed={"dra.cpu/cpu": cpus}
            )

        one = await claim("one", "4", shares[0])
        two = await claim("two", "2", shares[1])
        envs = await prepared(world, one, two)
        plugin = world.plugin()
        plugin.recover()
        await plugin.unprepare([one])
        three = await claim("three", "6", shares[2])
        await plugin.prepare([three])
        four = await claim("four", "95", shares[3])
        refused = str((await plugin.prepare([four]))[four.uid])
        envs.append(environment(world, three.uid))
        claims = (one, two, three)
        sets = [env[f"DRA_CPUSET_{c.uid}"] for env, c in zip(envs, claims, strict=True)]
        return sets, refused

    sets, refused = asyncio.run(scenario())
    first = 96

    assert sets == [
        f"{first}-{first + 3}",
        f"{first + 4}-{first + 5}",
        f"{first}-{first + 3},{first + 6}-{first + 7}",
    ]
    assert "the claim has 95 CPUs, but 88 of 96 are free" in refused


@pytest.mark.parametrize(
    ("held", "wanted"),
    [("gpu-0", "gpu-0-mig-1g10gb-19-0"), ("gpu-0-mig-1g10gb-19-0", "gpu-0")],
)
def test_a_whole_and_its_partition_are_never_prepared_together(
    tmp_path: Path, held: str, wanted: str
) -> None:
    """Devices that consume too much of shared counters are refused until others are released."""
    kind = kinds("catalogue:h100-sxm5-80gb,mig=true")["gpu.nvidia.com"]

    async def scenario() -> tuple[str, object]:
        world = bench(tmp_path, kind)
        first = await world.claim("one", [held])
        second = await world.claim("two", [wanted])
        plugin = world.plugin()
        plugin.recover()
        await plugin.prepare([first])
        refused = str((await plugin.prepare([second]))[second.uid])
        await plugin.unprepare([first])
        return refused, (await plugin.prepare([second]))[second.uid]

    refused, given = asyncio.run(scenario())

    assert f"device {NODE}/" in refused
    assert "of gpu-0-counter-set than" in refused
    assert isinstance(given, tuple)


def test_partitions_that_fit_are_prepared_together(tmp_path: Path) -> None:
    """Two claims, a partition each, and one claim with two: none is in the way of another."""
    kind = kinds("catalogue:h100-sxm5-80gb,mig=true")["gpu.nvidia.com"]
    parts = [f"gpu-0-mig-1g10gb-19-{place}" for place in range(4)]

    async def scenario() -> int:
        world = bench(tmp_path, kind)
        claims = [
            await world.claim("one", parts[:1]),
            await world.claim("two", parts[1:2]),
            await world.claim("both", parts[2:]),
        ]
        return len(await prepared(world, *claims))

    assert asyncio.run(scenario()) == 3


def test_a_model_is_one_device_and_with_mig_all_its_partitions() -> None:
    """Partitions consume counters of the whole device, and DeviceClasses distinguish them."""
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
        ("catalogue", "for example catalogue:p5.48xlarge"),
        ("catalogue:p5.49xlarge", "unknown instance type or model; did you mean .*p5.48xlarge"),
        ("catalogue:g4dn.xlarge,mig=true", "no MIG partitions for its GPUs"),
        ("catalogue:p5.48xlarge,mig=yes", "mig='yes': use true or false"),
        ("catalogue:p5.48xlarge,count=2", "no option 'count'; use one of: mig"),
    ],
)
def test_machines_that_make_no_sense_are_told(text: str, complaint: str) -> None:
    """The error of an invalid value of --devices names a valid one."""
    with pytest.raises(DevicesError, match=complaint):
        kinds(text)


def test_two_machines_with_one_driver_are_refused() -> None:
    """A driver has one pool on a node."""
    with pytest.raises(DevicesError, match=r"already provides driver gpu.nvidia.com"):
        read_devices(["catalogue:h100-sxm5-80gb", "catalogue:g4dn.xlarge"], [], catalogue)
