"""Texts that the server reads: JSON as Go reads it, selectors as Kubernetes does."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dryrack.apiserver.verbs import field_selectors, label_selectors
from dryrack.apiserver.verbs.label_selectors import SelectorError
from dryrack.kinds.schemas.go_scalars import MismatchError, binary
from dryrack.kinds.text import go_json

if TYPE_CHECKING:
    from collections.abc import Callable

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
keys = st.from_regex(r"[a-z][a-z0-9.-]{0,8}[a-z0-9]", fullmatch=True).filter(
    lambda key: key not in ("in", "notin")
)
labels = st.dictionaries(st.sampled_from(["a", "b"]), st.sampled_from(["", "1", "2", "x"]))


@given(values, st.data())
def test_go_and_python_agree_on_what_is_json(value: object, data: st.DataObject) -> None:
    """For a text and any text one change away, both accept it or both refuse it."""
    text = bytearray(json.dumps(value).encode())
    at = data.draw(st.integers(0, len(text)))
    change = data.draw(st.sampled_from([b"", *(bytes([each]) for each in b'{}[],:"\\0-.e tnf')]))
    width = data.draw(st.integers(0, 2))
    text[at : at + width] = change
    try:
        json.loads(bytes(text), parse_constant=_refused)
        is_json = True
    except ValueError:
        is_json = False

    assert (go_json.syntax_error(bytes(text)) == "") is is_json


def _refused(constant: str) -> None:
    raise ValueError(constant)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (b"", "unexpected end of JSON input"),
        (b"{", "unexpected end of JSON input"),
        (b"x", "invalid character 'x' looking for beginning of value"),
        (b"\xb2", "invalid character '\u00b2' looking for beginning of value"),
        (b"'", "invalid character '\\'' looking for beginning of value"),
        (b'{"a":1,}', "invalid character '}' looking for beginning of object key string"),
        (b'"\n"', "invalid character '\\n' in string literal"),
        (b'"\\u12x"', "invalid character 'x' in \\u hexadecimal character escape"),
        (b"1e+", "unexpected end of JSON input"),
        (b"01", "invalid character '1' after top-level value"),
        (b"nul1", "invalid character '1' in literal null (expecting 'l')"),
    ],
)
def test_a_syntax_error_is_told_in_the_words_of_go(text: bytes, complaint: str) -> None:
    """The message is that of encoding/json."""
    assert go_json.syntax_error(text) == complaint


@given(labels, st.sampled_from(["1", "2", "x", ""]))
def test_opposite_requirements_split_the_world(found: dict[str, str], value: str) -> None:
    """Of `a=v` and `a!=v`, of `a` and `!a`, of in and notin, exactly one holds."""
    for one, other in (
        (f"a={value}", f"a!={value}"),
        ("a", "!a"),
        (f"a in ({value},2)", f"a notin ({value},2)"),
    ):
        holds = [label_selectors.parse(each).matches(found) for each in (one, other)]

        assert sorted(holds) == [False, True]


@given(st.lists(st.tuples(keys, st.sampled_from(["=", "==", "!="]), keys), max_size=4))
def test_a_selector_is_all_its_requirements(terms: list[tuple[str, str, str]]) -> None:
    """Spaces do not matter, and every term is there."""
    tight = ",".join("".join(term) for term in terms)
    loose = " , ".join(" ".join(term) for term in terms)

    assert label_selectors.parse(tight) == label_selectors.parse(loose)
    assert len(label_selectors.parse(tight).requirements) == len(terms)


@given(st.text(alphabet="ab!=(),<> in\0", max_size=12))
def test_any_text_is_a_selector_or_is_refused(text: str) -> None:
    """No text makes a parser fail otherwise, or hang, and a refusal says something."""
    for parse in (label_selectors.parse, field_selectors.parse):
        assert _refusal(parse, text) != ""


def _refusal(parse: Callable[[str], object], text: str) -> str | None:
    try:
        parse(text)
    except SelectorError as error:
        return str(error)
    return None


@pytest.mark.parametrize(
    ("text", "at"),
    [("b", 0), ("YWJjZ", 4), ("YQ=", 3), ("Y===", 1), ("YQ==x", 4), ("YQ=x", 2), ("YW é", 2)],
)
def test_base64_is_given_up_where_go_gives_it_up(text: str, at: int) -> None:
    """At the first byte that is none, or where the last four begin if they are fewer."""
    with pytest.raises(MismatchError, match=f"illegal base64 data at input byte {at}$"):
        binary(text, "x")


def test_numbers_are_compared_as_numbers() -> None:
    """`>` and `<` hold for labels that are integers; others match neither."""
    assert label_selectors.parse("n>9").matches({"n": "10"})
    assert not label_selectors.parse("n<9").matches({"n": "10"})
    assert not label_selectors.parse("n>9").matches({"n": "ten"})
    assert not label_selectors.parse("n>9").matches({})


def test_a_field_that_is_not_set_is_empty() -> None:
    """`spec.nodeName=` finds what has none."""
    selection = field_selectors.parse("spec.nodeName=,metadata.name!=x")

    assert selection.matches({"spec.nodeName": "", "metadata.name": "y"})
    assert not selection.matches({"spec.nodeName": "n", "metadata.name": "y"})
    assert field_selectors.parse(r"a=b\,c\=d").exact("a") == "b,c=d"
