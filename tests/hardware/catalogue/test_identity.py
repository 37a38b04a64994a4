"""UUIDs of devices: the same on every run, and never the same on two nodes."""

from __future__ import annotations

import re

import pytest
from tests.hardware.catalogue.packaged import catalogue, slices_on

from dryrack.hardware.catalogue import Cards, devices_on
from dryrack.hardware.catalogue.identity import MARKS

UUID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"


def uuids(name: str, node: str, attribute: str = "uuid") -> list[str]:
    slices = slices_on(catalogue().instance_types[name], Cards.WHOLE, node)
    found = (each.attributes.get(attribute) for slice_ in slices for each in slice_.spec.devices)
    return [each.string_value or "" for each in found if each is not None]


def test_no_two_cards_of_a_fleet_share_a_uuid() -> None:
    """8 cards on each of 200 nodes are 1,600 cards, and each looks like NVIDIA's."""
    fleet = [uuid for number in range(200) for uuid in uuids("p5.48xlarge", f"node-{number}")]

    assert len(set(fleet)) == len(fleet) == 1600
    assert all(re.fullmatch(f"GPU-{UUID}", uuid) for uuid in fleet)


def test_a_node_that_is_made_again_has_the_same_cards() -> None:
    """Identity follows from names alone, and stays what it was when dryrack changes."""
    assert uuids("g4dn.xlarge", "node-1") == uuids("g4dn.xlarge", "node-1")
    assert uuids("g4dn.xlarge", "node-1") == ["GPU-6cf12965-4faa-8c3d-bbe4-8f49ecc4e2bf"]


def test_the_chips_of_a_tpu_node_share_one_uuid() -> None:
    """So Google's driver has it: the node is the seed."""
    first = uuids("ct5lp-hightpu-4t", "a")
    second = uuids("ct5lp-hightpu-4t", "b")

    assert len(first) == 4
    assert len(set(first)) == len(set(second)) == 1
    assert first != second
    assert re.fullmatch(f"tpu-{UUID}", first[0])


def test_serial_numbers_differ_from_card_to_card() -> None:
    """As they do on Gaudi cards."""
    serials = uuids("dl1.24xlarge", "a", "serial") + uuids("dl1.24xlarge", "b", "serial")

    assert len(set(serials)) == 16


@pytest.mark.parametrize("name", sorted(catalogue().instance_types))
def test_no_placeholder_is_left_in_what_a_node_has(name: str) -> None:
    """All that depends on slot or node is filled, in names and attributes of every device."""
    machine = catalogue().instance_types[name]
    devices = [
        device
        for cards in machine.cards
        for batch in machine.assignment(cards).batches
        for device in devices_on(batch, "a")
    ]

    texts = [device.name for device in devices] + [
        attribute.string_value or ""
        for device in devices
        for attribute in device.attributes.values()
    ]

    assert [text for text in texts if "{" in text] == []


def test_a_batch_without_marks_is_left_as_it_is() -> None:
    """Nothing is copied for the many nodes whose devices are alike."""
    [batch] = [
        each
        for each in catalogue().instance_types["p5.48xlarge"].assignment(Cards.WHOLE).batches
        if each.driver == "dra.cpu"
    ]

    assert devices_on(batch, "a") is batch.devices
    assert MARKS == ("device.uuid", "device.serial", "node.uuid")
