"""Documents change only where their value changes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.conversion.converting import layouts, objects

from dryrack.conversion.text_edits import edit, same

FLAT = """\
# head
requests:
# the first
- name: g   # its name

  # what it is
  deviceClassName: gpu # class
  count: 2
- {name: h, deviceClassName: gpu}
- deviceClassName: gpu
  selectors:
    - cel:
        expression: |
          a ==
            b

  name: i
# end
"""
NESTED = """\
# head
requests:
# the first
- name: g   # its name

  exactly:
    # what it is
    deviceClassName: gpu # class
    count: 2
- {name: h, exactly: {deviceClassName: gpu}}
- exactly:
    deviceClassName: gpu
    selectors:
      - cel:
          expression: |
            a ==
              b

  name: i
# end
"""
BASIC = """\
devices:
-   name: a
    basic: # the model
        # its attributes
        attributes:
            model: {string: "x"}
- name: b
  basic: {attributes: {model: {string: "y"}}}
"""
LIFTED = """\
devices:
-   name: a
    # the model
    # its attributes
    attributes:
        model: {string: "x"}
- name: b
  attributes: {model: {string: "y"}}
"""

_texts = st.text("ab:#- '\"\n", max_size=6) | st.sampled_from(("yes", "1", "017", "~", "on"))
_values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | _texts,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abcdef"), inner, max_size=4)
    ),
    max_leaves=12,
)
_objects = st.dictionaries(st.sampled_from("abcdef"), _values, min_size=1, max_size=4)


def _rewrite(text: str, new: Any) -> str:
    [old] = objects(text)
    edited = edit(text, old, new)
    assert edited.reprinted == ""
    assert objects(edited.text) == [new]
    return edited.text


def test_entries_move_under_a_new_key_with_their_comments() -> None:
    """Order, indentation, quotes and comments stay everywhere."""
    assert _rewrite(FLAT, objects(NESTED)[0]) == NESTED


def test_entries_move_up_with_their_comments() -> None:
    """A comment beside a key that is gone stays above its entries."""
    assert _rewrite(BASIC, objects(LIFTED)[0]) == LIFTED


@pytest.mark.parametrize(
    ("text", "new", "result"),
    [
        ("a: 'x'  # c\nb: 1\n", {"a": "y", "b": 1}, "a: 'y'  # c\nb: 1\n"),
        ('a: "x"\n', {"a": "it's"}, 'a: "it\'s"\n'),
        ("a: 1 # one\nb: 2 # two\n", {"b": 2}, "b: 2 # two\n"),
        ("a:\n- x # 1\n- z # 2\n", {"a": ["z"]}, "a:\n- z # 2\n"),
        ("a: {b: 1, c: 2}\n", {"a": {"c": 2}}, "a: {c: 2}\n"),
        ("a: { b: 1 }\n", {"a": {"b": 1, "c": 2}}, "a: { b: 1, c: 2 }\n"),
        ("a: 1 # x\n", {"b": 1}, "b: 1 # x\n"),
        ("a: 80Gi # x\n", {"a": {"value": "80Gi"}}, "a: {value: 80Gi} # x\n"),
        (
            "a:\n  b: 1\nc: 2\n",
            {"a": {"b": 1, "d": [1]}, "c": 2},
            "a:\n  b: 1\n  d:\n  - 1\nc: 2\n",
        ),
        ("a:\n  - 1\n", {"a": [1], "b": [2]}, "a:\n  - 1\nb:\n  - 2\n"),
        ("a: 1\nb: x", {"a": 1, "b": "on"}, 'a: 1\nb: "on"'),
    ],
)
def test_one_change_changes_one_place(text: str, new: Any, result: str) -> None:
    """Everything beside the change stays byte for byte."""
    assert _rewrite(text, new) == result


@pytest.mark.parametrize("text", ["a: &x {b: 1}\nc: *x\n", "d: &x {b: 1}\na:\n  <<: *x\n"])
def test_a_document_with_anchors_is_printed_again(text: str) -> None:
    """The text of an anchor belongs to several places."""
    [old] = objects(text)
    edited = edit(text, old, {**old, "z": 1})

    assert edited.reprinted == "it has anchors and aliases"
    assert objects(edited.text) == [{**old, "z": 1}]


def test_the_comments_of_removed_entries_are_reported() -> None:
    """A comment is lost only with the line that it belongs to."""
    edited = edit("a: 1\nb: # two\n  c: 1 # three\n", {"a": 1, "b": {"c": 1}}, {"a": 1})

    assert edited.text == "a: 1\n"
    assert edited.lost == ((1, "# two"), (2, "# three"))


@given(st.data())
def test_every_edit_has_the_new_value(data: st.DataObject) -> None:
    """Whatever the layout is, the text means the new value afterwards."""
    text = data.draw(_objects.flatmap(layouts)) + "\n"
    [old] = objects(text)
    new = data.draw(_objects)
    edited = edit(text, old, new)

    [written] = objects(edited.text)
    assert same(written, new)


@given(_objects.flatmap(layouts))
def test_no_change_is_no_edit(text: str) -> None:
    """A value that stays the same leaves every byte."""
    [old] = objects(text)
    assert edit(text, old, dict(old)).text == text
