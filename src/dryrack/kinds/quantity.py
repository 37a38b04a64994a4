"""
Resource quantities, exactly as apimachinery understands them.

A quantity is a number with at most nine decimal places and a preferred way of being written
("1536Mi", "1500m", "15e2"). Kubernetes keeps it either as an int64 with a decimal scale or,
where that does not fit, as a big decimal; which of the two shows through in `as_int64` and in
the approximate float, so the representation is kept along with the value. Two quantities are
equal when their values are, however they are written.

Promise: the same inputs are accepted and refused, with the same words, the same values, the
same sums and the same printed text. One exception: a number of more than `DIGITS_MAX` digits
is refused here, because comparing it would stall Kubernetes itself.
"""

import re
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from typing import NoReturn

from dryrack.base.errors import DryrackError

_SPLIT_TEXT = r"^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$"
FORMAT_WRONG = f"quantities must match the regular expression '{_SPLIT_TEXT}'"
NUMERIC_WRONG = "unable to parse numeric part of quantity"
SUFFIX_WRONG = "unable to parse quantity's suffix"

# Python refuses to print integers of more than 4300 digits; "1e999999999" must not even be built.
DIGITS_MAX = 4000
# A sign, a point and an exponent of 32 bits fit beside the digits.
_TEXT_MAX = DIGITS_MAX + 20
# Parsing and printing longer ones is rare, and a cache of them would hold hundreds of megabytes.
_CACHED_TEXT_MAX = 64
_CACHED_BITS_MAX = 256
_NUMBER_LIMIT = 10**DIGITS_MAX
_TOO_LONG = f"quantities of more than {DIGITS_MAX} digits are not supported"

INT64_MAX = 2**63 - 1
INT64_MIN = -(2**63)
_NANO = -9
# An int64 holds any number of this many decimal digits.
_INT64_DIGITS = 18
# Possessive: zeros, digits and the digits of an exponent overlap, and trying every division of a
# long run of them takes cubic time. No other division can match where the greedy one does not.
_PARTS = re.compile(r"([+-]?+)0*+([0-9]*+)((?:\.([0-9]*+))?+)([eEinumkKMGTP]*+[-+]?+[0-9]*+)")
_EXPONENT = re.compile(r"[+-]?[0-9]+")


class Format(Enum):
    """The preferred format of a quantity."""

    BINARY_SI = "BinarySI"
    DECIMAL_SI = "DecimalSI"
    DECIMAL_EXPONENT = "DecimalExponent"


_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_SUFFIX = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BINARY_SUFFIX = {exponent: suffix for suffix, exponent in _BINARY.items()}


class QuantityError(DryrackError, ValueError):
    """The text is not a quantity; the message is apimachinery's."""


class Quantity:
    """
    An exact amount of something.

    `nanos` is the value times 10**9. `written` is the text it was parsed from, or empty for a
    computed one; `verbatim` says that Kubernetes prints that text unchanged. Immutable; not a
    dataclass, because msgspec would then read it as an object and not as a string.
    """

    __slots__ = ("big", "format", "nanos", "scale", "unscaled", "verbatim", "written")

    nanos: int
    format: Format
    unscaled: int
    scale: int
    big: bool
    written: str
    verbatim: bool

    def __init__(
        self, nanos: int, format: Format, *, unscaled: int, scale: int, big: bool, written: str = ""
    ) -> None:
        """For this module only; others use `parse` and `of`."""
        fix = object.__setattr__
        fix(self, "nanos", nanos)
        fix(self, "format", format)
        fix(self, "unscaled", unscaled)
        fix(self, "scale", scale)
        fix(self, "big", big)
        fix(self, "written", written)
        fix(self, "verbatim", False)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a Quantity is immutable; {name} cannot be set")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a Quantity is immutable; {name} cannot be deleted")

    def __reduce__(self) -> tuple[object, ...]:
        if self.written:
            return Quantity.parse, (self.written,)
        return Quantity.of, (self.nanos, self.format)

    def __copy__(self) -> "Quantity":
        return self

    def __deepcopy__(self, memo: object) -> "Quantity":
        return self

    @staticmethod
    def parse(text: str) -> "Quantity":
        """Read a quantity, or raise `QuantityError`."""
        return _parse(text) if len(text) <= _CACHED_TEXT_MAX else _read(text)

    @staticmethod
    def from_json(value: object) -> "Quantity":
        """Read what a JSON document may hold for a quantity: a string, a number, null."""
        if value is None:
            return ZERO
        if isinstance(value, str):
            return Quantity.parse(value.strip(_GO_SPACE))
        if isinstance(value, int) and not isinstance(value, bool):
            return Quantity.parse(_digits(value))
        if isinstance(value, float):
            return Quantity.parse(number_text(value))
        raise QuantityError(FORMAT_WRONG)

    @staticmethod
    def of(nanos: int, format: Format) -> "Quantity":
        """A computed quantity."""
        whole, rest = divmod(nanos, 10**9)
        unscaled, scale = (nanos, _NANO) if rest else (whole, 0)
        return Quantity(nanos, format, unscaled=unscaled, scale=scale, big=not _fits(unscaled))

    @property
    def text(self) -> str:
        """The text as it was written; for a computed quantity its canonical form."""
        return self.written or self._canonical()

    def __str__(self) -> str:
        return self.written if self.verbatim else self._canonical()

    def _canonical(self) -> str:
        if self.nanos == INT64_MIN * 10**9 and self.format is Format.BINARY_SI and not self.big:
            # Go negates the least int64 into itself, and then finds no factor in it.
            return str(INT64_MIN)
        if self.nanos.bit_length() > _CACHED_BITS_MAX:
            return _format(self.nanos, self.format)
        return canonical(self.nanos, self.format)

    def __repr__(self) -> str:
        return f"Quantity.parse({str(self)!r})"

    def __hash__(self) -> int:
        return hash(self.nanos)

    def __eq__(self, other: object) -> bool:
        return self.nanos == other.nanos if isinstance(other, Quantity) else NotImplemented

    def __lt__(self, other: "Quantity") -> bool:
        return self.nanos < other.nanos

    def __le__(self, other: "Quantity") -> bool:
        return self.nanos <= other.nanos

    def __gt__(self, other: "Quantity") -> bool:
        return self.nanos > other.nanos

    def __ge__(self, other: "Quantity") -> bool:
        return self.nanos >= other.nanos

    def __add__(self, other: "Quantity") -> "Quantity":
        return _sum(self, other, sign=1)

    def __sub__(self, other: "Quantity") -> "Quantity":
        return _sum(self, other, sign=-1)

    def __neg__(self) -> "Quantity":
        return Quantity(
            -self.nanos, self.format, unscaled=-self.unscaled, scale=self.scale, big=self.big
        )

    @property
    def sign(self) -> int:
        return (self.nanos > 0) - (self.nanos < 0)

    def as_int64(self) -> int | None:
        """Return the value if Kubernetes keeps it as an int64, or None."""
        if self.big or self.scale < 0:
            return None
        value = self.unscaled * int(10 ** min(self.scale, _INT64_DIGITS + 1))
        return value if _fits(value) else None

    def as_approximate_float(self) -> float:
        """The nearest float, by the same two roundings that Kubernetes makes."""
        try:
            base = float(self.unscaled)
        except OverflowError:
            base = float("inf") if self.unscaled > 0 else float("-inf")
        return base if self.scale == 0 else base * _pow10(self.scale)

    def scaled_value(self, scale: int) -> int:
        """The value in units of 10**scale, rounded up, as an int64 with Go's overflow."""
        difference = self.scale - scale
        if self.big:
            return _scaled_big(self.unscaled, -difference)
        if difference >= 0:
            return _scaled_small(self.unscaled, difference)
        return _away_from_zero(self.unscaled, -difference)

    def value(self) -> int:
        """The value rounded up to a whole number."""
        return self.scaled_value(0)

    def milli_value(self) -> int:
        """The value in thousandths, rounded up."""
        return self.scaled_value(-3)


ZERO = Quantity(0, Format.DECIMAL_SI, unscaled=0, scale=0, big=False, written="0")
_DIGITS = tuple("0123456789")
_GO_SPACE = " \t\n\v\f\r\x85\xa0"


def number_text(value: float) -> str:
    """Write a float as Go's JSON encoder does."""
    if value and not 1e-6 <= abs(value) < 1e21:
        return repr(value)
    return format(Decimal(repr(value)), "f").removesuffix(".0")


def _digits(value: int) -> str:
    if abs(value) >= _NUMBER_LIMIT:
        raise QuantityError(_TOO_LONG)
    return str(value)


@lru_cache(maxsize=65536)
def _parse(text: str) -> Quantity:
    return _read(text)


def _read(text: str) -> Quantity:
    if text == "0":
        return ZERO
    parts = _PARTS.fullmatch(text) if text else None
    if parts is None:
        raise QuantityError(FORMAT_WRONG)
    sign, digits, point, decimals, suffix = parts.groups()
    if len(text) > _TEXT_MAX:
        raise QuantityError(_TOO_LONG)
    base, exponent, preferred = _interpret(suffix)
    number = _Number(-1 if sign == "-" else 1, digits or "0", decimals or "", point)
    return _small(text, number, (base, exponent, preferred)) or _large(
        text, number, (base, exponent, preferred)
    )


@dataclass(frozen=True, slots=True)
class _Number:
    """The numeric part of the text, leading zeros gone."""

    sign: int
    digits: str
    decimals: str
    point: str


def _interpret(suffix: str) -> tuple[int, int, Format]:
    if suffix in _DECIMAL:
        return 10, _DECIMAL[suffix], Format.DECIMAL_SI
    if suffix in _BINARY:
        return 2, _BINARY[suffix], Format.BINARY_SI
    if suffix[0] in "eE" and _EXPONENT.fullmatch(suffix, 1):
        exponent = int(suffix[1:])
        if _fits(exponent):
            # Kubernetes narrows the exponent to 32 bits without looking.
            return 10, _wrap(exponent, bits=32), Format.DECIMAL_EXPONENT
    raise QuantityError(SUFFIX_WRONG)


def _small(text: str, number: _Number, unit: tuple[int, int, Format]) -> Quantity | None:
    """The quantity as an int64 with a scale, where Kubernetes sees at a glance that it fits."""
    base, exponent, preferred = unit
    shifted = number.digits + number.decimals
    if base == 2:
        if number.decimals or 14 - len(number.digits) - exponent * 3 // 10 < 0:
            return None
        value = int(shifted)
        scale = 0
        kept = value & 7 != 0
        unscaled = number.sign * (value << exponent)
    else:
        scale = exponent - len(number.decimals)
        if len(shifted) > _INT64_DIGITS or scale < _NANO:
            return None
        kept = scale % 3 == 0 and not shifted.endswith("000") and shifted[0] != "0"
        unscaled = number.sign * int(shifted)
    nanos = _in_nanos(unscaled, scale)
    scale = scale if nanos else _scale_of_zero(scale)
    small = Quantity(nanos, preferred, unscaled=unscaled, scale=scale, big=False, written=text)
    object.__setattr__(small, "verbatim", kept)
    return small


def _large(text: str, number: _Number, unit: tuple[int, int, Format]) -> Quantity:
    """The quantity as a big decimal: rounded up to nano, binary ones capped at 2**63-1."""
    base, exponent, preferred = unit
    _check_digits(text, number)
    unscaled = int(number.digits + number.decimals)
    scale = -len(number.decimals)
    if base == 10:
        scale += exponent
    else:
        unscaled <<= exponent
    nanos = _ceil(unscaled, _NANO - scale) if scale < _NANO else _in_nanos(unscaled, scale)
    # Rounding to nano leaves the decimal at that scale, whether or not a digit was lost.
    unscaled, scale = (nanos, _NANO) if nanos else (0, _scale_of_zero(scale))
    if preferred is Format.BINARY_SI and nanos > INT64_MAX * 10**9:
        unscaled = INT64_MAX
        scale = 0
        nanos = INT64_MAX * 10**9
    if preferred is Format.BINARY_SI and 0 < nanos < 10**9:
        preferred = Format.DECIMAL_SI
    nanos = number.sign * nanos
    unscaled = number.sign * unscaled
    return Quantity(nanos, preferred, unscaled=unscaled, scale=scale, big=True, written=text)


def _check_digits(text: str, number: _Number) -> None:
    # The decimal library needs a digit before the suffix; the int64 path does not.
    if text.lstrip("+-").lstrip(".")[:1] not in _DIGITS:
        raise QuantityError(NUMERIC_WRONG)
    if len(number.digits) + len(number.decimals) > DIGITS_MAX:
        raise QuantityError(_TOO_LONG)


def _in_nanos(unscaled: int, scale: int) -> int:
    """Return `unscaled` times 10**scale in nanos, or raise if that has too many digits."""
    if unscaled == 0:
        return 0
    # Three tenths of its bits are a little less than the digits of a number.
    if scale + unscaled.bit_length() * 3 // 10 > DIGITS_MAX:
        raise QuantityError(_TOO_LONG)
    return unscaled * int(10 ** (scale - _NANO))


def _scale_of_zero(scale: int) -> int:
    """Return a scale that gives the same answers but does not stall a sum ("0e-2000000000")."""
    return max(-DIGITS_MAX, min(scale, DIGITS_MAX))


def _ceil(unscaled: int, places: int) -> int:
    """`unscaled` without its last decimal places, rounded up; cheap for any number of them."""
    if unscaled == 0:
        return 0
    if places > DIGITS_MAX:
        return 1
    return -(-unscaled // int(10**places))


def _away_from_zero(unscaled: int, places: int) -> int:
    magnitude = _ceil(abs(unscaled), places)
    return magnitude if unscaled >= 0 else -magnitude


def _sum(left: Quantity, right: Quantity, *, sign: int) -> Quantity:
    if sign < 0 and not left.big and not right.big and right.unscaled == INT64_MIN:
        return _without_the_least(left, right)
    preferred = right.format if left.nanos == 0 else left.format
    nanos = left.nanos + sign * right.nanos
    if not left.big and not right.big:
        if right.unscaled == 0:
            return Quantity(nanos, preferred, unscaled=left.unscaled, scale=left.scale, big=False)
        if left.unscaled == 0:
            return Quantity(
                nanos, preferred, unscaled=sign * right.unscaled, scale=right.scale, big=False
            )
    scale = min(left.scale, right.scale)
    shifted = left.unscaled * 10 ** (left.scale - scale)
    other = right.unscaled * 10 ** (right.scale - scale)
    total = shifted + sign * other
    big = left.big or right.big or not (_fits(shifted) and _fits(other) and _fits(total))
    return Quantity(nanos, preferred, unscaled=total, scale=scale, big=big)


def _without_the_least(left: Quantity, right: Quantity) -> Quantity:
    # Kubernetes negates in 64 bits, which leaves the least number as it is; only a sum that
    # does not fit makes it calculate with large numbers, which is correct.
    wrapped = _sum(left, right, sign=1)
    if not wrapped.big:
        return wrapped
    large = Quantity(
        right.nanos, right.format, unscaled=right.unscaled, scale=right.scale, big=True
    )
    return _sum(left, large, sign=-1)


def _scaled_small(unscaled: int, places: int) -> int:
    if places > _INT64_DIGITS + 1:
        return 0
    value = unscaled * int(10**places)
    if _fits(value):
        return value
    # Kubernetes overflows silently where it has a multiplication of its own for the scale.
    unrolled = places in (1, 2, 3, 6, 9) and unscaled != INT64_MIN
    return _wrap(value, bits=64) if unrolled else 0


def _scaled_big(unscaled: int, difference: int) -> int:
    if difference == 0:
        return _wrap(unscaled, bits=64)
    if difference < 0:
        return _wrap(_wrap(unscaled, bits=64) * int(10**-difference), bits=64)
    divisor = int(10**difference)
    if unscaled < INT64_MAX and difference < 19:
        narrowed = _wrap(unscaled, bits=64)
        quotient = abs(narrowed) // divisor * (1 if narrowed >= 0 else -1)
        return quotient + (narrowed != quotient * divisor)
    quotient, rest = divmod(unscaled, divisor)
    return _wrap(quotient, bits=64) + (rest != 0)


@lru_cache(maxsize=65536)
def canonical(nanos: int, preferred: Format) -> str:
    """
    Return the text that Kubernetes writes for a computed value.

    It has no fraction and the largest suffix that needs none. Beyond the last suffix, the number
    is printed without one, as apimachinery does.
    """
    return _format(nanos, preferred)


def _format(nanos: int, preferred: Format) -> str:
    if nanos == 0:
        return "0"
    whole, rest = divmod(nanos, 10**9)
    if preferred is Format.BINARY_SI and not rest and abs(whole) >= 1024:
        amount, times = _without_factors(whole, 1024)
        return f"{amount}{_BINARY_SUFFIX.get(times * 10, '')}"
    amount, times = _without_factors(nanos, 10)
    exponent = (times + _NANO) // 3 * 3
    amount *= (1, 10, 100)[times + _NANO - exponent]
    if preferred is Format.DECIMAL_EXPONENT:
        return f"{amount}e{exponent}" if exponent else str(amount)
    return f"{amount}{_DECIMAL_SUFFIX.get(exponent, '')}"


def _without_factors(value: int, factor: int) -> tuple[int, int]:
    times = 0
    while value % factor == 0:
        value //= factor
        times += 1
    return value, times


def _fits(value: int) -> bool:
    return INT64_MIN <= value <= INT64_MAX


def _wrap(value: int, *, bits: int) -> int:
    half = 1 << (bits - 1)
    return (value + half) % (2 * half) - half


def _pow10(exponent: int) -> float:
    if exponent < -323:
        return 0.0
    return float(f"1e{exponent}") if exponent <= 308 else float("inf")
