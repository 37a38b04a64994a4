"""Texts fit into an event, and parts that do not fit are counted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dryrack.controllers.slices.events import MESSAGE_MAX, change_texts, drop_texts, fitted, listed
from dryrack.hardware.config_formats import read_config
from dryrack.hardware.config_formats.report import SHOWN_MAX
from dryrack.hardware.pool_plan import PoolId


@given(
    st.lists(st.text("xyzäß語 ", max_size=600), min_size=1, max_size=40),
    st.sampled_from([(), ("the last valid version stays in force",)]),
    st.integers(0, 1000),
)
def test_a_list_fits_and_its_rest_is_counted(
    parts: list[str], more: tuple[str, ...], untold: int
) -> None:
    """The first is there, what comes last comes last, and all that is left out is counted."""
    text = fitted(parts, *more, omitted=untold)
    told = text.split("\n")
    ending = told[len(told) - len(more) :]
    rest = [line for line in told if line.startswith("and ")]
    counted = sum(int(line.split()[1]) for line in rest)

    assert len(text.encode()) <= MESSAGE_MAX
    assert tuple(ending) == more
    assert told[0] == parts[0] or "..." in told[0]
    assert len(told) - len(more) - len(rest) + counted == len(parts) + untold


def test_a_part_that_is_too_long_loses_its_middle() -> None:
    """The problem comes first and the fix last; both stay, and so does the count."""
    text = fitted(["what is wrong " + "x" * 3000 + " the fix", "another"], "in force: nothing")

    assert text.startswith("what is wrong x")
    assert text.endswith("x the fix\nand 1 more\nin force: nothing")
    assert len(text.encode()) <= MESSAGE_MAX


def test_problems_that_nobody_listed_are_counted_too() -> None:
    """A reader returns the first two hundred problems; the event has the total count."""
    mistakes = 700
    devices = "".join(f"    - name: No {number}\n" for number in range(mistakes))
    terms = "  nodeSelectorTerms:\n  - matchExpressions: [{key: a, operator: Exists}]\n"
    text = f"driver: a.example.com\nmappings:\n- name: a\n{terms}  resourceSlice:\n    devices:\n"
    problems = read_config(text + devices, file="config.yaml").problems
    lines = listed(problems, "nothing is in force").splitlines()

    assert len(problems) == SHOWN_MAX + 1
    assert lines[-1] == "nothing is in force"
    assert lines[-2] == f"and {mistakes - (len(lines) - 2)} more"


def test_many_pools_and_slices_are_counted() -> None:
    """Four are named."""
    pools = {PoolId("a.example.com", f"pool-{number}"): [a_slice(number)] for number in range(9)}
    (change,) = change_texts(pools, pools, ()).values()
    (dropped,) = drop_texts([a_slice(number) for number in range(6)]).values()

    assert change.startswith("a.example.com/pool-0: 0 devices in 1 slice; ")
    assert change.endswith("a.example.com/pool-3: 0 devices in 1 slice; and 5 more")
    assert dropped.startswith(
        "slice-0; slice-1; slice-2; slice-3; and 2 more; the API server dropped"
    )


@pytest.mark.parametrize(
    ("gates", "end"),
    [
        ((), "enable the feature gates that the devices need"),
        (("DRADeviceTaints",), "enable the feature gate DRADeviceTaints"),
        (("A", "B"), "enable the feature gates A, B"),
    ],
)
def test_an_event_names_the_gates_of_dropped_fields(gates: tuple[str, ...], end: str) -> None:
    """Without known gates, the event says what to look for."""
    (dropped,) = drop_texts([a_slice(0)], gates).values()

    assert dropped.endswith(end)


def a_slice(number: int) -> dict[str, object]:
    spec = {"nodeName": "n", "driver": "a.example.com", "pool": {"name": f"pool-{number}"}}
    return {"metadata": {"name": f"slice-{number}"}, "spec": spec}
