"""Numbers in texts from outside."""

from __future__ import annotations

INT64_MAX = 2**63 - 1
INT64_MIN = -(2**63)
# Python raises for thousands of digits, and Kubernetes accepts only ASCII digits.
_DIGITS_MAX = 19


def read_int64(text: str) -> int | None:
    """Return the integer that Go's `strconv.ParseInt` reads, or None where it reports an error."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not (digits.isascii() and digits.isdigit()):
        return None
    significant = digits.lstrip("0")
    if len(significant) > _DIGITS_MAX:
        return None
    number = int(significant or "0")
    number = -number if text[0] == "-" else number
    return number if INT64_MIN <= number <= INT64_MAX else None
