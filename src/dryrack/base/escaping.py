"""
Text from outside, made safe to print.

Names and values come from files and clusters that anybody may have written. A terminal obeys
control characters, text runs backwards after a bidirectional override, and a step of a GitHub
workflow obeys a line that begins with `::` or contains `##[`. Each function returns text that a
reader sees as it is, with such characters written as escapes.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

# Bidirectional marks and overrides, line separators, half a character, and what XML forbids.
_UNICODE = "\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f\ufeff\ufffe\uffff\ud800-\udfff"
_HIDDEN = re.compile(f"[\x00-\x1f{_UNICODE}]")
# The same without tabs and the ends of lines.
_HIDDEN_IN_LINES = re.compile(f"[\x00-\x08\x0b\x0c\x0e-\x1f{_UNICODE}]|\r(?!\n)")
# The runner trims white space before the first form; it finds the second anywhere in a line.
_COMMAND = re.compile(r"^[^\S\n]*+:(:)|##(\[)", re.MULTILINE)


def visible(text: str) -> str:
    """Return the text as one line, with every hidden character as an escape."""
    return _HIDDEN.sub(_escape, text)


def visible_lines(text: str) -> str:
    """Return the text with its lines and tabs, and every other hidden character as an escape."""
    return _HIDDEN_IN_LINES.sub(_escape, text)


def without_commands(text: str, *, after: str = "") -> str:
    """
    Return lines that a GitHub runner does not execute as commands.

    `after` is the part of the first line that was printed before; it is not in the result.
    """
    whole = _COMMAND.sub(lambda found: _break_command(found, after), after + text)
    return whole[len(after) :]


def json_text(
    value: Any, *, indent: int | None = None, default: Callable[[Any], Any] | None = None
) -> str:
    """Return the value as JSON without hidden characters and without a runner's command."""
    text = json.dumps(value, indent=indent, ensure_ascii=False, default=default)
    # Both occur only inside strings, where an escape has the same meaning.
    text = _HIDDEN_IN_LINES.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
    return text.replace("##[", "\\u0023#[")


def yaml_needs_escapes(text: str) -> bool:
    """Return whether a text needs double quotes in YAML, because `yaml_lines` escapes it."""
    return bool(_HIDDEN_IN_LINES.search(text)) or "::" in text or "##[" in text


def yaml_lines(text: str) -> str:
    """Escape a YAML document in which the texts that need it are in double quotes."""
    return visible_lines(text).replace("##[", "\\x23#[")


def xml_lines(text: str) -> str:
    """Return an XML document in which no line is a runner's command."""
    return _COMMAND.sub(lambda found: f"{found[0][:-1]}&#{ord(found[0][-1])};", text)


def github_text(text: str) -> str:
    """Return the text as the message of a workflow command; its lines stay lines."""
    escaped = visible_lines(text).replace("%", "%25")
    return escaped.replace("\r", "%0D").replace("\n", "%0A")


def github_property(text: str) -> str:
    """Return the text as the value of a workflow command's property."""
    return github_text(visible(text)).replace(":", "%3A").replace(",", "%2C")


def _escape(found: re.Match[str]) -> str:
    return ascii(found[0])[1:-1]


def _break_command(found: re.Match[str], after: str) -> str:
    if found.end() <= len(after):
        return found[0]
    return f"{found[0][:-1]}\\x{ord(found[0][-1]):02x}"
