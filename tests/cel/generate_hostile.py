"""
Hostile expressions (too deep, too wide, too long, too expensive), and forms that people write and
that are almost right.

Depths lie around the limits of the reference's parser, because a limit that is off by one is
seen nowhere else.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

# A head, what is repeated, the core, what is repeated after it, a tail.
_NESTED = (
    ("", "(", "true", ")", ""),
    ("", "!", "true", "", ""),
    ("", "-", "1", "", " == 1"),
    ("", "[", "", "]", ".size() == 0"),
    ("", "[", "1", "]", ".size() == 1"),
    ("", "{'a': ", "1", "}", ".size() == 1"),
    ("", "true ? ", "true", " : false", ""),
    ("", "(true ? ", "true", " : false)", ""),
    ("", "dyn(", "true", ")", ""),
    ("size(", "string(", "'a'", ")", ") == 1"),
    ("", "[1].all(x, ", "true", ")", ""),
    ("", "[1].map(x, ", "1", ")", ".size() == 1"),
    ("", "cel.bind(a, 1, ", "a == 1", ")", ""),
    ("", "(1 + ", "1", ")", " > 0"),
    ("", "{'a': 1}.exists(k, v, ", "true", ")", ""),
    ("", "optional.of(", "1", ")", ".hasValue()"),
)

# A start, what follows it again and again, an end.
_CHAINED = (
    ("true", " && true", ""),
    ("false", " || false", ""),
    ("1", " + 1", " > 0"),
    ("'a'", " + 'b'", " != ''"),
    ("device.attributes", ".a", ""),
    ("device.attributes", "['d']", ""),
    ("dyn(device)", ".a", ""),
    ("[1", ", 1", "].size() > 0"),
    ("'a'", ".trim()", " == 'a'"),
    ("true", " == true", ""),
    ("true", " ? true : false", ""),
    ("1 < 2", " && 1 < 2 || false", ""),
    ("'a'", ".matches('a') && 'b'", " == 'b'"),
    ("optional.of(1)", ".or(optional.of(1))", ".hasValue()"),
)
_DEPTHS = (3, 10, 30, 60, 120, 240, 245, 248, 249, 250, 251, 252, 255, 260, 300, 500, 900)

_DEAR = (
    "lists.range({n}).all(x, lists.range({n}).all(y, true))",
    "lists.range({n}).map(x, lists.range({n})).size() == {n}",
    "lists.range({n}).all(x, 'aaaaaaaaaaaaaaaaaaaaaaaa'.matches('(a*)*b') || true)",
    "lists.range({n}).map(x, x).sum() >= 0",
    "lists.range({n}).distinct().size() == {n}",
    "lists.range({n}).sortBy(x, -x)[0] == {n} - 1",
    "lists.range({n}).transformMap(i, v, v).size() == {n}",
)


# One form in each line, and some that cannot stand in a line.
ALMOST_RIGHT = (
    *(Path(__file__).parent / "almost_right.txt").read_text().splitlines(),
    *("", " ", "\t\n true \r\n", "\ufefftrue", "true\x00", "'a\nb' == 'a'"),
)


def hostile(chance: Random) -> str:
    kinds: tuple[Callable[[Random], str], ...] = (
        *(_nested, _chained) * 2,
        *(_almost_right,) * 8,
        _long,
        _dear,
    )
    return chance.choice(kinds)(chance)


def _nested(chance: Random) -> str:
    head, before, core, after, tail = chance.choice(_NESTED)
    depth = chance.choice(_DEPTHS)
    return f"{head}{before * depth}{core}{after * depth}{tail}"


def _chained(chance: Random) -> str:
    start, link, end = chance.choice(_CHAINED)
    return f"{start}{link * chance.choice(_DEPTHS)}{end}"


def _long(chance: Random) -> str:
    length = chance.choice((1000, 9000, 40_000, 110_000))
    return chance.choice(("'{}' == 'a'", "device.driver == '{}'", "{}", "true // {}")).format(
        "a" * length
    )


def _almost_right(chance: Random) -> str:
    return chance.choice(ALMOST_RIGHT)


def _dear(chance: Random) -> str:
    return chance.choice(_DEAR).format(n=chance.choice((10, 30, 60)))
