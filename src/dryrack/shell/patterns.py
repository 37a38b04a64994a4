"""
Regular expressions and patterns that scripts contain.

A script comes from a manifest, so its expressions are matched in linear time, without backtracking.
"""

import re
from typing import Any


def compile_expression(text: str, *, ignores_case: bool = False) -> Any:
    """Compile an extended regular expression; raise a ValueError if it is not valid."""
    # Loaded with the first expression: most scripts have none.
    import re2

    options = re2.Options()
    options.dot_nl = True
    options.log_errors = False
    options.case_sensitive = not ignores_case
    for name, characters in (("[[:space:]]", r"\s"), ("[[:digit:]]", r"\d")):
        text = text.replace(name, characters)
    try:
        return re2.compile(text, options)
    except re2.error as error:
        raise ValueError(str(error)) from None


def to_extended(expression: str) -> str:
    """Turn a basic regular expression into an extended one: `\\|` is special there, `|` is not."""
    return re.sub(
        r"\\([|(){}+?])|([|(){}+?])", lambda it: it[1] if it[1] else "\\" + it[2], expression
    )


def expression_of(pattern: str) -> str:
    """Turn a pattern of file names into a regular expression."""
    parts: list[str] = []
    at = 0
    while at < len(pattern):
        character = pattern[at]
        end = pattern.find("]", at + 2) if character == "[" else -1
        if end > 0:
            content = pattern[at + 1 : end].replace("\\", "\\\\")
            parts.append(f"[^{content[1:]}]" if content[0] == "!" else f"[{content}]")
            at = end
        else:
            parts.append({"*": ".*", "?": "."}.get(character) or re.escape(character))
        at += 1
    return "".join(parts)
