"""
Print new values as YAML that kubectl reads back unchanged.

Strings that YAML 1.1 or Go reads as another type are in quotes; strings of several lines are
literal blocks.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import yaml

from dryrack.base.escaping import yaml_lines, yaml_needs_escapes
from dryrack.kinds import scalars

if TYPE_CHECKING:
    from dryrack.kinds.raw import Raw

_STRING = "tag:yaml.org,2002:str"


class _Dumper(yaml.SafeDumper):
    """Quote text that another reader would take for another type."""

    indents_lists = False

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, indentless and not self.indents_lists)

    def represent_text(self, text: str) -> yaml.ScalarNode:
        if yaml_needs_escapes(text):
            return self.represent_scalar(_STRING, text, style='"')
        is_block = "\n" in text and not any(line != line.rstrip() for line in text.split("\n"))
        if is_block and text.strip():
            return self.represent_scalar(_STRING, text, style="|")
        style = '"' if _is_misread(text) else None
        return self.represent_scalar(_STRING, text, style=style)

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def write_double_quoted(self, text: str, split: bool = True) -> None:
        # A line that is broken after an escape could begin with a command to a runner.
        super().write_double_quoted(text, split=False)


class _IndentedDumper(_Dumper):
    indents_lists = True


for _each in (_Dumper, _IndentedDumper):
    _each.add_representer(str, _each.represent_text)


def print_block(value: Any, *, indents_lists: bool = False) -> str:
    """Return a value in block style, with a line end."""
    dumper = _IndentedDumper if indents_lists else _Dumper
    text: str = yaml.dump(value, Dumper=dumper, sort_keys=False, allow_unicode=True, width=10_000)
    return yaml_lines(text.removesuffix("...\n"))


def print_flow(value: Any) -> str:
    """Return a value in flow style, in one line."""
    text: str = yaml.dump(
        value,
        Dumper=_FlowDumper,
        sort_keys=False,
        allow_unicode=True,
        width=1_000_000,
        default_flow_style=True,
    )
    return yaml_lines(text.removesuffix("...\n")).rstrip("\n")


class _FlowDumper(_Dumper):
    def represent_text(self, text: str) -> yaml.ScalarNode:
        needs_quotes = "\n" in text or yaml_needs_escapes(text) or _is_misread(text)
        return self.represent_scalar(_STRING, text, style='"' if needs_quotes else None)


_FlowDumper.add_representer(str, _FlowDumper.represent_text)


def print_scalar(value: Any, style: str | None) -> str:
    """Return a scalar in one line, in the quotes of the scalar that it replaces."""
    if isinstance(value, str) and style in ('"', "'"):
        if style == '"' or "'" in value or "\n" in value or yaml_needs_escapes(value):
            return json.dumps(value, ensure_ascii=yaml_needs_escapes(value))
        return f"'{value}'"
    return print_flow(value)


def print_object(raw: Raw) -> str:
    """Return an object in flow style, for messages of one line."""
    return print_flow(raw)


def _is_misread(text: str) -> bool:
    """Return whether another reader takes the word, without quotes, for another type."""
    return not isinstance(scalars.plain(text), str)
