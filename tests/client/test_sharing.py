"""Objects share equal parts, and their values stay the same."""

from __future__ import annotations

import copy
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dryrack.client.sharing import SharedDecoder, share_parts

_LEAVES = st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from([1.0, 0.0, "", "a"])
_VALUES = st.recursive(
    _LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("xyz"), inner),
    max_leaves=12,
)


@given(_VALUES, _VALUES)
def test_sharing_changes_no_value(new: Any, like: Any) -> None:
    """The result is equal to the input, and the other object stays as it was."""
    wanted = json.dumps(new, sort_keys=True)
    other = json.dumps(like, sort_keys=True)
    made = share_parts(copy.deepcopy(new), like)
    assert json.dumps(made, sort_keys=True) == wanted
    assert json.dumps(like, sort_keys=True) == other


@given(_VALUES)
def test_the_same_value_is_the_same_object(value: Any) -> None:
    """Nothing of a copy is kept."""
    assert share_parts(copy.deepcopy(value), value) is value


def test_parts_that_agree_are_one() -> None:
    """Also where the objects as a whole differ, and lists have different lengths."""
    like = {"name": "a", "spec": {"containers": [{"image": "i"}], "n": 1}}
    made = share_parts({"name": "b", "spec": {"containers": [{"image": "i"}, {}], "n": 1}}, like)
    assert made["spec"]["containers"][0] is like["spec"]["containers"][0]  # type: ignore[index]
    assert made == {"name": "b", "spec": {"containers": [{"image": "i"}, {}], "n": 1}}


@given(st.dictionaries(st.sampled_from(["metadata", "spec", "x"]), _VALUES))
def test_what_is_read_part_by_part_is_what_was_written(value: Any) -> None:
    """In every field and in its order, the first time and again, padded to any length."""
    decoder = SharedDecoder()
    padding = [{"text": "x" * 30, "value": value}, [value] * 40]
    text = json.dumps(value | {"padding": padding})
    for _ in range(2):
        assert json.dumps(decoder.decode(text.encode())) == text


def test_parts_with_one_text_are_one_value() -> None:
    """Parts are shared within and between objects; metadata is never shared."""
    decoder = SharedDecoder()
    attributes = {"model": {"string": "a model with a name"}, "index": {"int": 1}}
    one, other = (
        decoder.decode(
            json.dumps(
                {
                    "metadata": {"name": "x", "labels": {"label": "a value of some length"}},
                    "spec": {"devices": [{"name": name, "attributes": attributes}] * 2},
                }
            ).encode()
        )
        for name in ("a", "b")
    )
    first, second = one["spec"]["devices"]
    assert first["attributes"] is second["attributes"]
    assert first["attributes"] is other["spec"]["devices"][0]["attributes"]
    assert one["metadata"] is not other["metadata"]
    assert one["metadata"]["labels"] is not other["metadata"]["labels"]
