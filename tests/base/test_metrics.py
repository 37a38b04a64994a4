"""Numbers in the text that Prometheus reads."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.base import exposition

from dryrack.base.errors import InternalError
from dryrack.base.metrics import Registry, number

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


def test_the_text_is_exact() -> None:
    """HELP, TYPE, one line for each sample, in the order of names and labels."""
    registry = Registry()
    registry.gauge("queue_depth", "Keys that wait.").of().set(3)
    asked = registry.counter("asked_total", 'By "who"; a \\ and\na line.', ("who", "how"))
    asked.of("b", "x").add()
    asked.of('a"\\\n', "y").add(2.5)
    took = registry.histogram("took_seconds", "Time.", ("who",), bounds=(0.1, 1.0))
    for seconds in (0.05, 0.1, 0.5, 7.0):
        took.of("b").observe(seconds)

    assert registry.render() == (
        '# HELP asked_total By "who"; a \\\\ and\\na line.\n'
        "# TYPE asked_total counter\n"
        'asked_total{who="a\\"\\\\\\n",how="y"} 2.5\n'
        'asked_total{who="b",how="x"} 1\n'
        "# HELP queue_depth Keys that wait.\n"
        "# TYPE queue_depth gauge\n"
        "queue_depth 3\n"
        "# HELP took_seconds Time.\n"
        "# TYPE took_seconds histogram\n"
        'took_seconds_bucket{who="b",le="0.1"} 2\n'
        'took_seconds_bucket{who="b",le="1"} 3\n'
        'took_seconds_bucket{who="b",le="+Inf"} 4\n'
        'took_seconds_sum{who="b"} 7.65\n'
        'took_seconds_count{who="b"} 4\n'
    )


@given(st.dictionaries(st.tuples(TEXT, TEXT), st.floats(0, 1e300), max_size=6), TEXT)
def test_every_text_can_be_read_back(cells: dict[tuple[str, str], float], text: str) -> None:
    """For any label values, a strict reader finds the same numbers."""
    registry = Registry()
    family = registry.counter("some_total", text, ("one", "two"))
    for values, amount in cells.items():
        family.of(*values).add(amount)
    metric = exposition.read(registry.render())["some_total"]

    assert metric.text == text
    found = {tuple(value for _, value in key[1]): each for key, each in metric.samples.items()}
    assert found == cells


@given(st.lists(st.floats(-1e6, 1e6), max_size=30), st.sets(st.floats(-1e6, 1e6), max_size=8))
def test_buckets_count_what_is_at_most_their_bound(values: list[float], bounds: set[float]) -> None:
    """Each bucket holds all values up to its bound, the bound itself among them."""
    registry = Registry()
    family = registry.histogram("some", "Some.", bounds=sorted(bounds))
    for value in values:
        family.of().observe(value)
    samples = exposition.read(registry.render())["some"].samples

    for bound in (*bounds, math.inf):
        count = samples["some_bucket", (("le", number(bound)),)]
        assert count == sum(value <= bound for value in values)


def test_asking_twice_gives_the_same() -> None:
    """A second who counts the same adds to the same number; another meaning is a bug."""
    registry = Registry()
    registry.counter("some_total", "Some.", ("who",)).of("a").add()
    registry.counter("some_total", "Some.", ("who",)).of("a").add()

    assert exposition.value(registry.render(), "some_total", who="a") == 2
    for labels in ((), ("other",)):
        with pytest.raises(InternalError, match="some_total"):
            registry.counter("some_total", "Some.", labels)
    with pytest.raises(InternalError, match="some_total"):
        registry.reading("some_total", "Some.", ("who",))


def test_what_others_know_is_asked_when_it_is_needed() -> None:
    """A reading is as it is when the text is made; two who know a part of it are added up."""
    registry = Registry()
    first: list[int] = []
    registry.reading("depth", "Depth.", ("name",)).read_from(lambda: {("x",): len(first)})
    registry.reading("depth", "Depth.", ("name",)).read_from(lambda: {("x",): 1, ("y",): 5})
    first += [1, 2]

    assert exposition.value(registry.render(), "depth", name="x") == 3
    assert exposition.value(registry.render(), "depth", name="y") == 5


def test_a_cell_needs_a_value_for_every_label() -> None:
    """A missing label value is an error."""
    with pytest.raises(InternalError, match="some_total"):
        Registry().counter("some_total", "Some.", ("a",)).of()


def test_numbers_are_those_that_prometheus_reads() -> None:
    """Infinities, nothing, whole numbers without a point, and the shortest exact decimals."""
    written = [number(each) for each in (math.inf, -math.inf, math.nan, 3.0, 0.1, 1e300, 1e-8, -2)]

    assert written == ["+Inf", "-Inf", "NaN", "3", "0.1", "1e+300", "1e-08", "-2"]
