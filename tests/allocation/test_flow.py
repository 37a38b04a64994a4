"""How much flows through a network."""

from random import Random

import pytest

from dryrack.allocation.flow import Flow


def test_a_path_is_as_wide_as_its_narrowest_pipe() -> None:
    """Three and two in a row let two pass, and no more."""
    for amount in (2, 3):
        flow = Flow()
        flow.pipe("s", "a", 3)
        flow.pipe("a", "t", 2)

        assert flow.carries("s", "t", amount) is (amount == 2)


def test_what_flows_is_turned_back_for_a_better_way() -> None:
    """The first path found must not stand in the way of two others."""
    flow = Flow()
    for start, end in ("sa", "sb", "ac", "bc", "ad", "ct", "dt"):
        flow.pipe(start, end, 1)

    assert flow.carries("s", "t", 2)


def test_pipes_between_the_same_joints_add_up() -> None:
    """Two pipes of one are a pipe of two."""
    flow = Flow()
    flow.pipe("s", "t", 1)
    flow.pipe("s", "t", 1)

    assert flow.carries("s", "t", 2)


@pytest.mark.parametrize("seed", range(40))
def test_as_much_flows_as_the_narrowest_cut_lets_through(seed: int) -> None:
    """Of all ways to part the source from the sink the narrowest is the limit, exactly."""
    chance = Random(seed)
    joints = "sabcdt"
    pipes = [
        (start, end, chance.randint(1, 4))
        for start in joints
        for end in joints
        if start != end and chance.random() < 0.5
    ]
    sides = [{"s", *(j for n, j in enumerate("abcd") if mask >> n & 1)} for mask in range(16)]
    narrowest = min(
        sum(width for start, end, width in pipes if start in side and end not in side)
        for side in sides
    )

    for amount in (narrowest, narrowest + 1):
        flow = Flow()
        for pipe in pipes:
            flow.pipe(*pipe)
        assert flow.carries("s", "t", amount) is (amount == narrowest)
