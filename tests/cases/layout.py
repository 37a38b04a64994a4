"""
How a case looks as a file: YAML in which small things stay on one line.

A case is read far more often than it is written, and Kubernetes objects in plain block style
are mostly indentation. Here whatever fits on a line is put on one, the rest is block style,
and text of several lines is a literal block. The same value always gives the same text.
"""

from __future__ import annotations

import io
import math
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# Leaves room for the indentation of anything a case nests.
LINE_LENGTH = 76


def to_yaml(case: Mapping[str, Any]) -> str:
    """The case as YAML, its parts in the order given."""
    stream = io.StringIO()
    dumper = _Dumper(stream, sort_keys=False, width=10_000, allow_unicode=True)
    dumper.open()
    node = _mapping(dumper, dict(case))
    assert isinstance(node, yaml.MappingNode)
    node.flow_style = False
    dumper.serialize(node)
    dumper.close()
    return stream.getvalue()


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: object) -> bool:
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        # Lists inside mappings are indented, as people write them.
        super().increase_indent(flow, False)

    def represent_node(self, node: yaml.Node) -> yaml.Node:
        if isinstance(node, yaml.CollectionNode):
            node.flow_style = _width(node) <= LINE_LENGTH
        return node


def _width(node: yaml.Node) -> float:
    if isinstance(node, yaml.MappingNode):
        return sum((_width(key) + _width(value) + 4 for key, value in node.value), 2.0)
    if isinstance(node, yaml.SequenceNode):
        return sum((_width(item) + 2 for item in node.value), 2.0)
    assert isinstance(node, yaml.ScalarNode)
    return math.inf if node.style == "|" else len(node.value)


def _mapping(dumper: _Dumper, value: dict[str, Any]) -> yaml.Node:
    return dumper.represent_node(dumper.represent_mapping("tag:yaml.org,2002:map", value))


def _sequence(dumper: _Dumper, value: Sequence[Any]) -> yaml.Node:
    return dumper.represent_node(dumper.represent_sequence("tag:yaml.org,2002:seq", value))


def _text(dumper: _Dumper, value: str) -> yaml.Node:
    style = "|" if "\n" in value else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(dict, _mapping)
_Dumper.add_representer(list, _sequence)
_Dumper.add_representer(tuple, _sequence)
_Dumper.add_representer(str, _text)
