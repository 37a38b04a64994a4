"""Test on which nodes the training fits."""

from dryrack.testing import Apply, ExpectPending, ExpectScheduled, Fleet


def test_the_training_fits_on_one_node(
    fleet: Fleet, apply: Apply, expect_scheduled: ExpectScheduled
) -> None:
    """Both workers need four of the eight GPUs of the node."""
    fleet("p5.48xlarge")
    apply("pytest.yaml")

    training = expect_scheduled("gang/training", devices=4)

    assert training.nodes == ("node-1",)


def test_no_worker_starts_if_one_does_not_fit(
    fleet: Fleet, apply: Apply, expect_pending: ExpectPending
) -> None:
    """A node of this type has one GPU."""
    fleet("g6.xlarge", count=2)
    apply("pytest.yaml")

    expect_pending("gang/training")
