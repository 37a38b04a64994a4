"""Names that the server makes up, and times as it writes them."""

from datetime import UTC, datetime
from functools import lru_cache

from dryrack.base.ports import Chance

# No vowels, so that no words; no 0, 1, 3, which look like letters.
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX_CHARS = 5
_NAME_CHARS_MAX = 63


def generated(prefix: str, chance: Chance) -> str:
    """A name for `generateName`; a long prefix is cut to make room."""
    number = int(chance.uuid().replace("-", "")[:16], 16)
    suffix = ""
    for _ in range(_SUFFIX_CHARS):
        number, digit = divmod(number, len(_ALPHABET))
        suffix += _ALPHABET[digit]
    return prefix[: _NAME_CHARS_MAX - _SUFFIX_CHARS] + suffix


@lru_cache(maxsize=4)
def _at(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def timestamp(seconds: float) -> str:
    """A time as metadata has it."""
    return _at(int(seconds))
