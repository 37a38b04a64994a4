"""Requirements of labels, and the offers of pools that follow from them."""

from __future__ import annotations

import pytest
from tests.provisioning.worlds import instance_type, pool, requirement

from dryrack.controllers.provisioning.machines import generic_machines
from dryrack.controllers.provisioning.offers import offers_of
from dryrack.controllers.provisioning.requirements import combine
from dryrack.kinds.decode import decode
from dryrack.kinds.provisioning import LabelRequirement, NodePool


@pytest.mark.parametrize(
    ("operator", "values", "admitted", "refused"),
    [
        ("In", ("a", "b"), ("a",), ("c", None)),
        ("NotIn", ("a",), ("b", None), ("a",)),
        ("Exists", (), ("a", ""), (None,)),
        ("DoesNotExist", (), (None,), ("a",)),
        ("Gt", ("4",), ("5", "10"), ("4", "3", "x", None)),
        ("Gte", ("4",), ("4", "10"), ("3", None)),
        ("Lt", ("4",), ("3", "-1"), ("4", "x", None)),
        ("Lte", ("4",), ("4",), ("5", None)),
    ],
)
def test_operators(
    operator: str,
    values: tuple[str, ...],
    admitted: tuple[str | None, ...],
    refused: tuple[str | None, ...],
) -> None:
    """Each operator admits and refuses the same values as in Karpenter."""
    allowed = combine([LabelRequirement(key="k", operator=operator, values=values)])["k"]
    assert [each for each in admitted if not allowed.admits(each)] == []
    assert [each for each in refused if allowed.admits(each)] == []


def test_requirements_of_one_key_hold_together() -> None:
    """A value meets all requirements of its key."""
    allowed = combine(
        [
            LabelRequirement(key="k", operator="Gt", values=("2",)),
            LabelRequirement(key="k", operator="Lte", values=("8",)),
            LabelRequirement(key="k", operator="NotIn", values=("4",)),
        ]
    )["k"]
    assert [str(n) for n in range(10) if allowed.admits(str(n))] == ["3", "5", "6", "7", "8"]


def test_a_pool_offers_the_types_that_its_requirements_allow() -> None:
    """Types are offered in the first zone, and only with the allowed labels."""
    made = pool(
        "p",
        requirement("karpenter.kwok.sh/instance-cpu", "Gt", "4"),
        requirement("karpenter.kwok.sh/instance-cpu", "Lt", "32"),
        requirement("karpenter.kwok.sh/instance-family", "NotIn", "m"),
        requirement("kubernetes.io/arch", "In", "arm64"),
    )
    offers = list(offers_of(decode(made, NodePool), generic_machines(), {}))
    names = [each.machine.name for each in offers]
    assert names == [f"{family}-{cpus}x-arm64-linux" for family in "cs" for cpus in (8, 16)]
    assert {each.labels["topology.kubernetes.io/zone"] for each in offers} == {"test-zone-a"}


def test_pods_choose_among_the_values_that_a_pool_allows() -> None:
    """A label has a value that both the pool and the Pods allow."""
    small = instance_type("c-1x-amd64-linux")
    made = pool("p", small, requirement("team", "In", "red", "blue"))
    choices = {"team": {"red", "green"}, "topology.kubernetes.io/zone": {"test-zone-c"}}
    (offer,) = offers_of(decode(made, NodePool), generic_machines(), choices)
    assert offer.labels["team"] == "red"
    assert offer.labels["topology.kubernetes.io/zone"] == "test-zone-c"
