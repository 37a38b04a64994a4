"""What is said of a token that cannot be where it is, in the words of the reference's parser."""

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
# The order in which the reference numbers its tokens.
_ORDER = (
    *(EOF, "==", "!=", "in", "<", "<=", ">=", ">", "&&", "||", "[", "]", "{", "}", "(", ")", "."),
    *(",", "-", "!", "?", ":", "+", "*", "/", "%", "true", "false", "null", "float", "int"),
    *("uint", "string", "bytes", "ident", "escaped"),
)
_ESCAPED = str.maketrans({"\t": "\\t", "\n": "\\n", "\r": "\\r"})


def mismatched(token: Token, wanted: Collection[str]) -> str:
    return f"mismatched input {_quoted(token.text)} expecting {_shown(wanted)}"


def extraneous(token: Token, wanted: Collection[str]) -> str:
    return f"extraneous input {_quoted(token.text)} expecting {_shown(wanted)}"


def missing(token: Token, wanted: Collection[str]) -> str:
    return f"missing {_shown(wanted)} at {_quoted(token.text)}"


def not_viable(text: str) -> str:
    """Of what is neither this nor that, from where it could still have been both."""
    return f"no viable alternative at input {_quoted(text)}"


def _quoted(text: str) -> str:
    return f"'{text.translate(_ESCAPED)}'"


def _shown(kinds: Collection[str]) -> str:
    names = [_NAMES.get(kind, f"'{kind}'") for kind in sorted(kinds, key=_ORDER.index)]
    return names[0] if len(names) == 1 else "{" + ", ".join(names) + "}"
