"""Random expressions inside of loops, some of whose constants are the variables of the loops."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from random import Random

_OUTER = ("lists.range(3)", "[1, 2, 1]", "['a', 'b', 'a']", "[dyn(1), dyn('a'), dyn(2u), dyn(1.0)]")
_INNER = ("lists.range(2)", "[2, 1]", "[v1, v1]", "[dyn(v1), 1]", "{'a': 1, 'b': 2}")
_MACROS = ("all", "exists", "all", "exists", "exists_one")
_FORMS = (
    "{outer}.{one}(v1, {inner}.{other}(v2, {e}) {op} ({f}))",
    "{outer}.{one}(v1, {inner}.{other}(v2, ({e}) {op} ({f})))",
    "{outer}.{one}(v1, {inner}.{other}(v2, ({e}) == ({f})))",
    "{outer}.{one}(v1, cel.bind(v2, {bound}, ({e}) {op} ({f})))",
    "{outer}.{one}(v1, {inner}.map(v2, {e}).size() > 1 {op} v1 == 1)",
    "{outer}.{one}(v1, {inner}.filter(v2, {e}).size() > 1 {op} v1 == 1)",
    "{outer}.{one}(v1, v2, {inner}.{other}(v3, {e}) {op} ({f}))",
)
_BOUND = ("v1", "v1 + 1", "[v1]", "string(v1)", "1 / (v1 - 1)")
_NUMBER = re.compile(r"(?<![\w.'\"\\-])\d+(?![\w.'\"])")
_TEXT = re.compile(r"(?<![rb\w\"'\\\[])\"[a-z]*\"(?![\]\"'])")


def _dependent(chance: Random, text: str) -> str:
    """The expression with variables of loops in place of some constants."""
    variables = ("v1", "v2", "v1", "v2", "(v1 - v2)", "(v1 * v2)")
    text = _NUMBER.sub(
        lambda found: chance.choice(variables) if chance.random() < 0.5 else found[0], text
    )
    return _TEXT.sub(
        lambda found: (
            f"string({chance.choice(('v1', 'v2'))})" if chance.random() < 0.3 else found[0]
        ),
        text,
    )


def looped(chance: Random, first: str, second: str) -> str:
    """Both expressions, in two loops or one."""
    return chance.choice(_FORMS).format(
        e=_dependent(chance, first),
        f=_dependent(chance, second),
        outer=chance.choice(_OUTER),
        inner=chance.choice(_INNER),
        bound=chance.choice(_BOUND),
        one=chance.choice(_MACROS),
        other=chance.choice(_MACROS),
        op=chance.choice(("||", "&&")),
    )
