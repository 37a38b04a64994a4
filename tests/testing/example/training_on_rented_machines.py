"""Our class and our training on the machines that we rent, before anybody rents them."""

import pytest

from dryrack.testing import Apply, ExpectPending, ExpectScheduled, Fleet


@pytest.fixture(autouse=True)
def our_class(apply: Apply) -> None:
    apply("device-class.yaml")


def test_three_machines_are_enough(
    fleet: Fleet, apply: Apply, expect_scheduled: ExpectScheduled
) -> None:
    fleet("p5.48xlarge", count=3)
    apply("training.yaml")

    training = expect_scheduled("gang/training", devices=8)

    assert len(training.nodes) == 3


def test_with_two_machines_none_of_the_workers_starts(
    fleet: Fleet, apply: Apply, expect_pending: ExpectPending, expect_scheduled: ExpectScheduled
) -> None:
    fleet("p5.48xlarge", count=2)
    apply("training.yaml")

    expect_pending("gang/training", because="8 in use")

    fleet("p5.48xlarge")
    expect_scheduled("gang/training", within="5m")


def test_small_cards_are_not_in_the_class(
    fleet: Fleet, apply: Apply, expect_pending: ExpectPending
) -> None:
    fleet("g5.48xlarge", count=3)
    apply("training.yaml")

    expect_pending("gang/training", because="class large-gpu does not select it")
