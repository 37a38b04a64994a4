"""
YAML means to us what it means to kubectl.

`yaml.json` was written by sigs.k8s.io/yaml v1.6.0: for each text the JSON it becomes, or that
it is refused. Where we differ on purpose, the test says so.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from dryrack.kinds.text.parsed import DEPTH_MAX, Fault, Parsed, Repeats
from dryrack.kinds.text.yaml_objects import ALIASED_MAX
from dryrack.kinds.text.yaml_text import documents

ROWS: list[dict[str, Any]] = json.loads((Path(__file__).parent / "yaml.json").read_text())
TWICE = "a: 1\na: 2"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: repr(row["yaml"]))
def test_each_text_becomes_the_same_json(row: dict[str, Any]) -> None:
    """The same texts are refused, and all others have the same value and type."""
    found = list(documents(row["yaml"]))

    if "error" in row or row["yaml"] == TWICE:
        assert isinstance(found[-1], Fault)
    else:
        assert json.dumps(value_of(found), sort_keys=True) == json.dumps(
            row.get("json"), sort_keys=True
        )


def value_of(found: list[Parsed | Fault]) -> Any:
    if not found:
        return None
    (only,) = found
    assert isinstance(only, Parsed)
    return only.value


def test_the_last_of_two_keys_counts_where_that_is_asked_for() -> None:
    """Each repeated key is reported with the line of its value."""
    text = "a: 1\nb: {c: 1, c: 2}\na:\n  3\ny: 1\non: 2\n"
    (found,) = documents(text, Repeats.LAST_COUNTS)

    assert isinstance(found, Parsed)
    assert found.value == {"a": 3, "b": {"c": 2}, "true": 2}
    told = [(each.key, each.place.line) for each in found.repeated]
    assert told == [("c", 2), ("a", 4), (True, 6)]


def test_keys_of_other_types_are_no_repetition_to_kubernetes() -> None:
    """Keys are compared by value, so `1` and `'1'` are not repetitions."""
    (found,) = documents("1: a\n'1': b\n1.0: c\n'1': d\n1: e\n", Repeats.LAST_COUNTS)

    assert isinstance(found, Parsed)
    assert [(each.key, each.place.line) for each in found.repeated] == [("1", 4), (1, 5)]


def test_merged_keys_are_repetitions_to_kubernetes() -> None:
    """The second of two equal keys is reported, written or merged; neither is a fault."""
    text = "a: 1\n<<: {a: 2,\n  b: 3}\nb: 4\n"
    (told,) = documents(text, Repeats.LAST_COUNTS)
    (read,) = documents(text)

    assert isinstance(told, Parsed)
    assert isinstance(read, Parsed)
    assert told.value == read.value == {"a": 2, "b": 4}
    assert [(each.key, each.place.line) for each in told.repeated] == [("a", 2), ("b", 4)]


def test_values_are_counted_where_that_is_asked_for() -> None:
    """Keys and words; one more than allowed is a fault, with its place."""
    text = "a: [1, 2]\nb: 3\n"
    (whole,) = documents(text, values_max=5)
    (cut,) = documents(text, values_max=4)

    assert isinstance(whole, Parsed)
    assert isinstance(cut, Fault)
    assert (cut.place.line, cut.message) == (2, "too many values")


def test_an_alias_is_a_copy() -> None:
    """Changing one place of a document never changes another."""
    value = value_of(list(documents("a: &x {b: [1]}\nc: *x\n")))

    value["a"]["b"].append(2)
    assert value["c"] == {"b": [1]}


@pytest.mark.parametrize("text", ["[" * 100_000, "{a: " * 100_000, "- " * 100_000 + "a"])
def test_nesting_without_end_is_a_fault(text: str) -> None:
    """A file of brackets is refused; it neither recurses nor crashes."""
    (fault,) = documents(text)

    assert isinstance(fault, Fault)
    assert fault.message == f"nested more than {DEPTH_MAX} levels deep"


def test_a_bomb_of_aliases_is_a_fault() -> None:
    """Aliases of aliases are counted before they are expanded."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30)]
    (fault,) = documents("\n".join(lines))

    assert isinstance(fault, Fault)
    assert f"more than {ALIASED_MAX} values" in fault.message


def test_syntax_errors_do_not_hide_each_other() -> None:
    """Reading goes on after a bad document, up to a limit."""
    found = list(documents("a: [\n---\nb: 1\n---\n c: ]\n---\nd: 1\n"))
    lines = [each.place.line for each in found if isinstance(each, Fault)]
    values = [each.value for each in found if isinstance(each, Parsed)]

    assert lines == [2, 5]
    assert values == [{"b": 1}, {"d": 1}]
    assert "the rest was not read" in str(list(documents("--- [\n" * 100))[-1])
