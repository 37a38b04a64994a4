"""
Text to tokens, and the error about a token that cannot be where it is.

The longest token wins. Where none fits, the error is about the characters that could still have
become one, and they are skipped together with the one that ruled it out; so `a =b` loses its `b`.
White space and comments are dropped.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from dryrack.cel.parsing.source import Problem

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

_HEX = "[0-9a-fA-F]"
_ESCAPE = rf"\\(?:[abfnrtv\"'\\?`]|[xX]{_HEX}{{2}}|u{_HEX}{{4}}|U{_HEX}{{8}}|[0-3][0-7][0-7])"
_STRING = (
    rf'"""(?:{_ESCAPE}|[^\\])*?"""'
    rf"|'''(?:{_ESCAPE}|[^\\])*?'''"
    rf'|"(?:{_ESCAPE}|[^\\"\n\r])*"'
    rf"|'(?:{_ESCAPE}|[^\\'\n\r])*'"
    r'|[rR]"""[\s\S]*?"""'
    r"|[rR]'''[\s\S]*?'''"
    r'|[rR]"[^"\n\r]*"'
    r"|[rR]'[^'\n\r]*'"
)
_TOKEN = re.compile(
    r"(?P<punctuation>[\[\]{}(),?:+*%-]|\.(?![0-9])|[!=<>]=|[<>!]|&&|\|\||/(?!/))"
    r"|(?P<skipped>[\t \r\n\f]+|//[^\n]*)"
    rf"|(?P<string>{_STRING})"
    rf"|(?P<bytes>[bB](?:{_STRING}))"
    r"|(?P<ident>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<float>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+"
    r"|\.[0-9]+(?:[eE][+-]?[0-9]+)?)"
    rf"|(?P<uint>(?:0x{_HEX}+|[0-9]+)[uU])"
    rf"|(?P<int>0x{_HEX}+|[0-9]+)"
    r"|(?P<escaped>`[A-Za-z0-9_./ -]+`)"
)
# What could have become a token, had the next character been another one.
_BEGUN_ESCAPE = rf"(?:\\(?:[xX]{_HEX}?|u{_HEX}{{0,3}}|U{_HEX}{{0,7}}|[0-3][0-7]?)?)?"
_BEGUN = re.compile(
    rf'"(?:{_ESCAPE}|[^\\"\n\r])*{_BEGUN_ESCAPE}'
    rf"|'(?:{_ESCAPE}|[^\\'\n\r])*{_BEGUN_ESCAPE}"
    r"|`[A-Za-z0-9_./ -]*"
    r"|[&|=]"
    r"|"
)
_KEYWORDS = frozenset({"in", "true", "false", "null"})
EOF = "<EOF>"

# Names that no variable and no function may have.
RESERVED_WORDS = frozenset(
    (
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "namespace",
        "return",
        "var",
        "void",
        "while",
    )
)


# The same, with the words that stand for something.
KEYWORDS_AND_RESERVED_WORDS = RESERVED_WORDS | _KEYWORDS


class Token(NamedTuple):
    """`kind` is the text itself for punctuation and keywords, else what sort of token it is."""

    kind: str
    text: str
    position: int


def tokenize(text: str) -> tuple[list[Token], list[Problem]]:
    """Split text into tokens, the last of which is `EOF`, and what could not be one."""
    tokens: list[Token] = []
    problems: list[Problem] = []
    position = 0
    end = len(text)
    match = _TOKEN.match
    while position < end:
        token = match(text, position)
        if token is None:
            position = _skip(text, position, problems)
            continue
        kind = token.lastgroup or ""
        if kind != "skipped":
            written = token.group()
            if kind == "punctuation" or written in _KEYWORDS:
                kind = written
            tokens.append(Token(kind, written, position))
        position = token.end()
    tokens.append(Token(EOF, EOF, end))
    return tokens, problems


def _skip(text: str, position: int, problems: list[Problem]) -> int:
    begun = _BEGUN.match(text, position)
    assert begun is not None, "an empty match is always possible"
    end = begun.end() + 1
    problems.append(
        Problem(position, f"Syntax error: token recognition error at: '{text[position:end]}'")
    )
    return end


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


def syntax_error(
    text: str, tokens: Sequence[Token], index: int, expected: Collection[str]
) -> Problem:
    """Return the error for a token that cannot be where it is, with the expected ones."""
    token = tokens[index]
    if not expected:
        end = token.position + (0 if token.kind == EOF else len(token.text))
        read = text[tokens[index - 1].position : end].translate(_ESCAPED)
        return Problem(token.position, f"Syntax error: no viable alternative at input '{read}'")
    shown = f"'{token.text.translate(_ESCAPED)}'"
    names = [_NAMES.get(kind, f"'{kind}'") for kind in sorted(expected, key=_ORDER.index)]
    wanted = names[0] if len(names) == 1 else "{" + ", ".join(names) + "}"
    if token.kind != EOF and tokens[index + 1].kind in expected:
        message = f"extraneous input {shown} expecting {wanted}"
    elif _is_missing(token.kind, *expected):
        message = f"missing {wanted} at {shown}"
    else:
        message = f"mismatched input {shown} expecting {wanted}"
    # Where there is no text there is no first column either.
    position = token.position if token.kind != EOF or token.position else -1
    return Problem(position, f"Syntax error: {message}")


def _is_missing(found: str, expected: str, *others: str) -> bool:
    """Return whether the expected token is missing before the one that was found."""
    if others or found == EOF:
        return not others and expected in (")", "]", "}")
    return expected == ":" and found not in _ENDS
