"""
Quantities are apimachinery's.

`quantities.json` was written by apimachinery v0.36.4 itself: what it makes of each text, and
how it compares, adds and subtracts pairs. Left out on purpose: exponents that would stall it.
"""

import copy
import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dryrack.kinds.quantity import DIGITS_MAX, FORMAT_WRONG, Format, Quantity, QuantityError

TABLE: dict[str, list[dict[str, Any]]] = json.loads(
    (Path(__file__).parent / "quantities.json").read_text()
)
ACCEPTED = [row for row in TABLE["quantities"] if "error" not in row]
REFUSED = [row for row in TABLE["quantities"] if "error" in row]

texts = st.builds(
    lambda sign, digits, decimals, suffix: f"{sign}{digits}{decimals}{suffix}",
    st.sampled_from(["", "-", "+"]),
    st.integers(0, 10**20).map(str),
    st.one_of(st.just(""), st.integers(0, 10**12).map(lambda n: f".{n}")),
    st.sampled_from(["", "n", "u", "m", "k", "M", "G", "T", "P", "Ki", "Mi", "Gi", "Ti", "e3"]),
)
quantities = texts.map(Quantity.parse)


def go_float(text: str) -> float:
    """A float as Go's %b writes it: an integer and a power of two."""
    if text in ("+Inf", "-Inf"):
        return float(text)
    mantissa, _, exponent = text.partition("p")
    return float(int(mantissa) * 2.0 ** int(exponent))


def test_the_table_is_large() -> None:
    """The comparison with apimachinery covers what it claims to cover."""
    assert len(TABLE["quantities"]) >= 400
    assert len(REFUSED) >= 20
    assert len(TABLE["pairs"]) >= 400


@pytest.mark.parametrize("row", REFUSED, ids=lambda row: repr(row["input"]))
def test_what_apimachinery_refuses_is_refused_in_its_words(row: dict[str, Any]) -> None:
    """The error text is the one a user of Kubernetes knows."""
    with pytest.raises(QuantityError) as raised:
        Quantity.parse(row["input"])

    assert str(raised.value) == row["error"]


@pytest.mark.parametrize("row", ACCEPTED, ids=lambda row: repr(row["input"]))
def test_what_apimachinery_accepts_reads_the_same(row: dict[str, Any]) -> None:
    """Text, format, rounding and the integer views of a quantity are apimachinery's."""
    quantity = Quantity.parse(row["input"])

    assert str(quantity) == row["string"]
    assert str(Quantity.of(quantity.nanos, quantity.format)) == row["canonical"]
    assert quantity.format.value == row["format"]
    assert quantity.as_int64() == row.get("int64")
    assert quantity.value() == row["value"]
    assert quantity.milli_value() == row["milli"]
    assert quantity.as_approximate_float() == go_float(row["float"])


def test_pairs_compare_add_and_subtract_the_same() -> None:
    """Order, sums, differences and their formats are apimachinery's."""
    for row in TABLE["pairs"]:
        left = Quantity.parse(row["left"])
        right = Quantity.parse(row["right"])
        total = left + right
        difference = left - right

        assert (left > right) - (left < right) == row["compare"], row
        assert str(total) == row["sum"], row
        assert total.format.value == row["sumFormat"], row
        assert total.as_int64() == row.get("sumInt64"), row
        assert total.as_approximate_float() == go_float(row["sumFloat"]), row
        assert str(difference) == row["difference"], row
        assert difference.as_int64() == row.get("differenceInt64"), row


@given(quantities)
def test_the_printed_text_reads_back_as_the_same_value(quantity: Quantity) -> None:
    """Printing loses nothing."""
    assert Quantity.parse(str(quantity)) == quantity
    assert Quantity.parse(str(quantity + Quantity.parse("0"))) == quantity


@given(quantities, quantities)
def test_equal_quantities_are_one_key(left: Quantity, right: Quantity) -> None:
    """Equality, order and hash follow the value alone."""
    assert (left == right) == (left.nanos == right.nanos)
    assert (left < right) == (left.nanos < right.nanos)
    assert left != right or hash(left) == hash(right)
    assert hash(left) == hash(Quantity.of(left.nanos, Format.BINARY_SI))


@given(quantities, quantities, quantities)
def test_addition_is_exact(a: Quantity, b: Quantity, c: Quantity) -> None:
    """Sums do not depend on their order, and subtraction undoes addition."""
    assert (a + b) + c == a + (b + c)
    assert a + b - b == a
    assert -(a - b) == b - a


def test_the_least_number_is_subtracted_as_it_is() -> None:
    """Kubernetes negates it in 64 bits, where it has no counterpart, unless the sum overflows."""
    least = Quantity.of(-(2**63) * 10**9, Format.DECIMAL_SI)

    assert str(Quantity.parse("1") - least) == "-9223372036854775807"
    assert str(Quantity.parse("-5") - least) == "9223372036854775803"
    assert (Quantity.parse("-5") - least).as_int64() is None


@pytest.mark.parametrize(
    "text", ["1e999999999", "9" * (DIGITS_MAX + 1), "1" + "0" * 10_000_000, "1e2000000000"]
)
def test_numbers_beyond_reason_are_refused_at_once(text: str) -> None:
    """A quantity that would stall Kubernetes is an error, not a wait."""
    with pytest.raises(QuantityError, match="digits are not supported"):
        Quantity.parse(text)


@pytest.mark.parametrize(
    "text",
    [
        "0" * 100_000 + "!",
        "0" * 50_000 + "." + "0" * 50_000 + "!",
        "1" * 100_000 + "e" + "1" * 100_000 + "!",
        "+" + "0" * 100_000 + "E" * 100_000 + "-" + "0" * 100_000 + " ",
    ],
    ids=["zeros", "decimals", "exponent", "suffix"],
)
def test_a_long_text_that_is_no_quantity_is_refused_in_linear_time(text: str) -> None:
    """Zeros, digits and exponents that overlap are not divided in every possible way."""
    with pytest.raises(QuantityError) as raised:
        Quantity.parse(text)

    assert str(raised.value) == FORMAT_WRONG


@pytest.mark.parametrize(
    "text", ["0" * 10_000, "1e" + "0" * 5_000 + "1", "1e" + "9" * 5_000, "9" * 4_000 + "e3990"]
)
def test_a_quantity_of_too_many_characters_is_refused(text: str) -> None:
    """Leading zeros and the digits of an exponent count: nothing is kept that has so many."""
    with pytest.raises(QuantityError, match="digits are not supported"):
        Quantity.parse(text)


@pytest.mark.parametrize("zero", ["0e-2147483648", "0e2147483647", "0." + "0" * 30 + "e2147483647"])
@pytest.mark.parametrize("other", ["1", "1e30", "9" * 19, "1n", "-1e-99"])
def test_a_zero_with_an_enormous_exponent_does_not_stall_sums(zero: str, other: str) -> None:
    """Adding a zero changes nothing, however it is written, and takes no time."""
    left = Quantity.parse(zero)
    right = Quantity.parse(other)

    assert left + right == right
    assert right - left == right
    assert (left.value(), left.milli_value(), left.scaled_value(-9)) == (0, 0, 0)


def test_the_largest_quantities_can_be_added_and_printed() -> None:
    """No sum of accepted quantities has more digits than Python prints."""
    largest = Quantity.parse("9" * DIGITS_MAX)
    least = Quantity.parse("1n")

    assert str(largest + least).startswith("9999")
    assert str(Quantity.parse("1e3990") - least).startswith("9999")


@pytest.mark.parametrize(("text", "printed"), [("1e-999999999", "1n"), ("-1e-99999", "-1n")])
def test_a_number_below_nano_is_rounded_up_at_once(text: str, printed: str) -> None:
    """However small, what is not zero counts as one nano."""
    assert str(Quantity.parse(text)) in (printed, printed.replace("n", "e-9"))


@pytest.mark.parametrize(
    ("value", "text"),
    [(8, "8"), (1.5, "1500m"), (8.0, "8"), (1e20, "100e18"), (1e21, "1e21"), (" 1Gi ", "1Gi")],
)
def test_json_may_hold_a_number(value: object, text: str) -> None:
    """A quantity that is written as a number in JSON or YAML is the same quantity."""
    assert Quantity.from_json(value) == Quantity.parse(text)


@pytest.mark.parametrize("value", [True, [], {}, b"1"])
def test_json_may_not_hold_anything_else(value: object) -> None:
    """Booleans, lists and objects are not quantities."""
    with pytest.raises(QuantityError):
        Quantity.from_json(value)


def test_a_quantity_cannot_be_changed_and_copies_well() -> None:
    """Quantities are shared between objects, so they are immutable and cheap to copy."""
    quantity = Quantity.parse("1.50Gi")

    with pytest.raises(AttributeError):
        quantity.nanos = 0
    assert copy.deepcopy(quantity) is quantity
    assert pickle.loads(pickle.dumps(quantity)).text == "1.50Gi"
    assert quantity.text == "1.50Gi"
    assert str(quantity) == "1536Mi"
