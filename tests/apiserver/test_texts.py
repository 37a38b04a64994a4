"""Texts that the server reads: JSON as Go reads it, selectors as Kubernetes does."""

from __future__ import annotations

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

keys = st.from_regex(r"[a-z][a-z0-9.-]{0,8}[a-z0-9]", fullmatch=True).filter(
    lambda key: key not in ("in", "notin")
)
labels = st.dictionaries(st.sampled_from(["a", "b"]), st.sampled_from(["", "1", "2", "x"]))


@pytest.mark.parametrize(
    "text", [b"", b"{", b"x", b"\xb2", b'{"a":1,}', b'"\n"', b"1e+", b"01", b"NaN", b"-Infinity"]
)
def test_what_is_no_json_is_refused_with_its_place(text: bytes) -> None:
    """Numbers that only Python accepts are refused too."""
    with pytest.raises(go_json.GoSyntaxError, match="invalid JSON"):
        go_json.read_text(text)


@given(labels, st.sampled_from(["1", "2", "x", ""]))
def test_opposite_requirements_split_the_world(found: dict[str, str], value: str) -> None:
    """Exactly one holds of `a=v` and `a!=v`, of `a` and `!a`, of in and notin."""
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


@pytest.mark.parametrize("text", ["b", "YWJjZ", "YQ=", "Y===", "YQ==x", "YQ=x", "YW é"])
def test_what_is_no_base64_is_refused(text: str) -> None:
    """Strange bytes, and four that are not four."""
    with pytest.raises(MismatchError, match="illegal base64 data"):
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
