"""Partitions of cards: what NVIDIA allows can be had together, and nothing else."""

from __future__ import annotations

import pytest
from tests.allocation.builders import claim, given, node, refused
from tests.hardware.catalogue.mixes import (
    KINDS,
    PROFILES,
    STARTS,
    devices,
    fits,
    frontier,
    mix_of,
    one_card,
    wanting,
)
from tests.hardware.catalogue.packaged import NODE, allocator

from dryrack.allocation import Allocated
from dryrack.kinds.quantity import Quantity

KNOWN = {
    "seven of the smallest": (mix_of(g1=7), True),
    "eight of the smallest": (mix_of(g1=8), False),
    "two halves": (mix_of(g3=2), True),
    "four and three": (mix_of(g4=1, g3=1), True),
    "four, two and one": (mix_of(g4=1, g2=1, g1=1), True),
    "two fours": (mix_of(g4=2), False),
    "two halves and one more": (mix_of(g3=2, g1=1), False),
    "three twos and one": (mix_of(g2=3, g1=1), True),
    "four twos": (mix_of(g2=4), False),
    "four wide ones": (mix_of(wide=4), True),
    "five wide ones": (mix_of(wide=5), False),
    "four wide ones and a small one": (mix_of(wide=4, g1=1), False),
    "two with media engines": (mix_of(me=2), False),
    "one with media engines and six without": (mix_of(me=1, g1=6), True),
    "the whole and the smallest": (mix_of(g7=1, g1=1), False),
}


@pytest.mark.parametrize("known", KNOWN)
def test_the_places_tried_by_force_are_those_of_the_user_guide(known: str) -> None:
    """The reference of these tests is right about well-known mixes."""
    mix, expected = KNOWN[known]

    assert fits(mix) is expected


@pytest.mark.parametrize("model", PROFILES)
@pytest.mark.parametrize("known", KNOWN)
def test_known_mixes_are_allocated_or_not(model: str, known: str) -> None:
    """The mixes that people know to work do, and those known not to do not."""
    mix, expected = KNOWN[known]
    outcome = allocator(one_card(model)).allocate(node(NODE), [wanting(model, mix)])

    assert isinstance(outcome, Allocated) is expected


@pytest.mark.parametrize("model", PROFILES)
def test_a_mix_is_allocated_exactly_if_there_are_places_for_it(model: str) -> None:
    """Counters say of every mix of profiles what trying all places says."""
    answers = allocator(one_card(model))
    told = {
        mix: isinstance(answers.allocate(node(NODE), [wanting(model, mix)]), Allocated)
        for mix in frontier()
    }

    assert told == {mix: fits(mix) for mix in frontier()}
    assert set(told.values()) == {True, False}


@pytest.mark.parametrize("model", PROFILES)
def test_every_profile_is_on_offer_at_its_places_and_nowhere_else(model: str) -> None:
    """Also where another place would change nothing about which mixes fit."""
    numbers = dict(zip(KINDS, (19, 20, 15, 14, 9, 5, 0), strict=True))
    names = {
        f"gpu-0-mig-{profile.replace('.', '').replace('+', '-')}-{numbers[kind]}-{start}"
        for kind, profile in zip(KINDS, PROFILES[model], strict=True)
        for start in STARTS[kind]
    }

    assert set(devices(model)) - {"gpu-0"} == names


@pytest.mark.parametrize("model", PROFILES)
def test_seven_claims_one_after_the_other_fill_a_card(model: str) -> None:
    """Later claims cannot get what earlier ones have, and an eighth gets nothing."""
    answers = allocator(one_card(model))
    for number in range(7):
        wanted = wanting(model, mix_of(g1=1), f"claim-{number}")
        outcome = answers.allocate(node(NODE), [wanted])
        assert isinstance(outcome, Allocated)
        answers.set_allocation(f"claim-{number}", outcome.results[0])

    assert refused(answers.allocate(node(NODE), [wanting(model, mix_of(g1=1))]))


@pytest.mark.parametrize("model", ["h100-sxm5-80gb", "h200-141gb"])
def test_a_card_as_a_whole_and_its_partitions_exclude_each_other(model: str) -> None:
    """From Hopper on a card is on offer both ways, and taken one way."""
    whole = claim(
        {
            "name": "gpu",
            "exactly": {
                "deviceClassName": "gpu.nvidia.com",
                "allocationMode": "ExactCount",
                "count": 1,
            },
        }
    )
    answers = allocator(one_card(model))

    assert given(answers.allocate(node(NODE), [whole])) == [["gpu-0"]]
    assert refused(answers.allocate(node(NODE), [whole, wanting(model, mix_of(g1=1), "mig")]))


@pytest.mark.parametrize("model", ["a100-sxm4-40gb", "a100-sxm4-80gb"])
def test_an_ampere_card_in_mig_mode_is_not_on_offer_as_a_whole(model: str) -> None:
    """The mode of such a card cannot be changed while it is used, so the driver leaves it out."""
    assert "gpu-0" not in devices(model)
    assert len(devices(model)) == 25


# What a card of this model says of itself: the profile, its number, memory in MiB, processors,
# decoders, JPEG engines, optical flow, copy engines, and where it may start.
H200 = (
    ("1g.18gb", 19, 16384, 16, 1, 1, 0, 1, (0, 1, 2, 3, 4, 5, 6)),
    ("1g.18gb+me", 20, 16384, 16, 1, 1, 1, 1, (0, 1, 2, 3, 4, 5, 6)),
    ("1g.35gb", 15, 33280, 26, 1, 1, 0, 1, (0, 2, 4, 6)),
    ("2g.35gb", 14, 33280, 32, 2, 2, 0, 2, (0, 2, 4)),
    ("3g.71gb", 9, 71424, 60, 3, 3, 0, 3, (0, 4)),
    ("4g.71gb", 5, 71424, 64, 4, 4, 0, 4, (0,)),
    ("7g.141gb", 0, 143360, 132, 7, 7, 1, 8, (0,)),
)


def test_an_h200_offers_what_the_card_says() -> None:
    """26 devices, with the engines and memory that were read off a card."""
    offered = devices("h200-141gb")
    expected = {
        f"gpu-0-mig-{name.replace('.', '').replace('+', '-')}-{number}-{start}": (
            name,
            [str(Quantity.parse(f"{mib}Mi")), *map(str, (processors, dec, jpeg, ofa, copy))],
        )
        for name, number, mib, processors, dec, jpeg, ofa, copy, starts in H200
        for start in starts
    }
    names = ("memory", "multiprocessors", "decoders", "jpegEngines", "ofaEngines", "copyEngines")

    assert {
        name: (
            device.attributes["profile"].string_value,
            [str(device.capacity[capacity].value) for capacity in names],
        )
        for name, device in offered.items()
        if name != "gpu-0"
    } == expected
    assert len(offered) == 26


def test_devices_and_counters_are_as_the_driver_publishes_them() -> None:
    """One counter set for a card, and a half takes its engines and the slices that it covers."""
    slices = one_card("h100-sxm5-80gb")
    [shared] = [each for slice_ in slices for each in slice_.spec.shared_counters]
    offered = devices("h100-sxm5-80gb")
    half = offered["gpu-0-mig-3g40gb-9-4"]
    whole = offered["gpu-0"]
    [of_half], [of_whole] = half.consumes_counters, whole.consumes_counters

    assert {name: str(each.value) for name, each in of_half.counters.items()} == {
        "copy-engines": "3",
        "decoders": "3",
        "encoders": "0",
        "jpeg-engines": "3",
        "memory": "40448Mi",
        "multiprocessors": "60",
        "ofa-engines": "0",
        **{f"memory-slice-{index}": "1" for index in (4, 5, 6, 7)},
    }
    assert {name: str(each.value) for name, each in half.capacity.items()} == {
        "copyEngines": "3",
        "decoders": "3",
        "encoders": "0",
        "jpegEngines": "3",
        "memory": "40448Mi",
        "multiprocessors": "60",
        "ofaEngines": "0",
    }
    assert shared.name == of_half.counter_set == of_whole.counter_set == "gpu-0-counter-set"
    assert shared.counters == of_whole.counters
    assert str(whole.capacity["memory"].value) == "81152Mi"


def test_a_partition_has_the_attributes_of_its_card() -> None:
    """But for its own type and profile, and the card's UUID is under another name."""
    offered = devices("h100-sxm5-80gb")
    card = offered["gpu-0"].attributes
    part = offered["gpu-0-mig-1g10gb-me-20-6"].attributes

    assert part["type"].string_value == "mig"
    assert part["profile"].string_value == "1g.10gb+me"
    assert part["parentUUID"] == card["uuid"]
    assert set(part) == set(card) - {"uuid"} | {"parentUUID", "profile"}
    assert all(part[name] == card[name] for name in set(part) & set(card) - {"type"})
