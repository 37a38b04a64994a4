"""
What is said of a token that cannot be where it is.

The reference implementation's parser repairs as it goes: a token too many is left out if the next
one would do, one that is missing is thought to be there if what follows would follow it. Either
way it says so, with all that it would have taken, in the order of its own list.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.cel.lexer import EOF

if TYPE_CHECKING:
    from collections.abc import Collection

    from dryrack.cel.lexer import Token

_NAMES = {
    "float": "NUM_FLOAT",
    "int": "NUM_INT",
    "uint": "NUM_UINT",
    "string": "STRING",
    "bytes": "BYTES",
    "ident": "IDENTIFIER",
    "escaped": "ESC_IDENTIFIER",
    EOF: EOF,
}
_ORDER = (
    *("==", "!=", "in", "<", "<=", ">=", ">", "&&", "||", "[", "]", "{", "}", "(", ")", ".", ","),
    *("-", "!", "?", ":", "+", "*", "/", "%", "true", "false", "null", "float", "int", "uint"),
    *("string", "bytes", "ident", "escaped", EOF),
)
# What an expression can begin with.
STARTS = frozenset(
    (*"[{(.-!", "true", "false", "null", "float", "int", "uint", "string", "bytes", "ident")
)
# What may come after an operand, wherever it is.
GOING_ON = frozenset(
    (*("==", "!=", "in", "<", "<=", ">=", ">", "&&", "||", "[", "."), *"-+*/%?"),
)


def mismatched(token: Token, wanted: Collection[str]) -> str:
    return f"Syntax error: mismatched input '{token.text}' expecting {_shown(wanted)}"


def extraneous(token: Token, wanted: Collection[str]) -> str:
    return f"Syntax error: extraneous input '{token.text}' expecting {_shown(wanted)}"


def missing(token: Token, kind: str) -> str:
    return f"Syntax error: missing {_shown((kind,))} at '{token.text}'"


def not_viable(text: str, token: Token) -> str:
    """Of what is neither this nor that, from where it could still have been both."""
    more = "" if token.kind == EOF else token.text
    return f"Syntax error: no viable alternative at input '{text}{more}'"


def _shown(kinds: Collection[str]) -> str:
    names = [_NAMES.get(kind, f"'{kind}'") for kind in sorted(kinds, key=_ORDER.index)]
    return names[0] if len(names) == 1 else "{" + ", ".join(names) + "}"
