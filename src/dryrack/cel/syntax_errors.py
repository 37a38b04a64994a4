"""The first syntax error of an expression, in the words of the reference's parser."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.cel.parsing.lexer import EOF
from dryrack.cel.parsing.source import Problem

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from dryrack.cel.parsing.lexer import Token

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
# The order in which the reference numbers its tokens.
_ORDER = (
    *(EOF, "==", "!=", "in", "<", "<=", ">=", ">", "&&", "||", "[", "]", "{", "}", "(", ")", "."),
    *(",", "-", "!", "?", ":", "+", "*", "/", "%", "true", "false", "null", "float", "int"),
    *("uint", "string", "bytes", "ident", "escaped"),
)
_ENDS = frozenset((")", "]", "}", ",", "?", *_ORDER[1:10]))
_ESCAPED = str.maketrans({"\t": "\\t", "\n": "\\n", "\r": "\\r"})


def syntax_error(tokens: Sequence[Token], index: int, expected: Collection[str]) -> Problem:
    """Say that a token cannot be where it is, and what could have been there."""
    token = tokens[index]
    found = f"'{token.text.translate(_ESCAPED)}'"
    names = [_NAMES.get(kind, f"'{kind}'") for kind in sorted(expected, key=_ORDER.index)]
    wanted = names[0] if len(names) == 1 else "{" + ", ".join(names) + "}"
    if token.kind != EOF and tokens[index + 1].kind in expected:
        message = f"extraneous input {found} expecting {wanted}"
    elif _is_missing(token.kind, *expected):
        message = f"missing {wanted} at {found}"
    else:
        message = f"mismatched input {found} expecting {wanted}"
    # Where there is no text there is no first column either.
    position = token.position if token.kind != EOF or token.position else -1
    return Problem(position, f"Syntax error: {message}")


def _is_missing(found: str, expected: str, *others: str) -> bool:
    """Return whether all would be well with the expected token before the one that was found."""
    if others or found == EOF:
        return not others and expected in (")", "]", "}")
    return expected == ":" and found not in _ENDS
